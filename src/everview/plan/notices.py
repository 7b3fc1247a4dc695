"""Notices: what of a view is evaluated again, and what that costs.

The builder notes where in the text a construct without an operator stands; what the rules
make of it decides what each change will cost.

A construct for which the rules found an operator after all gets no notice; one that is evaluated for
the partition of the changed rows names what it is split by; otherwise all rows of the tables below it
are read.
"""

from __future__ import annotations

from collections.abc import Sequence

from everview.plan.build import Notice
from everview.plan.maintenance.column_names import pretty
from everview.plan.relations import Reevaluate, Relation, Scan


def notices_of(relation: Relation, built: Sequence[Notice]) -> tuple[Notice, ...]:
    """One for each re-evaluation in a rewritten relation, in the order of the text."""
    places: dict[str, list[tuple[int, int]]] = {}
    for one in built:
        places.setdefault(one.construct, []).append((one.line, one.column))
    found: list[Notice] = []
    for node in dict.fromkeys(node for node in relation.walk() if isinstance(node, Reevaluate)):
        known = places.get(node.reason, [(1, 1)])
        line, column = known.pop(0) if len(known) > 1 else known[0]
        found.append(Notice(node.reason, line, column, _cost(node)))
    return tuple(sorted(dict.fromkeys(found), key=lambda one: (one.line, one.column)))


def _cost(node: Reevaluate) -> str:
    if any(node.partition):
        split = " and ".join(", ".join(pretty(part.sql) for part in parts) for parts in dict.fromkeys(node.partition))
        return f"every change re-evaluates the rows that agree with it in {split}"
    tables = dict.fromkeys(scan.table for scan in node.walk() if isinstance(scan, Scan))
    return f"every change re-evaluates it over all rows of {' and '.join(tables)}"
