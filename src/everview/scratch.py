"""Temporary directories that no other user can read and that a killed process does not leave for good.

A scratch directory is open to its user only and contains a file that its owner keeps locked, so
the next process can see which directories belong to processes that are gone, and removes them.

::

    owner                              the next process (sweep)
    mkdir everview-scratch-x, 0700     no lock file: removes the directory if it is empty
    open .owner                        locks it: removes the directory
    lock .owner                        cannot lock it: the owner lives
    is .owner still there?             (if not, the owner starts again with another directory)
    …
    killed                             locks it: removes the directory

The system releases the lock of a process however it ended. No step waits for a process that lives, and one
that is killed while it removes a directory leaves one that the next process removes: ``.owner`` goes last.

Processes that an owner has started with the directory as their temporary directory (``TMPDIR``) work for the
owner only. They end by themselves when it is gone, but one that is just starting first starts completely, which
takes seconds: the process that removes the directory ends them.

Paths are short: Spark's sockets lie in a scratch directory, and the path of a socket has 107 bytes at most.
"""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import signal
import tempfile
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SCRATCH = "everview-scratch-"
DEMO = "everview-demo-"
BACKUP = ".everview-backup-"
_PREFIXES = (SCRATCH, DEMO, BACKUP)
_OWNER = ".owner"
PATIENCE = 10.0
"""Seconds that a process which was killed may take to end."""


class Scratch:
    """A private directory that :meth:`close` removes, or the end of the process, or the next process if this one is
    killed."""

    def __init__(self, parent: str | Path | None = None, prefix: str = SCRATCH) -> None:
        folder = Path(tempfile.gettempdir() if parent is None else parent).absolute()
        sweep(folder)
        lock: int | None = None
        while lock is None:
            self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=folder))
            lock = _owned(self.path)
        self._end = weakref.finalize(self, _give_back, self.path, lock, os.getpid())

    def close(self) -> None:
        """Remove the directory. A forked child leaves that to the process that made it."""
        self._end()

    def keep(self) -> None:
        """Leave the directory to the user: no process will remove it."""
        found = self._end.detach()
        if found is not None:
            (self.path / _OWNER).unlink(missing_ok=True)
            os.close(found[2][1])

    def keep_as(self, path: Path) -> None:
        """Leave the directory to the user, under another name."""
        self.path = self.path.rename(path)  # fails if anything but an empty directory is there
        self.keep()


def _give_back(path: Path, lock: int, process: int) -> None:
    if process == os.getpid():
        _remove(path)
    os.close(lock)


@contextmanager
def scratch(parent: str | Path | None = None) -> Iterator[Path]:
    """A private directory for the time of a ``with`` block."""
    found = Scratch(parent)
    try:
        yield found.path
    finally:
        found.close()


_of_process: dict[tuple[int, Path], Scratch] = {}


def scratch_of_process(parent: str | Path | None = None) -> Path:
    """The private directory of this process, removed when the process ends."""
    folder = Path(tempfile.gettempdir() if parent is None else parent).absolute()
    found = _of_process.get((os.getpid(), folder))
    if found is None:
        found = _of_process[os.getpid(), folder] = Scratch(folder)
    return found.path


def sweep(folder: str | Path | None = None) -> None:
    """Remove the scratch directories of this user whose owners are gone."""
    with suppress(OSError), os.scandir(tempfile.gettempdir() if folder is None else folder) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIXES):
                with suppress(OSError):
                    _sweep(entry)


def _sweep(entry: os.DirEntry[str]) -> None:
    if not entry.is_dir(follow_symlinks=False) or entry.stat(follow_symlinks=False).st_uid != os.geteuid():
        return
    path = Path(entry.path)
    try:
        lock = os.open(path / _OWNER, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        path.rmdir()  # which fails if it was kept: then it is not empty
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _end_orphans(path)
        _remove(path)
    finally:
        os.close(lock)


def _end_orphans(path: Path) -> None:
    """End the processes of this user whose temporary directory this is, or one below it. One may start another
    before it is ended, so the search goes on until there is none."""
    deadline = time.monotonic() + PATIENCE
    while orphans := _killed_orphans(path):
        for process in orphans:
            ends = select.poll()
            ends.register(process, select.POLLIN)
            ends.poll(1000 * max(0.0, deadline - time.monotonic()))
            os.close(process)
        if time.monotonic() > deadline:
            return


def _killed_orphans(path: Path) -> list[int]:
    """Descriptors of the processes that were found, which have been sent a signal."""
    mark = b"TMPDIR=" + os.fsencode(path)
    orphans = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            process = os.pidfd_open(int(entry.name))  # which stays that of this process, also if it ends meanwhile
            try:
                variables = (entry / "environ").read_bytes().split(b"\0")
                if any(one == mark or one.startswith(mark + b"/") for one in variables):
                    signal.pidfd_send_signal(process, signal.SIGKILL)
                    orphans.append(os.dup(process))
            finally:
                os.close(process)
    return orphans


def _owned(path: Path) -> int | None:
    """The locked file of a new directory; None if another process has removed the directory meanwhile."""
    try:
        lock = os.open(path / _OWNER, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(lock).st_nlink:
            return lock
    except BlockingIOError:  # it is being removed
        pass
    os.close(lock)
    return None


def _remove(path: Path) -> None:
    """Remove a directory whose lock is held. What cannot be removed yet, because a process that outlives its
    owner is writing to it, is left to the next sweep."""
    with suppress(FileNotFoundError):
        for entry in list(path.iterdir()):
            if entry.name != _OWNER:
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    entry.unlink(missing_ok=True)
        if [entry.name for entry in path.iterdir()] == [_OWNER]:
            (path / _OWNER).unlink()
            path.rmdir()
