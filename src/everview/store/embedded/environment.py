"""One LMDB environment: opening, transactions that can be run again, and growth.

Writes are functions of a transaction, so that a write which finds the map
full can be thrown away, the map enlarged, and the same function run again.

An environment reserves address space, not memory or disk: 1 TiB by default, so it
practically never fills. Where less was asked for (or the system gives less: address_space.py), the map
grows by itself; LMDB can only do that while this process has no transaction open, hence
the gate that counts them. At full size the gate is open and costs nothing.

The file is written with plain writes, never through a writable map: a full disk is then
an error that can be reported, not a signal that kills the process.

Writers take turns by ``flock`` before they meet at LMDB's own mutex. That mutex survives the
death of its owner, but not of a waiter: one that was woken and killed before it ran takes the
wake-up with it, and if the mutex was free for another writer to take at that moment, the next
waiter sleeps until somebody else happens to wait. Waiting for a file lock has no such gap, and
with one process at a time at the mutex no process waits there. It costs a microsecond or two.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gc
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import monotonic
from typing import IO, TypeAlias, TypeVar

import lmdb

from everview.errors import NotAStoreError, StoreError, StoreFullError
from everview.store.embedded.address_space import available
from everview.store.embedded.unusable import closed, forked, removed, unmapped

T = TypeVar("T")

Transaction: TypeAlias = "lmdb.Transaction[bytes]"
Cursor: TypeAlias = "lmdb.Cursor[bytes]"
"""A transaction whose values are read as bytes, not as views of the map."""
File: TypeAlias = "lmdb.Environment"
Failure: TypeAlias = "lmdb.Error"

FULL_SIZE = 1 << 40
SMALLEST = 1 << 20
MAX_READERS = 2048
KEY_LIMIT = 511
"""The longest key LMDB takes."""
LOOK_INTERVAL = 0.001
"""Seconds that may pass between the removal of a file and the first write to it that is refused."""
_STEP = 1 << 20
"""Maps grow by multiples of this."""
OPENINGS = 1_000
"""Attempts to open a file that other processes make larger meanwhile. One takes a fraction of a millisecond."""
PATIENCE = 10.0
"""Seconds to wait for this process's transactions to end when the map must grow."""

_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO)
"""What a disk that takes no more looks like; LMDB reports a write that was cut short as EIO."""


class Environment:
    """One LMDB file, shared by all threads of this process and by other processes."""

    def __init__(self, path: Path, map_size: int = FULL_SIZE) -> None:
        self.path = path
        self._name = os.fspath(path)
        self._size = max(map_size, SMALLEST)
        self._env = self._open()
        try:
            self._file: IO[bytes] = path.open("r+b", buffering=0)
        except BaseException:
            self._env.close()
            raise
        self.descriptor = self._file.fileno()
        opened = os.fstat(self.descriptor)
        self._inode = opened.st_ino, opened.st_dev
        self._look_at = 0.0
        self._turn = threading.Lock()
        self._gate = threading.Condition()
        self._inside = 0
        self.gone: Callable[[], StoreError] | None = None
        """Why the file can no longer be used, once it cannot."""
        self.begin: Callable[[], Transaction] = self._env.begin
        """Begins a read transaction, uncounted: for maps that are :attr:`fixed`."""
        self._resizing = False
        self.resize_turn: contextlib.AbstractContextManager[object] = threading.RLock()
        """Held by the thread that resizes the map. Always taken before the gate, so that who
        holds it may begin uncounted transactions, and may come back to resize once more."""
        self.around_resize: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
        """Entered while the map is resized: readers that keep uncounted transactions end them."""

    @property
    def lmdb(self) -> File:
        return self._env

    @property
    def fixed(self) -> bool:
        """Whether the map has its full size, so that transactions need not be counted."""
        return self._size >= FULL_SIZE

    def _open(self) -> File:
        try:
            return self._opened()
        except (lmdb.InvalidError, lmdb.CorruptedError, lmdb.VersionMismatchError) as error:
            raise NotAStoreError(
                f"{self.path} is not a readable part of a store", detail=str(error), hint="restore it from a backup"
            ) from error
        except (lmdb.MemoryError, lmdb.Error) as error:
            if os.strerror(errno.ENOMEM) in str(error):
                raise StoreError(
                    f"this process has not enough address space to open {self.path}",
                    detail=f"the file has {self.path.stat().st_size >> 20} MiB",
                    hint="raise the limit (ulimit -v), or close other stores of this process",
                ) from error
            raise StoreError(
                f"cannot open {self.path}", detail=str(error), hint="check the permissions and the file system"
            ) from error

    def _opened(self) -> File:
        """LMDB maps as much as the file holds, and then reads it. Where another process has made it larger in between,
        it is mapped again."""
        for attempt in itertools.count(1):
            try:
                return lmdb.open(
                    self._name,
                    map_size=self._size,
                    subdir=False,
                    mode=0o600,
                    sync=False,
                    metasync=False,
                    max_readers=MAX_READERS,
                    max_spare_txns=8,
                    meminit=True,
                )
            except lmdb.MapResizedError:
                if attempt == OPENINGS:
                    raise
        raise AssertionError("it counts without end")

    def close(self) -> None:
        self.gone = partial(closed, self.path.parent)
        self._env.close()
        self._file.close()

    def abandon(self) -> None:
        """In a forked child: LMDB must not be touched, not even to close it, for what it holds
        in shared memory is the parent's."""
        self.gone = partial(forked, self.path.parent)
        self._turn = threading.Lock()
        self._gate = threading.Condition()
        self._resizing = False
        self.begin = self._refuse
        self._file.close()

    def _refuse(self) -> Transaction:
        raise forked(self.path.parent)

    def sync(self) -> None:
        self._env.sync(True)

    # -------------------------------------------------------------- transactions

    @contextlib.contextmanager
    def read(self) -> Iterator[Transaction]:
        """A read transaction: one unchanging version of everything in the file."""
        transaction = self.begin_read()
        try:
            yield transaction
        finally:
            self.end_read(transaction)

    def begin_read(self) -> Transaction:
        """A read transaction that the caller must hand to :meth:`end_read`, and then let go of: its slot in the
        table of readers is free when nothing refers to it any more."""
        while True:
            self._enter()
            try:
                return self.begin_uncounted()
            except lmdb.MapResizedError:
                self._leave()
                self._resize(0)
            except BaseException:
                self._leave()
                raise

    def begin_uncounted(self) -> Transaction:
        """A read transaction that a map which must grow does not wait for. Raises lmdb.MapResizedError."""
        try:
            return self.begin()
        except lmdb.MapResizedError:
            raise
        except lmdb.Error as error:
            return self.begin_after(error)

    def begin_after(self, error: Failure) -> Transaction:
        """A read transaction where the first attempt failed. If the table of readers is full, the slots of
        processes that are dead, and of snapshots that nothing refers to any more, are freed first."""
        if isinstance(error, lmdb.ReadersFullError) and not self.gone:
            for free_slots in (self._env.reader_check, gc.collect):
                free_slots()
                with contextlib.suppress(lmdb.ReadersFullError):
                    return self.begin()
        raise self.failure(error) from error

    def end_read(self, transaction: Transaction) -> None:
        transaction.abort()
        self._leave()

    @contextlib.contextmanager
    def writing(self) -> Iterator[Transaction]:
        """A write transaction, uncounted, committed at the end; one writer at a time."""
        self._take_turn()
        try:
            with self._env.begin(write=True) as transaction:
                yield transaction
        finally:
            self._end_turn()

    def _take_turn(self) -> None:
        self._turn.acquire()
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX)
        except BaseException:
            self._turn.release()
            raise

    def _end_turn(self) -> None:
        fcntl.flock(self.descriptor, fcntl.LOCK_UN)
        self._turn.release()

    def update(self, work: Callable[[Transaction], T]) -> T:
        """Run ``work`` in a write transaction and commit it. ``work`` may be run more than
        once (the map was full), so it must have no effect but on the transaction."""
        while True:
            self._enter()
            full = None
            try:
                if self.gone:
                    raise self.gone()
                self._take_turn()
                try:
                    with self._env.begin(write=True) as transaction:
                        result = work(transaction)
                        self._require_there()
                        return result
                finally:
                    self._end_turn()
            except lmdb.MapFullError as error:
                full = error
            except lmdb.MapResizedError:
                pass
            except lmdb.Error as error:
                raise self.failure(error) from error
            finally:
                self._leave()
            self._grow(full) if full else self._resize(0)

    def _require_there(self) -> None:
        """Refuse a write that would be lost. Asked for every write, it would cost a put a tenth of its
        time; within an interval many writes share one answer."""
        now = monotonic()
        if now >= self._look_at:
            if not self.is_there:
                raise removed(self.path.parent)
            self._look_at = now + LOOK_INTERVAL

    @property
    def is_there(self) -> bool:
        """Whether the file that is open is still the one under its name."""
        try:
            there = os.stat(self._name)  # noqa: PTH116
        except OSError:
            return False
        return (there.st_ino, there.st_dev) == self._inode

    def failure(self, error: Failure) -> StoreError:
        """What LMDB's error means to a user."""
        if any(os.strerror(code) in str(error) for code in _FULL):
            return StoreFullError(
                f"cannot write {self.path}: {error}", hint="free some disk space and retry; nothing was written"
            )
        if self.gone:
            return self.gone()
        if isinstance(error, lmdb.ReadersFullError):
            return StoreError(
                f"{self.path} has {MAX_READERS} readers already",
                detail="every snapshot, and every scan that is under way, takes one",
                hint="close snapshots and processes that hold some",
            )
        return StoreError(f"{self.path} cannot be used: {error}")

    # -------------------------------------------------------------- growth

    def adopt_size(self) -> None:
        """Take over the size that another process gave the map."""
        self._resize(0)

    def _enter(self) -> None:
        if self.fixed:
            return
        with self._gate:
            while self._resizing:
                self._gate.wait()
            self._inside += 1

    def _leave(self) -> None:
        if not self._inside:
            return
        with self._gate:
            self._inside -= 1
            self._gate.notify_all()

    def _grow(self, full: Exception) -> None:
        if self.fixed:
            raise StoreFullError(
                f"{self.path} has reached its {self._size >> 30} GiB", hint="open the store with a larger map_size"
            ) from full
        self._resize(min(self._size * 2, FULL_SIZE))

    def _resize(self, size: int) -> None:
        """Give the map a new size (0: one that holds what another process wrote), alone in this process.
        The gate stays closed until readers have their transactions back."""
        with self.resize_turn:
            again = self._resizing
            if not again:
                self._close_gate()
            try:
                with self.around_resize():
                    self._map(size or self._needed())
            finally:
                if not again:
                    self._open_gate()

    def _needed(self) -> int:
        """The size of a map that holds all pages there are, and some to come."""
        end = (self._env.info()["last_pgno"] + 1) * self._env.stat()["psize"]
        size = self._size
        while size < end and size < FULL_SIZE:
            size *= 2
        return max(size, end)

    def _map(self, wanted: int) -> None:
        """LMDB unmaps the file before it maps it again, and has none if that fails: so it is tried first."""
        current = self._env.info()["map_size"]
        steps = (wanted, current + (wanted - current) // 2, current + (wanted - current) // 4)
        size = next((step // _STEP * _STEP for step in steps if available(max(step - current, 0) + _STEP)), 0)
        if wanted > current and size <= current:
            raise StoreFullError(
                f"the map of {self.path} must grow beyond its {current >> 20} MiB",
                detail="this process has no more address space",
                hint="raise the limit (ulimit -v), or use fewer threads and stores in this process",
            )
        if size > current:
            try:
                self._env.set_mapsize(size)
            except (lmdb.Error, MemoryError) as error:
                self.gone = partial(unmapped, self.path)
                raise unmapped(self.path) from error
        self._size = self._env.info()["map_size"]

    def _close_gate(self) -> None:
        with self._gate:
            self._resizing = True
            if self._gate.wait_for(lambda: self._inside == 0, timeout=PATIENCE):
                return
        self._open_gate()
        raise StoreFullError(
            f"the map of {self.path} must grow, but this process holds a snapshot or a scan of it open",
            hint="close it and retry, or open the store with a larger map_size",
        )

    def _open_gate(self) -> None:
        with self._gate:
            self._resizing = False
            self._gate.notify_all()
