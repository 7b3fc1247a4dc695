"""The views and tables of the comparison, for processes that have nothing of ours but this file's folder.

One sentence: q1 to q4 are the views of the VMS paper's evaluation, and q3 comes a second time over amounts of
money, whose sums show who drifts.
"""

from __future__ import annotations

ROUND = 10_000
"""Operations that belong together, over all tables; what a system takes at once, where it can be told."""
PIECE = 50_000
"""Operations of a file of Structured Streaming."""
HALVES = 2

VIEWS = {
    "q1": "SELECT k, c1, c2 FROM bt1 WHERE c2 < 500",
    "q2": "SELECT c1, count(*) AS n, sum(c2) AS s FROM bt1 GROUP BY c1",
    "q3": "SELECT c1, count(*) AS n, sum(c3) AS s, avg(c3) AS a, min(c3) AS lo, max(c3) AS hi FROM bt1 GROUP BY c1",
    "q4": "SELECT bt1.k, bt1.c2, bt2.k AS l, bt2.c4 FROM bt1 JOIN bt2 ON bt1.c1 = bt2.c1",
}
CENTS = "q3, amounts"
"""q3 over amounts in cents, from pennies to millions: few of them, and few of their sums, are a DOUBLE exactly."""
EVERY = (*VIEWS, CENTS)
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
    return VIEWS[shape(view)]


def tables(view: str) -> tuple[str, ...]:
    return ("bt1", "bt2") if view == "q4" else ("bt1",)


def columns(table: str) -> str:
    """Its columns as a CREATE TABLE wants them."""
    return ", ".join(f"{name} {TYPES[name]}" for name in COLUMNS[table])
