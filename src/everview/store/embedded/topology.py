"""Nodes and regions of the embedded store.

A key's token lies in one region, the region belongs to one node, and the
node's log takes the key's writes; which is which stands in one document that every write
transaction checks.

All rows lie in one file, so a move is a change of the document alone. It raises the
region's incarnation, so that of two entries of one key in the logs of two nodes the one
with the higher incarnation came later, whatever their sequence numbers::

    node 1:  … put k (incarnation 0, sequence 71)
                        move of k's region to node 2
    node 2:                       put k (incarnation 1, sequence 9) …

A removed node keeps its log until it is trimmed; its number is never given again.
"""

from __future__ import annotations

import json
import struct
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from everview.boundary import fast, internal, public
from everview.change.frontier import Frontier
from everview.errors import TopologyError
from everview.store.contract import Region
from everview.store.embedded.blocks import LogEnd, end_of
from everview.store.embedded.environment import Cursor, Transaction
from everview.store.embedded.layout import LOG, TOPOLOGY

TOKENS = 1 << 32
REGIONS_PER_NODE = 4
_VERSION = TOPOLOGY + b"v"

log_key = struct.Struct(">cIQ").pack
_NODE = 5
"""Bytes of a log key up to and including the node."""


def sequence_of(key: bytes) -> int:
    """The sequence number in a log key."""
    return int.from_bytes(key[_NODE:], "big")


@dataclass(frozen=True)
class Map:
    """The topology at one version."""

    nodes: tuple[int, ...]
    regions: tuple[Region, ...]
    closed: Frontier
    """Where the logs of removed nodes end."""
    trimmed: Frontier
    next_node: int

    @cached_property
    def _firsts(self) -> list[int]:
        return [region.first for region in self.regions]

    @cached_property
    def _columns(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
        return (
            np.array(self._firsts, np.uint32),
            np.array([region.node for region in self.regions], np.uint32),
            np.array([region.incarnation for region in self.regions], np.uint32),
        )

    def region(self, token: int) -> Region:
        return self.regions[bisect_right(self._firsts, token) - 1]

    def locate(self, tokens: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
        """Node and incarnation of each token."""
        firsts, nodes, incarnations = self._columns
        at = np.searchsorted(firsts, tokens, side="right") - 1
        return nodes[at], incarnations[at]

    def encode(self) -> bytes:
        return json.dumps(
            {
                "nodes": self.nodes,
                "regions": [[r.first, r.node, r.incarnation] for r in self.regions],
                "closed": str(self.closed),
                "trimmed": str(self.trimmed),
                "next": self.next_node,
            }
        ).encode()

    @staticmethod
    def decode(document: bytes) -> Map:
        plain = json.loads(document)
        rows = plain["regions"]
        ends = [row[0] - 1 for row in rows[1:]] + [TOKENS - 1]
        return Map(
            tuple(plain["nodes"]),
            tuple(Region(row[0], end, row[1], row[2]) for row, end in zip(rows, ends, strict=True)),
            Frontier.parse(plain["closed"]),
            Frontier.parse(plain["trimmed"]),
            plain["next"],
        )


def found_topology(transaction: Transaction, nodes: int) -> None:
    """The topology of a new store: nodes from 1, tokens dealt out in turn."""
    count = nodes * REGIONS_PER_NODE
    edges = [TOKENS * index // count for index in range(count + 1)]
    regions = tuple(Region(edges[i], edges[i + 1] - 1, i % nodes + 1, 0) for i in range(count))
    _store(transaction, Map(tuple(range(1, nodes + 1)), regions, Frontier(), Frontier(), nodes + 1))


def _store(transaction: Transaction, map_: Map) -> None:
    version = transaction.get(_VERSION) or bytes(8)
    transaction.put(TOPOLOGY, map_.encode())
    transaction.put(_VERSION, (int.from_bytes(version, "big") + 1).to_bytes(8, "big"))


def last_sequence(transaction: Transaction, map_: Map, node: int) -> int:
    """The sequence number of the node's last log entry."""
    cursor = last_block(transaction, node)
    return max(map_.trimmed[node], map_.closed[node]) if cursor is None else sequence_of(cursor.key())


def log_end(transaction: Transaction, map_: Map, node: int) -> LogEnd:
    """Where the node's log ends. A log that is empty counts its bytes from zero again: what matters is the
    difference between blocks that are there."""
    cursor = last_block(transaction, node)
    if cursor is None:
        return LogEnd(max(map_.trimmed[node], map_.closed[node]), 0)
    key, block = cursor.item()
    return LogEnd(int.from_bytes(key[_NODE:], "big"), end_of(block))


def last_block(transaction: Transaction, node: int) -> Cursor | None:
    """At the last block of a node's log, if there is one."""
    cursor = transaction.cursor()
    found = cursor.prev() if cursor.set_range(log_key(LOG, node + 1, 0)) else cursor.last()
    return cursor if found and cursor.key().startswith(log_key(LOG, node, 0)[:_NODE]) else None


def ends(transaction: Transaction, map_: Map) -> Frontier:
    """The end of every log, removed nodes included."""
    return map_.closed | Frontier({node: last_sequence(transaction, map_, node) for node in map_.nodes})


@public
@fast
class EmbeddedTopology:
    """Nodes and regions, read in any transaction and changed while clients write."""

    def __init__(self, update: Callable[[Callable[[Transaction], object]], object], read: Reader) -> None:
        self._update = update
        self._read = read
        self._known: tuple[bytes, Map] = (b"", Map((), (), Frontier(), Frontier(), 0))

    @internal
    def current(self, transaction: Transaction) -> Map:
        """The topology as this transaction sees it."""
        version = transaction.get(_VERSION, b"")
        known, map_ = self._known
        if version != known:
            map_ = Map.decode(transaction.get(TOPOLOGY, b""))
            self._known = (version, map_)
        return map_

    def _change(self, change: Callable[[Transaction, Map], Map]) -> Map:
        def work(transaction: Transaction) -> Map:
            changed = change(transaction, self.current(transaction))
            _store(transaction, changed)
            return changed

        result = self._update(work)
        assert isinstance(result, Map)
        return result

    def nodes(self) -> tuple[int, ...]:
        return self._read(self.current).nodes

    def regions(self) -> tuple[Region, ...]:
        """All regions, in the order of their tokens, with the nodes that own them."""
        return self._read(self.current).regions

    def add_node(self) -> int:
        """A new node without regions; give it some with :meth:`move`."""
        changed = self._change(lambda _, m: replace(m, nodes=(*m.nodes, m.next_node), next_node=m.next_node + 1))
        return changed.nodes[-1]

    def remove_node(self, node: int) -> None:
        """Give the node's regions to the others in turn and end its log."""

        def change(transaction: Transaction, m: Map) -> Map:
            others = tuple(other for other in m.nodes if other != node)
            if node not in m.nodes:
                raise TopologyError(f"there is no node {node}", hint=f"the nodes are {', '.join(map(str, m.nodes))}")
            if not others:
                raise TopologyError(f"node {node} is the last one", hint="add another node first")
            regions, turn = [], 0
            for region in m.regions:
                if region.node == node:
                    region = replace(region, node=others[turn % len(others)], incarnation=region.incarnation + 1)
                    turn += 1
                regions.append(region)
            end = Frontier({node: last_sequence(transaction, m, node)})
            return replace(m, nodes=others, regions=tuple(regions), closed=m.closed | end)

        self._change(change)

    def split(self, token: int) -> None:
        """Cut the region that holds this token so that a region begins at it."""

        def change(_: Transaction, m: Map) -> Map:
            region = m.region(_checked(token))
            if region.first == token:
                raise TopologyError(f"a region begins at token {token} already")
            halves = (replace(region, last=token - 1), replace(region, first=token))
            at = m.regions.index(region)
            return replace(m, regions=(*m.regions[:at], *halves, *m.regions[at + 1 :]))

        self._change(change)

    def move(self, token: int, node: int) -> None:
        """Give the region that holds this token to another node."""

        def change(_: Transaction, m: Map) -> Map:
            region = m.region(_checked(token))
            if node not in m.nodes:
                raise TopologyError(f"there is no node {node}", hint=f"the nodes are {', '.join(map(str, m.nodes))}")
            if region.node == node:
                return m
            moved = replace(region, node=node, incarnation=region.incarnation + 1)
            return replace(m, regions=tuple(moved if r == region else r for r in m.regions))

        self._change(change)

    @internal
    def mark_trimmed(self, transaction: Transaction, frontier: Frontier) -> None:
        """Remember, in the caller's transaction, what has been trimmed."""
        m = self.current(transaction)
        _store(transaction, replace(m, trimmed=m.trimmed | frontier))


Reader = Callable[[Callable[[Transaction], Map]], Map]


def _checked(token: int) -> int:
    if not 0 <= token < TOKENS:
        raise TopologyError(f"{token} is not a token", hint=f"tokens are 0 to {TOKENS - 1}")
    return token
