"""Views against their queries, while the store goes on.

One snapshot holds what every view shows and at which frontier its group is, the base rows
of that frontier are the snapshot's with later writes undone, and each view is what its query returns over them.

Nothing waits: views are maintained and rows are written meanwhile. Nothing of the plans or of the steps
that maintain the views is used, so a mistake there is not repeated here; how stored records become rows
comes from the caller (:class:`ShownViews`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from everview.catalog import Definitions, Derived, IndexDefinition, Maintained, NamedQuery, ViewStatus
from everview.check.base_rows import BaseRows
from everview.check.judging import Case, judged
from everview.check.recompute import RecomputedRows, Workspace
from everview.check.report import Report, ViewReport
from everview.errors import DefinitionError, SnapshotExpiredError
from everview.scratch import scratch
from everview.store.contract import Store, Table, TableSnapshot

SAMPLES = 20
"""Differences of each kind that are named."""
ATTEMPTS = 20
"""Snapshots that are tried where views are redefined meanwhile, or where logs have no before-images."""


class ShownViews(Protocol):
    """What views show, as their readers are shown it."""

    @property
    def store(self) -> Store: ...

    def opened(self) -> tuple[TableSnapshot, Definitions]:
        """A snapshot, and what is defined in it."""

    def rows(self, one: Maintained, snapshot: TableSnapshot) -> RecomputedRows:
        """What a view or index shows in a snapshot."""

    def lacking(self, group: str, snapshot: TableSnapshot) -> Mapping[str, int]:
        """How many rows, groups, partitions and log entries the views of a group lack."""


def verify(kept: ShownViews, names: Sequence[str] = (), samples: int = SAMPLES) -> Report:
    """Verify the views and indexes with these names, or all that can be read, in this process."""
    with scratch() as folder:
        for attempt in range(ATTEMPTS):
            snapshot, definitions = kept.opened()
            with snapshot:
                try:
                    return Report(tuple(_verified(kept, snapshot, definitions, names, samples, folder)))
                except SnapshotExpiredError:
                    if attempt == ATTEMPTS - 1:
                        raise
    raise AssertionError("the last attempt has returned or raised")


def _verified(
    kept: ShownViews,
    snapshot: TableSnapshot,
    definitions: Definitions,
    names: Sequence[str],
    samples: int,
    folder: Path,
) -> Iterator[ViewReport]:
    asked = chosen(definitions, names)
    for group in dict.fromkeys(one.group for one in asked):
        views = [one for one in asked if one.group == group]
        cases = cases_of(kept, snapshot, group, views)
        frontier = snapshot.committed(group).frontier
        lacking = {case.one.name: case.quarantined for case in cases}
        base = partial(BaseRows, kept.store, snapshot, frontier)
        with Workspace(definitions, base, folder, lacking) as workspace:
            for number, case in enumerate(cases):
                yield judged(workspace, case, kept.rows(case.one, snapshot), samples)
                if not read_by(definitions, case.one, views[number + 1 :]):
                    workspace.forget(case.one)


def chosen(definitions: Definitions, names: Sequence[str]) -> list[Maintained]:
    """The views and indexes with these names, or all that can be read, each after what it reads."""
    live = [one for one in in_reading_order(definitions) if one.status is ViewStatus.LIVE]
    if not names:
        return live
    wanted: set[int] = set()
    for name in names:
        found = definitions.find(name)
        one = found if isinstance(found, IndexDefinition) else definitions.view(name)
        if one.status is not ViewStatus.LIVE:
            raise DefinitionError(f"{one.kind} {one.name} is not built yet", hint="it can be verified when it is built")
        wanted.add(one.id)
    return [one for one in live if one.id in wanted]


def in_reading_order(definitions: Definitions) -> list[Maintained]:
    """All views and indexes, each after those it reads."""
    found: dict[int, Derived] = {}

    def visit(one: Table | Derived) -> None:
        if isinstance(one, Table) or one.id in found:
            return
        for id in one.depends_on:
            visit(definitions.by_id(id))
        found[one.id] = one

    for one in definitions.maintained():
        visit(one)
    return [one for one in found.values() if not isinstance(one, NamedQuery)]


def cases_of(kept: ShownViews, snapshot: TableSnapshot, group: str, views: Sequence[Maintained]) -> list[Case]:
    """The views of a group, as a snapshot has them."""
    commit = snapshot.committed(group)
    lacking = kept.lacking(group, snapshot)
    return [Case(one, commit.epoch, commit.frontier, lacking.get(one.name, 0)) for one in views]


def read_by(definitions: Definitions, one: Maintained, others: Sequence[Maintained]) -> bool:
    """Whether one of the others reads a view, directly or through others."""
    above = {found.id for found in definitions.dependents(one.id)}
    return any(other.id in above for other in others)
