"""What epochs count: rows of views that came, changed and went, in one place or in many."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from everview.operators.tally import Updates

ONE: Any = SimpleNamespace(fingerprint="one")
FAMILY: Any = SimpleNamespace(fingerprint="family")
VIEWS = {("one", 0): ("v",), ("family", 0): ("a", "b"), ("family", 2): ("c",), ("family", 5): ("d",)}


def mask(*values: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return np.array(values, np.bool_)


def numbers(*values: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.array(values, np.int32)


def counted(member: int) -> Updates:
    """Two rows come and one goes in a view by itself; one row of a member changes, and one goes of member 0."""
    found = Updates()
    found.add(ONE, mask(1, 1), mask(0, 0), mask(1), None)
    found.add(FAMILY, mask(0), mask(1), mask(1, 0), (numbers(member), numbers(0, 5)))
    return found


def test_updates_are_counted_by_view() -> None:
    found = counted(2).by_view(VIEWS)
    assert found == {"v": (2, 0, 1), "a": (0, 0, 1), "b": (0, 0, 1), "c": (0, 1, 0)}, "and d was not changed"


def test_nothing_that_came_or_went_is_nothing() -> None:
    found = Updates()
    found.add(ONE, mask(0), mask(0), mask(), None)
    found.add(FAMILY, mask(), mask(), mask(), (numbers(), numbers()))
    assert found.by_view(VIEWS) == {} and found.to_json() == []


@pytest.mark.parametrize("members", [(2, 5), (5, 2)])
def test_what_several_places_count_is_added_up(members: tuple[int, int]) -> None:
    everything = Updates()
    for member in members:
        everything.merge(json.loads(json.dumps(counted(member).to_json())))
    assert everything.by_view(VIEWS) == {
        "v": (4, 0, 2),
        "a": (0, 0, 2),
        "b": (0, 0, 2),
        "c": (0, 1, 0),
        "d": (0, 1, 0),
    }
