"""The common part of all DROP statements."""

from __future__ import annotations

from collections.abc import Callable

from everview.catalog import Draft, ViewDefinition
from everview.catalog.draft import Dropped
from everview.client.maintenance import leave_group
from everview.client.reading import SessionContext
from everview.client.result import Result
from everview.store.contract import Table


def drop_object(
    context: SessionContext, name: str, kind: str, drop: Callable[[Draft], Dropped], *, if_exists: bool
) -> Result:
    """Drop an object and those that depend on it; notices name the latter."""

    def work(draft: Draft) -> Dropped | None:
        if if_exists and draft.find(name) is None:
            return None
        gone = drop(draft)
        for one in gone:
            if isinstance(one, ViewDefinition):
                leave_group(draft, one)
        return gone

    found = context.catalog.change(work)
    if found is None:
        return Result(notices=(f"there is no {kind} {name}",))
    context.clean_up()
    along = [f"{'table' if isinstance(one, Table) else one.kind} {one.name} was dropped too" for one in found[:-1]]
    return Result(notices=along)
