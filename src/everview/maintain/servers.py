"""How many view servers there are.

The number is a small document of the store, so that every process that shares out the
work of an epoch takes the same one, and a new one from the next epoch on.
"""

from __future__ import annotations

from everview.errors import DefinitionError
from everview.maintain.plans import commit
from everview.store.contract import Store

SERVERS = 2
"""As long as nobody has said anything."""
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
