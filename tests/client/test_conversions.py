"""Values leave as they leave DuckDB: every type, alone and nested, with nulls and extremes."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pytest

import everview
from everview.change.types import Kind, Type
from everview.client.result import Result
from everview.errors import InputError
from tests.client.every_type import COLUMNS, INSERTS, NAMES, TABLE, in_duckdb, stored_texts

Read = Callable[[everview.Database], Result]


def _snapshot(db: everview.Database) -> Result:
    with db.snapshot() as snapshot:
        found = snapshot.table("every").scan()
        return Result(found.columns, list(found.stored_batches()))  # read before the snapshot is closed


READS: dict[str, Read] = {
    "select": lambda db: db.sql("SELECT * FROM every ORDER BY id"),
    "select from view": lambda db: db.sql("SELECT * FROM shown ORDER BY id"),
    "view": lambda db: db.view("shown").scan(),
    "table": lambda db: db.table("every").scan(),
    "snapshot": _snapshot,
}


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[everview.Database]:
    with everview.open(tmp_path_factory.mktemp("every"), durability="none") as found:
        found.sql(TABLE)
        found.sql("CREATE MATERIALIZED VIEW shown AS SELECT * FROM every")
        for statement in INSERTS:
            found.sql(statement)
        found.flush()
        yield found


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    with in_duckdb() as connection:
        yield connection


def same(ours: Any, theirs: Any) -> bool:
    """Equal in class and value; NaN is itself, and so is null."""
    if isinstance(theirs, np.ma.MaskedArray):
        theirs = theirs.tolist() if isinstance(ours, list) else theirs
        if isinstance(theirs, np.ma.MaskedArray):
            return isinstance(ours, np.ma.MaskedArray) and same(ours.tolist(), theirs.tolist())
    if isinstance(theirs, np.ndarray):
        return type(ours) is type(theirs) and ours.dtype == theirs.dtype and same(ours.tolist(), theirs.tolist())
    if theirs is None or theirs is pd.NA or theirs is pd.NaT:
        return ours is theirs
    if isinstance(theirs, list | tuple):
        return type(ours) is type(theirs) and len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, dict):
        return same(list(ours.items()), list(theirs.items())) if isinstance(ours, dict) else False
    if isinstance(theirs, float) and math.isnan(theirs):
        return isinstance(ours, float) and math.isnan(ours)
    return bool(type(ours) is type(theirs) and ours == theirs)


def test_there_is_a_column_of_every_kind() -> None:
    assert {kind.kind for kind in NAMES.values()} == set(Kind)


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_rows_are_those_of_fetchall(read: Read, db: everview.Database, plain: duckdb.DuckDBPyConnection) -> None:
    wanted = plain.execute("SELECT * FROM every ORDER BY id").fetchall()
    for ours, theirs in zip(read(db).rows(), wanted, strict=True):
        for (name, kind), one, other in zip(COLUMNS.items(), ours[1:], theirs[1:], strict=True):
            assert same(one, other), f"{name} {kind}: {one!r} instead of {other!r}"


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_arrow_tables_are_those_of_duckdb(read: Read, db: everview.Database, plain: duckdb.DuckDBPyConnection) -> None:
    result = read(db)
    ours, streamed = result.arrow(), pa.table(result)
    theirs = plain.sql("SELECT * FROM every ORDER BY id").to_arrow_table()
    for other in (streamed, pa.Table.from_batches(list(result.batches()), ours.schema)):
        assert other.schema == ours.schema and str(other.to_pydict()) == str(ours.to_pydict())
    for name, kind in NAMES.items():
        if _holds(kind, Kind.UHUGEINT):
            assert "decimal256(39, 0)" in str(ours[name].type), "DuckDB's decimals of 128 bits turn negative"
            continue
        if _holds(kind, Kind.TIMETZ):  # DuckDB's Arrow tables drop the offsets
            if kind.is_scalar:
                texts = plain.execute(f"SELECT CAST({name} AS VARCHAR) FROM every ORDER BY id").fetchall()
                assert [(text,) for text in ours[name].to_pylist()] == texts
            continue
        assert ours[name].type == theirs[name].type, kind
        assert same(ours[name].to_pylist(), theirs[name].to_pylist()), kind


def _holds(kind: Type, wanted: Kind) -> bool:
    return kind.kind is wanted or any(_holds(child, wanted) for _, child in kind.children)


INEXACT = (Kind.HUGEINT, Kind.UHUGEINT, Kind.DECIMAL, Kind.TIMETZ, Kind.BIGNUM)
"""Kinds that DuckDB has floats, or nothing, for."""


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_frames_are_those_of_duckdb(read: Read, db: everview.Database, plain: duckdb.DuckDBPyConnection) -> None:
    ours = read(db).df()
    rows = read(db).dicts()
    for name, kind in NAMES.items():
        found = ours[name].tolist()
        if any(_holds(kind, one) for one in INEXACT):
            exact = [row[name] for row in rows]
            if same([None if one is pd.NA else one for one in found], exact):
                continue
            assert "999999999" not in str(exact) and "7303715884105" not in str(exact), f"{kind}: digits are lost"
        theirs = plain.sql(f"SELECT {name} FROM every ORDER BY id").df()[name]
        assert ours[name].dtype == theirs.dtype, kind
        assert same(found, theirs.tolist()), f"{kind}: {found} instead of {theirs.tolist()}"


def test_single_rows_are_those_of_fetchall(db: everview.Database, plain: duckdb.DuckDBPyConnection) -> None:
    for number, *theirs in plain.execute("SELECT * FROM every ORDER BY id").fetchall():
        with db.snapshot() as snapshot:
            rows = [
                db.table("every").get(number),
                db.view("shown").get(number),
                snapshot.table("every").get(number),
                snapshot.view("shown").get(number),
            ]
        for row in rows:
            assert row is not None
            for (name, kind), value in zip(NAMES.items(), theirs, strict=True):
                if not _holds(kind, Kind.INTERVAL) and not _has_nested_keys(kind):
                    assert same(row[name], value), kind  # what put takes: months stay months, pairs stay pairs
        assert all(str(row) == str(rows[0]) for row in rows)


def _has_nested_keys(kind: Type) -> bool:
    nested = kind.kind is Kind.MAP and not kind.children[0][1].is_scalar
    return nested or any(_has_nested_keys(child) for _, child in kind.children)


@pytest.mark.parametrize("many", ["table", "view", "snapshot"])
def test_many_rows_leave_as_scans_do(many: str, db: everview.Database) -> None:
    with db.snapshot() as snapshot:
        sources: dict[str, Any] = {
            "table": db.table("every"),
            "view": db.view("shown"),
            "snapshot": snapshot.table("every"),
        }
        keys = [(row,) for (row,) in db.sql("SELECT id FROM every ORDER BY id").rows()]
        found, wanted = sources[many].get_many(keys), db.table("every").scan().arrow()
        assert found.schema == wanted.schema and str(found.to_pydict()) == str(wanted.to_pydict())


@pytest.mark.parametrize("form", ["arrow", "stream", "rows", "put"])
def test_what_was_read_can_be_written_again(form: str, db: everview.Database, tmp_path: Path) -> None:
    with everview.open(tmp_path / "copy") as other:
        other.sql(TABLE)
        table = other.table("every")
        read = db.table("every").scan()
        if form == "arrow":
            table.put_many(read.arrow())
        elif form == "stream":
            table.put_many(read)
        else:
            rows = [db.table("every").get(number) for (number,) in db.sql("SELECT id FROM every").rows()]
            if form == "rows":
                table.put_many(rows)
            else:
                for row in rows:
                    table.put(row)  # type: ignore[arg-type]
        assert stored_texts(other) == stored_texts(db)


# ------------------------------------------------------------------ what was seen


def test_a_sum_of_integers_leaves_as_a_number(db: everview.Database) -> None:
    result = db.sql("SELECT sum(x) AS s FROM (VALUES (1), (2), (NULL)) t(x)")
    assert result.arrow().column("s").to_pylist() == [Decimal(3)]
    assert pa.table(result).schema.field("s").type == pa.decimal128(38, 0)
    assert result.df()["s"].tolist() == [3.0] and result.rows() == [(3,)]


def test_a_frame_loses_no_digits(db: everview.Database) -> None:
    found = db.sql("SELECT * FROM (VALUES (9007199254740993, 9007199254740993::HUGEINT, 12345678901234567.89),"
                   " (NULL, NULL, NULL)) t(a, b, c)").df()  # fmt: skip
    assert str(found["a"].dtype) == "Int64" and found["a"][0] == 9007199254740993
    assert found["b"][0] == 9007199254740993 and found["c"][0] == Decimal("12345678901234567.89")
    assert found["b"][1] is pd.NA and found["c"][1] is pd.NA


def test_values_beyond_python_and_pandas_leave_too(db: everview.Database) -> None:
    query = (
        "SELECT 'infinity'::DATE AS d, '290000-01-01'::TIMESTAMP AS t, '24:00:00'::TIME AS h,"
        " to_months(2147483647) AS i, [to_months(-2147483648)] AS l"
    )
    ((d, t, h, i, listed),) = db.sql(query).rows()
    assert (d, t, h) == (datetime.date.max, "290000-01-01 00:00:00", "24:00:00")
    assert i == pa.MonthDayNano([2147483647, 0, 0]) and listed == [pa.MonthDayNano([-2147483648, 0, 0])]
    found = db.sql(query).df()
    assert found["d"][0] == datetime.date.max and found["i"][0] == i and found["l"][0] == listed
    assert str(found["t"][0].to_datetime64()) == "290000-01-01T00:00:00.000000"
    assert "infinity" not in repr(db.sql(query)) and "MonthDayNano" in repr(db.sql(query))


def test_two_columns_of_one_name(db: everview.Database) -> None:
    result = db.sql("SELECT 1 AS a, 2 AS a, 3 AS A, 4 AS a_1")
    assert result.rows() == [(1, 2, 3, 4)]
    assert result.df().columns.tolist() == ["a", "a_1", "A_2", "a_1_1"], "as DuckDB numbers them"
    assert result.arrow().num_columns == 4
    with pytest.raises(InputError, match="two columns have the name 'a'") as caught:
        result.dicts()
    assert "AS" in str(caught.value.hint)
    assert json.dumps(db.sql("SELECT 1 AS a, 2 AS b").dicts()) == '[{"a": 1, "b": 2}]'
