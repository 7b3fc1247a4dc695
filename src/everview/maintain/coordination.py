"""How the processes of a store agree: how far views are, what readers ask for, how many view servers there are, and
for which maintainer a process works. Most of it is small documents.

::

    maintenance/ask/<group>     the frontier that a reader of a lazy group waits for; the maintainer moves the group
                                there and removes the document
    maintenance/demand/<group>  how often readers ask for a lazy group (:mod:`everview.maintain.demand`)
    setting/servers             the number of view servers, which every process that shares out the work of an epoch
                                reads; a new number holds from the next epoch on

A stream that a client starts through Spark Connect runs in the server, and goes on there when the client
is killed. The lease goes with the client, and another process may have taken it: two would maintain the
store. No epoch would be wrong, since steps are pure and begins and commits are the store's, but the process that
holds the lease may drop tables that only an older plan writes. So a process that works for another one checks
that this one still holds the lease, and stops if it does not.
"""

from __future__ import annotations

from everview.catalog import Catalog, GroupKind
from everview.change.frontier import Frontier
from everview.errors import DefinitionError, StaleEpochError
from everview.maintain.maintainer import LEASE
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


def ask_lazy_groups(store: Store, catalog: Catalog, frontier: Frontier) -> None:
    """Ask that all lazy groups with views, which move when they are asked to, are taken to a frontier."""
    lazy = {group.name for group in catalog.groups() if group.kind is GroupKind.LAZY}
    for group in lazy.intersection(one.group for one in catalog.definitions().maintained()):
        if not frontier <= store.views.committed(group).frontier:
            ask(store, group, frontier)


def all_reflect(store: Store, catalog: Catalog, frontier: Frontier) -> bool:
    """Whether all views and indexes are built and reflect a frontier."""
    definitions = catalog.definitions()
    return not definitions.building() and all(
        frontier <= store.views.committed(group).frontier for group in definitions.live_groups()
    )


def answered(store: Store, group: str) -> None:
    """Remove the request for a group that has been moved, unless a reader asks for more."""

    def reached() -> bool:
        return asked(store).get(group, Frontier()) <= store.views.committed(group).frontier

    if reached():
        commit(store, lambda _: ({}, [ASKS + group] if reached() else []))


SERVERS = 2
"""The number until it is set."""
_DOCUMENT = "setting/servers"


def servers_of(store: Store) -> int:
    """The number of view servers."""
    found = store.metadata.documents(_DOCUMENT)[1].get(_DOCUMENT)
    return SERVERS if found is None else int(found)


def set_servers(store: Store, servers: int) -> None:
    """Let there be so many view servers from the next epoch on."""
    require_servers(servers)
    if servers_of(store) != servers:
        commit(store, lambda _: ({_DOCUMENT: str(servers).encode()}, ()))


def require_servers(servers: int) -> int:
    """The number, if it is one of view servers."""
    if servers < 1:
        raise DefinitionError(f"{servers} view servers cannot maintain anything", hint="there must be one at least")
    return servers


def holder_of(store: Store) -> str:
    """The process that maintains the store: asked by that process itself."""
    found = store.holder(LEASE)
    assert found is not None, "only who holds the lease has others work for it"
    return found


def require_holder(store: Store, holder: str) -> None:
    """Refuse to go on for a process that does not maintain the store any more."""
    found = store.holder(LEASE)
    if found != holder:
        raise StaleEpochError(
            f"the stream was started by {holder}, which does not maintain the store any more",
            detail=f"{found} does" if found else "no process does",
            hint="a server in a container must see the processes of its clients: then it knows who is there",
        )
