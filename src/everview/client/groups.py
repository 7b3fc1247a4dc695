"""Groups that come and go with their view."""

from __future__ import annotations

from everview.catalog import Draft, GroupKind, ViewDefinition


def leave_group(draft: Draft, view: ViewDefinition) -> None:
    """Drop the group that a lazy view had for itself, unless another view has come into it."""
    group = draft.group(view.group)
    own = group.kind is GroupKind.LAZY and group.name.startswith(f"{GroupKind.LAZY}-")
    indexes = [index for index in draft.indexes() if index.group == group.name]
    if own and not indexes and not draft.views(group.name):
        draft.drop_group(group.name)
