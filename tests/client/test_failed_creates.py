"""A CREATE that fails leaves nothing, whenever it fails."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

import everview
from everview.client.validating import Validation, ViewTrial
from everview.errors import EverviewError
from everview.operators.evaluation import Evaluated, Evaluator, Typed


@pytest.fixture
def breaking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that compute with the number 13 break down, as a defect would make them."""
    compute = Evaluator.columns

    def broken(self: Evaluator, expressions: Sequence[Typed], rows: pa.Table) -> Evaluated:
        if any("13" in sql for sql, _ in expressions):
            raise KeyError("a field that nobody knows")
        return compute(self, expressions, rows)

    monkeypatch.setattr(Evaluator, "columns", broken)
    monkeypatch.setattr(Validation, "of", lambda *_: ViewTrial(1, 1))  # it did not show when the view was tried


GOOD = "CREATE MATERIALIZED VIEW good AS SELECT id, amount * 2 AS twice FROM orders"
BAD = "CREATE MATERIALIZED VIEW bad AS SELECT id, amount * 13 AS much FROM orders"


def defined(db: everview.Database) -> list[str]:
    return [row[0] for row in db.sql("SHOW VIEWS").rows()]


def test_a_view_that_cannot_be_built_is_withdrawn(shop: everview.Database, breaking: None) -> None:
    shop.sql(GOOD)
    with pytest.raises(EverviewError, match="bad cannot be maintained"):
        shop.sql(BAD)
    assert defined(shop) == ["good"]
    assert not shop.catalog.discarded()
    assert [group.name for group in shop.catalog.groups()] == ["main"]
    shop.sql("INSERT INTO orders VALUES (9, 1, 4, 'z')")
    shop.flush()
    assert (9, 8) in shop.sql("SELECT id, CAST(twice AS INTEGER) FROM good").rows()


def test_its_name_is_free_again(shop: everview.Database, breaking: None) -> None:
    with pytest.raises(EverviewError):
        shop.sql(BAD)
    shop.sql(BAD.replace("13", "3"))
    assert shop.sql("SELECT count(*) FROM bad").rows() == [(3,)]


def test_a_lazy_view_takes_its_group_with_it(shop: everview.Database, breaking: None) -> None:
    with pytest.raises(EverviewError):
        shop.sql(BAD.replace("bad AS", "bad WITH (refresh = 'lazy') AS"))
    assert defined(shop) == []
    assert [group.name for group in shop.catalog.groups()] in ([], ["main"])


def test_of_several_statements_those_before_the_failing_one_are_created(
    shop: everview.Database, breaking: None
) -> None:
    with pytest.raises(EverviewError, match="bad"):
        shop.sql(f"{GOOD}; {BAD}; {GOOD.replace('good', 'after')}")
    assert defined(shop) == ["good"]
    assert shop.sql("SELECT count(*) FROM good").rows() == [(3,)]


def test_what_it_would_have_replaced_is_there_still(shop: everview.Database, breaking: None) -> None:
    shop.sql(GOOD)
    with pytest.raises(EverviewError):
        shop.sql(BAD.replace("CREATE", "CREATE OR REPLACE").replace("bad", "good"))
    assert "twice" in shop.sql("SELECT * FROM good").names
    assert shop.sql("SELECT count(*) FROM good").rows() == [(3,)]


def test_what_breaks_later_names_the_view(shop: everview.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.sql(GOOD)

    def broken(*_: object) -> object:
        raise KeyError("a field that nobody knows")

    monkeypatch.setattr(Evaluator, "columns", broken)
    shop.sql("INSERT INTO orders VALUES (9, 1, 4, 'z')")
    with pytest.raises(EverviewError, match="good cannot be maintained") as raised:
        shop.flush()
    assert "KeyError" in str(raised.value)
    monkeypatch.undo()
    shop.flush()
    assert shop.sql("SELECT count(*) FROM good").rows() == [(4,)]


@pytest.mark.parametrize("condition", ["0", "amount", "id IN ('1', 'y')", "'abc'", "NOT 'abc'", "note"])
def test_conditions_of_any_type(shop: everview.Database, condition: str) -> None:
    shop.sql(f"CREATE MATERIALIZED VIEW v AS SELECT id FROM orders WHERE {condition}")
    shop.sql("INSERT INTO orders VALUES (9, 1, 4, 'z')")
    shop.flush()
    assert shop.sql("SELECT count(*) FROM v").rows()[0][0] <= 4


def test_what_duckdb_rejects_over_no_rows_is_rejected_with_its_place(shop: everview.Database) -> None:
    with pytest.raises(everview.errors.SqlError, match="line 1, column") as raised:
        shop.sql("CREATE MATERIALIZED VIEW v AS SELECT id FROM orders WHERE customer OR 'x'")
    assert "'x'" in str(raised.value)
    assert defined(shop) == []
