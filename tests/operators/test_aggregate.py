"""Counts and sums: one step, many steps, and steps split in any way equal recomputation."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.change.entries import KEY, WEIGHT
from everview.change.schema import KeyPart
from everview.change.types import INTEGER, VARCHAR, decimal
from everview.errors import DamagedEntryError, DefinitionError, ValueTypeError
from everview.operators.aggregate import Aggregate, Sum
from everview.operators.aggregate_table import AggregateTable
from everview.store.contract import Records

AMOUNT = decimal(12, 2)
TOTALS = AggregateTable(
    "totals",
    (KeyPart("customer", INTEGER, nullable=True),),
    Aggregate("orders", (Sum("total", "amount", AMOUNT),), "view totals"),
)

Change = tuple[int | None, Decimal | None, int]

customers = st.one_of(st.none(), st.integers(0, 3))
amounts = st.one_of(st.none(), st.decimals(-(10**4), 10**4, places=2))


def changes_of(rows: list[Change], kind: pa.DataType = AMOUNT.arrow) -> pa.Table:
    return pa.table(
        {
            "customer": pa.array([row[0] for row in rows], pa.int32()),
            "amount": pa.array([row[1] for row in rows], kind),
            WEIGHT: pa.array([row[2] for row in rows], pa.int64()),
        }
    )


class State:
    """A state table in a dictionary."""

    def __init__(self, table: AggregateTable = TOTALS) -> None:
        self.table = table
        self.rows: dict[bytes, bytes] = {}

    def apply(self, *partials: pa.Table) -> pa.Table:
        delta = self.table.aggregate.combine(partials)
        before = pa.array([self.rows.get(key) for key in delta[KEY].to_pylist()], pa.large_binary())
        step = self.table.step(before, delta)
        puts, deletes = self.table.writes(step, before)
        assert puts.previous is not None and deletes.previous is not None
        assert puts.previous.to_pylist() == [self.rows.get(key) for key in puts.keys.to_pylist()]
        assert deletes.previous.to_pylist() == [self.rows[key] for key in deletes.keys.to_pylist()]
        self.rows |= dict(zip(puts.keys.to_pylist(), puts.values.to_pylist(), strict=True))
        for key in deletes.keys.to_pylist():
            del self.rows[key]
        return step.changes()

    def shown(self) -> dict[int | None, tuple[int, Decimal | None]]:
        keys = pa.array(sorted(self.rows), pa.large_binary())
        values = pa.array([self.rows[key] for key in sorted(self.rows)], pa.large_binary())
        rows = self.table.table(Records(keys, values)).to_pylist()
        return {row["customer"]: (row["orders"], row["total"]) for row in rows}


def recomputed(rows: list[tuple[int | None, Decimal | None]]) -> dict[int | None, tuple[int, Decimal | None]]:
    groups: dict[int | None, list[Decimal | None]] = defaultdict(list)
    for customer, amount in rows:
        groups[customer].append(amount)
    return {
        customer: (len(group), sum(filled, Decimal()) if (filled := [a for a in group if a is not None]) else None)
        for customer, group in groups.items()
    }


@given(st.lists(st.tuples(customers, amounts)), st.data())
def test_any_order_of_inserts_and_deletes_equals_recomputation(
    rows: list[tuple[int | None, Decimal | None]], data: st.DataObject
) -> None:
    state = State()
    present: list[tuple[int | None, Decimal | None]] = []
    view: dict[tuple[object, ...], int] = defaultdict(int)
    for row in rows:
        gone = data.draw(st.lists(st.sampled_from(range(len(present))), unique=True)) if present else []
        changes = [(*row, 1), *((*present[i], -1) for i in gone)]
        present = [kept for i, kept in enumerate(present) if i not in gone] + [row]
        emitted = state.apply(TOTALS.partial(changes_of(data.draw(st.permutations(changes)))))
        assert state.shown() == recomputed(present)
        for change in emitted.to_pylist():
            view[change[KEY], change["orders"], change["total"]] += change[WEIGHT]
        assert sorted(state.shown().values(), key=str) == sorted(
            (key[1:] for key, weight in view.items() if weight), key=str
        )
        assert set(view.values()) <= {0, 1}


@given(st.lists(st.tuples(customers, amounts, st.integers(-3, 3))), st.integers(1, 4))
def test_changes_split_over_tasks_add_up_to_the_same_partial(rows: list[Change], tasks: int) -> None:
    whole = TOTALS.partial(changes_of(rows))
    parts = [TOTALS.partial(changes_of(rows[i::tasks])) for i in range(tasks)]
    assert TOTALS.aggregate.combine(parts).equals(whole)


def test_a_group_whose_rows_are_all_gone_disappears() -> None:
    state = State()
    state.apply(TOTALS.partial(changes_of([(7, Decimal("10.00"), 1), (7, Decimal("20.00"), 1)])))
    state.apply(TOTALS.partial(changes_of([(7, Decimal("10.00"), -1), (7, Decimal("20.00"), -1)])))
    assert state.rows == {}


def test_a_sum_of_nothing_is_null_and_a_sum_of_zero_is_zero() -> None:
    state = State()
    state.apply(TOTALS.partial(changes_of([(1, None, 1), (2, Decimal("0.00"), 1)])))
    assert state.shown() == {1: (1, None), 2: (1, Decimal("0.00"))}


def test_changes_that_cancel_touch_nothing() -> None:
    assert len(TOTALS.partial(changes_of([(1, Decimal("5.00"), 1), (1, Decimal("5.00"), -1)]))) == 0


def test_a_group_of_nulls_stands_beside_the_others() -> None:
    state = State()
    state.apply(TOTALS.partial(changes_of([(None, Decimal("1.00"), 1), (0, Decimal("2.00"), 1)])))
    assert state.shown() == {None: (1, Decimal("1.00")), 0: (1, Decimal("2.00"))}


def test_taking_away_what_is_not_there_is_an_error_and_not_a_negative_count() -> None:
    with pytest.raises(DamagedEntryError, match="view totals"):
        State().apply(TOTALS.partial(changes_of([(1, Decimal("5.00"), -1)])))


def test_a_sum_past_38_digits_is_an_error() -> None:
    wide = AggregateTable(
        "totals", TOTALS.group, Aggregate("orders", (Sum("total", "amount", decimal(38, 2)),), "view totals")
    )
    most = Decimal("9" * 36 + ".99")
    state = State(wide)
    state.apply(wide.partial(changes_of([(1, most, 1)], pa.decimal128(38, 2))))
    assert state.shown() == {1: (1, most)}
    with pytest.raises(ValueTypeError, match=r"view totals.*DECIMAL\(38,2\)"):
        state.apply(wide.partial(changes_of([(1, Decimal("0.01"), 1)], pa.decimal128(38, 2))))
    with pytest.raises(ValueTypeError, match="view totals"):
        wide.partial(changes_of([(1, most, 1), (1, most, 1)], pa.decimal128(38, 2)))


def test_only_decimals_are_summed() -> None:
    with pytest.raises(DefinitionError, match="note"):
        Sum("notes", "note", VARCHAR)
