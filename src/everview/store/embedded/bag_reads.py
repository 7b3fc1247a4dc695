"""Reading bags: all of them, their first rows, their first and last entries.

The first chunk of every bag is got at once and decoded in columns, and only
of a bag that has more of them are further chunks looked at, as many as the question needs.

Two bags, of which k1 is large, and the first three rows of each asked for::

    k1   [ a … e ] [ f … o ] [ p … z ]     one chunk is read and cut after three rows
    k2   [ b c ]                           read whole: its only chunk
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from everview.errors import InputError
from everview.store.contract import BagRows, StateTable
from everview.store.embedded.bag_regions import FRAME, NumberedBags, large_among, large_bags
from everview.store.embedded.chunks import decode, first_and_last
from everview.store.embedded.epoch_records import require_kept
from everview.store.embedded.records import Door, fetch, space_of
from everview.store.embedded.versions import Versions, is_there
from everview.store.encoding.ragged import BINARY, EMPTY, Bytes, Ints, Mask, concat, offsets_of

ALL = (1 << 63) - 1
"""More rows than a bag can have."""


def read_bags(
    doors: Sequence[Door], table: StateTable, keys: Bytes, as_of: int, first: pa.Int64Array | None = None
) -> BagRows:
    if not len(keys) and (first is None or not len(first)):
        return BagRows(EMPTY, EMPTY, pa.array([], pa.int64()))
    bags = NumberedBags.of(table, keys, len(doors))
    most = None if first is None else _most(table, bags, first)
    records = fetch(doors, table, bags.prefixes, bags.edges, as_of)
    bag_of_chunk = np.arange(len(bags))
    versions = Versions(records, table.name)
    large = large_among(versions, as_of, table)
    if len(large):
        held: list[Sequence[bytes]] = [(record,) for record in records]
        for _, bag, one in large_bags(doors, table, bags, large, as_of):
            held[bag] = list(one.chunks(None if most is None else most[bag]))
        bag_of_chunk = np.repeat(bag_of_chunk, [len(chunks) for chunks in held])
        versions = Versions([record for chunks in held for record in chunks], table.name)
    _, rows = decode(versions.data, *versions.as_of(as_of), table.name)
    bag_of_row = bag_of_chunk[rows.chunk]
    place = bags.place[bag_of_row]
    order = np.argsort(place, kind="stable")
    if most is not None:
        order = order[_within(bag_of_row, rows.counts, most)[order]]
    return BagRows(
        bags.sorted_keys.take(pa.array(place[order])),
        rows.entries.as_column().take(pa.array(order)),
        pa.array(rows.counts[order]),
    )


def _most(table: StateTable, bags: NumberedBags, first: pa.Int64Array) -> Ints:
    """How many rows are wanted of each bag."""
    if not isinstance(first, pa.Int64Array) or len(first) != len(bags.of_row):
        raise InputError(f"the rows wanted of bags of state table {table.name} are not one int64 for each key")
    if len(bags) != len(first):
        raise InputError(
            f"a key comes twice among the bags of state table {table.name} whose first rows are wanted",
            hint="ask for each bag once",
        )
    wanted = first.fill_null(ALL).to_numpy()
    if len(wanted) and wanted.min() < 0:
        raise InputError(f"{int(wanted.min())} rows of a bag of state table {table.name} cannot be read")
    most = np.empty(len(bags), np.int64)
    most[bags.of_row] = wanted
    return most


def _within(bag: Ints, counts: Ints, most: Ints) -> Mask:
    """Which rows begin before their bag's number is reached. Rows are in the order of bags."""
    size = np.bincount(bag, minlength=len(most))
    before = np.cumsum(counts) - counts
    start = before[np.repeat(offsets_of(size)[:-1], size)]
    within: Mask = before - start < most[bag]
    return within


def bag_ends(doors: Sequence[Door], table: StateTable, keys: Bytes, as_of: int) -> tuple[Bytes, Bytes]:
    if not len(keys):
        return EMPTY, EMPTY
    bags = NumberedBags.of(table, keys, len(doors))
    versions = Versions(fetch(doors, table, bags.prefixes, bags.edges, as_of), table.name)
    firsts, lasts = first_and_last(versions.data, *versions.as_of(as_of), table.name)
    large = large_among(versions, as_of, table)
    at = np.arange(len(bags))
    if len(large):
        at[large] = len(bags) + np.arange(len(large))
        found = [one.ends() or (None, None) for _, _, one in large_bags(doors, table, bags, large, as_of)]
        firsts = concat(firsts, pa.array([first for first, _ in found], BINARY))
        lasts = concat(lasts, pa.array([last for _, last in found], BINARY))
    order = pa.array(at[bags.of_row])
    return firsts.take(order), lasts.take(order)


def bag_keys(doors: Sequence[Door], table: StateTable, as_of: int, limit: int | None, after: bytes | None) -> Bytes:
    """The keys of bags in the order of their chunks: under the length of the key first. Of a large bag
    the chunks behind the first are passed over one by one."""
    if limit is not None and limit < 0:
        raise InputError(f"bags of state table {table.name} cannot be listed with the limit {limit}")
    found = [_keys_in_shard(door, table, as_of, limit, after) for door in doors]
    framed = sorted(key for keys in found for key in keys)[:limit]
    return pa.array([key[2:] for key in framed], BINARY)


def _keys_in_shard(door: Door, table: StateTable, as_of: int, limit: int | None, after: bytes | None) -> list[bytes]:
    """Keys behind their length, in order."""
    space = space_of(table)
    frame = b"" if after is None else len(after).to_bytes(2, "big") + after
    found: list[bytes] = []
    with door() as txn:
        require_kept(txn, table.group, as_of)
        with txn.cursor() as cursor:
            if not cursor.set_range(space + frame):
                return found
            for key, record in cursor.iternext():
                if not key.startswith(space) or (limit is not None and len(found) >= limit):
                    break
                bag = key[len(space) : FRAME + int.from_bytes(key[len(space) : FRAME], "big")]
                if bag == frame or (found and bag == found[-1]) or not is_there(record, as_of, table.name):
                    continue
                found.append(bag)
    return found
