"""Work that other processes do for whoever maintains a store.

A process that outlives the one it works for finds that the lease has another holder, or
none, and stops.

A stream that a client starts through Spark Connect runs in the server, and goes on there when the client
is killed. The lease goes with the client, and somebody else may have taken it: two would maintain the
store. No epoch would be wrong, since steps are pure and begins and commits are the store's, but whoever
holds the lease may drop tables that only an older plan writes.
"""

from __future__ import annotations

from everview.errors import StaleEpochError
from everview.maintain.maintainer import LEASE
from everview.store.contract import Store


def holder_of(store: Store) -> str:
    """Who maintains the store: said by the one who does."""
    found = store.holder(LEASE)
    assert found is not None, "only who holds the lease has others work for it"
    return found


def require_holder(store: Store, holder: str) -> None:
    """Refuse to go on for somebody who does not maintain the store any more."""
    found = store.holder(LEASE)
    if found != holder:
        raise StaleEpochError(
            f"the stream was started by {holder}, which does not maintain the store any more",
            detail=f"{found} does" if found else "nobody does",
            hint="a server in a container must see the processes of its clients: then it knows who is there",
        )
