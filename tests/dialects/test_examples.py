"""The examples of each dialect: as a SELECT, and as views that are maintained and compiled again."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import everview
from everview.errors import EverviewError, SqlError, ValueTypeError
from tests.dialects.examples import EXAMPLES, FAILS, REFUSED

CASES = [(dialect, text, answer) for dialect, examples in EXAMPLES.items() for text, answer in examples.items()]
TABLE = "CREATE TABLE t (id INTEGER PRIMARY KEY, kept BOOLEAN)"


def same(found: object, expected: object) -> bool:
    """Whether a value is what the dialect gives: numbers by their value, dates also as timestamps."""
    if isinstance(expected, datetime.datetime) and type(found) is datetime.date:
        return datetime.datetime.combine(found, datetime.time()) == expected
    if type(expected) is datetime.date and isinstance(found, datetime.datetime):
        return found == datetime.datetime.combine(expected, datetime.time())
    if isinstance(expected, datetime.timedelta) and isinstance(found, pa.MonthDayNano):
        return found == pa.MonthDayNano([0, 0, expected // datetime.timedelta(microseconds=1) * 1000])
    if isinstance(expected, int | float) and not isinstance(expected, bool):
        if isinstance(found, bool) or not isinstance(found, int | float | Decimal):
            return False
        number = float(found)
        return math.isclose(number, expected) or (math.isnan(number) and math.isnan(expected))
    return type(found) is type(expected) and found == expected


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> everview.Database:
    return everview.open(tmp_path_factory.mktemp("dialects") / "db")


@pytest.mark.parametrize(("dialect", "text", "answer"), CASES)
def test_a_select_gives_the_answer_of_the_dialect(
    engine: everview.Database, dialect: str, text: str, answer: object
) -> None:
    query = f"SELECT {text} AS v"
    if answer is FAILS:
        with pytest.raises(ValueTypeError):
            engine.sql(query, dialect=dialect).rows()
    elif answer is REFUSED:
        with pytest.raises(EverviewError) as refused:
            engine.sql(query, dialect=dialect).rows()
        assert isinstance(refused.value, SqlError) or "there is no function" in refused.value.message
        assert "line 1, column" in refused.value.message
    else:
        ((found,),) = engine.sql(query, dialect=dialect).rows()
        assert same(found, answer), f"{found!r} instead of {answer!r}"


@pytest.mark.parametrize("dialect", EXAMPLES)
def test_views_give_the_answers_of_the_dialect(tmp_path: Path, dialect: str) -> None:
    """Rows come, change and go; then the recorded definitions are compiled again."""
    wanted = {f"v{n}": pair for n, pair in enumerate(EXAMPLES[dialect].items()) if pair[1] is not REFUSED}
    with everview.open(tmp_path / "db") as db:
        db.sql(TABLE)
        for name, (text, _) in wanted.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS SELECT id, {text} AS v FROM t WHERE kept", dialect=dialect)
        db.sql("INSERT INTO t VALUES (1, true), (2, false), (3, true)")
        db.sql("FLUSH")
        compare(db, wanted, [1, 3])
        db.sql("UPDATE t SET kept = true WHERE id = 2; DELETE FROM t WHERE id = 1; FLUSH")
        compare(db, wanted, [2, 3])
    with everview.open(tmp_path / "db") as db:
        db.sql("INSERT INTO t VALUES (4, true); UPDATE t SET kept = NULL WHERE id = 2; FLUSH")
        compare(db, wanted, [3, 4])


def compare(db: everview.Database, wanted: dict[str, tuple[str, object]], ids: list[int]) -> None:
    for name, (text, answer) in wanted.items():
        rows = sorted(db.sql(f"SELECT id, v FROM {name}").rows(), key=lambda row: row[0])
        expected = [] if answer is FAILS else ids
        assert [number for number, _ in rows] == expected, text
        assert all(same(value, answer) for _, value in rows), f"{text}: {rows} instead of {answer!r}"
