"""Batches of many thousand rows: as atomic, as ordered and as exactly sliced as small ones."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from everview.change.entries import SEQ
from everview.change.frontier import Frontier, Slice
from everview.change.schema import Schema
from everview.errors import LogTrimmedError
from everview.store.contract import EntryKind, Row, Store, Table
from everview.store.encoding.keys import KeyCodec
from tests.adapters.guarantees import needs
from tests.adapters.model import entries_of
from tests.adapters.under_test import define

ROWS = 20_000
EVENTS = Schema.of({"kind": "VARCHAR", "id": "BIGINT", "value": "DOUBLE", "note": "VARCHAR"}, key=["kind", "id"])


@pytest.fixture
def table(store: Store) -> Table:
    return define(store, "events", EVENTS)


def rows(count: int = ROWS) -> pa.Table:
    ids = pa.array(range(count), pa.int64())
    return pa.table(
        {
            "kind": pa.array([f"kind {number % 7}" for number in range(count)]),
            "id": ids,
            "value": pc.divide(ids.cast(pa.float64()), 3),
            "note": pa.array([None if number % 5 == 0 else "n" * (number % 40) for number in range(count)]),
        }
    )


def in_key_order(table: pa.Table) -> list[Row]:
    return sorted(table.to_pylist(), key=lambda row: (row["kind"], row["id"]))


def scanned(store: Store, table: Table, *args: object, **bounds: object) -> list[Row]:
    return [row for batch in store.table(table).scan(*args, **bounds) for row in batch.to_pylist()]  # type: ignore[arg-type]


def test_rows_come_back_from_scans_and_gets(store: Store, table: Table) -> None:
    written = rows()
    assert store.table(table).put_many(written) == ROWS
    expected = in_key_order(written)
    assert store.table(table).count() == ROWS
    assert scanned(store, table) == expected
    assert scanned(store, table, limit=10_001) == expected[:10_001]
    assert scanned(store, table, ("kind 3",)) == [row for row in expected if row["kind"] == "kind 3"]
    start, stop = ("kind 1", 500), ("kind 6", 19_000)
    between = [row for row in expected if start <= (row["kind"], row["id"]) < stop]
    assert scanned(store, table, start=start, stop=stop) == between
    asked = written.select(["kind", "id"])
    assert store.table(table).get_many(asked).to_pylist() == written.to_pylist()


def test_keys_are_read_without_their_rows(store: Store, table: Table) -> None:
    store.table(table).put_many(rows())
    ordered = pa.Table.from_pylist(in_key_order(rows()), schema=table.schema.arrow)
    expected = KeyCodec(EVENTS.key_parts).encode_columns([ordered[name] for name in EVENTS.key])
    with store.snapshot() as snapshot:
        held = snapshot.table(table)
        found, more = held.keys(None, ROWS, 1 << 30)
        assert found.equals(expected) and more
        found, more = held.keys(expected[9_999].as_py(), ROWS, 1 << 30)
        assert found.equals(expected[10_000:]) and not more
        found, more = held.keys(None, ROWS, 10_000)
        assert 0 < len(found) < ROWS and more, "so many bytes are enough"
        assert held.keys(expected[-1].as_py(), ROWS, 1 << 30) == (expected[:0], False)


def test_epochs_of_large_rows_are_cut_by_bytes(store: Store, table: Table) -> None:
    size, count, most = 20_000, 40, 100_000
    for number in range(count):
        store.table(table).put({"kind": "large", "id": number, "note": "x" * size})
    cuts = [Frontier()]
    while cuts[-1] != store.log.latest():
        cuts.append(store.log.advance(cuts[-1], 1_000_000, most))
    taken = [cuts[at].operations_to(cuts[at + 1]) for at in range(len(cuts) - 1)]
    assert sum(taken) == count
    assert set(taken[:-1]) == {most // size - 1}, "five of them are more than so many bytes, keys and heads included"
    assert store.log.advance(Frontier(), 3, most) < cuts[1], "the number of operations counts as well"
    assert Frontier().operations_to(store.log.advance(Frontier(), 1_000_000, 1)) == 1, "one batch at least"
    assert store.log.advance(Frontier(), 1_000_000, size * 2 * count) == store.log.latest()


def test_bytes_are_counted_from_what_is_left_of_a_log(store: Store, table: Table) -> None:
    for number in range(30):
        store.table(table).put({"kind": "large", "id": number, "note": "x" * 20_000})
    first = store.log.latest()
    store.log.trim(first)
    for number in range(30):
        store.table(table).put({"kind": "large", "id": number, "note": "y" * 20_000})
    cut = store.log.advance(first, 1_000_000, 200_000)
    assert first.operations_to(cut) == (4 if store.log.guarantees.before_images else 9)


def test_a_large_batch_is_never_cut(store: Store, table: Table) -> None:
    needs(store, "atomic_batches")
    base = store.table(table)
    base.put({"kind": "before", "id": 1})
    before = store.log.latest()
    base.put_many(rows())
    after = store.log.latest()
    base.put({"kind": "after", "id": 1})
    assert store.log.advance(Frontier(), 10) == before
    assert store.log.advance(before, 10) == after, "however large, it is taken whole"
    assert store.log.advance(before, ROWS + 1) == store.log.latest()
    assert before.operations_to(after) == ROWS


@pytest.mark.parametrize("columns", [["kind", "id", "value", "note"], ["kind", "id", "value"]])
def test_rows_of_one_key_in_a_batch_follow_each_other(store: Store, table: Table, columns: list[str]) -> None:
    """Whether rows name all columns or not: each finds the one before it, and the last one stays."""
    base = store.table(table)
    base.put({"kind": "hot", "id": 1, "value": -1.0, "note": "old"})
    before = store.log.latest()
    written = [{"kind": "hot", "id": number % 3, "value": float(number), "note": "new"} for number in range(600)]
    base.put_many(pa.Table.from_pylist(written).select(columns))
    kept = {"note": "new"} if "note" in columns else {}
    notes = [kept, kept or {"note": "old"}, kept]
    assert base.count() == 3
    for key in range(3):
        assert base.get("hot", key) == {"kind": "hot", "id": key, "value": 597.0 + key, "note": notes[key].get("note")}
        found = [
            entry
            for piece in before.slices_to(store.log.latest())
            for entry in entries_of(store.log.read(piece, [table]))
            if entry.key == ("hot", key)
        ]
        assert [entry.values["value"] for entry in found] == [float(number) for number in range(key, 600, 3)]
        if store.log.guarantees.before_images:
            first = {"value": -1.0, "note": "old"} if key == 1 else {}
            assert [entry.old for entry in found] == [first, *(entry.values for entry in found[:-1])]


def test_slices_of_any_size_hold_exactly_their_entries(store: Store, table: Table) -> None:
    base = store.table(table)
    base.put_many(rows())
    base.put_many(rows(ROWS // 2).set_column(2, "value", pa.array([1.5] * (ROWS // 2))))
    base.delete_many(rows(1000).select(["kind", "id"]))
    rng = random.Random(1)
    latest = store.log.latest()
    whole = {node: entries_of(store.log.read(Slice(node, 0, end), [table])) for node, end in latest.items()}
    for node, end in latest.items():
        assert [entry.sequence for entry in whole[node]] == list(range(1, end + 1))
        for _ in range(12):
            after, upto = sorted((rng.randint(0, end), rng.randint(0, end)))
            assert entries_of(store.log.read(Slice(node, after, upto), [table])) == whole[node][after:upto]
            single = store.log.read(Slice(node, upto - 1, upto), [table]) if upto else None
            assert single is None or single.batches[0].entries[SEQ].to_pylist() == [upto]
    entries = [entry for log in whole.values() for entry in log]
    assert sum(entry.kind is EntryKind.DELETE for entry in entries) == 1000
    assert base.count() == ROWS - 1000


def test_trimming_to_a_cut_leaves_what_follows(store: Store, table: Table) -> None:
    base = store.table(table)
    base.put_many(rows())
    cut = store.log.latest()
    base.put_many(rows(3000))
    latest = store.log.latest()
    kept = {piece: entries_of(store.log.read(piece, [table])) for piece in cut.slices_to(latest)}
    assert store.log.trim(cut) == ROWS
    assert store.log.oldest() == cut
    assert store.log.latest() == latest
    for piece, entries in kept.items():
        assert entries_of(store.log.read(piece, [table])) == entries
        with pytest.raises(LogTrimmedError):
            store.log.read(Slice(piece.node, piece.after - 1, piece.upto), [table])
    assert store.log.trim(latest) == 3000
    assert store.log.latest() == latest
    base.put({"kind": "after", "id": 1})
    assert latest.operations_to(store.log.latest()) == 1, "numbers go on where they stood"


def test_a_scan_may_begin_or_end_at_a_key_that_is_too_long(store: Store, table: Table) -> None:
    base = store.table(table)
    base.put_many(pa.table({"kind": ["a", "m", "z"], "id": [1, 2, 3]}))
    long = ("m" * 2000, 0)
    assert [row["kind"] for row in scanned(store, table, start=long)] == ["z"]
    assert [row["kind"] for row in scanned(store, table, stop=long)] == ["a", "m"]
    assert scanned(store, table, ("m" * 2000,)) == []
    assert base.get(*long) is None
    base.delete(*long)
    assert base.count() == 3
