"""Every aggregate that DuckDB has, as a view: with ORDER BY inside, FILTER, DISTINCT, in groups and without."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import pytest

from everview.plan.build.function_calls import OPEN
from tests.oracle.base import emptied
from tests.oracle.ill_typed import COLUMNS, accepted, defects

ARGUMENTS = (
    *("a", "d", "f", "s", "n", "t", "[0, 1, 2]", "l", "0.5", "2", "','", "abs(a)::UTINYINT", "s::BIT", "0", "255"),
)
WITHOUT = {"reservoir_quantile", "approx_top_k", "approx_quantile", "approx_count_distinct"}
"""Chance, and what DuckDB estimates otherwise by the order of the rows."""
NUMBERED = {"min": 2, "max": 2} | dict.fromkeys(
    ("arg_min", "argmin", "min_by", "arg_max", "argmax", "max_by", "arg_min_nulls_last", "arg_max_nulls_last"), 3
)
"""With so many arguments the last is how many values are wanted, which is one number for all rows."""
BY_ORDER = OPEN | {"arbitrary", "first", "last", "kurtosis", "kurtosis_pop", "skewness"}
"""Their result, or its last digit, depends on the order of the rows."""


@contextmanager
def asking() -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with the table, and no rows."""
    with emptied() as connection:
        connection.execute(f"CREATE TABLE r ({', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())})")
        yield connection


def calls(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str]]:
    """One call of each aggregate for each number of arguments, the first that DuckDB takes."""
    found = connection.execute(
        "SELECT DISTINCT function_name, len(parameters) FROM duckdb_functions() WHERE function_type = 'aggregate'"
        " AND regexp_matches(function_name, '^[a-z_0-9]+$') ORDER BY ALL"
    ).fetchall()
    made = []
    for name, count in found:
        if name in WITHOUT:
            continue
        for arguments in itertools.product(ARGUMENTS, repeat=count):
            if count > 1 and name in NUMBERED and (count == NUMBERED[name]) and arguments[-1] != "2":
                continue
            if _answers(connection, f"SELECT {name}({', '.join(arguments)}) AS x FROM r"):
                made.append((name, ", ".join(arguments)))
                break
    return made


def _answers(connection: duckdb.DuckDBPyConnection, query: str) -> bool:
    try:
        connection.execute(f"EXPLAIN {query}")
    except duckdb.Error:
        return False
    return True


def queries(connection: duckdb.DuckDBPyConnection, name: str, arguments: str) -> list[str]:
    forms = [f"{name}({arguments} ORDER BY id)", f"{name}({arguments} ORDER BY id) FILTER (WHERE a >= 0)"]
    if not arguments:
        forms = [f"{name}()"]
    elif name not in BY_ORDER:
        forms += [f"{name}(DISTINCT {arguments})", f"{name}({arguments})"]
    return [
        query
        for form in forms
        for query in (f"SELECT f AS g, {form} AS x FROM r GROUP BY f", f"SELECT {form} AS x FROM r")
        if _answers(connection, query)
    ]


@pytest.mark.parametrize("part", range(4))
def test_every_aggregate(part: int) -> None:
    with asking() as connection:
        chosen = calls(connection)[part::4]
        found = [query for name, arguments in chosen for query in queries(connection, name, arguments)]
    assert len(found) > 60
    refused = [query for query in found if not accepted(query)]
    texts = [query.replace(") AS x", ")::VARCHAR AS x").replace(" FILTER (WHERE a >= 0)::", "::") for query in refused]
    with asking() as connection:
        needless = [query for query in texts if _answers(connection, query) and not accepted(query)]
    assert all("bitstring_agg(a" in one or "bitstring_agg(DISTINCT a)" in one for one in needless), needless
    views = [query for query in (*found, *texts) if accepted(query)]
    wrong: dict[str, str] = {}
    for start in range(0, len(views), 40):
        wrong |= defects(views[start : start + 40])
    assert not wrong, "\n".join(f"{query}\n  {said}" for query, said in wrong.items())
