"""The open files of one store in this process.

LMDB allows a file to be open once per process, so all handles on one
directory share one :class:`Core`, counted, and never carried over a fork.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import lmdb

from everview.errors import InputError, NotAStoreError, StoreError
from everview.store.embedded import layout
from everview.store.embedded.address_space import fitting_size
from everview.store.embedded.creation import (
    Finding,
    finish_creation,
    make_directory,
    plan_creation,
    remove_interrupted,
    survey,
    tidy,
)
from everview.store.embedded.cut import Cut
from everview.store.embedded.durability import MODES, Durability, locked, recover
from everview.store.embedded.environment import FULL_SIZE, SMALLEST, Environment, Transaction
from everview.store.embedded.forking import detach_reader_tables, forget_open_files
from everview.store.embedded.identity import write_identity
from everview.store.embedded.times import Times
from everview.store.embedded.topology import found_topology

T = TypeVar("T")


class Core:
    """The environments of a store and their durability."""

    def __init__(self, directory: Path, marker: layout.Marker, map_size: int) -> None:
        self.directory = directory
        self.marker = marker
        self.settings = marker.settings
        self.environments = _open_environments(directory, marker.settings.files, map_size)
        self.base, *others = self.environments
        self.shards = tuple(others)
        shards = {layout.shard_name(number): shard for number, shard in enumerate(self.shards)}
        cut = Cut(self.base, shards, layout.BASE)
        try:
            self.durability = Durability(directory, marker.id, {layout.BASE: self.base, **shards}, cut)
        except BaseException:
            self._close_files()
            raise
        self.users = 0
        self.inherited = False
        self.times = Times()
        _cores.add(self)

    def abandon(self) -> None:
        """In a forked child: refuse everything, and touch nothing that is the parent's."""
        self.inherited = True
        detach_reader_tables([environment.path for environment in self.environments])
        self.durability.abandon()
        for environment in self.environments:
            environment.abandon()

    def close(self) -> None:
        _cores.discard(self)
        try:
            self.durability.close()
        finally:
            self._close_files()

    def _close_files(self) -> None:
        for environment in self.environments:
            environment.close()


def _open_environments(directory: Path, names: Sequence[str], map_size: int) -> tuple[Environment, ...]:
    """All files, or none."""
    size = fitting_size(len(names), max(map_size, SMALLEST), SMALLEST)
    opened: list[Environment] = []
    try:
        for name in names:
            opened.append(Environment(directory / name, size))
    except BaseException:
        for environment in opened:
            environment.close()
        raise
    return tuple(opened)


class Handle:
    """One user's hold on a core, with the durability it asked for."""

    def __init__(self, core: Core, mode: str) -> None:
        if mode not in MODES:
            raise InputError(f"there is no durability {mode!r}", hint=f"choose one of {', '.join(MODES)}")
        self.core = core
        self.base = core.base
        self.shards = core.shards
        self.settings = core.settings
        self._mode = mode

    def update(self, env: Environment, work: Callable[[Transaction], T]) -> T:
        """Run ``work`` in a write transaction; it may be run again. On return it is as durable
        as the mode says. State can be computed again from what is durable, so writes to the
        shards need not be durable before the commit of their epoch, which goes to the base."""
        mode = "group" if self._mode == "fsync" and env is not self.base else self._mode
        return self.core.durability.write(mode, env, work)


_open: dict[tuple[int, Path], Core] = {}
_cores: weakref.WeakSet[Core] = weakref.WeakSet()
"""All that are not closed, also those of directories that were removed since."""
_guard = threading.RLock()


def acquire(directory: Path, settings: layout.Settings | None, map_size: int = FULL_SIZE) -> Core:
    """The core of the store in the directory, opened if this process has not yet. With
    settings, a store that does not exist is created."""
    with _guard:
        directory = directory.absolute()
        if settings is not None:
            make_directory(directory)
        directory = directory.resolve()
        core = _open.get((os.getpid(), directory))
        if core is None or core.durability.gone:  # those who have the one that is gone keep it
            core = _open_files(directory, settings, map_size)
            _open[os.getpid(), directory] = core
        core.users += 1
        return core


def release(core: Core) -> None:
    """Give a core back; the last user closes it."""
    with _guard:
        core.users -= 1
        if core.users == 0 and not core.inherited:
            if _open.get((os.getpid(), core.directory)) is core:
                del _open[os.getpid(), core.directory]
            core.close()


def _open_files(directory: Path, settings: layout.Settings | None, map_size: int) -> Core:
    """Nothing is created over what is not a store, or where no store was asked for."""
    finding = survey(directory)
    if settings is None and finding is not Finding.STORE:
        raise NotAStoreError(
            f"there is no store in {directory}",
            detail=f"it has no {layout.MARKER}",
            hint="open it with create=True to make one",
        )
    with open(directory / layout.LOCK, "ab", opener=layout.private) as file, locked(file):
        finding = survey(directory)  # another process may have created it, or removed it
        if finding is not Finding.STORE:
            if settings is None:
                raise NotAStoreError(f"the store in {directory} was removed")
            if finding is Finding.INTERRUPTED:
                remove_interrupted(directory)
            return _create(directory, settings, map_size)
        marker = layout.read_marker(directory)
        if marker is None:
            raise NotAStoreError(f"the store in {directory} was removed")
        tidy(directory)
        recover(directory, marker)
        return Core(directory, marker, map_size)


def _create(directory: Path, settings: layout.Settings, map_size: int) -> Core:
    """Make the files, then the durable point, then the marker that says they are whole."""
    marker = plan_creation(directory, settings)
    core = Core(directory, marker, map_size)
    try:
        for name in settings.files:
            write_identity(directory / name, marker)
        for shard in core.shards:
            shard.update(lambda transaction: transaction.put(b"\0", b""))
        core.base.update(lambda transaction: found_topology(transaction, settings.nodes))
        core.durability.first_point()
        finish_creation(directory, marker)
    except BaseException:
        core.close()
        raise
    return core


def _abandon_after_fork() -> None:
    """What the parent has open is of no use here. It is kept for good: closing its files would release locks
    that this process takes on them later, if it opens the store itself."""
    global _guard
    _guard = threading.RLock()
    if _cores:
        forget_open_files()
    for core in list(_cores):
        core.abandon()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(core))
    _open.clear()


def _close_all() -> None:
    for (process, _), core in list(_open.items()):
        if process == os.getpid():
            with contextlib.suppress(lmdb.Error, OSError, StoreError):
                core.close()
    _open.clear()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_abandon_after_fork)
