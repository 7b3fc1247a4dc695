"""The worked examples of the papers as histories: what is written, and what each view then shows.

An :class:`Example` is a list of steps over one corpus, and each step says the
rows of the views after it, as the paper gives them.

Where a paper shows only the first and last state, the states between are those of its
view definitions. A group without rows has no row in SQL, where paper 004's Figure 3 shows
a sum of 0 for it (V4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Row = tuple[object, ...]
Rows = set[Row]


@dataclass(frozen=True)
class Step:
    """Rows put and keys deleted, in this order; ``shows`` holds the rows of views afterwards, by query name."""

    what: str
    put: Mapping[str, list[Row]] = field(default_factory=dict)
    delete: Mapping[str, list[Row]] = field(default_factory=dict)
    shows: Mapping[str, Rows] = field(default_factory=dict)


@dataclass(frozen=True)
class Example:
    place: str
    corpus: str
    steps: tuple[Step, ...]


def _sums(*rows: Row) -> dict[str, Rows]:
    return {"example1": set(rows)}


_TICKETS: list[Row] = [
    (1, "open", "rliu", "..."),
    (2, "open", "kmsalem", "..."),
    (3, "open", "kmsalem", "..."),
    (4, "resolved", "rliu", "..."),
    (5, "open", "cjin", "..."),
    (6, "new", None, "..."),
    (7, "resolved", "cjin", "..."),
]
_ASSIGNED: Rows = {
    ("rliu", 1, "open"),
    ("rliu", 4, "resolved"),
    ("kmsalem", 3, "open"),
    ("cjin", 5, "open"),
    ("cjin", 7, "resolved"),
}

_B_OF_FIGURE_5: list[Row] = [("l1", "x1", 5), ("l2", "x2", 6), ("l3", "x2", 7), ("l4", "x3", 8)]


def _figure_5(k3: int) -> dict[str, Rows]:
    return {
        "figure5_delta_a": {("k1", "x1", 20), ("k2", "x2", 30), ("k3", "x2", k3)},
        "figure5_sum_a": {("x1", 20), ("x2", 30 + k3)},
        "figure5_min_a": {("x1", 20), ("x2", min(30, k3))},
        "figure5_join_ab": {
            ("k1", "l1", "x1", 20, 5),
            ("k2", "l2", "x2", 30, 6),
            ("k2", "l3", "x2", 30, 7),
            ("k3", "l2", "x2", k3, 6),
            ("k3", "l3", "x2", k3, 7),
        },
    }


EXAMPLES = (
    Example(
        "paper 000, Figure 1 and Examples 1 and 2",
        "papers/000",
        (
            Step("Figure 1", {"ticket": _TICKETS}, shows={"assigned_to": _ASSIGNED | {("kmsalem", 2, "open")}}),
            Step(
                "ticket 2 goes to rliu",
                {"ticket": [(2, "open", "rliu", "...")]},
                shows={"assigned_to": _ASSIGNED | {("rliu", 2, "open")}},
            ),
            Step(
                "ticket 2 goes to cjin: the live rows of Figure 2",
                {"ticket": [(2, "open", "cjin", "...")]},
                shows={"assigned_to": _ASSIGNED | {("cjin", 2, "open")}},
            ),
        ),
    ),
    Example(
        "paper 002, section III, Friends",
        "papers/002",
        (
            Step("B0", {"friends": [("u3", "u2")]}, shows={"friends": {("u3", "u2")}}),
            Step("i1", {"friends": [("u3", "u5")]}, shows={"friends": {("u3", "u2"), ("u3", "u5")}}),
            Step("d2", delete={"friends": [("u3", "u2")]}, shows={"friends": {("u3", "u5")}}),
            Step("i3", {"friends": [("u3", "u1")]}, shows={"friends": {("u3", "u5"), ("u3", "u1")}}),
        ),
    ),
    Example(
        "paper 002, Example 1",
        "papers/002",
        (
            Step(
                "B0",
                {"r": [("k1", "x1", 100), ("k2", "x1", 200), ("k3", "x2", 300), ("k4", "x2", 400)]},
                shows=_sums(("x1", 300), ("x2", 700)),
            ),
            Step("u1", {"r": [("k2", "x2", 200)]}, shows=_sums(("x1", 100), ("x2", 900))),
            Step("u2", {"r": [("k4", "x1", 400)]}, shows=_sums(("x1", 500), ("x2", 500))),
        ),
    ),
    Example(
        "paper 002, Example 2",
        "papers/002",
        (
            Step("B0", {"r": [("k1", "x1", 100), ("k2", "x1", 200)]}, shows=_sums(("x1", 300))),
            Step("i1", {"r": [("k3", "x1", 100)]}, shows=_sums(("x1", 400))),
        ),
    ),
    Example(
        "paper 002, Example 3",
        "papers/002",
        tuple(
            Step(what, {"r": [("k1", "x1", y)]}, shows={"example3": {("k1", "x1", y)}})
            for what, y in (("B0", 5), ("u1", 10), ("u2", 20), ("u3", 15))
        ),
    ),
    Example(
        "paper 002, section V-A.2, MIN",
        "papers/002",
        (
            Step("B0", {"r": [("k1", "x1", 4)]}, shows={"min": {("x1", 4)}}),
            Step("d1", delete={"r": [("k1",)]}, shows={"min": set()}),
            Step("i2", {"r": [("k2", "x1", 2)]}, shows={"min": {("x1", 2)}}),
            Step("u3", {"r": [("k2", "x1", 5)]}, shows={"min": {("x1", 5)}}),
        ),
    ),
    Example(
        "paper 004, Example 1 and Figure 3, in the order (1), (2), (3)",
        "papers/004",
        (
            Step("V0", {"bt1": [("k1", "x1", 15)]}, shows=_sums(("x1", 15))),
            Step("V1", {"bt1": [("k1", "x1", 20)]}, shows=_sums(("x1", 20))),
            Step("V3", {"bt1": [("k2", "x1", 10)]}, shows=_sums(("x1", 30))),
            Step("Vf", delete={"bt1": [("k1",)]}, shows=_sums(("x1", 10))),
        ),
    ),
    Example(
        "paper 004, Example 1 and Figure 3, in the order (1), (3), (2)",
        "papers/004",
        (
            Step("V0", {"bt1": [("k1", "x1", 15)]}, shows=_sums(("x1", 15))),
            Step("V1", {"bt1": [("k1", "x1", 20)]}, shows=_sums(("x1", 20))),
            Step("V4", delete={"bt1": [("k1",)]}, shows=_sums()),
            Step("Vf", {"bt1": [("k2", "x1", 10)]}, shows=_sums(("x1", 10))),
        ),
    ),
    Example(
        "paper 004, Example 1 and Figure 3, in the order (2), (1), (3)",
        "papers/004",
        (
            Step("V0", {"bt1": [("k1", "x1", 15)]}, shows=_sums(("x1", 15))),
            Step("V2", {"bt1": [("k2", "x1", 10)]}, shows=_sums(("x1", 25))),
            Step("V3", {"bt1": [("k1", "x1", 20)]}, shows=_sums(("x1", 30))),
            Step("Vf", delete={"bt1": [("k1",)]}, shows=_sums(("x1", 10))),
        ),
    ),
    Example(
        "papers 003 and 004, Figure 5 and Examples 4 to 6: k3 changes from 50 to 10 (other rows chosen here)",
        "papers/004",
        (
            Step(
                "A and B",
                {"a": [("k1", "x1", 20), ("k2", "x2", 30), ("k3", "x2", 50)], "b": _B_OF_FIGURE_5},
                shows=_figure_5(50),
            ),
            Step("put k3", {"a": [("k3", "x2", 10)]}, shows=_figure_5(10)),
        ),
    ),
    Example(
        "paper 004, Figure 6: the row enters and leaves the selection",
        "papers/004",
        (
            Step("two groups", {"bt1": [("k1", "x1", 5), ("k2", "x2", 50)]}, shows={"figure6": {(5,)}}),
            Step("k2 falls below 10", {"bt1": [("k2", "x2", 7)]}, shows={"figure6": {(5,), (7,)}}),
            Step("k1 rises above it", {"bt1": [("k1", "x1", 11)]}, shows={"figure6": {(7,)}}),
        ),
    ),
)


@dataclass(frozen=True)
class Condensed:
    """One cell of paper 001's Table 1: a key's delta rows in update order, and what is left of them.

    A delta row is (action, value). ``full`` and ``partial`` are the outputs of the Condense and
    Partial Condense operators; of a deletion only the key counts. ``net`` is the same as rows
    with weights, where a deletion names the row that was there at first.
    """

    first: str
    last: str
    deltas: tuple[tuple[str, int], ...]
    full: tuple[tuple[str, int], ...]
    partial: tuple[tuple[str, int], ...]
    net: tuple[tuple[int, int], ...]


CONDENSE = (
    Condensed(
        "insert",
        "insert",
        (("insert", 1), ("delete", 1), ("insert", 2)),
        full=(("insert", 2),),
        partial=(("insert", 2),),
        net=((2, 1),),
    ),
    Condensed(
        "insert",
        "delete",
        (("insert", 1), ("delete", 1), ("insert", 2), ("delete", 2)),
        full=(),
        partial=(),
        net=(),
    ),
    Condensed(
        "delete",
        "insert",
        (("delete", 1), ("insert", 2), ("delete", 2), ("insert", 3)),
        full=(("update", 3),),
        partial=(("delete", 1), ("insert", 3)),
        net=((1, -1), (3, 1)),
    ),
    Condensed(
        "delete",
        "delete",
        (("delete", 1), ("insert", 2), ("delete", 2)),
        full=(("delete", 2),),
        partial=(("delete", 2),),
        net=((1, -1),),
    ),
)
"""Paper 001, section 4.1, Table 1: the output depends on the first and the last delta row of a key only."""
