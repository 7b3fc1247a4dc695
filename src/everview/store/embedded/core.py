"""The open files of one store in this process.

One sentence: LMDB allows a file to be open once per process, so all handles on one
directory share one :class:`Core`, counted, and never carried over a fork.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import lmdb

from everview.errors import InputError, NotAStoreError
from everview.store.embedded import layout
from everview.store.embedded.durability import MODES, Cut, Durability, locked, recover
from everview.store.embedded.environment import FULL_SIZE, Environment, Transaction, forked
from everview.store.embedded.times import Times
from everview.store.embedded.topology import found_topology

T = TypeVar("T")

_OURS = {layout.LOCK, layout.DURABLE, layout.BASE, layout.MARKER, layout.MARKER + ".new"}


class Core:
    """The environments of a store and their durability."""

    def __init__(self, directory: Path, settings: layout.Settings, map_size: int) -> None:
        self.directory = directory
        self.settings = settings
        self.base = Environment(directory / layout.BASE, map_size)
        self.shards = tuple(
            Environment(directory / layout.shard_name(number), map_size) for number in range(settings.shards)
        )
        shards = {layout.shard_name(number): shard for number, shard in enumerate(self.shards)}
        cut = Cut(self.base, shards, layout.BASE)
        self.durability = Durability(directory, {layout.BASE: self.base, **shards}, cut)
        self.users = 0
        self.times = Times()

    def close(self) -> None:
        try:
            self.durability.close()
        finally:
            for environment in (self.base, *self.shards):
                environment.close()


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
_guard = threading.RLock()


def acquire(directory: Path, settings: layout.Settings | None, map_size: int = FULL_SIZE) -> Core:
    """The core of the store in the directory, opened if this process has not yet. With
    settings, a store that does not exist is created."""
    with _guard:
        directory = directory.absolute()
        if settings is not None:
            _make_directory(directory)
        found = layout.read_settings(directory)
        directory = directory.resolve()
        if directory in _inherited:
            raise forked(directory)
        core = _open.get((os.getpid(), directory))
        if core is None or core.durability.gone:  # whoever has the one that is gone keeps it
            if found is None:
                _refuse(directory, creating=settings is not None)
            with open(directory / layout.LOCK, "ab", opener=layout.private) as file, locked(file):
                found = layout.read_settings(directory)
                if found is None:
                    assert settings is not None
                    core = _create(directory, settings, map_size)
                else:
                    recover(directory)
                    core = Core(directory, found, map_size)
            _open[os.getpid(), directory] = core
        core.users += 1
        return core


def release(core: Core) -> None:
    """Give a core back; the last user closes it."""
    with _guard:
        core.users -= 1
        if core.users == 0:
            if _open.get((os.getpid(), core.directory)) is core:
                del _open[os.getpid(), core.directory]
            core.close()


def _make_directory(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise NotAStoreError(f"{directory} is a file, not the directory of a store") from None


def _refuse(directory: Path, *, creating: bool) -> None:
    """Nothing is created over what is not a store, or where no store was asked for."""
    if not directory.is_dir():
        raise NotAStoreError(f"there is no store in {directory}", hint="open it with create=True to make one")
    foreign = sorted(
        entry.name
        for entry in directory.iterdir()
        if entry.name.removesuffix("-lock") not in _OURS and not entry.name.startswith("state-")
    )
    if foreign or not creating:
        raise NotAStoreError(
            f"{directory} is not a store",
            detail=f"it holds {foreign[0]}" if foreign else f"it has no {layout.MARKER}",
            hint="name an empty or new directory with create=True",
        )


def _create(directory: Path, settings: layout.Settings, map_size: int) -> Core:
    """Make the files, then the durable point, then the marker that says they are whole. What
    an interrupted creation left behind is removed first."""
    directory.chmod(0o700)
    for entry in directory.iterdir():
        if entry.name != layout.LOCK:
            entry.unlink()
    core = Core(directory, settings, map_size)
    for shard in core.shards:
        shard.update(lambda transaction: transaction.put(b"\0", b""))
    core.base.update(lambda transaction: found_topology(transaction, settings.nodes))
    core.durability.first_point()
    layout.write_settings(directory, settings)
    return core


_inherited: set[Path] = set()
"""Stores that were open when this process was forked off."""


def _abandon_after_fork() -> None:
    """Even the destructors of what was inherited would reach into the parent's reader slots,
    so it is kept alive for good."""
    global _guard
    _guard = threading.RLock()
    for (_, directory), core in _open.items():
        _inherited.add(directory)
        core.durability.abandon()
        for environment in (core.base, *core.shards):
            environment.abandon()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(core))
    _open.clear()


def _close_all() -> None:
    for (process, _), core in list(_open.items()):
        if process == os.getpid():
            with contextlib.suppress(lmdb.Error, OSError):
                core.close()
    _open.clear()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_abandon_after_fork)
