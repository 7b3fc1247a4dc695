"""As-of joins that DuckDB does not return from: never evaluated as they stand."""

from __future__ import annotations

import pytest

import everview
from everview.errors import SqlRefusedError


@pytest.fixture
def trades(db: everview.Database) -> everview.Database:
    db.sql("""
        CREATE TABLE trades (id INTEGER PRIMARY KEY, k INTEGER, x INTEGER);
        CREATE TABLE quotes (id INTEGER PRIMARY KEY, k INTEGER, y INTEGER);
        INSERT INTO trades VALUES (1, 3, NULL);
        INSERT INTO quotes VALUES (1, NULL, 2), (2, 2, 2);
    """)
    return db


@pytest.mark.parametrize("side", ["RIGHT", "FULL"])
def test_a_view_of_rows_without_any_match(trades: everview.Database, side: str) -> None:
    trades.sql(
        "CREATE MATERIALIZED VIEW v AS SELECT t.id AS tid, q.id AS qid"
        f" FROM trades t ASOF {side} JOIN quotes q ON t.k = q.k AND t.x >= q.y"
    )
    left = [(1, None)] if side == "FULL" else []
    assert sorted(trades.sql("SELECT * FROM v").rows(), key=str) == [*left, (None, 1), (None, 2)]


def test_what_would_not_return_is_refused(trades: everview.Database) -> None:
    query = "SELECT t.id FROM trades t ASOF RIGHT JOIN quotes q ON t.k = q.k AND t.x >= q.y"
    with pytest.raises(SqlRefusedError, match="as-of RIGHT join cannot be evaluated here"):
        trades.sql(query)
    with pytest.raises(SqlRefusedError, match="line 1, column 80"):
        trades.sql(f"CREATE MATERIALIZED VIEW v AS {query} LIMIT 1 + 1")
    assert not trades.sql("SHOW VIEWS").rows()


def test_a_view_that_cannot_be_recomputed_is_not_called_wrong(trades: everview.Database) -> None:
    trades.sql(
        "CREATE MATERIALIZED VIEW v AS SELECT t.id AS tid, q.id AS qid"
        " FROM trades t ASOF FULL JOIN quotes q ON t.k = q.k AND t.x >= q.y"
    )
    (found,) = trades.verify().views
    assert "does not return" in str(found)
