"""The durable point: what a power loss cannot take away.

LMDB never overwrites a page that a reader can still see, so a reader that
stays on a version whose pages have reached the disk keeps that version intact there, and
the version's meta page, saved in a file of its own, is all that is needed to go back to it.

LMDB without sync is fast, and safe against a killed process, since the page cache
survives. After a power loss it is neither: any subset of the pages written since the last
sync may be on disk, the meta page perhaps without the pages it points to. So:

- A **cut** is one version of every file of the store (base.mdb and all shards), such that
  no epoch began or was committed between the first and the last of them. At a cut the
  views fit the base data, and the state holds no epoch that the base does not know.
- To make a cut **durable**: take it with a read transaction per file (the *pins*), save
  the meta pages, sync the files, and only then write the meta pages to ``durable``, whose
  two slots are written in turn, each with a checksum.
- **Every process that writes holds pins at or before the durable point.** While any such
  pin stands, LMDB does not reuse a page of the durable cut. A process without pins makes a
  durable point of its own before its first write. Pins of a killed process protect
  no one, and no one needs them: each writer relies on its own.
- After a reboot (the kernel's boot id differs from the one in ``durable``) the first
  process to open the store writes the saved meta pages back. All files return to the cut.

A process that has not written for a while lets go of its pins: they would keep others from
using freed pages.

The modes differ only in when a durable point is made::

    fsync    before a write is acknowledged
    group    within INTERVAL seconds of it, by a thread (default)
    none     when garbage has piled up, and on close

Garbage: pages freed since the pinned version cannot be reused, so every mode makes a
durable point once the files have grown by GARBAGE bytes since the last one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, TypeVar

import lmdb

from everview.errors import NotAStoreError, StoreError
from everview.store.embedded.cut import Cut, abort
from everview.store.embedded.environment import Environment, Transaction
from everview.store.embedded.identity import problems, write_stamp
from everview.store.embedded.layout import DURABLE, LOCK, RESTORE, Marker, private
from everview.store.embedded.meta_pages import restore
from everview.store.embedded.points import NO_STAMP, TAG, Point, Stamp, read_point, write_point
from everview.store.embedded.unusable import closed, removed

T = TypeVar("T")

MODES = ("fsync", "group", "none")
INTERVAL = 0.1
IDLE_ROUNDS = 10
"""Rounds without a write after which a process lets go of its pins."""
GARBAGE = 1 << 28
_UNSTAMPED = (NO_STAMP, NO_STAMP)
PIN_LAG = 8
"""Durable points that others may make before this process must move its pins."""


def boot_id() -> str:
    """What changes with every boot of the machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError as error:
        raise StoreError(
            "this system has no boot id",
            detail=str(error),
            hint="the embedded store needs Linux",
        ) from error


class Durability:
    """Makes durable points for one process's handle on a store."""

    def __init__(self, directory: Path, store_id: str, files: Mapping[str, Environment], cut: Cut) -> None:
        self._directory = directory
        self._store_id = store_id
        self._files = files
        self._cut = cut
        self._lock_file: IO[bytes] = open(directory / LOCK, "ab", opener=private)  # noqa: SIM115
        self._points = threading.RLock()
        self._lock = threading.Lock()
        self._closed = threading.Condition(self._lock)
        self._pins: dict[str, Transaction] = {}
        self._pinned_at = 0
        self._pages: dict[Environment, int] = {}
        self._writing = 0
        self._writes = 0
        self._dirty = False
        """Something was written since the last durable point …"""
        self._due = False
        """… that must not wait for the next occasion."""
        self._recent = False
        self._closing = False
        self._flusher: threading.Thread | None = None
        for name, environment in files.items():
            environment.resize_turn = self._points
            environment.around_resize = partial(self._unpinned, name)

    # -------------------------------------------------------------- around every write

    def write(self, mode: str, environment: Environment, work: Callable[[Transaction], T]) -> T:
        """A write: pins are there before it, and it is as durable as the mode says after."""
        with self._lock:
            if self._closing:
                raise environment.gone() if environment.gone else closed(self._directory)
            self._writing += 1
        wrote = False
        try:
            if not self._pinned:
                self.make_point()
            result = environment.update(work)
            wrote = True
        finally:
            with self._lock:
                self._writing -= 1
                if wrote:
                    self._note_write(mode)
        if mode == "fsync" or self._too_much_garbage(environment):
            self.make_point()
        return result

    def _note_write(self, mode: str) -> None:
        """Under the lock, so that a flusher about to end sees the write, or is seen to have ended."""
        self._dirty = self._recent = True
        self._due |= mode == "group"
        if self._flusher is None and not self._closing:
            self._flusher = threading.Thread(target=self._flush_forever, name="everview-durability", daemon=True)
            self._flusher.start()

    @property
    def _pinned(self) -> bool:
        return len(self._pins) == len(self._files)

    @property
    def gone(self) -> bool:
        """Whether the directory, or a file in it, was removed while this process has the files open. Another store
        that was made there since has a lock of its own."""
        if self._lock_file.closed or not all(environment.is_there for environment in self._files.values()):
            return True
        try:
            there = (self._directory / LOCK).stat()
        except FileNotFoundError:
            return True
        return not os.path.samestat(there, os.fstat(self._lock_file.fileno()))

    def make_point(self) -> None:
        """Make everything committed so far durable, and move this process's pins there."""
        self._require_open()
        if self.gone:  # a point of these files would ruin another store in the same place
            raise removed(self._directory)
        self._dirty = self._due = False
        wanted = {name: environment.lmdb.info()["last_txnid"] for name, environment in self._files.items()}
        try:
            with self._points:
                while True:
                    point = read_point(self._directory)
                    if self._pinned and point and self._covered(point, wanted):
                        return
                    try:
                        with locked(self._lock_file):
                            self._make_point()
                            return
                    except lmdb.MapResizedError:
                        self._adopt_sizes()
        except BaseException:
            self._dirty = self._due = True
            raise

    def _covered(self, point: Point, wanted: Mapping[str, int]) -> bool:
        """Whether somebody else's durable point serves, and the pins need not move yet."""
        return point.number <= self._pinned_at + PIN_LAG and all(
            point.metas[name][0] >= number for name, number in wanted.items()
        )

    @contextlib.contextmanager
    def pinned(self) -> Iterator[dict[str, tuple[int, bytes]]]:
        """The meta pages of one cut, whose pages stay as they are in the files until the block ends."""
        pins, metas = self._take_cut()
        try:
            yield metas
        finally:
            abort(pins)

    @contextlib.contextmanager
    def readable(self) -> Iterator[tuple[dict[str, Transaction], dict[str, tuple[int, bytes]]]]:
        """Transactions at one cut, and its meta pages. Until the block ends no map of this process grows, which would
        move what the transactions read, and no durable point is made here."""
        with self._points:
            pins, metas = self._take_cut()
            try:
                yield pins, metas
            finally:
                abort(pins)

    def _take_cut(self) -> tuple[dict[str, Transaction], dict[str, tuple[int, bytes]]]:
        self._require_open()
        with self._points:
            while True:
                try:
                    return self._cut.take()
                except lmdb.MapResizedError:
                    self._adopt_sizes()

    def _require_open(self) -> None:
        for environment in self._files.values():
            if environment.gone:
                raise environment.gone()

    def _adopt_sizes(self) -> None:
        for environment in self._files.values():
            environment.adopt_size()

    def first_point(self) -> None:
        """The durable point of a store being created, by the process that holds its lock."""
        with self._points:
            self._make_point()

    def _make_point(self) -> None:
        pins, metas = self._cut.take()
        try:
            last = read_point(self._directory)
            number = last.number if last else 0
            boot = boot_id()
            stale = [name for name, (txn, _) in metas.items() if last is None or last.metas[name][0] != txn]
            sizes = {name: environment.path.stat().st_size for name, environment in self._files.items()}
            stamps = dict(last.stamps) if last else {}
            for name in stale:
                # normally there since the last point, unless its maker was killed before it came to that
                write_stamp(self._files[name].descriptor, stamps.get(name, _UNSTAMPED)[0])
                self._files[name].sync()
            if stale or last is None or last.boot != boot:
                number += 1
                stamp = Stamp(number, os.urandom(TAG))
                stamps |= {name: (stamp, stamps.get(name, _UNSTAMPED)[0]) for name in stale}
                write_point(self._directory, Point(number, boot, metas, sizes, self._store_id, stamps))
                for name in stale:
                    write_stamp(self._files[name].descriptor, stamp)
        except BaseException:
            abort(pins)
            raise
        with self._lock:
            old, self._pins = self._pins, pins
            self._pinned_at = number
        abort(old)
        for environment in self._files.values():
            environment.lmdb.reader_check()
            self._pages[environment] = environment.lmdb.info()["last_pgno"]

    def _too_much_garbage(self, environment: Environment) -> bool:
        self._writes += 1
        if self._writes % 16:
            return False
        grown = environment.lmdb.info()["last_pgno"] - self._pages.get(environment, 0)
        return bool(grown * 4096 > GARBAGE)

    # -------------------------------------------------------------- in the background

    def _flush_forever(self) -> None:
        idle = 0
        while True:
            with self._lock:
                if self._closed.wait_for(lambda: self._closing, timeout=INTERVAL):
                    return
            idle = 0 if self._recent else idle + 1
            self._recent = False
            if self._due:
                # sync() and close() report a failure; here the next round retries.
                with contextlib.suppress(OSError, lmdb.Error, StoreError):
                    self.make_point()
            with self._lock:
                if idle >= IDLE_ROUNDS and not self._writing and not self._due:
                    old, self._pins = self._pins, {}
                    abort(old)
                    self._flusher = None
                    return

    @contextlib.contextmanager
    def _unpinned(self, name: str) -> Iterator[None]:
        """Lets go of a file's pin while its map is resized, and takes new ones before anybody
        writes to it again. The other files keep theirs: they may be written to meanwhile."""
        with self._lock:
            pin = self._pins.pop(name, None)
        if pin is not None:
            pin.abort()
        yield
        if pin is not None:
            self.make_point()

    def abandon(self) -> None:
        """In a forked child: locks that another thread of the parent held would never be
        released here, and a lock on a file lasts until the child has closed it too."""
        self._lock = threading.Lock()
        self._closed = threading.Condition(self._lock)
        self._points = threading.RLock()
        self._closing = True
        self._lock_file.close()

    def close(self) -> None:
        """Make what this process wrote durable, and let go of everything."""
        with self._lock:
            self._closing = True
            self._closed.notify_all()
        if self._flusher is not None and self._flusher is not threading.current_thread():
            self._flusher.join()
        try:
            if self._dirty and not self.gone:
                self.make_point()
        finally:
            abort(self._pins)
            self._pins = {}
            self._lock_file.close()


@contextlib.contextmanager
def locked(file: IO[bytes]) -> Iterator[None]:
    """Holds the store's lock against other processes."""
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


def recover(directory: Path, marker: Marker) -> bool:
    """Compare the files with each other, and after a reboot take every file back to the durable point. The caller
    holds the lock, and no process has the files open in this boot. Returns whether something was lost."""
    point = read_point(directory)
    if point is None:
        raise NotAStoreError(
            f"the store in {directory} has no durable point", detail=f"{DURABLE} is missing or damaged", hint=RESTORE
        )
    boot = boot_id()
    rebooted = point.boot != boot
    for problem in problems(directory, marker, point, rebooted=rebooted):
        raise problem
    if not rebooted:
        return False
    lost = False
    for name, (number, meta) in point.metas.items():
        lost |= restore(directory / name, number, meta)
    write_point(directory, replace(point, number=point.number + 1, boot=boot))
    return lost
