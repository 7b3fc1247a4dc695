"""All that is quarantined in a group: what views lack, and why.

Rows, groups and partitions whose expression failed are recorded beside the views, log entries
that cannot be read in the catalog, and both are listed here in the same form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from everview.catalog import Catalog
from everview.catalog.quarantine import UNKNOWN
from everview.change.frontier import Frontier, Position
from everview.maintain.plans import Plans
from everview.operators.bound import QUARANTINE, BoundPlan
from everview.operators.quarantine_records import listed
from everview.store.contract import TableSnapshot

DAMAGED = "log entry"


@dataclass(frozen=True)
class QuarantinedItem:
    """Something that views lack, and why."""

    views: tuple[str, ...]
    """The views that lack it; of a log entry, all that read its table."""
    what: str
    """``row``, ``group``, ``partition``, ``pair``: an expression failed; ``log entry``: it cannot be decoded."""
    values: Mapping[str, Any]
    """The columns that identify it, as texts."""
    reason: str
    construct: str
    """The expression that failed, or the table of the log entry."""
    count: int = 1
    """How many equal rows there are."""
    epoch: int | None = None
    """The epoch in which it came; None for a log entry."""
    frontier: Frontier | None = None
    """Of that epoch."""
    position: Position | None = None
    """Of the log entry."""


def quarantined_items(
    catalog: Catalog, plans: Plans, group: str, snapshot: TableSnapshot, limit: int = 100
) -> list[QuarantinedItem]:
    """What the views of a group lack as of a snapshot: at most so many of each kind and table."""
    epoch = snapshot.committed(group).epoch
    bound = plans.at(group, epoch)
    if bound is None:
        return []
    records = snapshot.scan(bound.states[QUARANTINE], b"", epoch, limit)
    found = [
        QuarantinedItem(one.views, one.what, one.values, one.reason, one.construct, count, one.epoch, one.frontier)
        for count, one in listed(bound.plan, records)
    ]
    for id, name in [(UNKNOWN, "unknown"), *((table.id, table.name) for table in bound.tables.values())]:
        views = _readers(bound, None if id == UNKNOWN else name)
        for entry in catalog.quarantine.page(id, limit=limit):
            found.append(QuarantinedItem(views, DAMAGED, {}, entry.reason, name, position=entry.position))
    return found


def _readers(bound: BoundPlan, table: str | None) -> tuple[str, ...]:
    """The views that read a table; all, where it is not known which one it is."""
    steps = [use.step for use in bound.plan.tables if table is None or use.name == table]
    return tuple(sorted({view for step in steps for view in bound.plan.users[step]}))
