"""One open store per place and process.

One sentence: whoever works inside somebody else's process (a Spark worker, a Spark source)
asks here for the store and gets the one that this very process opened, never one that a
parent process had open when it forked.

A worker's stores stay open as long as the process: its next task will want them again.
"""

from __future__ import annotations

import os
import threading

from everview.store.contract import Store
from everview.store.embedded import EmbeddedStore

_opened: dict[tuple[int, str], Store] = {}
_guard = threading.Lock()


def open_store(place: str) -> Store:
    """The store at a place (a directory: the embedded store); the caller closes it."""
    return EmbeddedStore.open(place)


def opened(place: str) -> Store:
    """The store at a place, opened at the first call and left open."""
    asked = (os.getpid(), place)
    found = _opened.get(asked)
    if found is None:
        with _guard:
            found = _opened.get(asked)
            if found is None:
                found = _opened[asked] = open_store(place)
    return found


def close_opened(place: str) -> None:
    """Close what this process has opened at a place."""
    with _guard:
        found = _opened.pop((os.getpid(), place), None)
    if found is not None:
        found.close()
