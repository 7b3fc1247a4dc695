"""Results: read in several forms, as they come, again while they are small."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

import everview
from everview.change.types import BIGINT, INTEGER, VARCHAR
from everview.client.result import KEPT, SHOWN, Result, ResultColumn
from everview.errors import InputError

COLUMNS = [ResultColumn("n", INTEGER), ResultColumn("text", VARCHAR)]


def batch(start: int, count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array(range(start, start + count), pa.int32()), pa.array(["x"] * count)], names=["n", "text"]
    )


def test_a_small_result_is_read_in_every_form_and_again() -> None:
    result = Result.of(COLUMNS, [(1, "a"), (2, None)])
    assert result.rows() == [(1, "a"), (2, None)] == list(result)
    assert result.dicts() == [{"n": 1, "text": "a"}, {"n": 2, "text": None}]
    assert result.arrow().to_pydict() == {"n": [1, 2], "text": ["a", None]}
    assert result.df()["n"].tolist() == [1, 2]
    assert pa.table(result).num_rows == 2
    assert result.names == ("n", "text")
    assert result.arrow().schema == pa.schema([("n", pa.int32()), ("text", pa.string())])


def test_batches_are_pulled_as_they_are_read_and_the_source_is_closed_at_the_end() -> None:
    pulled: list[int] = []
    closed: list[bool] = []

    def source():  # type: ignore[no-untyped-def]
        for at in range(3):
            pulled.append(at)
            yield batch(at * 10, 10)

    result = Result(COLUMNS, source(), close=lambda: closed.append(True))
    rows = iter(result)
    assert next(rows) == (0, "x")
    assert pulled == [0] and not closed
    assert len(list(rows)) == 29
    assert pulled == [0, 1, 2] and closed == [True]
    assert len(result.rows()) == 30


def test_looking_at_a_result_loses_none_of_it() -> None:
    result = Result(COLUMNS, iter([batch(0, 15), batch(15, 15), batch(30, 15)]), close=lambda: None)
    rows = iter(result)
    next(rows)
    assert repr(result).endswith(f"more than {SHOWN} rows")
    assert [row[0] for row in rows] == list(range(1, 45))
    assert [row[0] for row in result] == list(range(45))
    assert repr(result).endswith(f"45 rows, the first {SHOWN} shown")


def test_a_large_result_is_read_once() -> None:
    result = Result(COLUMNS, (batch(at, 1000) for at in range(0, KEPT + 2000, 1000)))
    assert result.arrow().num_rows == KEPT + 2000
    with pytest.raises(InputError, match="was read already"):
        result.rows()
    assert "read already" in repr(result)


def test_a_result_shows_itself_as_a_table() -> None:
    result = Result.of(COLUMNS, [(1, "a\nb"), (200, None)])
    assert repr(result) == "  n  text\n---  ----\n  1  a·b\n200  NULL\n2 rows"
    assert repr(Result()) == "done"
    assert repr(Result(notices=["there is no table t"])) == "there is no table t"
    assert repr(Result.of([ResultColumn("plan", VARCHAR)], [["one\n  two"]])) == "plan\n----\none\n  two\n1 row"


def test_wide_characters_take_two_places() -> None:
    columns = [ResultColumn("name", VARCHAR), ResultColumn("n", BIGINT)]
    lines = repr(Result.of(columns, [("日本語", 1), ("ab", 20)])).splitlines()
    assert lines == ["name     n", "------  --", "日本語   1", "ab      20", "2 rows"]


def test_an_empty_result_shows_its_columns(db: everview.Database) -> None:
    db.create_table("empty", {"id": "INTEGER", "text": "VARCHAR"}, key=["id"])
    for query in ("SELECT * FROM empty", "SELECT id, text FROM empty WHERE id = 7"):
        assert str(db.sql(query)) == "id  text\n--  ----\n0 rows"
    assert str(db.table("empty").scan()) == "id  text\n--  ----\n0 rows"


def test_a_result_shows_itself_in_a_notebook() -> None:
    shown = Result.of(COLUMNS, [(1, "<b>"), (2, None)], ["a & b"])._repr_html_()
    assert "<tr><th>n</th><th>text</th></tr>" in shown
    assert "<tr><td>1</td><td>&lt;b&gt;</td></tr><tr><td>2</td><td>NULL</td></tr>" in shown
    assert shown.endswith("<p>2 rows</p><p>a &amp; b</p>")
    many = Result(COLUMNS, [batch(0, SHOWN + 5)])
    assert many._repr_html_().count("<tr>") == 1 + SHOWN
    assert len(many.rows()) == SHOWN + 5, "looking at it loses nothing"
    assert Result()._repr_html_() == "<pre>done</pre>"


def test_a_result_may_be_closed_early(shop: everview.Database) -> None:
    with shop.sql("SELECT * FROM orders") as result:
        pass
    assert result.rows() == []


def test_results_stream_out_of_the_store(db: everview.Database) -> None:
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY); INSERT INTO t SELECT * FROM range(60000)")
    result = db.sql("SELECT id FROM t")
    first = next(result.batches())
    assert 0 < first.num_rows < 60000
    result.close()
    assert db.sql("SELECT count(*), sum(id) FROM t").rows() == [(60000, sum(range(60000)))]


def test_values_are_those_of_python(db: everview.Database) -> None:
    ((decimal, huge, nested, uuid),) = db.sql(
        "SELECT 1.5::DECIMAL(4, 2), 1000000000000000000000::HUGEINT, {'a': [true, NULL]},"
        " '00000000-0000-0000-0000-000000000001'::UUID"
    ).rows()
    assert decimal == Decimal("1.50") and nested == {"a": [True, None]} and uuid.int == 1
    assert huge == 10**21
