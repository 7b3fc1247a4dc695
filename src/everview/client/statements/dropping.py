"""What all DROP statements have in common."""

from __future__ import annotations

from collections.abc import Callable

from everview.catalog import Draft, GroupKind, ViewDefinition
from everview.catalog.draft import Dropped
from everview.client.reading import Context
from everview.client.result import Result
from everview.store.contract import Table


def dropped(context: Context, name: str, kind: str, drop: Callable[[Draft], Dropped], *, if_exists: bool) -> Result:
    """Drop something and what must go with it; what went along is told in notices."""

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


def leave_group(draft: Draft, view: ViewDefinition) -> None:
    """Drop the group that a lazy view had for itself, unless another view has come into it."""
    group = draft.group(view.group)
    own = group.kind is GroupKind.LAZY and group.name.startswith(f"{GroupKind.LAZY}-")
    indexes = [index for index in draft.indexes() if index.group == group.name]
    if own and not indexes and not draft.views(group.name):
        draft.drop_group(group.name)
