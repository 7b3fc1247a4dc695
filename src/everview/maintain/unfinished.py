"""Epochs that another process began and did not end.

Before anything else is done with a group, the epoch that is under way in it is done; one that
fails is closed where nothing of the group's state is kept.

::

    the epoch fails, and ...                      then
    the failure may pass (a full disk)            it is raised
    the group has views                           it is raised: they need a rebuild
    all of its views are to be rebuilt            the epoch stays, and the rebuild closes it when it joins
    the group has no views, and none that join    the epoch is closed as it is

So no process waits for an epoch that none can do.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from everview.catalog import Catalog
from everview.errors import EverviewError
from everview.maintain.builds import builds_of
from everview.maintain.epochs import Epochs
from everview.maintain.plans import BUILDS, GROUPS, LEFT
from everview.maintain.rebuilding import REBUILDS, is_rebuilt
from everview.store.contract import Store


def finish_begun(epochs: Epochs, group: str) -> bool:
    """Do the epoch of a group that is under way; whether there was one."""
    store, catalog = epochs.store, epochs.catalog
    if store.views.begun(group) is None:
        return False
    failure = lasting_failure(lambda: epochs.finish(group))
    if failure is None or is_rebuilt(store, catalog.definitions(), group):
        return True
    if _is_used(store, catalog, group):
        raise failure
    begun = store.views.begun(group)
    if begun is not None:
        store.views.commit(group, begun.epoch)
    return True


def lasting_failure(work: Callable[[], object]) -> Exception | None:
    """Do some work on a group; returns the error with which it fails, unless a retry can help: then the error is
    raised. Damaged state fails in any way."""
    try:
        work()
    except Exception as error:
        if isinstance(error, EverviewError) and error.retryable:
            raise
        return error
    return None


def _is_used(store: Store, catalog: Catalog, group: str) -> bool:
    """Whether the group has views that can be read, or that become its own in the epoch under way."""
    return bool(catalog.definitions().live_names(group)) or any(
        build.target == group and build.phase.holds_group for build in builds_of(store)
    )


def standing(store: Store, groups: Iterable[str]) -> Hashable:
    """Where the maintenance of some groups is: what decides what is done next. Fences change nothing of it."""
    documents = [
        tuple(sorted(store.metadata.documents(prefix)[1].items())) for prefix in (BUILDS, GROUPS, LEFT, REBUILDS)
    ]
    epochs = []
    for group in sorted(groups):
        begun = store.views.begun(group)
        frontier = str(store.views.committed(group).frontier)
        epochs.append((group, frontier, None if begun is None else (str(begun.frontier), begun.plan)))
    return tuple(documents), tuple(epochs)
