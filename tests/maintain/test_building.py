"""Views created over filled tables: taken in chunk by chunk while rows are written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from everview.catalog import ViewStatus
from everview.errors import DefinitionError
from everview.store.contract import Begun
from tests.maintain.kept import Kept, kept

ROWS = """
    INSERT INTO a SELECT i, i % 4, i * 3 % 7, 's' || i % 5 FROM range(11) t(i);
    INSERT INTO b SELECT i, i % 3, i / 4 FROM range(8) t(i);
    INSERT INTO c SELECT i % 2, 'z' || i % 3 FROM range(7) t(i);
"""

VIEWS = {
    "rows": "SELECT id, x + 1 AS y FROM a WHERE k > 0",
    "sums": "SELECT k, count(*) AS n, sum(x) AS total FROM a GROUP BY k",
    "ends": "SELECT k, min(x) AS low, max(s) AS high, count(DISTINCT x) AS d FROM a GROUP BY k",
    "whole": "SELECT count(*) AS n, sum(y) AS total FROM b",
    "joined": "SELECT a.id, b.id AS other, x, y FROM a LEFT JOIN b ON a.k = b.k",
    "lists": "SELECT k, string_agg(s, ',' ORDER BY id) AS all FROM a GROUP BY k",
    "firsts": "SELECT * FROM a ORDER BY x DESC, id LIMIT 4",
    "ranked": "SELECT id, rank() OVER (PARTITION BY k ORDER BY x) AS r FROM a",
    "equal": "SELECT k FROM a INTERSECT SELECT k FROM c",
    "pages": "SELECT z, k FROM c WHERE k = 1",
    "pairs": "SELECT a.id, b.id AS other FROM a JOIN b ON a.x < b.y",
    "fixed": "SELECT * FROM (VALUES (1, 'one'), (2, 'two')) AS v(n, word)",
}


@pytest.fixture
def k(tmp_path: Path) -> Iterator[Kept]:
    with kept(tmp_path) as found:
        yield found


def create(name: str, query: str | None = None, options: str = "") -> str:
    return f"CREATE MATERIALIZED VIEW {name} {options} AS {query or VIEWS[name]};"


def write(k: Kept, step: int) -> None:
    """A few writes to rows that are in, that are not in yet, and that come and go."""
    k.sql(f"INSERT INTO a (id, k, x, s) VALUES ({step % 13}, {step % 3}, {step * 5 % 9}, 'w')")
    k.sql(f"UPDATE a SET x = x + 1, k = k + 1 WHERE id = {step * 7 % 12}")
    k.sql(f"DELETE FROM a WHERE id = {step * 3 % 14}")
    k.sql(f"INSERT INTO b VALUES ({step * 2 % 11}, {step % 4}, {step}.5)")
    k.sql(f"DELETE FROM b WHERE id = {step * 5 % 11}")
    k.sql(f"UPDATE c SET z = 'w{step % 2}' WHERE k = {step % 2}; INSERT INTO c VALUES ({step % 3}, 'n')")


def build_while_writing(k: Kept) -> int:
    """Chunk after chunk, with writes between them; returns how many steps there were."""
    steps = 0
    while k.turn_of_build():
        k.check()
        if steps < 12:
            write(k, steps)
        steps += 1
    k.settle()
    assert not k.maintainer.builder.builds()
    return steps


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_built_while_rows_are_written(k: Kept, name: str) -> None:
    k.sql(ROWS + create(name))
    build_while_writing(k)
    assert k.db.catalog.view(name).status is ViewStatus.LIVE
    write(k, 20)
    k.settle()
    assert k.db.sql(f"SELECT * FROM {name}").arrow().num_rows == len(k.rows(name))


def test_large_rows_are_taken_in_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everview.maintain.table_chunks.BYTES", 100_000)
    monkeypatch.setattr("everview.store.embedded.reads.FIRST_ROWS", 2)
    monkeypatch.setattr("everview.store.embedded.reads.SCAN_BYTES", 50_000)
    monkeypatch.setattr("everview.maintain.epochs.BYTES", 100_000)
    with kept(tmp_path, chunk=1000, operations=1000) as k:
        k.sql("INSERT INTO a SELECT i, i % 4, i, repeat('x', 20000) FROM range(40) t(i)")
        k.sql("CREATE MATERIALIZED VIEW lengths AS SELECT k, sum(length(s)) AS total FROM a GROUP BY k")
        turns = 0
        while k.turn():
            turns += 1
        assert turns > 40 * 20_000 / 100_000 / 1.5, "a chunk has five or six rows"
        k.check()
        before = k.store.views.committed("main").epoch
        for low in range(0, 40, 2):
            k.sql(f"INSERT INTO a SELECT i, i % 4, i, repeat('y', 30000) FROM range({low}, {low + 2}) t(i)")
        while k.turn():
            pass
        k.check()
        assert k.store.views.committed("main").epoch - before >= 10, (
            "a batch of two rows has 100,000 bytes, old and new"
        )


def test_all_views_are_built_at_once(k: Kept) -> None:
    k.sql(ROWS + "".join(map(create, VIEWS)))
    steps = build_while_writing(k)
    assert steps > 9, "the rows come in several chunks"
    write(k, 21)
    k.settle()


def test_views_are_built_from_logs_without_before_images(tmp_path: Path) -> None:
    with kept(tmp_path, before_images=False) as k:
        k.sql(ROWS + "".join(map(create, list(VIEWS)[:6])) + member(1))
        build_while_writing(k)
        k.sql(create("wide", "SELECT id, s, x FROM a WHERE x > 3") + create("ranked"))
        build_while_writing(k)
        k.sql("DROP MATERIALIZED VIEW rows; DROP MATERIALIZED VIEW joined")
        write(k, 40)
        k.settle()


@pytest.mark.parametrize("before_images", [True, False])
def test_rows_are_written_between_the_begin_of_a_chunk_and_its_work(
    tmp_path: Path, before_images: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with kept(tmp_path, before_images=before_images) as k:
        k.sql(ROWS + create("sums") + create("joined"))
        begin = k.store.views.begin

        def begin_and_write(*said: Any, **named: Any) -> Begun:
            begun = begin(*said, **named)
            k.sql(f"UPDATE a SET x = x + 1 WHERE id % 3 = {begun.epoch % 3}; DELETE FROM b WHERE id = {begun.epoch}")
            return begun

        monkeypatch.setattr(k.store.views, "begin", begin_and_write)
        for _ in range(8):
            k.turn_of_build()
            k.check()
        monkeypatch.undo()
        k.settle()


@pytest.mark.parametrize("before_images", [True, False])
def test_rows_are_written_after_a_chunk_was_interrupted(
    tmp_path: Path, before_images: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with kept(tmp_path, before_images=before_images) as k:
        k.sql(ROWS + create("sums") + member(1))
        k.settle()
        k.sql(create("joined") + member(2))
        for _ in range(3):  # it begins, a chunk is loaded and taken in, and the next one is known
            k.turn_of_build()
        with monkeypatch.context() as patch:
            patch.setattr(k.maintainer.epochs, "run", _interrupted)
            with pytest.raises(InterruptedError):
                k.turn_of_build()
        write(k, 1)
        before = {build.group for build in k.maintainer.builder.builds()}
        k.turn_of_build()
        after = {build.group for build in k.maintainer.builder.builds()}
        assert after == (before if before_images else set()), "what no log records any more is not made up"
        build_while_writing(k)
        assert len(k.live()) == 4


def test_views_over_empty_tables(k: Kept) -> None:
    k.sql("".join(map(create, VIEWS)))
    k.settle()
    assert k.rows("whole").to_pylist() == [{"n": 0, "total": None}]
    k.sql(ROWS)
    k.settle()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("SELECT k, count(*) AS n FROM a GROUP BY k", "SELECT k, sum(x) AS total FROM a GROUP BY k"),
        ("SELECT a.id, y FROM a JOIN b ON a.k = b.k", "SELECT a.id, x, s, b.id AS other FROM a JOIN b ON a.k = b.k"),
        ("SELECT k, min(x) AS low FROM a GROUP BY k", "SELECT k, max(x) AS high, max(s) AS s FROM a GROUP BY k"),
        ("SELECT id, k FROM a", "SELECT id, x FROM a"),
    ],
)
def test_a_state_that_gains_columns_takes_the_place_of_the_narrow_one(k: Kept, first: str, second: str) -> None:
    k.sql(ROWS + create("v", first))
    k.settle()
    before = k.db.catalog.view("v").state
    k.sql(create("w", second))
    build_while_writing(k)
    after = k.db.catalog.view("v").state
    assert set(k.db.catalog.view("w").state) & set(after), "something is shared"
    k.sql(create("x", second))
    build_while_writing(k)
    assert k.db.catalog.view("v").state == after, "nothing is wider than what is there"
    k.sql("DROP MATERIALIZED VIEW w; DROP MATERIALIZED VIEW x")
    write(k, 22)
    k.settle()
    assert k.db.catalog.view("v").state == after and len(before) == len(after)


def test_a_view_on_a_view_that_is_there(k: Kept) -> None:
    k.sql(ROWS + create("sums"))
    k.settle()
    k.sql(create("high", "SELECT k, total * 2 AS t FROM sums WHERE n > 2"))
    k.sql(create("counted", "SELECT t, count(*) AS n FROM high GROUP BY t"))
    build_while_writing(k)
    with pytest.raises(DefinitionError, match="depend on it: high, counted"):
        k.sql("DROP MATERIALIZED VIEW sums")
    k.sql("DROP MATERIALIZED VIEW counted")
    write(k, 23)
    k.settle()


def test_indexes_are_built_and_follow(k: Kept) -> None:
    k.sql(ROWS + create("sums") + "CREATE INDEX by_s ON a (s, x);")
    k.settle()
    k.sql("CREATE INDEX by_n ON sums (n)")
    build_while_writing(k)
    assert {one.name for one in k.live()} == {"sums", "by_s", "by_n"}
    k.sql("DROP INDEX by_s")
    write(k, 24)
    k.settle()


def test_lazy_views_have_groups_that_lag(k: Kept) -> None:
    k.sql(ROWS + create("now", VIEWS["sums"]) + create("later", VIEWS["sums"], "WITH (refresh = 'lazy')"))
    build_while_writing(k)
    lazy = k.db.catalog.view("later").group
    assert lazy != "main"
    write(k, 25)
    k.maintainer.advance("main", k.store.log.latest())
    assert k.store.views.committed(lazy).frontier < k.store.views.committed("main").frontier
    k.check()
    k.sql(create("on_lazy", "SELECT sum(n) AS n FROM later", "WITH (refresh = 'lazy')"))
    build_while_writing(k)
    k.sql("DROP MATERIALIZED VIEW later CASCADE")
    k.settle()
    assert [group.name for group in k.db.catalog.groups()] == ["main"]


# ------------------------------------------------------------------ families


def member(number: int) -> str:
    return create(f"m{number}", f"SELECT id, x FROM a WHERE x > {number}")


def test_members_join_a_family_and_leave_it(k: Kept) -> None:
    k.sql(ROWS + member(1) + member(2))
    k.settle()
    table = k.db.catalog.view("m1").state[-1]
    k.sql(member(3) + member(4))
    build_while_writing(k)
    assert {k.db.catalog.view(f"m{n}").state[-1] for n in (1, 2, 3, 4)} == {table}, "one table for all"
    k.sql("DROP MATERIALIZED VIEW m2; DROP MATERIALIZED VIEW m3")
    write(k, 26)
    k.settle()
    k.sql(member(2))
    build_while_writing(k)
    k.sql("".join(f"DROP MATERIALIZED VIEW m{n};" for n in (1, 2, 4)))
    k.settle()
    assert not k.state_keys()


def test_a_family_whose_last_member_is_dropped_before_the_next_is_built(k: Kept) -> None:
    k.sql(ROWS + member(1))
    k.settle()
    k.sql("DROP MATERIALIZED VIEW m1;" + member(2))
    build_while_writing(k)
    assert [one.name for one in k.live()] == ["m2"]
    k.maintainer.tidy()
    k.check()


def test_the_same_member_twice(k: Kept) -> None:
    k.sql(ROWS + member(1))
    k.settle()
    k.sql(create("again", "SELECT id, x FROM a WHERE x > 1") + member(2))
    build_while_writing(k)
    k.sql("DROP MATERIALIZED VIEW m1")
    write(k, 27)
    k.settle()


@pytest.mark.parametrize("wide", ["SELECT id, x, s FROM a WHERE x > 2", "SELECT id, x, s, k FROM a WHERE x > 1"])
def test_a_family_whose_state_gains_columns(k: Kept, wide: str) -> None:
    k.sql(ROWS + member(1) + member(2) + member(3))
    k.settle()
    k.sql(create("wide", wide))
    build_while_writing(k)
    write(k, 28)
    k.settle()


def test_families_of_aggregates_and_joins(k: Kept) -> None:
    texts = [
        "SELECT k, count(*) AS n, max(x) AS high FROM a WHERE x > {} GROUP BY k",
        "SELECT a.id, y FROM a JOIN b ON a.k = b.k WHERE a.x > {}",
        "SELECT id, row_number() OVER (PARTITION BY k ORDER BY x, id) AS r FROM a WHERE x < {}",
    ]
    k.sql(ROWS + "".join(create(f"f{n}_1", text.format(1)) for n, text in enumerate(texts)))
    k.settle()
    k.sql("".join(create(f"f{n}_3", text.format(3)) for n, text in enumerate(texts)))
    build_while_writing(k)
    k.sql("".join(f"DROP MATERIALIZED VIEW f{n}_1;" for n in range(len(texts))))
    write(k, 29)
    k.settle()


# ------------------------------------------------------------------ what changes while views are built


@pytest.mark.parametrize("after", [0, 1, 3, 6])
def test_a_view_that_is_dropped_while_it_is_built_leaves_nothing(k: Kept, after: int) -> None:
    k.sql(ROWS + create("sums") + member(1))
    k.settle()
    before = k.stored()
    k.sql(create("joined") + member(2) + create("wide", "SELECT k, sum(x) AS t, avg(x) AS m FROM a GROUP BY k"))
    for _ in range(after):
        k.turn_of_build()
    k.sql("DROP MATERIALIZED VIEW joined; DROP MATERIALIZED VIEW m2; DROP MATERIALIZED VIEW wide")
    k.settle()
    assert k.stored() == before


@pytest.mark.parametrize("after", [0, 1, 3, 6])
def test_one_of_the_views_of_a_build_is_dropped(k: Kept, after: int) -> None:
    k.sql(ROWS + member(1) + member(2) + create("joined"))
    for _ in range(after):
        k.turn_of_build()
    k.sql("DROP MATERIALIZED VIEW m2")
    build_while_writing(k)
    assert {one.name for one in k.live()} == {"m1", "joined"}


@pytest.mark.parametrize("after", [0, 1, 3, 6])
def test_a_view_that_is_replaced_while_it_is_built(k: Kept, after: int) -> None:
    k.sql(ROWS + create("v", VIEWS["sums"]))
    for _ in range(after):
        k.turn_of_build()
    k.sql("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT k, count(*) AS n FROM a WHERE x > 1 GROUP BY k")
    build_while_writing(k)
    assert k.rows("v").column_names == ["k", "n"]


def test_a_view_that_is_replaced(k: Kept) -> None:
    k.sql(ROWS + create("v", VIEWS["sums"]) + create("other", VIEWS["sums"]) + member(1))
    k.settle()
    k.sql("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT k, max(x) AS high FROM a GROUP BY k")
    k.sql("CREATE OR REPLACE MATERIALIZED VIEW m1 AS SELECT id, x FROM a WHERE x > 5")
    k.check()
    build_while_writing(k)
    k.sql("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT k, sum(x) AS total FROM a GROUP BY k")
    build_while_writing(k)


@pytest.mark.parametrize("after", [0, 1, 4])
def test_columns_are_added_while_views_are_built(k: Kept, after: int) -> None:
    k.sql(ROWS + create("sums") + create("joined"))
    for _ in range(after):
        k.turn_of_build()
    k.sql("ALTER TABLE a ADD COLUMN more INTEGER; UPDATE a SET more = id, x = x + 1 WHERE id % 2 = 0")
    k.sql("INSERT INTO a VALUES (100, 1, 2, 'n', 3)")
    build_while_writing(k)
    k.sql(create("newer", "SELECT more, count(*) AS n FROM a GROUP BY more"))
    build_while_writing(k)
    k.sql("ALTER TABLE a ADD COLUMN even_more INTEGER; UPDATE a SET even_more = 1")
    k.settle()
    assert k.store.metadata.documents("quarantine/")[1] == {}


def test_a_column_is_added_after_a_chunk_was_begun(k: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    k.sql(ROWS + create("sums"))
    k.turn_of_build()
    with monkeypatch.context() as patch:
        patch.setattr(k.maintainer.epochs, "run", _interrupted)
        with pytest.raises(InterruptedError):
            k.turn_of_build()
    k.sql("ALTER TABLE a ADD COLUMN more INTEGER")
    k.sql("UPDATE a SET more = id, x = x + 1 WHERE id % 2 = 0")
    k.sql("DELETE FROM a WHERE id < 2; INSERT INTO a VALUES (-5, 1, 1, 'n', 1)")
    build_while_writing(k)


def _interrupted(begun: object, *, snapshot: object = None) -> None:
    raise InterruptedError


@pytest.mark.parametrize("after", [0, 1, 4])
def test_a_table_is_dropped_while_its_view_is_built(k: Kept, after: int) -> None:
    k.sql(ROWS + create("whole"))
    k.settle()
    k.sql(create("joined") + create("sums"))
    for _ in range(after):
        k.turn_of_build()
    k.sql("DROP TABLE a CASCADE")
    k.sql("CREATE TABLE a (id INTEGER PRIMARY KEY, k INTEGER)")
    k.settle()
    assert [one.name for one in k.live()] == ["whole"]


def test_views_that_are_built_one_after_another(k: Kept) -> None:
    k.sql(ROWS)
    names = ["sums", "ends", "joined", "pages", "rows"]
    for number, name in enumerate(names):
        k.sql(create(name))
        k.settle()
        write(k, number)
    k.settle()
    for name in names[:2]:
        k.sql(f"DROP MATERIALIZED VIEW {name}")
        k.settle()
    for name in names[2:]:
        k.sql(f"DROP MATERIALIZED VIEW {name}")
    k.settle()
    assert not k.state_keys()
    assert not [name for name in k.documents() if name.startswith(("maintenance/", "discard/"))]
