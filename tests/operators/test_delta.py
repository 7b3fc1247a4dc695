"""Logs without before-images: the last rows are kept, and views are right as with before-images."""

from __future__ import annotations

import functools
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from everview.change.entries import WEIGHT
from everview.change.schema import Schema
from everview.operators.delta import DeltaWorker
from everview.operators.work import Written
from everview.store.contract import Begun
from tests.operators.histories import emitted
from tests.oracle import played
from tests.oracle.maintained import EpochRunner, Maintained
from tests.oracle.random_scripts import random_script

TABLES = {
    "t": Schema.of(
        {
            "k": "INTEGER",
            "j": "VARCHAR",
            "a": "INTEGER",
            "b": "VARCHAR",
            "c": "DOUBLE",
            "l": "INTEGER[]",
            "u": "HUGEINT",
        },
        key=["k", "j"],
    )
}
VIEWS = {
    "same": "SELECT k, j, a, b, c, l, u FROM t",
    "part": "SELECT k, j, a FROM t WHERE a > 1",
    "counted": "SELECT count(*) AS n FROM t",
    "grouped": "SELECT b, count(*) AS n, sum(a) AS s, min(c) AS least, max(c) AS most FROM t GROUP BY b",
    "joined": "SELECT x.k, x.j, y.j AS other, y.a FROM t x JOIN t y ON x.k = y.k AND x.j <> y.j",
}
VALUES: dict[str, list[object]] = {
    "a": [None, 0, 1, 2, 3],
    "b": [None, "", "p", "q"],
    "c": [None, 0.0, -0.0, float("nan"), 1.5],
    "l": [None, [], [1], [1, None]],
    "u": [None, 1, 1 << 100],
}


@pytest.fixture
def m() -> Iterator[Maintained]:
    with tempfile.TemporaryDirectory() as path:
        found = Maintained(Path(path) / "store", TABLES, VIEWS, before_images=False)
        yield found
        found.close()


def delta(m: Maintained) -> DeltaWorker:
    found = m.runner.workshop.delta("t")
    assert found is not None
    return found


def records(m: Maintained) -> int:
    worker = delta(m)
    assert worker._kept is not None
    return len(m.store.views.scan(worker._kept.table, b"", m.store.views.committed("main").epoch).keys)


def state(m: Maintained, epoch: int) -> list[tuple[bytes, bytes]]:
    kept = delta(m)._kept
    assert kept is not None
    found = m.store.views.scan(kept.table, b"", epoch)
    return list(zip(found.keys.to_pylist(), found.values.to_pylist(), strict=True))


def test_partial_puts_keep_what_they_do_not_name(m: Maintained) -> None:
    table = m.table("t")
    table.put({"k": 1, "j": "x", "a": 5, "b": "p"})
    m.epoch()
    m.check()
    table.put({"k": 1, "j": "x", "b": "q"})
    m.epoch()
    assert m.view("same").select(["a", "b"]).to_pylist() == [{"a": 5, "b": "q"}]
    table.put({"k": 1, "j": "x", "a": None})
    m.epoch()
    assert m.view("same").select(["a", "b"]).to_pylist() == [{"a": None, "b": "q"}]
    m.check()


def test_a_row_deleted_and_written_again_in_one_epoch_has_only_the_new_values(m: Maintained) -> None:
    table = m.table("t")
    table.put({"k": 1, "j": "x", "a": 5, "b": "p", "c": 1.5})
    m.epoch()
    table.put({"k": 1, "j": "x", "c": 2.5})
    table.delete(1, "x")
    table.put({"k": 1, "j": "x", "b": "q"})
    table.put({"k": 1, "j": "x", "a": 7})
    m.epoch()
    assert m.view("same").select(["a", "b", "c"]).to_pylist() == [{"a": 7, "b": "q", "c": None}]
    m.check()


def test_a_deleted_row_leaves_no_record(m: Maintained) -> None:
    m.table("t").put({"k": 1, "j": "x"})
    m.epoch()
    assert records(m) == 1
    m.table("t").delete(1, "x")
    m.table("t").delete(2, "never there")
    m.epoch()
    assert records(m) == 0
    m.check()


def test_writes_that_change_nothing_are_neither_emitted_nor_kept(m: Maintained) -> None:
    row = {"k": 1, "j": "x", "a": 5, "c": float("nan"), "l": [1]}
    m.table("t").put(row)
    m.epoch()
    m.table("t").put({**row, "a": 6})
    m.table("t").put(row)
    begun = m.begin()
    assert emitted(m, begun) == {}


def test_a_key_whose_region_moves_within_an_epoch(m: Maintained) -> None:
    table = m.table("t")
    nodes = m.store.topology.nodes()
    for turn in range(9):
        table.put({"k": 1, "j": "x", ("a", "c")[turn % 2]: turn})
        for region in m.store.topology.regions():
            m.store.topology.move(region.first, nodes[(turn * 5) % len(nodes)])
        if turn == 4:
            table.delete(1, "x")
    m.epoch()
    m.check()


def put_some(m: Maintained, choose: random.Random) -> None:
    for _ in range(choose.choice((0, 1, 4, 15))):
        key = choose.randint(0, 3), choose.choice(["", "x", "y" * 500])
        if choose.random() < 0.25:
            m.table("t").delete(*key)
        else:
            named = choose.sample(sorted(VALUES), choose.randint(0, len(VALUES)))
            m.table("t").put({"k": key[0], "j": key[1], **{name: choose.choice(VALUES[name]) for name in named}})


@pytest.mark.parametrize("seed", range(3))
def test_views_equal_recomputation_after_every_epoch_of_a_history(m: Maintained, seed: int) -> None:
    choose = random.Random(seed)
    for _ in range(6):
        put_some(m, choose)
        begun = m.begin()
        before = emitted(m, begun)
        m.runner.epoch(m.store, begun)
        written = state(m, begun.epoch)
        assert repr(emitted(m, begun)) == repr(before), "an epoch sees what it wrote"
        m.epoch()
        assert state(m, begun.epoch) == written
        m.check()


@pytest.mark.parametrize("seed", range(2))
def test_random_scripts(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(played, "Maintained", functools.partial(Maintained, before_images=False))
    played.play(random_script(seed))


@pytest.mark.parametrize("seed", range(4))
def test_packed_parts_come_to_the_same_as_whole_batches(m: Maintained, seed: int) -> None:
    choose = random.Random(seed)
    put_some(m, choose)
    m.epoch()
    for _ in range(3):
        put_some(m, choose)
        regions = m.store.topology.regions()
        m.store.topology.move(choose.choice(regions).first, choose.choice(m.store.topology.nodes()))
    begun = m.begin()
    batches = m.runner.read(m.store, begun).batches
    parts = [delta(m).packed([batch]) for batch in batches]
    choose.shuffle(parts)
    work = m.runner.work(Written(m.store.views, begun.epoch))
    together = delta(m).of_packed(work, parts)
    assert rows(together) == rows(delta(m).of_log(work, batches))


def rows(changes: pa.Table) -> list[str]:
    return sorted(map(repr, changes.to_pylist()))


def test_rows_of_a_snapshot_are_kept_for_later_entries(m: Maintained) -> None:
    columns = {"k": [1, 2], "j": ["x", "x"], "a": [5, None], "b": ["p", "q"]}
    kinds = TABLES["t"].arrow
    snapshot = pa.table(
        [pa.array(columns[f.name], f.type) if f.name in columns else pa.nulls(2, f.type) for f in kinds], schema=kinds
    )
    m.table("t").put_many(snapshot)
    begun = m.begin()
    m.runner.take(m.store, begun, [], {"t": snapshot})
    m.store.views.commit("main", begun.epoch)
    m.runner, m.epochs = EpochRunner(m.later), 1
    assert m.view("part").to_pylist() == [{"k": 1, "j": "x", "a": 5}]
    m.table("t").put({"k": 1, "j": "x", "b": "z"})
    m.table("t").delete(2, "x")
    m.epoch()
    assert m.view("same").select(["k", "a", "b"]).to_pylist() == [{"k": 1, "a": 5, "b": "z"}]
    m.check()


def test_nothing_comes_of_no_entries(m: Maintained) -> None:
    begun: Begun = m.begin()
    work = m.runner.work(Written(m.store.views, begun.epoch))
    assert delta(m).of_log(work, []).column_names[-1] == WEIGHT
    assert len(delta(m).of_log(work, [])) == 0
