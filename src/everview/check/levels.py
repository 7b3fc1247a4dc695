"""How consistent a recorded history of a view is.

A history is the base states that there were and the view states that a reader saw, each as
rows by key, and the level is the highest of four that paper 002 (View maintenance in web data platforms)
defines record by record.

With B₀ … B_f the base states, View(B) the rows that the query has over one, V₀ … V_f the view states:

| level | for every record r of the view |
|---|---|
| convergence | V_f(r) = View(B_f)(r) |
| weak | and every V_j(r) is some View(B_i)(r) |
| strong | and for V_j before V_k there are B_i ≤ B_l with V_j(r) = View(B_i)(r) and V_k(r) = View(B_l)(r) |
| complete | and every View(B_i)(r) is some V_j(r) |

A counter that is raised twice, seen by a reader at three moments::

    >>> base = [BaseState(0, {"a": 0}), BaseState(1, {"a": 1}), BaseState(2, {"a": 2})]
    >>> def seen(*numbers): return judge(base, [ObservedState({"a": number}) for number in numbers])
    >>> print(seen(0, 1, 2).level, seen(0, 2).level, seen(0, 1, 0, 2).level, seen(0, 5, 2).level, seen(0, 1).level)
    complete strong weak convergence none
    >>> print(seen(0, 1, 0, 2).violation)
    not strong: record a shows 1 in view state 1 and 0 in view state 2, and no base states have them in that order

A base state is a cut through the logs, and ≤ is that of frontiers, so two of them need not be ordered.
A view state may claim the base state that it shows, as an epoch claims its frontier. Then all records
together must be those of that state (:attr:`Judgement.unfounded`): more than any of the levels asks for.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from everview.change.frontier import Frontier
from everview.errors import InputError

Rows = Mapping[Any, Any]
"""Records by key. A key that is not there has no record, which is a state of it like any other."""


class Level(enum.IntEnum):
    """From the least to the most consistent."""

    NONE = 0
    CONVERGENCE = 1
    WEAK = 2
    STRONG = 3
    COMPLETE = 4

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True)
class BaseState:
    """A state of the base tables, known by what the query returns over it."""

    at: Frontier | int
    """Where it stands among the others; the last one is not before any."""
    rows: Rows


@dataclass(frozen=True)
class ObservedState:
    """A state of the view as a reader saw it."""

    rows: Rows
    claims: Frontier | int | None = None
    """The base state that it claims to show."""


@dataclass(frozen=True)
class Violation:
    """Why a history is not of a level: the record, and what it showed when."""

    level: Level
    """That it is not of."""
    record: Any
    why: str

    def __str__(self) -> str:
        return f"not {self.level}: record {self.record} {self.why}"


@dataclass(frozen=True)
class Judgement:
    """The highest level of a history."""

    level: Level
    violation: Violation | None = None
    """The first that keeps it from the next level."""
    unfounded: tuple[int, ...] = field(default=())
    """The view states that do not show the base state that they claim."""


def judge(base: Sequence[BaseState], views: Sequence[ObservedState]) -> Judgement:
    """The highest level of a history. Both sequences are in the order of time and hold at least the
    first and the last state."""
    if not base or not views:
        raise InputError("a history has at least one base state and one view state")
    if len({isinstance(state.at, Frontier) for state in base}) > 1:
        raise InputError("the base states of a history are all numbered, or all at frontiers")
    known = {state.at: state.rows for state in base}
    unfounded = tuple(
        number
        for number, state in enumerate(views)
        if state.claims is not None and known.get(state.claims) != state.rows
    )
    level = Level.NONE
    for step in (_converges, _is_weak, _is_strong, _is_complete):
        violation = step(base, views)
        if violation is not None:
            return Judgement(level, violation, unfounded)
        level = Level(level + 1)
    return Judgement(level, None, unfounded)


def _records(base: Sequence[BaseState], views: Sequence[ObservedState]) -> list[Any]:
    """Every record that there ever was, in the order in which they came."""
    states = [*(state.rows for state in base), *(state.rows for state in views)]
    return list(dict.fromkeys(key for rows in states for key in rows))


def _converges(base: Sequence[BaseState], views: Sequence[ObservedState]) -> Violation | None:
    should, shown = base[-1].rows, views[-1].rows
    for record in _records(base[-1:], views[-1:]):
        if should.get(record) != shown.get(record):
            why = f"shows {_word(shown, record)} in the end, and should show {_word(should, record)}"
            return Violation(Level.CONVERGENCE, record, why)
    return None


def _is_weak(base: Sequence[BaseState], views: Sequence[ObservedState]) -> Violation | None:
    for record in _records(base, views):
        valid = [state.rows.get(record) for state in base]
        for number, state in enumerate(views):
            if state.rows.get(record) not in valid:
                why = f"shows {_word(state.rows, record)} in view state {number}, and no base state has it"
                return Violation(Level.WEAK, record, why)
    return None


def _is_strong(base: Sequence[BaseState], views: Sequence[ObservedState]) -> Violation | None:
    for record in _records(base, views):
        values = [state.rows.get(record) for state in base]
        seen: list[tuple[int, list[BaseState]]] = []
        for number, state in enumerate(views):
            value = state.rows.get(record)
            if seen and views[seen[-1][0]].rows.get(record) == value:
                continue  # what holds for the state before holds for this one
            own = [one for one, known in zip(base, values, strict=True) if known == value]
            for before, others in seen:
                if not _in_order(others, own):
                    shown = f"{_word(views[before].rows, record)} in view state {before}"
                    later = f"{_word(state.rows, record)} in view state {number}"
                    why = f"shows {shown} and {later}, and no base states have them in that order"
                    return Violation(Level.STRONG, record, why)
            seen.append((number, own))
    return None


def _in_order(before: Iterable[BaseState], after: Sequence[BaseState]) -> bool:
    return any(one.at <= other.at for one in before for other in after)  # type: ignore[operator]


def _is_complete(base: Sequence[BaseState], views: Sequence[ObservedState]) -> Violation | None:
    for record in _records(base, views):
        shown = [state.rows.get(record) for state in views]
        for state in base:
            if state.rows.get(record) not in shown:
                why = f"never shows {_word(state.rows, record)}, as it should after {state.at}"
                return Violation(Level.COMPLETE, record, why)
    return None


def _word(rows: Rows, record: Any) -> str:
    return str(rows[record]) if record in rows else "nothing"
