"""Bags: ordered entries with counts under one key, kept in sorted chunks.

A write reads the chunks its changes fall into, lays old entries and changes
side by side as columns, adds them up, cuts the result into chunks again and
writes those as versioned records.

A bag's chunks stand in the shard of the bag's key, under

    table (4 bytes) | length of the bag's key (2 bytes) | bag's key | bound

The length makes no key the beginning of another, so a bag's chunks stand together,
whatever the keys are. The first chunk has the empty bound and says whether others follow:
a small bag is read with one get. Chunks are records like any other: (epoch, current,
previous), refused to zombies, tombstones when they lose their last entry, swept later.

The columns of a write, for two bags of which k2 is new::

    region  entry  count            region  entry  count            region  entry  count
    0 (k1)  5      1      old       0       5      1                0       9      2
    0       9      1      old       0       5      −1      added    1       4      1
    0       5      −1     change    0       9      1       up,      ─────────────────────
    0       9      1      change    0       9      1       zeros    one chunk for k1,
    1 (k2)  4      1      change    1       4      1       gone     one for k2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from everview.errors import DamagedEntryError, InputError
from everview.store.contract import BagEnds, BagRows, StateTable
from everview.store.embedded.bag_cuts import Content, Pieces, Touched, cut_bag
from everview.store.embedded.bag_entries import Alphabet, Sums, add_up, entries_of, in_one_alphabet, merge
from everview.store.embedded.bag_regions import ChunkChain, NumberedBags, Regions, find_regions
from everview.store.embedded.chunks import decode, encode
from everview.store.embedded.environment import KEY_LIMIT
from everview.store.embedded.epoch_records import require_kept
from everview.store.embedded.large_bags import Ends, LargeBag
from everview.store.embedded.records import Door, check_types, inverse, write_routed
from everview.store.embedded.snapshots import StoreFiles
from everview.store.encoding.ragged import (
    BINARY,
    EMPTY,
    Bytes,
    Ints,
    Mask,
    Words,
    column_of,
    concat,
    gather,
    glue,
    offsets_of,
)

# ------------------------------------------------------------------ writing


def write_bags(core: StoreFiles, doors: Sequence[Door], table: StateTable, epoch: int, changes: BagRows) -> BagEnds:
    merged = _merge(doors, table, changes, epoch - 1)
    if merged is None:
        return _NO_ENDS
    ends = _ends_of(doors, table, merged, epoch - 1)
    _write(core, table, epoch, merged)
    return ends


def add_to_bags(core: StoreFiles, doors: Sequence[Door], table: StateTable, epoch: int, changes: BagRows) -> None:
    merged = _merge(doors, table, changes, epoch - 1)
    if merged is not None:
        _write(core, table, epoch, merged)


def preview_bags(doors: Sequence[Door], table: StateTable, changes: BagRows, as_of: int) -> BagEnds:
    """First and last entries as they would be, from the same columns, of which nothing is written."""
    merged = _merge(doors, table, changes, as_of)
    return _NO_ENDS if merged is None else _ends_of(doors, table, merged, as_of)


_NO_ENDS = BagEnds(EMPTY, EMPTY, EMPTY, EMPTY, EMPTY)


@dataclass(frozen=True)
class _Merged:
    """The touched chunks with the changes in them."""

    bags: NumberedBags
    regions: Regions
    before: Sums
    content: Content
    counts: Ints
    base: tuple[Ints, Ints, Mask]
    """Where the chunks as they were stand among the records of the regions."""


def _merge(doors: Sequence[Door], table: StateTable, changes: BagRows, as_of: int) -> _Merged | None:
    _check(table, changes)
    if not len(changes.keys):
        return None
    bags = NumberedBags.of(table, changes.keys, len(doors))
    regions = find_regions(doors, table, bags, changes.entries, as_of)
    base = regions.records.as_of(as_of)
    heads, old = decode(regions.records.data, *base, table.name)
    alphabet, (old_codes, new_codes) = in_one_alphabet([old.entries, entries_of(changes.entries)])
    change = add_up(regions.of_row, new_codes, changes.counts.cast(pa.int64()).to_numpy(), len(regions.bag))
    before = Sums(offsets_of(heads.size), old_codes, old.counts)
    merged = merge(before, change)
    if len(merged.counts) and merged.counts.min() < 0:
        raise _negative(table, bags, regions, merged, alphabet)
    content = Content(alphabet, merged.codes, merged.edges, offsets_of(alphabet.sizes(merged.codes)))
    return _Merged(bags, regions, before, content, merged.counts, base)


def _check(table: StateTable, changes: BagRows) -> None:
    if not len(changes.keys) == len(changes.entries) == len(changes.counts):
        raise InputError(f"the columns of a write to state table {table.name} differ in length")
    check_types(table, changes.entries)
    if changes.entries.null_count or changes.counts.null_count:
        raise InputError(f"an entry or a count in a write to state table {table.name} is null")


def _negative(
    table: StateTable, bags: NumberedBags, regions: Regions, merged: Sums, alphabet: Alphabet
) -> DamagedEntryError:
    row = int(np.argmax(merged.counts < 0))
    region = int(np.searchsorted(merged.edges, row, "right")) - 1
    key = bags.key(int(regions.bag[region]))
    return DamagedEntryError(
        f"an entry of bag {key.hex()} of state table {table.name} would stand there {int(merged.counts[row])} times",
        detail=f"entry {alphabet.entry(int(merged.codes[row]))[:64].hex()}: more of it was taken away than there was",
        hint="the state does not fit the changes: rebuild the view the table belongs to",
    )


# ------------------------------------------------------------------ first and last


def _ends(alphabet: Alphabet, codes: Words, edges: Ints) -> tuple[Bytes, Bytes]:
    """First and last entry of each run of rows; null where it is empty."""
    absent = edges[1:] == edges[:-1]
    if not len(codes):
        nothing = pa.nulls(len(absent), BINARY)
        return nothing, nothing
    first = codes[np.minimum(edges[:-1], len(codes) - 1)]
    last = codes[np.maximum(edges[1:] - 1, 0)]
    return alphabet.entries(first, absent), alphabet.entries(last, absent)


def _ends_of(doors: Sequence[Door], table: StateTable, merged: _Merged, as_of: int) -> BagEnds:
    """A bag of one chunk ends where the chunk does; of the others only the ends are looked at."""
    bags, regions, content, before = merged.bags, merged.regions, merged.content, merged.before
    columns = [
        *_ends(content.alphabet, before.codes, before.edges),
        *_ends(content.alphabet, content.codes, content.edges),
    ]
    at = np.searchsorted(regions.bag, np.arange(len(bags)))
    if regions.chains:
        found: list[list[bytes | None]] = [[], [], [], []]
        for number, (base, chain) in enumerate(regions.chains):
            at[chain.bag] = len(regions.bag) + number
            with doors[chain.shard]() as txn:
                require_kept(txn, table.group, as_of)
                large = LargeBag(txn, table.name, chain.prefix, as_of)
                ends_before = large.ends() or (None, None)
                ends_after = _ends_after(large, base, chain, content)
            for part, entry in zip(found, (*ends_before, *ends_after), strict=True):
                part.append(entry)
        columns = [concat(column, pa.array(part, BINARY)) for column, part in zip(columns, found, strict=True)]
    order = pa.array(at[inverse(bags.place)])
    return BagEnds(bags.sorted_keys, *(column.take(order) for column in columns))


def _ends_after(large: LargeBag, base: int, chain: ChunkChain, content: Content) -> tuple[bytes | None, bytes | None]:
    """First and last entry once the changes are applied. From either end, chunks that have
    just lost their last entry are passed over; what is not touched is as it was."""
    touched = {region.bound: number for number, region in enumerate(chain.regions, base)}

    def rows(bound: bytes) -> tuple[int, int] | None:
        number = touched.get(bound)
        return None if number is None else (int(content.edges[number]), int(content.edges[number + 1]))

    first: bytes | None = None
    bound: bytes | None = b""
    while bound is not None:
        span = rows(bound)
        if span is None or span[0] < span[1]:
            first = _entry(large.ends_in(bound), 0) if span is None else content.entry(span[0])
            break
        bound = chain.regions[touched[bound] - base].following
    last: bytes | None = None
    bound = large.last()
    while bound is not None:
        span = rows(bound)
        if span is None or span[0] < span[1]:
            last = _entry(large.ends_in(bound), 1) if span is None else content.entry(span[1] - 1)
            break
        bound = large.before(bound)
    return first, last


def _entry(ends: Ends, side: int) -> bytes | None:
    return None if ends is None else ends[side]


# ------------------------------------------------------------------ the chunks to write


def _write(core: StoreFiles, table: StateTable, epoch: int, merged: _Merged) -> None:
    bags, regions, content = merged.bags, merged.regions, merged.content
    size = np.diff(content.edges)
    bag, region = regions.bag, np.arange(len(regions.bag))
    more = np.zeros(len(bag), np.bool_)
    dead: Mask = size == 0
    bounds: Bytes | None = None

    special = _cut_specially(bags, regions, content)
    if special.bag:
        plain = ~np.isin(bag, special.bag)
        order = np.argsort(np.concatenate([bag[plain], special.bag]), kind="stable")
        bounds = concat(column_of(b"", np.zeros(int(plain.sum()) + 1, np.int64)), pa.array(special.bound, BINARY))
        bounds = bounds.take(pa.array(order))
        bag = np.concatenate([bag[plain], special.bag])[order]
        size = np.concatenate([size[plain], special.size])[order]
        region = np.concatenate([region[plain], special.region])[order]
        more = np.concatenate([more[plain], special.more])[order]
        dead = np.concatenate([dead[plain], special.dead])[order]

    framed = bags.framed if len(bag) == len(bags) else bags.framed.take(pa.array(bag))
    keys = framed if bounds is None else glue(framed, bounds)
    current = encode(content.alphabet, content.codes, merged.counts, size, more)
    if dead.any():
        current = current.take(pa.array(np.arange(len(dead)), mask=dead))
    starts, ends, absent = merged.base
    previous = gather(regions.records.data, starts, ends, np.maximum(region, 0), absent[region] | (region < 0))
    edges = np.searchsorted(bag, bags.edges).tolist()
    write_routed(core, table, epoch, keys, current, previous, edges)


def _cut_specially(bags: NumberedBags, regions: Regions, content: Content) -> Pieces:
    """Cut the bags that are not simply one chunk before and after."""
    pieces = Pieces()
    chains = {chain.bag: (base, chain) for base, chain in regions.chains}
    oversized = regions.bag[content.oversized()]
    for bag in sorted({*chains, *oversized.tolist()}):
        room = KEY_LIMIT - len(bags.prefixes[bag])
        if bag in chains:
            base, chain = chains[bag]
            follows = [None, *(region.following for region in chain.regions)]
            touched = [
                Touched(base + number, region.bound, adjacent=follows[number] == region.bound)
                for number, region in enumerate(chain.regions)
            ]
            cut_bag(pieces, bag, touched, content, whole=chain.whole, room=room)
        else:
            single = int(np.searchsorted(regions.bag, bag))
            cut_bag(pieces, bag, [Touched(single, b"", adjacent=False)], content, whole=True, room=room)
    return pieces
