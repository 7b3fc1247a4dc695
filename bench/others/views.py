"""The views and tables of the comparison, for processes that have nothing of ours but these files.

Q1 to q4 are the views of the VMS paper's evaluation, and q3 comes a second time over amounts of
money, whose sums show who drifts.
"""

from __future__ import annotations

from bench.workloads.queries import QUERIES

ROUND = 10_000
"""Operations that belong together, over all tables; what a system takes at once, where that can be set."""
PIECE = 50_000
"""Operations of a file of Structured Streaming."""
HALVES = 2

CENTS = "q3, amounts"
"""q3 over amounts in cents, from pennies to millions: few of them, and few of their sums, are a DOUBLE exactly."""
EVERY = (*QUERIES, CENTS)
COLUMNS = {"bt1": ("k", "c1", "c2", "c3"), "bt2": ("k", "c1", "c4")}
TYPES = {"k": "BIGINT", "c1": "INTEGER", "c2": "INTEGER", "c3": "DOUBLE", "c4": "INTEGER"}
RESULTS = {
    "q1": {"k": "BIGINT", "c1": "INTEGER", "c2": "INTEGER"},
    "q2": {"c1": "INTEGER", "n": "BIGINT", "s": "BIGINT"},
    "q3": {"c1": "INTEGER", "n": "BIGINT", "s": "DOUBLE", "a": "DOUBLE", "lo": "DOUBLE", "hi": "DOUBLE"},
    "q4": {"k": "BIGINT", "c2": "INTEGER", "l": "BIGINT", "c4": "INTEGER"},
}


def shape(view: str) -> str:
    """Which of the queries a view is."""
    return "q3" if view == CENTS else view


def query(view: str) -> str:
    return QUERIES[shape(view)]


def tables(view: str) -> tuple[str, ...]:
    return ("bt1", "bt2") if view == "q4" else ("bt1",)


def columns(table: str) -> str:
    """Its columns as a CREATE TABLE wants them."""
    return ", ".join(f"{name} {TYPES[name]}" for name in COLUMNS[table])
