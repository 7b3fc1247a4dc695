"""Which chunks a call on bags touches.

The distinct bags of a call are numbered by (shard, key), a small bag is one
region, its only chunk, and a large bag as many regions as it has chunks that changes fall
into.

Regions are numbered in the order of bags and bounds, so rows sorted by (region, entry) are
sorted by (bag, entry), and the regions of a shard are a slice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.store.contract import StateTable
from everview.store.embedded.chunks import MORE, read_heads, words_of
from everview.store.embedded.environment import KEY_LIMIT
from everview.store.embedded.epoch_records import require_kept
from everview.store.embedded.large_bags import LargeBag, TouchedChunk
from everview.store.embedded.records import Door, check_keys, fetch, inverse, order_of, route, space_of
from everview.store.embedded.versions import Versions
from everview.store.encoding.ragged import Bytes, Ints, column_of, glue, lengths, offsets_of

FRAME = 6
"""Bytes of a chunk's key before the bag's key: the table, and the length of the bag's key."""


@dataclass(frozen=True)
class NumberedBags:
    """The distinct bags of a call, numbered in the order (shard, key)."""

    sorted_keys: Bytes
    place: Ints
    """Where each bag stands among the sorted keys."""
    of_row: Ints
    """The bag of each row of the call."""
    prefixes: list[bytes]
    """The keys of the first chunks, with which the keys of all chunks begin."""
    framed: Bytes
    edges: list[int]

    @staticmethod
    def of(table: StateTable, keys: Bytes, shards: int) -> NumberedBags:
        check_keys(table, keys, KEY_LIMIT - FRAME)
        encoded = keys.dictionary_encode()
        order = order_of(encoded.dictionary)
        sorted_keys = encoded.dictionary.take(pa.array(order))
        path = route(sorted_keys, shards)
        number = inverse(path.order)[inverse(order)]
        sizes = lengths(path.keys).astype(">u2")
        framed = glue(space_of(table), column_of(sizes, np.arange(len(sizes) + 1) * 2), path.keys)
        of_row = number[encoded.indices.to_numpy()]
        return NumberedBags(sorted_keys, path.order, of_row, framed.to_pylist(), framed, path.edges)

    def __len__(self) -> int:
        return len(self.prefixes)

    def key(self, bag: int) -> bytes:
        return self.prefixes[bag][FRAME:]


@dataclass(frozen=True)
class ChunkChain:
    """What was found of a bag of several chunks."""

    bag: int
    shard: int
    prefix: bytes
    regions: list[TouchedChunk]

    @property
    def whole(self) -> bool:
        """Whether every chunk of the bag is touched."""
        bounds = [region.bound for region in self.regions]
        return bounds[0] == b"" and [region.following for region in self.regions] == [*bounds[1:], None]


@dataclass(frozen=True)
class Regions:
    """The chunks that changes fall into, in the order of bags and bounds."""

    bag: Ints
    records: Versions
    of_row: Ints
    chains: list[tuple[int, ChunkChain]]
    """Bags of several chunks, each with the number of its first region."""


def find_regions(doors: Sequence[Door], table: StateTable, bags: NumberedBags, entries: Bytes, as_of: int) -> Regions:
    """Read the chunks that the entries fall into."""
    records = fetch(doors, table, bags.prefixes, bags.edges, as_of)
    firsts = Versions(records, table.name)
    large = large_among(firsts, as_of, table)
    if not len(large):
        return Regions(np.arange(len(bags)), firsts, bags.of_row, [])

    is_large = np.zeros(len(bags), np.bool_)
    is_large[large] = True
    rows = np.flatnonzero(is_large[bags.of_row])
    part = entries.take(pa.array(rows))
    order = pc.array_sort_indices(part).to_numpy().astype(np.int64)
    order = order[np.argsort(bags.of_row[rows][order], kind="stable")]
    rows, plain = rows[order], part.take(pa.array(order)).to_pylist()
    cuts = np.searchsorted(bags.of_row[rows], np.arange(len(bags) + 1)).tolist()

    chains = [
        ChunkChain(bag, shard, bags.prefixes[bag], found.regions(plain[cuts[bag] : cuts[bag + 1]]))
        for shard, bag, found in large_bags(doors, table, bags, large, as_of)
    ]

    sizes = np.ones(len(bags), np.int64)
    sizes[large] = [len(chain.regions) for chain in chains]
    base = offsets_of(sizes)
    of_row = base[bags.of_row]
    held: list[Sequence[bytes]] = [(record,) for record in records]
    for chain in chains:
        held[chain.bag] = [region.record for region in chain.regions]
        for number, region in enumerate(chain.regions, int(base[chain.bag])):
            of_row[rows[cuts[chain.bag] + region.first : cuts[chain.bag] + region.stop]] = number
    flat = Versions([record for part in held for record in part], table.name)
    numbered = [(int(base[chain.bag]), chain) for chain in chains]
    return Regions(np.repeat(np.arange(len(bags)), sizes), flat, of_row, numbered)


def large_bags(
    doors: Sequence[Door], table: StateTable, bags: NumberedBags, large: Ints, as_of: int
) -> Iterator[tuple[int, int, LargeBag]]:
    """The chunks of large bags, one bag after another, with its shard and its number: a transaction for each shard."""
    of_shard = np.searchsorted(large, bags.edges).tolist()
    for shard, door in enumerate(doors):
        some = large[of_shard[shard] : of_shard[shard + 1]].tolist()
        if some:
            with door() as txn:
                require_kept(txn, table.group, as_of)
                for bag in some:
                    yield shard, bag, LargeBag(txn, table.name, bags.prefixes[bag], as_of)


def large_among(firsts: Versions, as_of: int, table: StateTable) -> Ints:
    """The bags whose first chunk says that others may follow."""
    starts, _, absent = firsts.as_of(as_of)
    heads = read_heads(words_of(firsts.data, table.name), starts, absent)
    return np.flatnonzero(heads.flags & MORE)
