"""Types print as the SQL that reads them back, and DuckDB understands their columns."""

import pickle

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.change import types
from everview.change.types import Kind, Type, parse_type
from everview.errors import DefinitionError

scalars = [Type(kind) for kind in Kind if kind not in types.NESTED | {Kind.DECIMAL, Kind.ENUM}]
enums = st.lists(st.text(max_size=4), min_size=1, max_size=4, unique=True).map(lambda found: types.enum_of(*found))
decimals = st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: types.decimal(p, s)))
names = st.sampled_from(["a", "B c", 'quo"ted', "ünï", "x1"])
any_type = st.recursive(
    st.sampled_from(scalars) | decimals | enums,
    lambda inner: (
        inner.map(types.list_of)
        | st.dictionaries(names, inner, min_size=1, max_size=3).map(lambda f: types.struct(**f))
        | st.tuples(inner, inner).map(lambda kv: types.map_of(*kv))
        | st.tuples(inner, st.integers(1, 9)).map(lambda pair: types.array_of(*pair))
        | st.lists(inner, min_size=1, max_size=3).map(lambda parts: types.tuple_of(*parts))
    ),
    max_leaves=4,
)


@given(any_type)
def test_a_type_reads_back_from_its_text(sql: Type) -> None:
    assert parse_type(str(sql)) == sql
    assert pickle.loads(pickle.dumps(sql)) == sql


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("int", "INTEGER"),
        (" bigint ", "BIGINT"),
        ("text", "VARCHAR"),
        ("varchar(20)", "VARCHAR"),
        ("numeric(5)", "DECIMAL(5,0)"),
        ("decimal", "DECIMAL(18,3)"),
        ("double precision", "DOUBLE"),
        ("timestamp with time zone", "TIMESTAMPTZ"),
        ("int[][]", "INTEGER[][]"),
        ('struct("a b" int, c text[])', 'STRUCT("a b" INTEGER, c VARCHAR[])'),
        ('struct("""a""(b)" int, "from" int)', 'STRUCT("""a""(b)" INTEGER, "from" INTEGER)'),
        ("map(text, double)", "MAP(VARCHAR, DOUBLE)"),
        ("time with time zone", "TIMETZ"),
        ("enum('b', 'it''s')[2][]", "ENUM('b', 'it''s')[2][]"),
        ("tuple(int, tuple(text))", "TUPLE(INTEGER, TUPLE(VARCHAR))"),
        ('"NULL"[]', "INTEGER[]"),
        ("timestamp_us", "TIMESTAMP"),
    ],
)
def test_other_spellings_are_understood(text: str, meaning: str) -> None:
    assert str(parse_type(text)) == meaning


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "int)",
        "int[",
        "decimal(39,0)",
        "decimal(5,6)",
        "decimal(a)",
        "decimal(1",
        "decimal()",
        "struct()",
        "struct(a)",
        "struct(a int, A text)",
        "map(int)",
        "map(int, int",
        "list",
        "int; drop",
        "enum()",
        "enum('a', 'a')",
        "enum(a)",
        "enum('a'",
        "int[0]",
        "int[x]",
        "int[2",
        "tuple()",
        "array",
    ],
)
def test_text_that_is_no_type_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        parse_type(text)
    assert caught.value.hint


@pytest.mark.parametrize(
    "broken",
    [
        lambda: Type(Kind.BIGINT, precision=3),
        lambda: Type(Kind.LIST),
        lambda: Type(Kind.MAP, children=(("key", types.BIGINT),)),
        lambda: Type(Kind.BIGINT, children=(("item", types.BIGINT),)),
        lambda: Type(Kind.ENUM),
        lambda: Type(Kind.BIGINT, members=("a",)),
        lambda: Type(Kind.ARRAY, children=(("item", types.BIGINT),)),
        lambda: Type(Kind.TUPLE, children=(("a", types.BIGINT),)),
    ],
)
def test_types_validate_themselves(broken: object) -> None:
    with pytest.raises(DefinitionError):
        broken()  # type: ignore[operator]


@pytest.mark.parametrize("sql", [*scalars, types.decimal(10, 2), types.decimal(38, 38)], ids=str)
def test_duckdb_reads_a_column_as_the_type_it_is(sql: Type) -> None:
    column = pa.nulls(1, sql.arrow.storage_type if isinstance(sql.arrow, pa.BaseExtensionType) else sql.arrow)
    if isinstance(sql.arrow, pa.BaseExtensionType):
        column = pa.ExtensionArray.from_storage(sql.arrow, column)
    with duckdb.connect() as connection:
        connection.register("t", pa.table({"x": column}))
        found = connection.sql("SELECT x FROM t").types[0]
    expected = {
        "REAL": "FLOAT",
        "TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE",
        "TIMETZ": "TIME WITH TIME ZONE",
    }.get(str(sql), str(sql))
    assert str(found) == expected


@pytest.mark.parametrize("sql", scalars, ids=str)
def test_values_of_fixed_width_say_so(sql: Type) -> None:
    variable = {Kind.VARCHAR, Kind.BLOB, Kind.JSON, Kind.BIT, Kind.BIGNUM}
    assert (sql.width is None) == (sql.kind in variable)
