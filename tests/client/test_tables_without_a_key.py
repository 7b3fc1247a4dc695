"""Tables without a primary key: rows are inserted, seen without their hidden id, and may repeat."""

from __future__ import annotations

import multiprocessing
import os
import threading
import uuid

import pyarrow as pa
import pytest

import everview
from everview.change.schema import ROW_ID
from everview.errors import DefinitionError, MissingColumnError, UnknownColumnError, ValueTypeError
from everview.store import row_ids as making
from everview.store.row_ids import RowIds, row_ids


@pytest.fixture(autouse=True)
def _visits(db: everview.Database) -> None:
    db.create_table("visits", {"customer": "INTEGER", "page": "VARCHAR"}, not_null=["customer"])


def rows(db: everview.Database) -> list[dict[str, object]]:
    return db.table("visits").scan().dicts()


def test_rows_are_inserted_and_may_repeat(db: everview.Database) -> None:
    visits = db.table("visits")
    visits.put({"customer": 1, "page": "home"})
    visits.put({"customer": 1, "page": "home"})
    assert visits.put_many([{"customer": 2}, {"customer": 1, "page": "home"}]) == 2
    assert visits.put_many(pa.table({"page": ["cart", "cart"], "customer": [3, 3]})) == 2
    assert visits.count() == 6
    one = {"customer": 1, "page": "home"}
    cart = {"customer": 3, "page": "cart"}
    assert rows(db) == [one, one, {"customer": 2, "page": None}, one, cart, cart]


def test_the_hidden_id_is_neither_seen_nor_named(db: everview.Database) -> None:
    visits = db.table("visits")
    visits.put({"customer": 1})
    assert visits.scan(limit=1).names == ("customer", "page")
    id = uuid.uuid4()
    with pytest.raises(UnknownColumnError, match="has no column __row"):
        visits.put({"customer": 1, ROW_ID: id})
    with pytest.raises(UnknownColumnError, match="has no column __row"):
        visits.put_many([{"customer": 1, ROW_ID: id}])
    with pytest.raises(UnknownColumnError, match="has no column __row"):
        visits.put_many(pa.table({"customer": [1], ROW_ID: [id.bytes]}))
    with pytest.raises(UnknownColumnError, match="has no column __row"):
        visits.put_many(pa.table({"customer": [1], ROW_ID: ["x"]}).to_pandas())
    with pytest.raises(UnknownColumnError) as caught, db.batch() as batch_:
        batch_.table("visits").put_many(pa.table({"customer": [1], ROW_ID: [id.bytes]}))
    assert caught.value.hint == "the columns are customer, page"
    assert visits.count() == 1


def test_there_is_no_key_to_call_rows_by(db: everview.Database) -> None:
    visits = db.table("visits")
    for call in (
        lambda: visits.get(1),
        lambda: visits.get_many([1]),
        lambda: visits.delete(1),
        lambda: visits.delete_many([1]),
        lambda: visits.scan([1]),
        lambda: visits.scan(start=[1]),
    ):
        with pytest.raises(DefinitionError, match="no primary key"):
            call()


def test_bad_rows_are_refused_and_nothing_is_written(db: everview.Database) -> None:
    visits = db.table("visits")
    with pytest.raises(MissingColumnError, match="a new row: column customer is null"):
        visits.put({"customer": None})
    with pytest.raises(MissingColumnError, match="customer has no value"):
        visits.put({"page": "home"})
    with pytest.raises(ValueTypeError, match="a new row: column customer"):
        visits.put_many([{"customer": 1}, {"customer": "x"}])
    with pytest.raises(UnknownColumnError, match="no column pgae"):
        visits.put({"customer": 1, "pgae": "home"})
    assert visits.count() == 0


def test_a_batch_inserts_all_or_nothing(db: everview.Database) -> None:
    with db.batch() as batch:
        batch.table("visits").put({"customer": 1})
        batch.table("visits").put({"customer": 1})
        batch.table("visits").put_many([{"customer": 2}])
    assert db.table("visits").count() == 3
    with pytest.raises(RuntimeError), db.batch() as batch:
        batch.table("visits").put({"customer": 1})
        raise RuntimeError
    with pytest.raises(DefinitionError, match="no delete"), db.batch() as batch:
        batch.table("visits").delete(1)
    assert db.table("visits").count() == 3


def test_a_table_gains_columns_and_rows_that_are_there_read_as_null(db: everview.Database) -> None:
    db.table("visits").put({"customer": 1, "page": "home"})
    db.add_column("visits", "seconds", "INTEGER")
    db.table("visits").put({"customer": 2, "seconds": 5})
    assert [row["seconds"] for row in rows(db)] == [None, 5]


# ------------------------------------------------------------------ ids


def test_ids_are_version_7_and_rise_within_and_across_batches() -> None:
    ids = [found for count in (3, 1, 1000) for found in row_ids(count).to_pylist()]
    assert all(found.version == 7 and found.variant == uuid.RFC_4122 for found in ids)
    assert sorted(set(ids)) == ids
    assert len(row_ids(0)) == 0


def test_ids_rise_where_the_clock_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [5_000_000_000]
    monkeypatch.setattr("time.time_ns", lambda: clock[0])
    made = RowIds()
    first = made.column(2).to_pylist()
    clock[0] -= 1_000_000_000
    second = made.column(2).to_pylist()
    clock[0] += 3_000_000_000
    third = made.column(2).to_pylist()
    assert sorted({*first, *second, *third}) == [*first, *second, *third]


def test_processes_that_start_in_the_same_millisecond_make_different_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 5_000_000_000)
    made = [RowIds().column(10).to_pylist() for _ in range(200)]
    assert len({found for ids in made for found in ids}) == 2000


def test_threads_never_share_an_id() -> None:
    made: list[list[uuid.UUID]] = []
    threads = [
        threading.Thread(target=lambda: made.extend([row_ids(50).to_pylist() for _ in range(50)])) for _ in "abcd"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = [found for part in made for found in part]
    assert len(set(ids)) == len(ids) == 10_000


def _made_in_child(queue: multiprocessing.Queue[list[uuid.UUID]]) -> None:
    queue.put(row_ids(100).to_pylist())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_does_not_go_on_where_its_parent_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 9_000_000_000_000_000_000)
    row_ids(1)
    context = multiprocessing.get_context("fork")
    queue: multiprocessing.Queue[list[uuid.UUID]] = context.Queue()
    children = [context.Process(target=_made_in_child, args=(queue,)) for _ in range(3)]
    for child in children:
        child.start()
    ids = [found for _ in children for found in queue.get()] + row_ids(100).to_pylist()
    for child in children:
        child.join()
    making._IDS.restart()
    assert len(set(ids)) == 400
