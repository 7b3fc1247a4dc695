"""Leases: who may do what only one process may do.

A lease is a lock on a file of the store's directory, which the operating system
takes back from a process that is gone, however it went.
"""

from __future__ import annotations

import fcntl
import os
import time
import weakref
from pathlib import Path

from everview.boundary import fast, public, translated
from everview.errors import LeaseTakenError

_POLL = 0.01
WIDTH = 32
"""Bytes that name the holder. The file is overwritten: file systems write one that was truncated to the disk when it is
closed, which takes milliseconds."""
_LOOKS = 4
"""How often a lock is looked for before it counts as free."""


def holder(directory: Path, name: str) -> str | None:
    """The process that holds a lease, as far as it is known; None if no process does. Asking disturbs no one."""
    path = directory / f"{name}.lease"
    try:
        inode = str(path.stat().st_ino)
        if not any(_is_locked(inode) for _ in range(_LOOKS)):
            return None
        return path.read_text(errors="replace").strip() or "another process"
    except FileNotFoundError:
        return None


def _is_locked(inode: str) -> bool:
    """Whether the list of the system's locks has one on a file. The list is long where many hold locks, is
    read in parts, and misses one in a thousand times if others come and go meanwhile."""
    # such as: 7: FLOCK  ADVISORY  WRITE 2210 fe:01:131342 0 EOF; one that waits has an arrow behind its number
    locks = Path("/proc/locks").read_text().splitlines()
    held = [line.split() for line in locks if " FLOCK " in line and "->" not in line]
    return any(words[5].rpartition(":")[2] == inode for words in held)


@public
@fast
class EmbeddedLease:
    """A lease that is held until it is closed."""

    def __init__(self, directory: Path, name: str, wait: float | None) -> None:
        path = directory / f"{name}.lease"
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise translated(error) from error
        _held.add(self)
        try:
            self._take(name, directory, wait)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise translated(error, path) from error
            raise

    def _take(self, name: str, directory: Path, wait: float | None) -> None:
        deadline = None if wait is None else time.monotonic() + wait
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if deadline is not None and time.monotonic() >= deadline:
                    holder = os.pread(self._descriptor, 200, 0).decode(errors="replace").strip() or "another process"
                    raise LeaseTakenError(
                        f"{name} of {directory} is done by {holder}",
                        hint="stop it first, or wait until it is gone",
                    ) from None
                time.sleep(_POLL)
        os.pwrite(self._descriptor, f"process {os.getpid()}".ljust(WIDTH).encode(), 0)

    def close(self) -> None:
        """Give the lease back. Unlocked first: a child that is just being forked may hold the descriptor too."""
        if self._descriptor >= 0:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            self.abandon()

    def abandon(self) -> None:
        """Let go of the file, and leave the lock to the process that this one was forked from."""
        _held.discard(self)
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> EmbeddedLease:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_held: weakref.WeakSet[EmbeddedLease] = weakref.WeakSet()


def _abandon_after_fork() -> None:
    """A lock lasts until every process has closed the descriptor, so a child must not keep its parent's."""
    for lease in list(_held):
        lease.abandon()


os.register_at_fork(after_in_child=_abandon_after_fork)
