"""One open store per place and process.

One sentence: whoever works inside somebody else's process (a Spark worker, a Spark source)
asks here for the store and gets the one that this very process opened, never one that a
parent process had open when it forked.

The stores stay open as long as the process: its next task will want them again.
"""

from __future__ import annotations

import os
import threading

from everview.store.contract import Store
from everview.store.embedded import EmbeddedStore

_opened: dict[tuple[int, str, str], Store] = {}
_guard = threading.Lock()


def opened(place: str, durability: str = "group") -> Store:
    """The store at a place (a directory: the embedded store)."""
    asked = (os.getpid(), place, durability)
    found = _opened.get(asked)
    if found is None:
        with _guard:
            found = _opened.get(asked)
            if found is None:
                found = _opened[asked] = EmbeddedStore.open(place, durability=durability)
    return found
