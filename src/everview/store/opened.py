"""One open store per place and process.

Code that runs inside another program's process (a Spark worker, a Spark source)
asks here for the store and gets the one that this very process opened, never one that a
parent process had open when it forked.

A worker's stores stay open as long as the process: its next task will use them again. If a store was
removed meanwhile, and perhaps replaced by another, the next task opens the new one.

The processes of one Spark application may be on several machines. An embedded store is files that its
processes map into their memory, so all of them must be on the machine of the one who sends them there. A
directory that is mounted from another machine looks the same, and would be damaged: hence :func:`machine`.
"""

from __future__ import annotations

import os
import socket
import threading

from everview.boundary import translated
from everview.errors import NotAStoreError, StoreError
from everview.store.contract import Store
from everview.store.embedded import EmbeddedStore
from everview.store.embedded.durability import boot_id

_opened: dict[tuple[int, str], Store] = {}
_guard = threading.Lock()


def open_store(place: str) -> Store:
    """The store at a place (a directory: the embedded store); the caller closes it."""
    try:
        return EmbeddedStore.open(place)
    except OSError as error:
        raise translated(error) from error


def machine() -> str:
    """The identity of this machine; containers of one machine are on the same."""
    return boot_id()


def opened(place: str, on: str = "") -> Store:
    """The store at a place, opened at the first call and left open. ``on`` is the :func:`machine` where
    it is, if that is known."""
    asked = (os.getpid(), place)
    found = _opened.get(asked)
    if found is None or found.gone:
        with _guard:
            found = _opened.get(asked)
            if found is not None and found.gone:
                del _opened[asked]
                found.close()
                found = None
            if found is None:
                found = _opened[asked] = _open_here(place, on)
    return found


def _open_here(place: str, on: str) -> Store:
    if on and on != machine():
        raise StoreError(
            f"the store in {place} cannot be used from {socket.gethostname()}",
            detail="it is on another machine, and a store in a directory is for the processes of one",
            hint="let Spark's driver and executors run on the machine of the store",
        )
    try:
        return open_store(place)
    except NotAStoreError as error:
        raise NotAStoreError(
            error.message,
            detail=f"{error.detail or 'nothing is there'}, says process {os.getpid()} on {socket.gethostname()}",
            hint="Spark's driver and executors must find the directory of the store under the same path",
        ) from None


def close_opened(place: str) -> None:
    """Close what this process has opened at a place."""
    with _guard:
        found = _opened.pop((os.getpid(), place), None)
    if found is not None:
        found.close()


def _reset_guard() -> None:
    """In a forked child: another thread of the parent may have held the lock."""
    global _guard
    _guard = threading.Lock()


os.register_at_fork(after_in_child=_reset_guard)
