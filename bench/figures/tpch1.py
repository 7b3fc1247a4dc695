"""TPC-H's 22 queries as views at scale 1: the same as at 0.1, for longer than a report may take.

Recomputation grows with the tables and maintenance with the changes, so ten times the rows say
where each of them wins.
"""

from __future__ import annotations

from bench.figures.tpch import experiment
from bench.tpch_views import SHARED, Size

EACH = ("q01", "q03", "q05", "q06", "q10", "q13", "q16", "q22")
"""Queries that are views by themselves, too: building all of them one by one takes most of an hour."""

EXPERIMENT = experiment(
    name="tpch1", size=Size(scale=1, pairs=3, together=(SHARED,), each=EACH), always=False, limit=7200
)
