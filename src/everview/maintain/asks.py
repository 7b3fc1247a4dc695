"""Groups that a reader wants to be further than they are.

Whoever needs a lazy group at a frontier leaves a small document that says so, and
whoever maintains the store moves the group and removes it.

::

    maintenance/ask/<group>     the frontier
"""

from __future__ import annotations

from everview.change.frontier import Frontier
from everview.maintain.plans import commit
from everview.store.contract import Store

ASKS = "maintenance/ask/"


def ask(store: Store, group: str, frontier: Frontier) -> None:
    """Ask that a group is taken to a frontier."""
    if not frontier <= asked(store).get(group, Frontier()):
        commit(store, lambda _: ({ASKS + group: str(frontier | asked(store).get(group, Frontier())).encode()}, ()))


def asked(store: Store) -> dict[str, Frontier]:
    """The groups that are asked to move, and how far."""
    found = store.metadata.documents(ASKS)[1]
    return {name.removeprefix(ASKS): Frontier.parse(document.decode()) for name, document in found.items()}


def answered(store: Store, group: str) -> None:
    """Say that a group has been moved: nobody asks any more, unless for what is further still."""

    def reached() -> bool:
        return asked(store).get(group, Frontier()) <= store.views.committed(group).frontier

    if reached():
        commit(store, lambda _: ({}, [ASKS + group] if reached() else []))
