"""Rows of the papers' small tables: few groups, few values, so that every update meets company.

Keys are k1, k2, …, groups x1, x2, …, values 0 to 100, as in the papers' examples;
most rows are in nine groups, the others nearly alone in theirs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.queries.draw import Columns, Draw, Recipe, Reference

GROUPS = tuple(f"x{number}" for number in range(1, 41))
SIZE = 60


def _named(letter: str, numbers: np.ndarray) -> list[str]:
    return [f"{letter}{number}" for number in numbers]


def _ticket(draw: Draw, count: int) -> Columns:
    return {
        "id": draw.ids(count, SIZE),
        "status": draw.pick(count, ("new", "open", "resolved")),
        "assigned_to": draw.pick(count, ("rliu", "kmsalem", "cjin", None)),
        "description": draw.words(count, ("printer", "mail", "is", "broken", "slow"), 3),
    }


def _keyed(key: str, letter: str, group: str, value: str) -> Callable[[Draw, int], Columns]:
    """A table of a row key, a group and a number."""

    def make(draw: Draw, count: int) -> Columns:
        return {
            key: _named(letter, draw.ids(count, SIZE)),
            group: draw.pick(count, GROUPS, GROUPS[:9]),
            value: draw.whole(count, 0, 100),
        }

    return make


def _s(draw: Draw, count: int) -> Columns:
    return {"y": _named("y", draw.ids(count, SIZE // 4)), "z": _named("z", draw.whole(count, 1, 20))}


def _rfk(draw: Draw, count: int) -> Columns:
    return {"x": _named("x", draw.ids(count, SIZE)), "y": draw.some("s", count)["y"]}


def _friends(draw: Draw, count: int) -> Columns:
    return {"uid": _named("u", draw.whole(count, 1, 15)), "fid": _named("u", draw.whole(count, 1, 15))}


TICKETS = {"ticket": Recipe(SIZE, _ticket)}

WEB_DATA = {
    "r": Recipe(SIZE, _keyed("k", "k", "x", "y")),
    "r2": Recipe(SIZE, _keyed("k", "k", "x", "y")),
    "s": Recipe(SIZE // 4, _s),
    "rfk": Recipe(SIZE, _rfk, (Reference(("y",), "s", ("y",)),)),
    "friends": Recipe(SIZE, _friends),
}

KEY_VALUE = {
    "a": Recipe(SIZE, _keyed("rk", "k", "c1", "c2")),
    "b": Recipe(SIZE, _keyed("rk", "l", "c1", "c2")),
    "bt1": Recipe(SIZE, _keyed("k", "k", "c1", "c2")),
    "bt2": Recipe(SIZE, _keyed("l", "l", "d1", "d2")),
}
