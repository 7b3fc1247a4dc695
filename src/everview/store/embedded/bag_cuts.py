"""How the entries of a touched bag are cut into chunks again.

A chunk stays where it was unless it has grown too large, has lost all its
entries, or fits into one with its touched neighbour.

The cut follows from the bag's chunks as of the base epoch and its new entries alone, so
every attempt of an epoch cuts alike. Most bags are one chunk before and after: for those
the cut is a few numpy comparisons. The others are cut one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from everview.store.embedded.bag_entries import Alphabet, separator
from everview.store.encoding.ragged import Ints, Mask, Words

TARGET = 100
"""Entries of a chunk that a cut makes."""
MOST = 200
"""Entries above which a chunk is cut."""
TARGET_BYTES = 1 << 15
MOST_BYTES = 1 << 16


@dataclass(frozen=True)
class Content:
    """The new entries of all touched chunks, in order. Chunk r has the rows
    ``edges[r]:edges[r + 1]``, and ``weights`` are the bytes of the entries, added up."""

    alphabet: Alphabet
    codes: Words
    edges: Ints
    weights: Ints

    def entry(self, row: int) -> bytes:
        return self.alphabet.entry(int(self.codes[row]))

    def oversized(self) -> Mask:
        """The chunks that must be cut."""
        found: Mask = (np.diff(self.edges) > MOST) | (np.diff(self.weights[self.edges]) > MOST_BYTES)
        return found


@dataclass(frozen=True)
class Touched:
    """A touched chunk: its number, its bound, and whether the one before it in the bag is
    touched too."""

    region: int
    bound: bytes
    adjacent: bool


@dataclass
class Pieces:
    """Chunks to write, as columns."""

    bag: list[int] = field(default_factory=list)
    bound: list[bytes] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    region: list[int] = field(default_factory=list)
    """The touched chunk that has stood under this bound; −1: none."""
    more: list[bool] = field(default_factory=list)
    dead: list[bool] = field(default_factory=list)

    def add(self, bag: int, bound: bytes, size: int, region: int, *, more: bool = False, dead: bool = False) -> None:
        self.bag.append(bag)
        self.bound.append(bound)
        self.size.append(size)
        self.region.append(region)
        self.more.append(more)
        self.dead.append(dead)


def cut_bag(pieces: Pieces, bag: int, touched: Sequence[Touched], content: Content, *, whole: bool, room: int) -> None:
    """Add the chunks of one bag. ``whole`` says that every chunk of the bag is touched,
    ``room`` how long a bound may be."""
    made: list[tuple[bytes, int, int]] = []
    for bound, first, stop in _merged(touched, content):
        made += _split(bound, first, stop, content, room)
    region_of = {chunk.bound: chunk.region for chunk in touched}
    live = sum(stop > first for bound, first, stop in made if bound)
    more = not whole or live > 0
    for bound, first, stop in made:
        keep = stop > first or (not bound and more)
        pieces.add(bag, bound, stop - first, region_of.pop(bound, -1), more=more and not bound, dead=not keep)
    for bound, region in region_of.items():
        pieces.add(bag, bound, 0, region, dead=True)


def _merged(touched: Sequence[Touched], content: Content) -> Iterable[tuple[bytes, int, int]]:
    """Bounds and rows, neighbours joined where both together are no more than one chunk."""
    open_piece: tuple[bytes, int, int] | None = None
    for chunk in touched:
        first, stop = int(content.edges[chunk.region]), int(content.edges[chunk.region + 1])
        if open_piece is not None:
            bound, begin, _ = open_piece
            size, weight = stop - begin, content.weights[stop] - content.weights[begin]
            if chunk.adjacent and size <= TARGET and weight <= TARGET_BYTES:
                open_piece = bound, begin, stop
                continue
            yield open_piece
        open_piece = chunk.bound, first, stop
    if open_piece is not None:
        yield open_piece


def _split(bound: bytes, first: int, stop: int, content: Content, room: int) -> list[tuple[bytes, int, int]]:
    """A piece cut evenly where it is too large; not where the bound would be too long."""
    size, weight = stop - first, int(content.weights[stop] - content.weights[first])
    count = max(-(-size // TARGET) if size > MOST else 1, -(-weight // TARGET_BYTES) if weight > MOST_BYTES else 1)
    count = min(count, max(size, 1))
    made: list[tuple[bytes, int, int]] = []
    begin = first
    for number in range(1, count):
        at = first + size * number // count
        between = separator(content.entry(at - 1), content.entry(at))
        if len(between) <= room:
            made.append((bound, begin, at))
            bound, begin = between, at
    made.append((bound, begin, stop))
    return made
