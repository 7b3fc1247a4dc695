"""Samples: few rows, of the kinds that go wrong, the same every time."""

from __future__ import annotations

import pyarrow as pa
import pytest

from everview.change.schema import ROW_ID, Column
from everview.change.types import parse_type
from everview.check.sample import ROUNDS, Sample
from everview.check.sample_values import LEVELS, pool_of
from everview.check.trial_queries import asking
from everview.sql.namespace import NamedRelation

TYPES = [
    "BOOLEAN", "TINYINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "UBIGINT", "UHUGEINT", "REAL", "DOUBLE",
    "DECIMAL(10,2)", "VARCHAR", "BLOB", "DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "INTERVAL", "UUID", "JSON",
    "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMETZ", "BIT", "ENUM('a', 'b')", "INTEGER[3]",
    "TUPLE(INTEGER, VARCHAR)", "INTEGER[]", "VARCHAR[][]",
    "STRUCT(a INTEGER, b VARCHAR)", "MAP(VARCHAR, INTEGER)", "STRUCT(a INTEGER[])[]", "BIGNUM",
]  # fmt: skip


@pytest.mark.parametrize("text", TYPES)
@pytest.mark.parametrize("level", LEVELS)
def test_every_type_has_values(text: str, level: int) -> None:
    kind = parse_type(text)
    values = pool_of(kind, level)
    assert values.type == kind.arrow
    assert len(values) >= 2 and values.null_count == 0


def relations() -> list[NamedRelation]:
    columns = tuple(Column(f"c{number}", parse_type(text)) for number, text in enumerate(TYPES))
    keyed = (Column("k", parse_type("INTEGER"), nullable=False), Column("l", parse_type("DOUBLE"), nullable=False))
    return [
        NamedRelation("keyed", "table", (*keyed, *columns), ("k", "l")),
        NamedRelation("bag", "table", columns, (), bag=True),
        NamedRelation("one", "view", columns[:3], ()),
    ]


def spelled(rows: pa.Table) -> list[str]:
    """Every row as DuckDB prints it: some values are beyond what Python has."""
    texts = asking().answer("SELECT CAST(COLUMNS(*) AS VARCHAR) FROM given", {"given": rows})
    return list(map(repr, texts.to_pylist()))


def played(seed: int = 1) -> list[dict[str, pa.Table]]:
    real = {"keyed": pa.table({"k": pa.array([0, 1], pa.int32()), "l": [0.0, -0.0]})}
    columns = [column.name for column in relations()[0].columns if column.name not in ("k", "l")]
    for column in relations()[0].columns[2:]:
        real["keyed"] = real["keyed"].append_column(column.name, pa.nulls(2, column.type.arrow))
    assert real["keyed"].column_names == ["k", "l", *columns]
    sample = Sample(relations(), "SELECT 77, 'word' FROM keyed", real, seed=seed)
    there: dict[str, set[str]] = {one.name: set() for one in relations()}
    rounds = []
    for one in sample.rounds():
        for name in there:
            goes = set(spelled(one.goes[name])) if name in one.goes else set()
            comes = set(spelled(one.comes[name])) if name in one.comes else set()
            assert goes <= there[name], "only what is there goes"
            there[name] = (there[name] - goes) | comes
            assert there[name] == set(spelled(one.rows[name])), "what comes and goes makes the rows"
        rounds.append(dict(one.rows))
    return rounds


def test_a_history_is_the_same_every_time_and_changes_every_table() -> None:
    first = played()
    assert [spelled(rows["bag"]) for rows in first] == [spelled(rows["bag"]) for rows in played()]
    assert len(first) == ROUNDS
    for name in ("keyed", "bag"):
        assert len({repr(spelled(rows[name])) for rows in first}) >= ROUNDS - 2
    assert any(not len(rows[name]) for rows in first for name in ("keyed", "bag")), "a table is empty once"


def test_keys_distinguish_rows_as_duckdb_compares_values() -> None:
    """0.0 and -0.0 are one key."""
    for rows in played():
        keys = [(row["k"], row["l"] + 0.0) for row in rows["keyed"].select(["k", "l"]).to_pylist()]
        assert len({repr(key) for key in keys}) == len(keys)
        assert len(rows["one"]) <= 1
        assert len(set(rows["bag"][ROW_ID].to_pylist())) == len(rows["bag"])


def test_nulls_duplicates_and_the_constants_of_the_query_occur() -> None:
    numbers, texts = (
        [
            value
            for seed in (1, 2, 3)
            for rows in played(seed)
            for value in rows["bag"][f"c{TYPES.index(kind)}"].to_pylist()
        ]
        for kind in ("INTEGER", "VARCHAR")
    )
    assert None in numbers and len(set(numbers)) < len(numbers)
    assert {76, 77, 78} & set(numbers) and "word" in texts
    assert 2**31 - 1 in numbers or -(2**31) in numbers
