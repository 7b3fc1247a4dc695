"""How far a condition on the key of a view is carried: which changes of which tables are left out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import everview
from everview.change.frontier import Frontier
from everview.maintain.pending_entries import PendingEntries
from everview.operators.bound import BoundPlan
from everview.operators.sought import SoughtRows
from everview.operators.touching import Touching, touching
from everview.plan.maintenance import restricted
from everview.plan.maintenance.operator_definitions import DeltaOperator

TABLES = """
    CREATE TABLE a (id INTEGER PRIMARY KEY, k INTEGER, x INTEGER, s VARCHAR);
    CREATE TABLE b (k INTEGER, n INTEGER, s VARCHAR, PRIMARY KEY (k, n));
"""
CARRIED = {
    "SELECT id, x FROM a WHERE x > 3": {"a": "id"},
    "SELECT k, count(*) AS n, max(x) AS high FROM a GROUP BY k": {"a": "k"},
    "SELECT k, median(x) AS middle FROM a GROUP BY k": {"a": "k"},
    "SELECT k, count(DISTINCT x) AS xs FROM a GROUP BY k": {"a": "k"},
    "SELECT lower(s) AS t, count(*) AS n FROM a GROUP BY 1": {"a": "LOWER(s)"},
    "SELECT k, s, count(*) AS n FROM a GROUP BY k, s": {"a": "k and s"},
    "SELECT DISTINCT k, x FROM a": {"a": "k and x"},
    "SELECT k FROM a EXCEPT SELECT n FROM b": {"a": "k", "b": "n"},
    "SELECT k, count(*) AS c FROM (SELECT k FROM a UNION ALL SELECT n FROM b) GROUP BY k": {"a": "k", "b": "n"},
    "SELECT a.id, b.k, b.n, b.s FROM a JOIN b ON a.k = b.k": {"a": "id and k", "b": "k and n"},
    "SELECT b.k, b.n, sum(a.x) AS total FROM a JOIN b ON a.k = b.k GROUP BY 1, 2": {"a": "k", "b": "k and n"},
    "SELECT a.id, b.n FROM a LEFT JOIN b ON a.k = b.k": {"a": "id", "b": "all"},
    "SELECT a.id, b.n FROM a FULL JOIN b ON a.k = b.k": {"a": "all", "b": "all"},
    "SELECT k, n FROM b WHERE k IN (SELECT k FROM a)": {"a": "k", "b": "k and n"},
    "SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.n = a.id)": {"a": "id", "b": "n"},
    "SELECT p.id AS p, q.id AS q FROM a p JOIN a q ON p.k = q.x": {"a": "id or id"},
    "SELECT id, rank() OVER (PARTITION BY k ORDER BY x) AS place FROM a": {"a": "all"},
    "SELECT k, id, rank() OVER (PARTITION BY k ORDER BY x) AS place FROM a": {"a": "all"},
    "SELECT k, sum(p) AS p FROM (SELECT k, rank() OVER (PARTITION BY k ORDER BY x) AS p FROM a) GROUP BY k": {"a": "k"},
    "SELECT k, min(x) AS low FROM (SELECT k, x FROM a QUALIFY row_number() OVER (PARTITION BY k ORDER BY x, id) < 3) "
    "GROUP BY k": {"a": "k"},
    "SELECT k, s, count(*) AS n FROM a GROUP BY GROUPING SETS ((k), (s))": {"a": "all"},
    "SELECT count(*) AS n FROM a": {"a": "all"},
}


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[everview.Database]:
    with everview.open(tmp_path_factory.mktemp("touching"), durability="none") as db:
        db.sql(TABLES)
        with db.store.lease("maintenance"):
            for number, query in enumerate(CARRIED):
                db.sql(f"CREATE MATERIALIZED VIEW v{number} AS {query}")
        db.flush()
        yield db


def carried(db: everview.Database, view: str) -> tuple[BoundPlan, Touching, tuple[str, ...]]:
    found = db._freshness.views.last(db.catalog.view(view))
    plan = restricted(found.reader.bound.plan, [view])
    return found.reader.bound, touching(plan, view, found.planned.key), found.planned.key


def condition_of(found: Touching, bound: BoundPlan, table: str) -> str:
    """The condition on a table, in its own columns."""
    step = next(step for step in bound.plan.steps if getattr(step.operator, "table", None) == table)
    condition = found.conditions.get(step.fingerprint)
    if condition is None:
        return "all"
    names = {f'"{one.name}"': one.column for one in step.operator_as(DeltaOperator).columns}
    texts = []
    for conjunction in condition:
        parts = [sql for sql, _ in conjunction]
        for name, column in names.items():
            parts = [sql.replace(name, column) for sql in parts]
        texts.append(" and ".join(sorted(parts)))
    return " or ".join(sorted(texts))


@pytest.mark.parametrize("number", range(len(CARRIED)), ids=list(CARRIED))
def test_conditions_are_carried_to_tables(planned: everview.Database, number: int) -> None:
    bound, found, key = carried(planned, f"v{number}")
    expected = list(CARRIED.values())[number]
    if not key:
        return
    assert {table: condition_of(found, bound, table) for table in expected} == expected


def test_only_entries_that_can_touch_the_key_are_left(planned: everview.Database) -> None:
    """The old row counts as much as the new one, and rows that were there for a moment do too."""
    bound, found, key = carried(planned, "v1")
    start = planned.store.log.latest()
    for id, k in ((1, 7), (2, 8), (3, 8), (1, 9), (2, 7), (2, 8), (3, None)):
        planned.table("a").put({"id": id, "k": k})
    entries = PendingEntries(bound, 0, start)
    entries.extend(planned.store.log, planned.store.log.latest())
    assert len(entries) == 7
    assert {k: count(entries, found, key, k) for k in (7, 8, 9, None, 5)} == {7: 4, 8: 5, 9: 1, None: 1, 5: 0}
    planned.table("a").delete(1)
    planned.table("b").put({"k": 7, "n": 7})
    entries.extend(planned.store.log, planned.store.log.latest())
    assert count(entries, found, key, 9) == 2, "a deletion concerns the row that was there"


def count(entries: PendingEntries, found: Touching, key: tuple[str, ...], value: int | None) -> int:
    kinds = {field.name: field.type for field in entries.bound.plan.step(entries.bound.plan.view("v1").step).fields}
    sought = SoughtRows.of([(name, kinds[name]) for name in key], [(value,)])
    return sum(len(batch.entries) for batch in entries.that_matter(sought, found.conditions) if batch.table.name == "a")


def test_nothing_is_read_twice(planned: everview.Database) -> None:
    bound, _, _ = carried(planned, "v1")
    start = planned.store.log.latest()
    entries = PendingEntries(bound, 0, start)
    read: list[Frontier] = []
    for number in range(40):
        planned.table("a").put({"id": number, "k": number})
        goal = planned.store.log.latest()
        read.append(entries.frontier)
        entries.extend(planned.store.log, goal)
        assert len(entries) == number + 1
        assert entries.frontier == goal
    assert read == sorted(read, key=lambda frontier: start.operations_to(frontier))
