"""Views over values that Python has not, or that Arrow has not in the form that DuckDB has them in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import everview
from everview.errors import EverviewError
from tests.check.damage import damage, held


@pytest.fixture
def db(tmp_path: Path) -> Iterator[everview.Database]:
    with everview.open(tmp_path / "store") as found:
        yield found


@pytest.mark.parametrize(
    "value",
    [
        "INTERVAL '3000000 days 100000000 hours'",
        "INTERVAL '2147483647 days 2562047788 hours 54.775807 seconds'",
        "INTERVAL '-2147483648 days -2562047788 hours -54.775808 seconds'",
        "INTERVAL '-5 months 2147483647 days 2562047788 hours'",
        "TIMESTAMP 'infinity'",
        "TIMESTAMPTZ '-infinity'",
        "DATE '290000-01-01'",
        "DATE '0500-01-01 (BC)'",
        "TIME '24:00:00'",
        "[DATE 'infinity', NULL]",
        "{'t': TIMESTAMP '-infinity'}",
    ],
)
def test_extremes_are_held_shown_and_verified(db: everview.Database, value: str) -> None:
    with duckdb.connect() as duck:
        db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)")
        db.sql(f"CREATE MATERIALIZED VIEW constant AS SELECT {value} AS x")
        db.sql(f"CREATE MATERIALIZED VIEW v AS SELECT id, {value} AS x FROM t")
        db.sql("INSERT INTO t VALUES (2)")
        db.flush()
        assert db.verify().right
        for view, count in (("constant", 1), ("v", 2)):
            (kind,) = (column.type for column in db.view(view).columns if column.name == "x")
            shown = [text for (text,) in db.sql(f"SELECT CAST(x AS VARCHAR) FROM {view}").rows()]
            assert len(shown) == count
            for text in shown:
                same = f"SELECT CAST($1 AS {kind}) IS NOT DISTINCT FROM {value}"
                assert duck.execute(same, [text]).fetchall() == [(True,)], text


def test_verify_shows_as_text_what_python_has_not(db: everview.Database) -> None:
    """A difference with an INTERVAL in it that no timedelta holds."""
    db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, x INTERVAL)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT id, x + INTERVAL 1 DAY AS y FROM t")
    db.sql("INSERT INTO t VALUES (1, INTERVAL '100000000 years'), (2, INTERVAL '1 day')")
    db.flush()
    earlier = held(db)
    db.sql("UPDATE t SET x = INTERVAL '-170000000 years' WHERE id = 1; DELETE FROM t WHERE id = 2")
    db.flush()
    assert db.verify("v").right
    damage(db, earlier)
    assert "170000000 years" in str(db.verify("v")) and not db.verify("v").right


def test_a_constant_that_cannot_be_held_is_refused(db: everview.Database) -> None:
    with pytest.raises(EverviewError, match="the query cannot be evaluated"):
        db.sql(
            "CREATE MATERIALIZED VIEW v AS SELECT INTERVAL '2147483647 months 2147483647 days 2562047788 hours' AS x"
        )
    assert not db.catalog.views()
