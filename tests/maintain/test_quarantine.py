"""What views lack: rows whose expression failed, and log entries that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from everview.maintain.quarantined import QuarantinedItem, quarantined_items
from everview.store.embedded import blocks
from everview.store.embedded.environment import Transaction
from everview.store.embedded.layout import LOG
from tests.maintain.kept import Kept, kept
from tests.maintain.test_building import ROWS, create


@pytest.fixture
def k(tmp_path: Path) -> Iterator[Kept]:
    with kept(tmp_path, chunk=4, operations=1000) as found:
        yield found


def found(k: Kept, group: str = "main") -> list[QuarantinedItem]:
    with k.store.snapshot() as snapshot:
        return quarantined_items(k.db.catalog, k.maintainer.plans, group, snapshot)


def turns(k: Kept) -> None:
    """Without comparing: DuckDB has no answer where a row has no value."""
    while k.turn():
        pass
    k.maintainer.tidy()
    k.check_nothing_is_left()


def test_a_row_whose_expression_failed_has_its_epoch_in_the_quarantine(k: Kept) -> None:
    k.sql("INSERT INTO a VALUES (1, 1, 1, '5')" + ";" + create("v", "SELECT id, CAST(s AS INTEGER) AS n FROM a"))
    turns(k)
    assert found(k) == []
    k.sql("INSERT INTO a VALUES (2, 1, 1, 'five')")
    turns(k)
    (one,) = found(k)
    commit = k.store.views.committed("main")
    assert (one.views, one.what, one.count, one.epoch, one.frontier) == (
        ("v",),
        "row",
        1,
        commit.epoch,
        commit.frontier,
    )
    assert one.values == {"a.id": "2", "a.s": "five"} and "five" in one.reason
    k.sql("UPDATE a SET x = 7 WHERE id = 2")
    turns(k)
    assert found(k) == [one], "it is the same row"
    k.sql("UPDATE a SET s = '5' WHERE id = 2")
    turns(k)
    assert found(k) == []
    k.check()


def test_rows_that_a_build_finds_without_a_value_are_the_groups_when_it_joins(k: Kept) -> None:
    k.sql("INSERT INTO a SELECT i, i, i, 's' || i FROM range(6) t(i)")
    k.sql(create("v", "SELECT id, CAST(s AS INTEGER) AS n FROM a WHERE id > 2"))
    turns(k)
    before = found(k)
    assert len(before) == 3
    k.sql(create("w", "SELECT k, sum(CAST(s AS INTEGER)) AS n FROM a WHERE id > 2 GROUP BY k"))
    turns(k)
    assert {view for one in found(k) for view in one.views} == {"v", "w"}
    k.sql("DROP MATERIALIZED VIEW v")
    turns(k)
    assert {one.views for one in found(k)} == {("w",)} and len(found(k)) == 3
    k.sql("UPDATE a SET s = '1'")
    turns(k)
    assert found(k) == []
    k.check()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, CAST(s AS INTEGER) AS n FROM a WHERE x > {}",
        "SELECT k, sum(CAST(s AS INTEGER)) AS n FROM a WHERE x > {} GROUP BY k",
        "SELECT k, max(CAST(s AS INTEGER)) AS n FROM a WHERE x > {} GROUP BY k",
        "SELECT id FROM a WHERE CAST(s AS INTEGER) > {}",
        "SELECT k, list(CAST(s AS INTEGER) ORDER BY id) AS n FROM a WHERE x > {} GROUP BY k",
        "SELECT a.id, b.id AS other FROM a JOIN b ON a.k = b.k AND CAST(s AS INTEGER) > b.y WHERE a.x > {}",
    ],
)
def test_members_of_a_family_lack_rows_each_for_itself(k: Kept, query: str) -> None:
    k.sql("INSERT INTO a VALUES (1, 1, 5, 'one'), (2, 1, 5, '2'), (3, 1, 1, '3'); INSERT INTO b VALUES (1, 1, 0)")
    k.sql("".join(create(f"m{n}", query.format(n)) for n in (0, 2, 7)))
    turns(k)
    views = {view for one in found(k) for view in one.views}
    assert {"m0", "m2"} <= views
    k.sql("DROP MATERIALIZED VIEW m0;" + create("m4", query.format(4)))
    turns(k)
    left = {view for one in found(k) for view in one.views}
    assert "m0" not in left and {"m2", "m4"} <= left
    k.sql("UPDATE a SET s = '1' WHERE id = 1")
    turns(k)
    assert found(k) == []
    k.check()


def test_log_entries_that_cannot_be_read_are_listed_with_their_position(k: Kept) -> None:
    k.sql(ROWS + create("sums") + create("whole"))
    k.settle()
    before = k.store.log.latest()
    k.sql("INSERT INTO a VALUES (50, 1, 1, 'lost')")
    (piece,) = before.slices_to(k.store.log.latest())
    damage(k, piece.node)
    k.sql("INSERT INTO b VALUES (50, 1, 2)")
    turns(k)
    (one,) = found(k)
    assert one.what == "log entry" and one.views == ("sums", "whole") and "checksum" in one.reason
    assert one.position is not None and one.position.node == piece.node
    assert k.rows("whole").to_pylist() == k.db.sql("SELECT count(*) AS n, sum(y) AS total FROM b").arrow().to_pylist()
    assert sum(k.rows("sums")["n"].to_pylist()) == 11, "the row that was lost is in no view"


def damage(k: Kept, node: int) -> None:
    """Flip a bit of the last block of a node's log."""

    def work(txn: Transaction) -> None:
        with txn.cursor() as cursor:
            prefix = LOG + node.to_bytes(4, "big")
            keys = [key for key in cursor.iternext(values=False) if key.startswith(prefix)]
        block = bytearray(txn.get(keys[-1]) or b"")
        block[blocks.HEADER.size + 3] ^= 1
        txn.put(keys[-1], bytes(block))

    k.store._handle.core.base.update(work)


@pytest.mark.parametrize("moment", ["infinity", "-infinity", "290000-01-01", "0500-01-01 (BC)"])
def test_rows_with_moments_that_python_has_not_are_quarantined_and_go(k: Kept, moment: str) -> None:
    k.sql("CREATE TABLE m (id INTEGER PRIMARY KEY, t TIMESTAMPTZ, d DATE[])")
    k.sql(f"INSERT INTO m VALUES (1, '2024-01-01', []), (2, '{moment}', ['2024-01-01', 'infinity'])")
    k.sql(create("v", "SELECT id, CAST(CAST(d AS VARCHAR) || CAST(t AS VARCHAR) AS INTEGER) AS n FROM m"))
    turns(k)
    assert {one.values["m.id"] for one in found(k)} == {"1", "2"}
    (beyond,) = (one for one in found(k) if one.values["m.id"] == "2")
    assert beyond.values["m.t"].startswith(moment.partition(" ")[0])
    assert beyond.values["m.d"] == "[2024-01-01, infinity]"
    k.sql("DELETE FROM m WHERE id = 2")
    turns(k)
    assert {one.values["m.id"] for one in found(k)} == {"1"}
