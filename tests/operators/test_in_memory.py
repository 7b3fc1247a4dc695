"""State tables in memory: what a step says was there before is what was there."""

from __future__ import annotations

import pyarrow as pa
import pytest

from everview.errors import DamagedEntryError
from everview.operators.in_memory import InMemory
from everview.store.contract import Deletes, Puts, StateTable
from everview.store.encoding.ragged import BINARY

TABLE = StateTable(1, "view", "main")
NOTHING = pa.array([], BINARY)


def column(*values: bytes | None) -> pa.Array:
    return pa.array(values, BINARY)


@pytest.fixture
def states() -> InMemory:
    found = InMemory()
    found.write(TABLE, Puts(column(b"k"), column(b"old"), column(None)), Deletes(NOTHING))
    found.end()
    return found


def test_what_was_there_may_be_replaced_and_taken_away(states: InMemory) -> None:
    states.write(TABLE, Puts(column(b"k"), column(b"new"), column(b"old")), Deletes(NOTHING))
    states.end()
    states.write(TABLE, Puts(NOTHING, NOTHING), Deletes(column(b"k"), column(b"new")))
    states.end()
    assert len(states.records(TABLE).keys) == 0


@pytest.mark.parametrize("claimed", [b"other", None])
def test_a_row_that_was_not_there_cannot_be_replaced(states: InMemory, claimed: bytes | None) -> None:
    with pytest.raises(DamagedEntryError, match="not the row that was there"):
        states.write(TABLE, Puts(column(b"k"), column(b"new"), column(claimed)), Deletes(NOTHING))


def test_a_row_that_was_not_there_cannot_be_taken_away(states: InMemory) -> None:
    with pytest.raises(DamagedEntryError, match="not the row that was there"):
        states.write(TABLE, Puts(NOTHING, NOTHING), Deletes(column(b"x"), column(b"old")))
