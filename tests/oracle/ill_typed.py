"""Random queries whose types do not fit: refused, or right, or in quarantine, and nothing else.

An expression is drawn without regard to types (texts beside numbers, numbers as conditions,
lists as limits), stands in some place of a query, and the query becomes a view.

Views are played in batches, since a store for each takes longer than everything else; a batch that fails
is played view by view. Longer runs: ``python -m tests.oracle.ill_typed --count 5000 --seed 1``.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

from everview.change.schema import Schema
from everview.errors import EverviewError
from everview.plan.compile import compile_text, plan_views
from everview.sql.namespace import NamedRelation, Names
from everview.store.encoding.registering import register, unregister
from tests.oracle.base import emptied
from tests.oracle.maintained import Maintained, content, database, difference

COLUMNS = {
    "id": "INTEGER", "a": "INTEGER", "b": "BIGINT", "d": "DOUBLE", "n": "DECIMAL(9,2)", "s": "VARCHAR", "f": "BOOLEAN",
    "t": "TIMESTAMP", "l": "INTEGER[]",
}  # fmt: skip
SCHEMA = Schema.of(COLUMNS, key=("id",))
ROWS = (
    "(1, 1, 1, 0.5, 1.25, 'p', true, '2024-01-01 00:00:00', [1, 2])",
    "(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "(3, 0, -1, -2.0, 0.00, '1', false, '1969-12-31 23:59:59', [])",
    "(4, 2147483647, 9223372036854775807, 1e300, 1000000.01, '', true, '2024-02-29 12:00:00', [NULL])",
    "(5, 1, 1, 0.5, 1.25, 'true', true, '2024-01-01 00:00:00', [3])",
)
LITERALS = (
    "0",
    "1",
    "-1",
    "1.5",
    "'1'",
    "'y'",
    "'true'",
    "''",
    "NULL",
    "TRUE",
    "FALSE",
    "DATE '2024-01-01'",
    "[1]",
    "'2024-01-01'",
)
UNITS = (
    "INTEGER",
    "VARCHAR",
    "BOOLEAN",
    "DATE",
    "DOUBLE",
    "TINYINT",
    "DECIMAL(4,1)",
    "INTEGER[]",
    "TIMESTAMP",
    "INTERVAL",
)
CALLS = (
    "abs",
    "length",
    "upper",
    "round",
    "coalesce",
    "greatest",
    "nullif",
    "concat",
    "date_trunc",
    "list_sum",
    "sqrt",
    "substr",
    "chr",
)
AGGREGATES = (
    "sum",
    "avg",
    "min",
    "max",
    "count",
    "list",
    "string_agg",
    "bool_and",
    "median",
    "quantile_cont",
    "arg_max",
    "first",
    "bit_or",
)


class Pen:
    """Draws expressions and queries."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def value(self, depth: int = 2) -> str:
        kind = self.rng.randrange(12) if depth else self.rng.randrange(3)
        if kind <= 1:
            return self.rng.choice(list(COLUMNS))
        if kind == 2:
            return self.rng.choice(LITERALS)
        one, other = self.value(depth - 1), self.value(depth - 1)
        if kind == 3:
            return f"({one} {self.rng.choice(['+', '-', '*', '/', '//', '%', '||', '^', '&'])} {other})"
        if kind == 4:
            return f"{self.rng.choice(['CAST', 'CAST', 'TRY_CAST'])}({one} AS {self.rng.choice(UNITS)})"
        if kind == 5:
            return f"CASE WHEN {self.condition(depth - 1)} THEN {one} ELSE {other} END"
        if kind == 6:
            return f"CASE {one} WHEN {other} THEN {self.value(depth - 1)} END"
        if kind == 7:
            arguments = ", ".join(self.value(depth - 1) for _ in range(self.rng.choice([1, 1, 2, 3])))
            return f"{self.rng.choice(CALLS)}({arguments})"
        if kind == 8:
            return f"(NOT {one})"
        if kind == 9:
            return f"(SELECT max({self.rng.choice(list(COLUMNS))}) FROM r AS i WHERE {self.condition(0)})"
        return self.condition(depth - 1)

    def condition(self, depth: int = 2) -> str:
        one, other = self.value(max(depth - 1, 0)), self.value(max(depth - 1, 0))
        kind = self.rng.randrange(9)
        if kind <= 2:
            return f"({one} {self.rng.choice(['=', '<', '>=', '<>', 'IS DISTINCT FROM'])} {other})"
        if kind == 3:
            values = ", ".join(self.rng.choice(LITERALS) for _ in range(self.rng.randint(1, 3)))
            return f"({one} {self.rng.choice(['IN', 'NOT IN'])} ({values}))"
        if kind == 4:
            return f"({one} BETWEEN {other} AND {self.rng.choice(LITERALS)})"
        if kind == 5:
            return f"({one} LIKE {other})"
        if kind == 6:
            return f"({one} {self.rng.choice(['AND', 'OR'])} {other})"
        if kind == 7:
            return f"({one} IN (SELECT {self.rng.choice(list(COLUMNS))} FROM r AS i))"
        return one

    def aggregate(self) -> str:
        name = self.rng.choice(AGGREGATES)
        arguments = [self.value(1)] + ([self.rng.choice([*LITERALS, self.value(0)])] if self.rng.random() < 0.3 else [])
        distinct = "DISTINCT " if self.rng.random() < 0.2 else ""
        order = " ORDER BY id" if not distinct else ""
        filtered = f" FILTER (WHERE {self.condition(1)})" if self.rng.random() < 0.3 else ""
        return f"{name}({distinct}{', '.join(arguments)}{order}){filtered}"

    def query(self) -> str:
        kind = self.rng.randrange(11)
        if kind <= 2:
            return f"SELECT id FROM r WHERE {self.condition()}"
        if kind <= 4:
            return f"SELECT id, {self.value()} AS x FROM r"
        if kind == 5:
            return f"SELECT {self.value(0)} AS g, {self.aggregate()} AS x FROM r GROUP BY 1"
        if kind == 6:
            return f"SELECT {self.aggregate()} AS x FROM r HAVING {self.rng.choice([*LITERALS, self.aggregate()])}"
        if kind == 7:
            return f"SELECT r.id, i.id AS other FROM r LEFT JOIN r AS i ON r.id = i.id AND {self.rng.choice(LITERALS)}"
        if kind == 8:
            frame = f"ROWS BETWEEN {self.rng.choice([*LITERALS, 'a'])} PRECEDING AND CURRENT ROW"
            call = self.rng.choice(
                ["sum(a)", f"lag(a, {self.rng.choice(LITERALS)})", f"ntile({self.rng.choice(LITERALS)})"]
            )
            return f"SELECT id, {call} OVER (ORDER BY id {frame if call == 'sum(a)' else ''}) AS x FROM r"
        if kind == 9:
            return f"SELECT id FROM r ORDER BY id LIMIT {self.rng.choice([*LITERALS, '1 + 1', '(SELECT 2)'])}"
        return f"SELECT {self.value(1)} AS x FROM r UNION ALL SELECT {self.value(1)} FROM r"


def accepted(query: str) -> bool:
    """Whether there is such a view. Anything but an error of Everview's is a defect, and escapes."""
    try:
        plan_views([compile_text(f"CREATE MATERIALIZED VIEW v AS {query}", NAMES)])
    except EverviewError:
        return False
    return True


NAMES = Names([NamedRelation("r", "table", SCHEMA.shown, SCHEMA.key)])


def defects(queries: Sequence[str]) -> dict[str, str]:
    """Of queries that are accepted those whose views fail or are wrong, and how."""
    try:
        found = _played(queries)
    except Exception as error:
        if len(queries) == 1:
            return {queries[0]: f"{type(error).__name__}: {error}"}
        found = {"": ""}
    if found and len(queries) > 1:
        middle = len(queries) // 2
        return defects(queries[:middle]) | defects(queries[middle:])
    return found


def _played(queries: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as path:
        views = {f"v{number}": query for number, query in enumerate(queries)}
        maintained = Maintained(Path(path) / "store", {"r": SCHEMA}, views)
        try:
            maintained.epoch()
            for rows, deleted in ((ROWS[:3], ()), (ROWS[3:], ("1",)), (ROWS[:1], ("2", "4"))):
                table = maintained.table("r")
                table.put_many(_rows(rows))
                if deleted:
                    table.delete_many(_rows([row for row in ROWS if row[1] in deleted]).select(["id"]))
                maintained.epoch()
                found |= _wrong(maintained, views)
        finally:
            maintained.close()
    return found


def _rows(rows: Sequence[str]) -> pa.Table:
    typed = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in COLUMNS.items())
    return database().sql(f"SELECT {typed} FROM (VALUES {', '.join(rows)}) AS q({', '.join(COLUMNS)})").to_arrow_table()


def _wrong(maintained: Maintained, views: dict[str, str]) -> dict[str, str]:
    """Views that are not what DuckDB answers. Where it has no answer, something is in quarantine, or the
    failing part is guarded by an AND, of which DuckDB promises no order."""
    found: dict[str, str] = {}
    lacking = {view for _, said in maintained.quarantine() for view in said.views}
    rows = pa.Table.from_batches(maintained.table("r").scan(), schema=SCHEMA.arrow)
    with emptied() as connection:
        register(connection, "kept", rows)
        connection.execute("CREATE TABLE r AS FROM kept")
        unregister(connection, "kept", rows)
        for name, query in views.items():
            try:
                connection.execute(f"CREATE OR REPLACE TABLE answer AS {query}")
            except duckdb.Error as error:
                if name not in lacking and " AND " not in query and "CASE" not in query:
                    found[query] = f"DuckDB fails, and nothing is in quarantine: {error}"
                continue
            said = difference(content(connection, "answer"), maintained.view(name))
            if said:
                found[query] = said
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    outcome, wrong = tried(given.seed, given.count)
    for query, said in wrong.items():
        print(f"{query}\n  {said}")
    print(dict(outcome))


def tried(seed: int, count: int, batch: int = 25) -> tuple[Counter[str], dict[str, str]]:
    """How many random queries were refused and accepted, and the defects among them."""
    pen, outcome, wrong = Pen(random.Random(seed)), Counter[str](), dict[str, str]()
    waiting: list[str] = []
    for number in range(count):
        query = pen.query()
        try:
            taken = accepted(query)
        except Exception as error:
            wrong[query] = f"{type(error).__name__}: {error}"
            continue
        outcome["accepted" if taken else "refused"] += 1
        waiting += [query] if taken else []
        if waiting and (len(waiting) >= batch or number == count - 1):
            wrong |= defects(waiting)
            waiting = []
    return outcome, wrong


if __name__ == "__main__":
    main()
