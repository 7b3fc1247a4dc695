"""The hand-over from statements to the maintainer.

A statement that creates a view or an index records it and calls :meth:`created`;
:meth:`settle` builds the created views; FLUSH calls :meth:`flush`.

What holds at the hand-over:

- *created*: the definition is committed in the catalog with the status ``building``, in the group
  its options ask for, without state tables. Its build gives it state tables and makes it
  ``live``.
- *settle*: what was created by statements one after another is built together, before anything else
  is executed. The call may return before that, if another process maintains the store's views.
- *dropped*: state tables of what was dropped are marked in the catalog as discarded, in the same
  commit. The maintainer removes their rows, after the last epoch that writes there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from everview.catalog import Catalog, Draft, GroupKind, IndexDefinition, Maintained, ViewDefinition, ViewStatus
from everview.errors import DamagedEntryError, EverviewError, LeaseTakenError
from everview.maintain import Maintainer
from everview.maintain.coordination import all_reflect, ask_lazy_groups
from everview.maintain.maintainer import LEASE
from everview.maintain.rebuilding import ask_rebuild, asked_rebuilds
from everview.maintain.rounds import Rounds, deadline_in
from everview.maintain.unfinished import standing
from everview.plan.compile import CompiledView
from everview.store.contract import Store

_POLL = 0.005


_Created: TypeAlias = tuple[Maintained, ViewDefinition | None]
"""The recorded view or index, and the view that it replaces."""


class Maintenance:
    """The client's requests to the maintenance of views."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog
        self._maintainer = Maintainer(store, catalog)
        self._created: list[_Created] = []

    def created(
        self, found: Maintained, compiled: CompiledView | None = None, replaced: ViewDefinition | None = None
    ) -> None:
        """A view or an index was recorded, or recorded under the id of the one that it replaces. Its
        relation may be given, so that it is not compiled again."""
        self._created.append((found, replaced))
        if compiled is not None:
            self._maintainer.plans.learn(found, compiled.input)

    def settle(self) -> None:
        """Build what was recorded, all of it together, if no process maintains the store's views. A view
        that cannot be built is withdrawn, as if it had not been created."""
        created, self._created = self._created, []
        if not created:
            return
        try:
            self._build()
        except Exception as error:
            self._withdraw(created)
            if len(created) == 1:
                raise _unbuilt(created[0][0], error) from error
            for one in created:
                self._created.append(self._record(one))
                self.settle()  # those before the one that fails are created all the same

    def _build(self) -> None:
        with contextlib.suppress(LeaseTakenError), self._maintainer.lease():
            self._maintainer.recover()
            self._maintainer.build()
            self._maintainer.tidy()
        self._maintainer.plans.forget_inputs()

    def _withdraw(self, created: Sequence[_Created]) -> None:
        """Withdraw views that could not be built, the last first; the views that they replaced are restored."""

        def work(draft: Draft) -> None:
            for found, replaced in reversed(created):
                now = draft.find(found.name)
                if not isinstance(now, ViewDefinition | IndexDefinition) or now.id != found.id:
                    continue
                if isinstance(now, ViewDefinition) and replaced is not None:
                    before = replace(replaced, status=ViewStatus.BUILDING, state=())
                    draft.replace_view(_in_group(draft, before))
                    leave_group(draft, now)
                elif isinstance(now, ViewDefinition):
                    draft.drop_view(now.name, cascade=True)
                    leave_group(draft, now)
                else:
                    draft.drop_index(now.name)

        self._catalog.change(work)
        with contextlib.suppress(Exception):  # the next build removes what is left of this one
            self._build()

    def _record(self, one: _Created) -> _Created:
        """Record a withdrawn view again."""
        found, replaced = one

        def work(draft: Draft) -> Maintained:
            fresh = replace(found, status=ViewStatus.BUILDING, state=())
            if isinstance(fresh, IndexDefinition):
                return draft.create_index(fresh)
            fresh = _in_group(draft, fresh)
            return draft.create_view(fresh) if replaced is None else draft.replace_view(fresh)

        return self._catalog.change(work), replaced

    def flush(self, timeout: float | None = None) -> None:
        """Return when every view reflects every write that was acknowledged before the call: by
        maintaining them here, or, if another process does, by waiting for it."""
        wanted = self._store.log.latest()
        deadline = deadline_in(timeout)
        rounds = Rounds("the views do not reflect every write yet", deadline, lambda: self._other(timeout))
        while True:
            try:
                with self._maintainer.lease():
                    self._maintainer.catch_up(wanted, deadline)
                    return
            except LeaseTakenError:
                if all_reflect(self._store, self._catalog, wanted):
                    return
                ask_lazy_groups(self._store, self._catalog, wanted)
            rounds.pause(_POLL)

    def rebuild(self, found: Sequence[Maintained], timeout: float | None = None) -> None:
        """Rebuild views and indexes: here, or, if another process maintains the views, by waiting for
        that process. If the damage stops a whole group, all of its views are rebuilt."""
        ask_rebuild(self._store, [one.id for one in found])
        deadline = deadline_in(timeout)
        names = ", ".join(one.name for one in found)
        rounds = Rounds(f"{names} could not be rebuilt in time", deadline, lambda: self._other(timeout))
        while self._is_asked(found):
            try:
                with self._maintainer.lease():
                    self._rebuild(found, deadline)
            except LeaseTakenError:
                rounds.pause(_POLL)
                continue
            if self._is_asked(found):
                rounds.changed(standing(self._store, {one.group for one in found}))

    def _is_asked(self, found: Sequence[Maintained]) -> bool:
        return bool(asked_rebuilds(self._store).intersection(one.id for one in found))

    def _other(self, timeout: float | None) -> str:
        return f"{timeout} s are over, and {self._store.holder(LEASE) or 'another process'} maintains the views"

    def _rebuild(self, found: Sequence[Maintained], deadline: float | None) -> None:
        try:
            self._maintainer.recover(deadline)
            self._maintainer.build(deadline)
        except DamagedEntryError:
            groups = {one.group for one in found}
            everything = [one for one in self._catalog.definitions().maintained() if one.group in groups]
            if {one.id for one in everything} <= asked_rebuilds(self._store):
                raise
            ask_rebuild(self._store, [one.id for one in everything])
            return
        self._maintainer.tidy()


def _in_group(draft: Draft, view: ViewDefinition) -> ViewDefinition:
    """The view in its group, or in a new one if it had a group of its own, which was dropped with it."""
    there = any(group.name == view.group for group in draft.groups())
    return view if there else replace(view, group=draft.fresh_group(GroupKind.LAZY).name)


def _unbuilt(found: Maintained, error: Exception) -> EverviewError:
    """Why something could not be built, as an error of its own."""
    if isinstance(error, EverviewError):
        return error
    kind = "view" if isinstance(found, ViewDefinition) else "index"
    return EverviewError(
        f"{kind} {found.name} could not be built",
        detail=f"{type(error).__name__}: {error}",
        hint="nothing of it is left; write the query otherwise, and report this: it should have been refused before",
    )


def leave_group(draft: Draft, view: ViewDefinition) -> None:
    """Drop the group that a lazy view had for itself, unless another view has come into it."""
    group = draft.group(view.group)
    own = group.kind is GroupKind.LAZY and group.name.startswith(f"{GroupKind.LAZY}-")
    indexes = [index for index in draft.indexes() if index.group == group.name]
    if own and not indexes and not draft.views(group.name):
        draft.drop_group(group.name)
