"""Multi-master logs: the same writes in any order, any number of times, from any logs, in any epochs,
give the same rows, those that the writes in the order of their times leave (paper 000, Definition 2)."""

from __future__ import annotations

import functools
import itertools
import random
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.change.entries import DELETE, GONE, KEY, KIND, MARKED, PUT, SET, TIME, TIMES, WEIGHT
from everview.change.schema import Column, Schema
from everview.change.types import parse_type
from everview.errors import DefinitionError
from everview.operators.bound import QUARANTINE, BoundPlan
from everview.operators.delta import DeltaWorker
from everview.operators.quarantine_records import QuarantineChanges
from everview.operators.work import Work
from everview.plan.compile import compile_text, plan_views
from everview.plan.maintenance import MaintenancePlan
from everview.sql.namespace import NamedRelation, Names
from everview.sql.settings import connect
from everview.store.contract import BagEnds, BagRows, Deletes, LogBatch, Puts, StateTable, Table
from everview.store.encoding.keys import KeyCodec
from everview.store.encoding.ragged import Bytes
from tests.oracle.maintained import GROUP, EpochRunner, Maintained, difference

SCHEMA = Schema.of({"k": "INTEGER", "a": "INTEGER", "b": "VARCHAR", "n": "DOUBLE"}, key=["k"])


@dataclass
class Held:
    """States in memory: what is written is seen from the next epoch on."""

    before: dict[bytes, bytes] = field(default_factory=dict)
    after: dict[bytes, bytes] = field(default_factory=dict)
    writes: int = 0
    keeps: bool = True

    def read(self, table: StateTable, keys: Bytes) -> Bytes:
        return pa.array([self.before.get(key) for key in keys.to_pylist()], pa.large_binary())

    def write(self, table: StateTable, puts: Puts, deletes: Deletes) -> None:
        assert puts.previous is not None and deletes.previous is not None
        for key, value, old in zip(*(c.to_pylist() for c in (puts.keys, puts.values, puts.previous)), strict=True):
            assert self.before.get(key) == old
            self.after[key] = value
            self.writes += 1
        for key, old in zip(deletes.keys.to_pylist(), deletes.previous.to_pylist(), strict=True):
            assert self.before[key] == old
            del self.after[key]
            self.writes += 1

    def commit(self) -> None:
        self.before = dict(self.after)

    def read_bags(self, table: StateTable, keys: Bytes, first: pa.Int64Array | None = None) -> BagRows:
        raise AssertionError

    def bag_ends(self, table: StateTable, keys: Bytes) -> tuple[Bytes, Bytes]:
        raise AssertionError

    def write_bags(self, table: StateTable, changes: BagRows) -> BagEnds:
        raise AssertionError

    def add_to_bags(self, table: StateTable, changes: BagRows) -> None:
        raise AssertionError


@functools.cache
def planned(schema: Schema, query: str) -> MaintenancePlan:
    names = Names([NamedRelation("t", "table", schema.shown, schema.key)])
    return plan_views([compile_text(f"CREATE MATERIALIZED VIEW v AS {query}", names)], before_images=False)


class Replicated:
    """A table whose log has times, and the rows that the changes so far leave."""

    def __init__(self, schema: Schema, query: str) -> None:
        self.plan = planned(schema, query)
        fields = {field.name for field in self.plan.steps[0].fields}
        self.names = [name for name in schema.names if f"t.{name}" in fields]
        self.held = Held()
        self.rows: Counter[str] = Counter()
        self.known: dict[str, tuple[object, ...]] = {}
        self.altered(schema)

    def altered(self, schema: Schema) -> None:
        """The table has another schema from now on."""
        self.table = Table(1, "t", schema)
        named = [QUARANTINE, *(state.fingerprint for step in self.plan.steps for state in step.states)]
        states = {name: StateTable(10 + number, name, "main") for number, name in enumerate(named)}
        self.bound = BoundPlan(self.plan, {"t": self.table}, states)
        self.worker = DeltaWorker(self.plan.steps[0], self.bound)

    @property
    def work(self) -> Work:
        return Work(self.bound, self.held, QuarantineChanges(self.plan))

    def epoch(self, batches: Sequence[pa.Table], *, packed: bool = False) -> pa.Table:
        logs = [LogBatch(self.table, node, entries, before_images=False) for node, entries in enumerate(batches)]
        if packed:
            found = self.worker.of_packed(self.work, [self.worker.packed([log]) for log in logs])
        else:
            found = self.worker.of_log(self.work, logs)
        return self.taken(found)

    def taken(self, changes: pa.Table) -> pa.Table:
        self.held.commit()
        for row in changes.to_pylist():
            found = tuple(row[f"t.{name}"] for name in self.names)
            self.known[repr(found)] = found
            self.rows[repr(found)] += row[WEIGHT]
        assert set(self.rows.values()) <= {0, 1}, "a row went that was not there, or came twice"
        return changes

    @property
    def there(self) -> list[tuple[object, ...]]:
        return [self.known[row] for row, count in sorted(self.rows.items()) if count]


# ------------------------------------------------------------------ writes, and what they mean


@dataclass(frozen=True)
class Write:
    """An entry of a log: cells with their times, the time at which the row was said to be there,
    and the time of a deletion."""

    key: int
    cells: tuple[tuple[str, object, int], ...] = ()
    marked: int | None = None
    gone: int | None = None


def put(key: int, time: int, **values: object) -> Write:
    return Write(key, tuple((name, value, time) for name, value in values.items()), marked=time)


def update(key: int, time: int, **values: object) -> Write:
    return Write(key, tuple((name, value, time) for name, value in values.items()))


def delete(key: int, time: int) -> Write:
    return Write(key, gone=time)


def entries(writes: Sequence[Write], schema: Schema = SCHEMA) -> pa.Table:
    """As entries of a log: a time for each column."""
    cells = [{name: (value, time) for name, value, time in write.cells} for write in writes]
    made: dict[str, pa.Array] = _keys([write.key for write in writes], schema)
    made[KIND] = pa.array([DELETE if write.gone and not write.cells else PUT for write in writes], pa.uint8())
    made[MARKED] = pa.array([write.marked for write in writes], pa.int64())
    made[GONE] = pa.array([write.gone for write in writes], pa.int64())
    for column in schema.values:
        made[column.name] = pa.array([one.get(column.name, (None, None))[0] for one in cells], column.type.arrow)
        made[TIMES + column.name] = pa.array([one.get(column.name, (None, None))[1] for one in cells], pa.int64())
    return pa.table(made)


def short_entries(writes: Sequence[Write], schema: Schema = SCHEMA) -> pa.Table:
    """As entries of a log: one time for the whole entry."""
    cells = [{name: value for name, value, _ in write.cells} for write in writes]
    made = _keys([write.key for write in writes], schema)
    made[KIND] = pa.array([DELETE if write.gone is not None else PUT for write in writes], pa.uint8())
    made[TIME] = pa.array([write.marked if write.gone is None else write.gone for write in writes], pa.int64())
    for column in schema.values:
        made[column.name] = pa.array([one.get(column.name) for one in cells], column.type.arrow)
        made[SET + column.name] = pa.array([column.name in one for one in cells], pa.bool_())
    return pa.table(made)


def _keys(keys: Sequence[int], schema: Schema) -> dict[str, pa.Array]:
    column = pa.array(keys, schema.column("k").type.arrow)
    return {KEY: KeyCodec(schema.key_parts).encode_columns([column]), "k": column}


def applied(writes: Sequence[Write]) -> dict[int, dict[str, object]]:
    """The rows that writes leave, done one after the other in the order of their times; of those
    at one time first the values, the greater bytes later, then nulls, then deletions."""
    steps: list[tuple[int, int, bytes, int, str, object]] = []
    for write in writes:
        if write.marked is not None:
            steps.append((write.marked, 0, b"", write.key, "", None))
        for name, value, time in write.cells:
            steps.append((time, 2 if value is None else 1, in_bytes(value), write.key, name, value))
        if write.gone is not None:
            steps.append((write.gone, 3, b"", write.key, "", None))
    rows: dict[int, dict[str, object]] = {}
    marked: set[int] = set()
    for _, kind, _, key, name, value in sorted(steps, key=lambda step: step[:3]):
        if kind == 0:
            marked.add(key)
        elif kind == 3:
            rows.pop(key, None)
            marked.discard(key)
        else:
            rows.setdefault(key, {})[name] = value
    return {
        key: rows.get(key, {})
        for key in rows.keys() | marked
        if key in marked or any(value is not None for value in rows[key].values())
    }


def in_bytes(value: object) -> bytes:
    match value:
        case int():
            return struct.pack(">i", value)
        case float():
            return struct.pack(">d", value)
        case str():
            return value.encode()
        case _:
            return b""


def shown(writes: Sequence[Write], names: Sequence[str]) -> list[tuple[object, ...]]:
    rows = [tuple(({"k": key} | row).get(name) for name in names) for key, row in applied(writes).items()]
    return sorted(rows, key=repr)


VALUES_OF: Mapping[str, list[object]] = {"a": [None, -1, 0, 1], "b": [None, "", "p", "q"], "n": [None, 0.0, -0.0, 2.5]}
VALUES = {name: st.sampled_from(values) for name, values in VALUES_OF.items()}
times = st.integers(-1, 1)
some_cells = st.tuples(*(st.none() | st.tuples(st.just(name), value, times) for name, value in VALUES.items())).map(
    lambda cells: tuple(cell for cell in cells if cell is not None)
)
writes_at_times = st.builds(Write, st.integers(0, 1), some_cells, st.none() | times, st.none() | times)
puts = st.builds(
    lambda key, time, values: put(key, time, **values),
    st.integers(0, 1),
    times,
    st.fixed_dictionaries({}, optional=VALUES),
)
deletes = st.builds(delete, st.integers(0, 1), times)

QUERIES = ["SELECT k, a, b FROM t", "SELECT k FROM t", "SELECT k, n FROM t"]


@given(st.data(), st.lists(writes_at_times, min_size=2, max_size=8), st.sampled_from(QUERIES))
@settings(deadline=None)
def test_any_order_any_logs_any_epochs_any_repetition(data: st.DataObject, writes: list[Write], query: str) -> None:
    copies = [write for write in writes for _ in range(data.draw(st.integers(1, 3)))]
    arriving = data.draw(st.permutations(copies))
    table = Replicated(SCHEMA, query)
    seen: list[Write] = []
    while arriving:
        taken = data.draw(st.integers(1, len(arriving)))
        now, arriving = arriving[:taken], arriving[taken:]
        cut = data.draw(st.integers(0, taken))
        table.epoch([entries(now[:cut]), entries(now[cut:])], packed=data.draw(st.booleans()))
        seen += now
        assert repr(table.there) == repr(shown(seen, table.names))
    at_once = Replicated(SCHEMA, query)
    at_once.epoch([entries(writes)])
    assert at_once.held.after == table.held.after


@given(st.lists(puts | deletes, max_size=8))
@settings(deadline=None)
def test_one_time_for_an_entry_is_a_time_for_all_it_names(writes: list[Write]) -> None:
    short, long = Replicated(SCHEMA, QUERIES[0]), Replicated(SCHEMA, QUERIES[0])
    short.epoch([short_entries(writes)])
    long.epoch([entries(writes)])
    assert short.held.after == long.held.after
    assert repr(short.there) == repr(long.there) == repr(shown(writes, short.names))


VIEWS = {
    "same": "SELECT k, a, b FROM t",
    "counted": "SELECT count(*) AS n FROM t",
    "grouped": "SELECT b, count(*) AS n, sum(a) AS s, max(a) AS most FROM t GROUP BY b",
    "paired": "SELECT x.k, y.k AS other FROM t x JOIN t y ON x.a = y.a AND x.k < y.k",
}


@pytest.mark.parametrize("seed", range(2))
def test_views_show_the_writes_in_the_order_of_their_times(seed: int, tmp_path: Path) -> None:
    choose = random.Random(seed)
    writes = [
        Write(
            choose.randint(0, 5),
            tuple((name, choose.choice(VALUES_OF[name]), choose.randint(0, 30)) for name in choose.sample("abn", 2)),
            choose.choice([None, choose.randint(0, 30)]),
            choose.choice([None, None, None, choose.randint(0, 30)]),
        )
        for _ in range(40)
    ]
    arriving = choose.sample(writes * 3, 3 * len(writes))
    m = Maintained(tmp_path / "store", {"t": SCHEMA}, VIEWS, before_images=False)
    for start, end in itertools.pairwise((0, 5, 20, 60, len(arriving))):
        parts = [entries(arriving[start:end][node::3]) for node in range(3)]
        batches = [LogBatch(m.tables["t"], node, part, before_images=False) for node, part in enumerate(parts)]
        begun = m.begin()
        for _ in range(2):
            m.runner.take(m.store, begun, batches)
        m.store.views.commit(GROUP, begun.epoch)
        m.runner, m.epochs = EpochRunner(m.later), m.epochs + 1
        for name, expected in queried(applied(arriving[:end]), VIEWS).items():
            assert not difference(expected, m.view(name)), name
    m.close()


def queried(rows: Mapping[int, Mapping[str, object]], queries: Mapping[str, str]) -> dict[str, pa.Table]:
    """What DuckDB answers over such rows."""
    every = [{"k": key, **row} for key, row in rows.items()]
    with connect() as connection:
        columns = {f.name: pa.array([row.get(f.name) for row in every], f.type) for f in SCHEMA.arrow}
        connection.register("t", pa.table(columns))
        return {name: connection.sql(query).to_arrow_table() for name, query in queries.items()}


@pytest.fixture
def table() -> Replicated:
    return Replicated(SCHEMA, "SELECT k, a, b FROM t")


# ------------------------------------------------------------------ rows that are there, and are not


def test_an_update_makes_a_row_that_goes_with_its_last_value(table: Replicated) -> None:
    table.epoch([entries([update(1, 5, n=1.0)])])
    assert table.there == [(1, None, None)]
    table.epoch([entries([update(1, 6, n=None)])])
    assert table.there == []
    table.epoch([entries([put(2, 5, n=1.0), update(2, 6, n=None)])])
    assert table.there == [(2, None, None)]


def test_a_deletion_covers_what_was_written_then_or_before_whenever_it_comes(table: Replicated) -> None:
    table.epoch([entries([delete(1, 5)])])
    table.epoch([entries([put(1, 4, a=1), put(1, 5, b="p")])])
    assert table.there == []
    assert len(table.held.after) == 1, "the deletion is remembered"
    table.epoch([entries([update(1, 6, b="q")])])
    assert table.there == [(1, None, "q")]


def test_what_came_before_changes_nothing_and_writes_nothing(table: Replicated) -> None:
    again = entries([put(1, 5, a=1, b="p"), update(1, 6, a=None), delete(2, 3)])
    table.epoch([again])
    before = table.held.writes
    assert len(table.epoch([again, again])) == 0
    assert table.held.writes == before


@pytest.mark.parametrize(
    ("sql", "lesser", "greater"),
    [
        ("INTEGER", 1, -1),
        ("DOUBLE", 2.5, -2.5),
        ("VARCHAR", "Z", "a"),
        ("BLOB", b"\x7f", b"\x80"),
        ("BOOLEAN", False, True),
        ("VARCHAR", "a", None),
        ("INTEGER[]", [1], None),
    ],
)
def test_at_equal_times_the_greater_bytes_win_and_null_over_all(sql: str, lesser: object, greater: object) -> None:
    schema = Schema.of({"k": "INTEGER", "v": sql}, key=["k"])
    for order in ((lesser, greater), (greater, lesser)):
        table = Replicated(schema, "SELECT k, v FROM t")
        for value in order:
            table.epoch([entries([put(1, 5, v=value)], schema)])
        assert table.there == [(1, greater)]


@pytest.mark.parametrize(
    ("sql", "values"),
    [("DECIMAL(8,2)", ["1.50", "-2.00"]), ("INTEGER[]", [[1, 2], [3]]), ("STRUCT(x INTEGER)", [{"x": 1}, {"x": None}])],
)
def test_at_equal_times_any_order_gives_the_same(sql: str, values: list[object]) -> None:
    schema = Schema.of({"k": "INTEGER", "v": sql}, key=["k"])
    made = pa.array(values).cast(schema.column("v").type.arrow).to_pylist()
    found = []
    for order in (made, made[::-1]):
        table = Replicated(schema, "SELECT k, v FROM t")
        for value in order:
            table.epoch([entries([put(1, 5, v=value)], schema)])
        found.append(repr(table.there))
    assert found[0] == found[1]


def test_a_column_added_later_is_newer_than_old_records(table: Replicated) -> None:
    table.epoch([entries([update(1, 5, a=1), update(2, 5, b="p")])])
    later = SCHEMA.add(Column("m", parse_type("INTEGER")))
    table.altered(later)
    table.epoch([entries([update(1, 6, a=None, m=7), update(2, 6, b=None), update(3, 6, m=7)], later)])
    assert table.there == [(1, None, None), (3, None, None)]


# ------------------------------------------------------------------ snapshots, and forgetting


def test_rows_of_a_snapshot_are_as_old_as_they_say(table: Replicated) -> None:
    table.taken(table.worker.of_rows(table.work, entries([put(1, 5, a=1), put(2, 5, a=2)]).drop_columns([KEY, KIND])))
    assert table.there == [(1, 1, None), (2, 2, None)]
    table.epoch([entries([update(1, 4, a=9), update(2, 6, a=9)])])
    assert table.there == [(1, 1, None), (2, 9, None)]


def test_rows_without_times_are_older_than_everything(table: Replicated) -> None:
    rows = entries([put(1, 0, a=1, b="p")]).select(SCHEMA.names)
    table.taken(table.worker.of_rows(table.work, rows))
    table.epoch([entries([update(1, -(1 << 60), a=9)])])
    assert table.there == [(1, 9, "p")]
    table.epoch([entries([delete(1, -(1 << 59))])])
    assert table.there == []


def test_deletions_are_forgotten_when_somebody_says_so(table: Replicated) -> None:
    table.epoch([entries([put(1, 3, a=1), delete(1, 5), delete(2, 8), put(3, 7, a=1, b="p"), update(3, 8, a=None)])])
    keys = pa.array(sorted(table.held.after), pa.large_binary())
    assert table.worker.forget(table.work, keys, 5) == 0
    assert table.worker.forget(table.work, keys, 6) == 1
    table.held.commit()
    assert table.worker.forget(table.work, keys, 9) == 1
    table.held.commit()
    table.epoch([entries([update(3, 4, a=4), update(2, 4, a=4)])])
    assert table.there == [(2, 4, None), (3, 4, "p")]


def test_a_table_has_times_or_an_order(table: Replicated) -> None:
    timed = entries([put(1, 5, a=1)])
    ordered = short_entries([put(1, 5, a=1)]).drop_columns([TIME])
    ordered = ordered.append_column("__seq", pa.array([1], pa.uint64()))
    ordered = ordered.append_column("__incarnation", pa.array([0], pa.uint32()))
    with pytest.raises(DefinitionError, match="table t has log entries with the time of their write"):
        table.epoch([timed, ordered])


# ------------------------------------------------------------------ paper 000, Examples 1 and 2

TICKET = Schema.of({"k": "INTEGER", "status": "VARCHAR", "assigned": "VARCHAR", "about": "VARCHAR"}, key=["k"])
FIGURE_1: Mapping[int, tuple[str, str | None]] = {
    1: ("open", "rliu"),
    2: ("open", "kmsalem"),
    3: ("open", "kmsalem"),
    4: ("resolved", "rliu"),
    5: ("open", "cjin"),
    6: ("new", None),
    7: ("resolved", "cjin"),
}


@pytest.fixture
def tickets() -> Replicated:
    found = Replicated(TICKET, "SELECT assigned, k, status FROM t WHERE assigned IS NOT NULL")
    first = [put(k, 1, status=status, assigned=name, about="…") for k, (status, name) in FIGURE_1.items()]
    found.epoch([entries(first, TICKET)])
    return found


def weighted_rows(changes: pa.Table) -> list[tuple[object, ...]]:
    rows = [(row["t.assigned"], row["t.k"], row["t.status"], row[WEIGHT]) for row in changes.to_pylist()]
    return sorted(rows, key=lambda row: int(str(row[-1])))


FIRST, SECOND = update(2, 5, assigned="rliu"), update(2, 9, assigned="cjin")


def test_example_1_a_single_update(tickets: Replicated) -> None:
    changes = tickets.epoch([entries([FIRST], TICKET)])
    assert weighted_rows(changes) == [("kmsalem", 2, "open", -1), ("rliu", 2, "open", 1)]


def test_example_2_concurrent_updates_the_later_one_second(tickets: Replicated) -> None:
    tickets.epoch([entries([FIRST], TICKET)])
    changes = tickets.epoch([entries([SECOND], TICKET)])
    assert weighted_rows(changes) == [("rliu", 2, "open", -1), ("cjin", 2, "open", 1)]


def test_example_2_concurrent_updates_the_later_one_first(tickets: Replicated) -> None:
    changes = tickets.epoch([entries([SECOND], TICKET)])
    assert weighted_rows(changes) == [("kmsalem", 2, "open", -1), ("cjin", 2, "open", 1)]
    assert weighted_rows(tickets.epoch([entries([FIRST], TICKET)])) == []


@pytest.mark.parametrize("order", [(FIRST, SECOND), (SECOND, FIRST)])
def test_example_2_concurrent_updates_in_one_epoch_from_two_logs(
    tickets: Replicated, order: tuple[Write, Write]
) -> None:
    changes = tickets.epoch([entries([one], TICKET) for one in order])
    assert weighted_rows(changes) == [("kmsalem", 2, "open", -1), ("cjin", 2, "open", 1)]
