"""Base tables against raw LMDB with the same bytes.

Raw means: the very keys and values that Everview wrote, read out of its file, put into or
got from an LMDB environment with the same flags, the same number of transactions and the
same log entries, by the shortest Python there is. What Everview does on top (checking,
encoding, the look-up of the old row, sequence numbers, decoding into dicts or columns) is
the difference.
"""

from __future__ import annotations

import random
from pathlib import Path

import lmdb
import numpy as np
import pyarrow as pa

import everview
from bench.measure import best_of, seconds
from everview.change.frontier import Frontier
from everview.client.table_handles import TableHandle
from everview.store.contract import BaseTable, Store
from everview.store.embedded.environment import FULL_SIZE
from everview.store.embedded.layout import ROW

ROWS = 100_000
GETS = 50_000
PUTS = 20_000
SLICE_ROWS = 1_000_000
COLUMNS = {"id": "BIGINT", "customer": "INTEGER", "amount": "DOUBLE", "status": "VARCHAR"}


def rows(count: int, first: int = 0, seed: int = 1) -> pa.Table:
    """Orders with the shape the benchmark states."""
    rng = np.random.default_rng(seed)
    status = np.array(["new", "paid", "shipped", "returned"])
    return pa.table(
        {
            "id": pa.array(np.arange(first, first + count)),
            "customer": pa.array(rng.integers(0, 10_000, count, np.int32)),
            "amount": pa.array(np.round(rng.random(count) * 1000, 2)),
            "status": pa.array(status[rng.integers(0, 4, count)]),
        }
    )


def run(directory: Path) -> dict[str, dict[str, float]]:
    """All figures of base tables."""
    return {
        "get": get(directory / "get"),
        "put": put(directory / "put"),
        "put_many, first load": put_many(directory / "load", shuffled=False),
        "put_many, updates in no order": put_many(directory / "update", shuffled=True),
        "read(slice), batches of 1,000": read_slice(directory / "batches", SLICE_ROWS, 1000),
        "read(slice), single puts": read_slice(directory / "singles", ROWS, 1),
    }


def get(directory: Path) -> dict[str, float]:
    with everview.open(directory) as db:
        table = db.create_table("orders", COLUMNS, key=["id"])
        given = rows(ROWS)
        table.put_many(given)
        wanted = random.Random(2).sample(range(ROWS), GETS)
        keys = [key for key, _ in _pairs(db.store, ROW)]
        wanted_keys = [keys[number] for number in wanted]
        fetch = table.get
        raw = _raw(directory / "raw")
        _put_raw(raw, _pairs(db.store, ROW))

        def ours() -> None:
            for number in wanted:
                fetch(number)

        def theirs() -> None:
            for key in wanted_keys:
                with raw.begin() as transaction:
                    transaction.get(key)

        mine, other = best_of(7, ours, theirs)
        expected = given.slice(wanted[0], 1).to_pylist()[0]
        assert table.get(wanted[0]) == expected, "a get returned another row"
        return _ratio(mine, other, GETS)


def put(directory: Path) -> dict[str, float]:
    with everview.open(directory) as db:
        table = db.create_table("orders", COLUMNS, key=["id"])
        table.put_many(rows(ROWS))
        start = db.store.log.latest()
        fresh = [dict(row) for row in rows(PUTS, seed=3).to_pylist()]
        random.Random(4).shuffle(fresh)
        store_put = table.put

        def ours() -> None:
            for row in fresh:
                store_put(row)

        first = seconds(ours)
        logged = [pair for pair in _pairs(db.store, b"L") if _sequence(pair[0]) > start[_node(pair[0])]]
        base = _pairs(db.store, ROW)
        by_id = _by_id(base)
        raw = _raw(directory / "raw")
        _put_raw(raw, base)
        both = list(zip((by_id[row["id"]] for row in fresh), logged, strict=True))

        def theirs() -> None:
            for (key, value), (log_key, log_value) in both:
                with raw.begin(write=True) as transaction:
                    transaction.put(key, value)
                    transaction.put(log_key, log_value)

        mine, other = best_of(6, ours, theirs)
        assert db.table("orders").get(fresh[-1]["id"]) == fresh[-1], "a put did not arrive"
        return _ratio(min(first, mine), other, PUTS)


def put_many(directory: Path, *, shuffled: bool) -> dict[str, float]:
    """A first load in key order, or an update of every row in no order, as one batch."""
    times = [_put_many(directory / str(turn), shuffled) for turn in range(9)]
    return _ratio(min(mine for mine, _ in times), min(other for _, other in times), ROWS)


def _put_many(directory: Path, shuffled: bool) -> tuple[float, float]:
    given = rows(ROWS)
    with everview.open(directory) as db:
        table = db.create_table("orders", COLUMNS, key=["id"])
        raw = _raw(directory / "raw")
        if shuffled:
            table.put_many(given)
            _put_raw(raw, _pairs(db.store, ROW))
            given = rows(ROWS, seed=2).take(np.random.default_rng(5).permutation(ROWS))
        start = db.store.log.latest()
        mine = seconds(lambda: table.put_many(given))
        assert table.count() == ROWS, "rows are missing"
        logged = [pair for pair in _pairs(db.store, b"L") if _sequence(pair[0]) > start[_node(pair[0])]]
        by_id = _by_id(_pairs(db.store, ROW))
        pairs = [by_id[number] for number in given["id"].to_pylist()]
        return mine, seconds(lambda: _put_raw(raw, pairs, logged))


def _put_raw(raw: lmdb.Environment, *several: list[tuple[bytes, bytes]]) -> None:
    with raw.begin(write=True) as transaction:
        for pairs in several:
            transaction.cursor().putmulti(pairs)


def read_slice(directory: Path, count: int, size: int) -> dict[str, float]:
    """A log written in batches of this size, read in one slice."""
    with everview.open(directory, nodes=1) as db:
        table = db.create_table("orders", COLUMNS, key=["id"])
        _fill(table, count, size)
        return _read(db.store, db.store.table(db.catalog.table("orders")))


def _fill(table: TableHandle, count: int, size: int) -> None:
    given = rows(count)
    if size == 1:
        for row in given.to_pylist():
            table.put(row)
    else:
        for first in range(0, count, size):
            table.put_many(given.slice(first, size))


def _read(store: Store, table: BaseTable) -> dict[str, float]:
    pieces = Frontier().slices_to(store.log.latest())
    count = sum(map(len, pieces))
    raw = _raw_of(store)

    def ours() -> int:
        return sum(len(batch.entries) for piece in pieces for batch in store.log.read(piece, [table.table]).batches)

    def theirs() -> int:
        total = 0
        with raw.begin() as transaction:
            for piece in pieces:
                cursor = transaction.cursor()
                cursor.set_range(b"L" + piece.node.to_bytes(4, "big") + (piece.after + 1).to_bytes(8, "big"))
                values = [value for key, value in cursor.iternext() if key[:1] == b"L"]
                total += len(b"".join(values))
        return total

    assert ours() == count, "entries are missing"
    mine, other = best_of(5, ours, theirs)
    return _ratio(mine, other, count) | {"rows/s": count / mine}


# ------------------------------------------------------------------ the raw side


def _raw(directory: Path) -> lmdb.Environment:
    directory.mkdir(parents=True, exist_ok=True)
    return lmdb.open(str(directory), map_size=FULL_SIZE, sync=False, metasync=False, max_readers=2048)


def _raw_of(store: Store) -> lmdb.Environment:
    return store._handle.base.lmdb  # type: ignore[attr-defined]


def _pairs(store: Store, space: bytes) -> list[tuple[bytes, bytes]]:
    with _raw_of(store).begin() as transaction:
        cursor = transaction.cursor()
        cursor.set_range(space)
        return [(key, value) for key, value in cursor.iternext() if key[:1] == space]


def _node(log_key: bytes) -> int:
    return int.from_bytes(log_key[1:5], "big")


def _sequence(log_key: bytes) -> int:
    return int.from_bytes(log_key[5:], "big")


def _by_id(pairs: list[tuple[bytes, bytes]]) -> dict[object, tuple[bytes, bytes]]:
    """Stored rows by their BIGINT key."""
    return {int.from_bytes(key[5:], "big") - (1 << 63): (key, value) for key, value in pairs}


def _ratio(mine: float, other: float, count: int) -> dict[str, float]:
    return {"µs": mine / count * 1e6, "raw µs": other / count * 1e6, "ratio": mine / other}
