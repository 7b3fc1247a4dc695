"""Condensing leaves the net effect, whatever the rows are made of."""

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.change.condense import condense, net_changes, with_weight
from everview.change.entries import DELETE, HAD, INCARNATION, KEY, KIND, OLD, PUT, SEQ, WEIGHT
from everview.change.schema import Schema

flat = pa.schema([("a", pa.int64()), ("s", pa.string()), ("f", pa.float64())])
nested = pa.schema([("l", pa.list_(pa.int64())), ("i", pa.month_day_nano_interval())])
flat_rows = st.tuples(st.integers(0, 2) | st.none(), st.sampled_from(["", "x", None]), st.sampled_from([0.5, None]))
nested_rows = st.tuples(
    st.lists(st.integers(0, 1), max_size=2) | st.none(), st.sampled_from([pa.MonthDayNano([0, 1, 0]), None])
)


def changes_of(schema: pa.Schema, weighted: Sequence[tuple[tuple[object, ...], int]]) -> pa.Table:
    columns = [pa.array([row[i] for row, _ in weighted], field.type) for i, field in enumerate(schema)]
    weights = pa.array([weight for _, weight in weighted], pa.int64())
    return pa.table([*columns, weights], names=[*schema.names, WEIGHT])


def as_counter(changes: pa.Table) -> Counter[str]:
    found: Counter[str] = Counter()
    for row in changes.to_pylist():
        weight = row.pop(WEIGHT)
        assert weight != 0
        assert repr(row) not in found, "equal rows stand there twice"
        found[repr(row)] = weight
    return found


@pytest.mark.parametrize(("schema", "rows"), [(flat, flat_rows), (nested, nested_rows)], ids=["flat", "nested"])
def test_equal_rows_are_summed_and_zeros_dropped(
    schema: pa.Schema, rows: st.SearchStrategy[tuple[object, ...]]
) -> None:
    @given(st.lists(st.tuples(rows, st.integers(-2, 2)), max_size=12))
    def holds(weighted: list[tuple[tuple[object, ...], int]]) -> None:
        sums: Counter[str] = Counter()
        for row, weight in weighted:
            sums[repr(dict(zip(schema.names, row, strict=True)))] += weight
        condensed = condense(changes_of(schema, weighted))
        assert as_counter(condensed) == {row: weight for row, weight in sums.items() if weight}
        assert condensed.schema.names == [*schema.names, WEIGHT]

    holds()


def test_rows_stay_in_the_order_of_their_first_appearance() -> None:
    table = changes_of(flat, [((2, "b", None), 1), ((1, "a", None), 1), ((2, "b", None), 1)])
    assert condense(table)["a"].to_pylist() == [2, 1]


SCHEMA = Schema.of({"k": "BIGINT", "v": "VARCHAR"}, key=["k"])

writes = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["x", "y", None, "gone"]), st.integers(0, 2)), max_size=15
)


@given(writes, st.lists(st.booleans(), min_size=15, max_size=15))
def test_net_changes_lead_from_the_rows_before_to_the_rows_after(
    history: list[tuple[int, str | None, int]], elsewhere: list[bool]
) -> None:
    """Some writes go to another node's log: a region that moves away and back."""
    state: dict[int, str | None] = {}
    incarnation = 0
    logs: list[list[dict[str, object]]] = [[], []]
    at = 0
    for number, (key, value, _) in enumerate(history):
        node = int(elsewhere[number])
        if node != at:
            at, incarnation = node, incarnation + 1
        entry: dict[str, object] = {
            SEQ: number,
            INCARNATION: incarnation,
            KIND: DELETE if value == "gone" else PUT,
            KEY: key.to_bytes(8, "big"),
            "k": key,
            "v": None if value == "gone" else value,
            HAD: key in state,
            OLD + "v": state.get(key),
        }
        if value == "gone":
            state.pop(key, None)
        else:
            state[key] = value
        logs[node].append(entry)
    kinds = {SEQ: pa.uint64(), INCARNATION: pa.uint32(), KIND: pa.uint8(), KEY: pa.large_binary(), "k": pa.int64()}
    kinds |= {"v": pa.string(), HAD: pa.bool_(), OLD + "v": pa.string()}
    found: Counter[tuple[object, object]] = Counter()
    for log in logs:
        entries = pa.Table.from_pylist(log, schema=pa.schema(list(kinds.items())))
        for row in net_changes(entries, SCHEMA).to_pylist():
            found[row["k"], row["v"]] += row[WEIGHT]
    assert {row: weight for row, weight in found.items() if weight} == dict.fromkeys(state.items(), 1)


def test_a_key_written_often_costs_at_most_two_changes() -> None:
    entries = pa.table(
        {
            SEQ: pa.array([1, 2, 3], pa.uint64()),
            INCARNATION: pa.array([0, 0, 0], pa.uint32()),
            KIND: pa.array([PUT] * 3, pa.uint8()),
            KEY: pa.array([b"k"] * 3, pa.large_binary()),
            "k": [1, 1, 1],
            "v": ["a", "b", "c"],
            HAD: [True, True, True],
            OLD + "v": ["0", "a", "b"],
        }
    )
    assert net_changes(entries, SCHEMA).to_pylist() == [{"k": 1, "v": "0", WEIGHT: -1}, {"k": 1, "v": "c", WEIGHT: 1}]


def test_rows_become_changes_of_one_weight() -> None:
    assert with_weight(pa.table({"a": [1, 2]}), -1)[WEIGHT].to_pylist() == [-1, -1]
