"""Files that commands write.

A file gets its name only when it is complete. A pipe, a device or a descriptor of this process is written
directly.

| the name is that of | result |
|---|---|
| nothing, or a file | a partial file beside it is written, and takes the name at the end |
| a symbolic link | the same with what it points to; the link stays |
| a link in a shared directory (``/tmp``) that someone else has planted there | it is refused |
| a pipe, a device, a socket | it is opened and written |
| ``/dev/stdout``, ``/dev/fd/3`` | the open descriptor itself is written to, at its own position |

The partial file can be read by its user alone, its name cannot be guessed, and it is gone after a failure or a
signal.
"""

from __future__ import annotations

import errno
import io
import os
import re
import secrets
import signal
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import IO, TYPE_CHECKING

from everview.cli.files import STREAM
from everview.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import Buffer

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_UNHANDLED = (signal.SIG_DFL, signal.default_int_handler)
_DESCRIPTOR = re.compile(r"/proc/(\d+)/fd/(\d+)")
_LINKS = 40
"""The most links that are followed one after another, as in Linux."""
_ATTEMPTS = 100


def is_standard_output(file: str) -> bool:
    """Whether a name means standard output."""
    if file == STREAM:
        return True
    try:
        return _descriptor(_followed(Path(file))) == sys.stdout.fileno()
    except (OSError, ValueError):
        return False


@contextmanager
def written(file: str) -> Iterator[tuple[IO[bytes], str]]:
    """A stream for the bytes of a file, and the name of the written file if that is another one."""
    if is_standard_output(file):
        yield sys.stdout.buffer, STREAM
        sys.stdout.buffer.flush()
        return
    try:
        final = _followed(Path(file))
        before = _status(final)
        if before is None or (stat.S_ISREG(before.st_mode) and _descriptor(final) is None):
            with _whole(final, before) as stream:
                yield stream, str(final) if Path(file).is_symlink() else file
        else:
            with _opened(final) as stream:
                yield stream, file
    except OSError as error:
        raise InputError(f"{file} cannot be written", detail=error.strerror or str(error)) from error


def _followed(path: Path) -> Path:
    """The target of a name: links are followed, up to the descriptor of a process."""
    for _ in range(_LINKS):
        path = path.parent.resolve() / path.name if path.name else path.resolve()
        if _descriptor(path) is not None or not path.is_symlink():
            return path
        _refuse_planted(path)
        path = path.parent / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _refuse_planted(link: Path) -> None:
    """The rule by which Linux follows links in shared directories, if protected_symlinks is set."""
    place, owner = link.parent.stat(), link.lstat().st_uid
    shared = place.st_mode & stat.S_ISVTX and place.st_mode & stat.S_IWOTH
    if shared and owner not in (os.geteuid(), place.st_uid):
        raise OSError(errno.EACCES, f"{link} is a link that another user has made in a shared directory")


def _descriptor(path: Path) -> int | None:
    """The number of the open descriptor of this process that a path names."""
    found = _DESCRIPTOR.fullmatch(str(path))
    return int(found[2]) if found is not None and int(found[1]) == os.getpid() else None


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _opened(path: Path) -> IO[bytes]:
    """A target that is not a file, written directly."""
    number = _descriptor(path)
    if number is not None:
        return os.fdopen(os.dup(number), "wb")
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC), "wb")


# ------------------------------------------------------------------ files


@contextmanager
def _whole(final: Path, before: os.stat_result | None) -> Iterator[IO[bytes]]:
    """A file that takes its name when it is complete and on disk."""
    with _ended_by_signals() as came:
        stream, partial = _partial(final.parent, came)
        try:
            with stream:
                yield stream
                stream.flush()
                os.fchmod(stream.fileno(), _usual_mode() if before is None else stat.S_IMODE(before.st_mode))
                os.fsync(stream.fileno())
            _refuse_ended(came)
            partial.replace(final)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


class _PartialFile(io.FileIO):
    """A file that takes nothing more once a signal has come. The exception that the signal raises may be lost on its
    way: in a finalizer, or in a library that calls Python while it writes."""

    def __init__(self, descriptor: int, came: Sequence[int]) -> None:
        super().__init__(descriptor, "w")
        self._came = came

    def write(self, b: Buffer, /) -> int:
        _refuse_ended(self._came)
        return super().write(b)


def _refuse_ended(came: Sequence[int]) -> None:
    if came:
        raise OSError(errno.ECANCELED, "ended by a signal")  # what EINTR interrupts, Python tries again


def _partial(folder: Path, came: Sequence[int]) -> tuple[IO[bytes], Path]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    for _ in range(_ATTEMPTS):
        partial = folder / f".everview-{secrets.token_hex(8)}.partial"
        try:
            return io.BufferedWriter(_PartialFile(os.open(partial, flags, 0o600), came)), partial
        except FileExistsError:
            continue
    raise FileExistsError(errno.EEXIST, f"no name for a partial file is free in {folder}")


def _usual_mode() -> int:
    """The permissions of a new file of this process."""
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask


@contextmanager
def _ended_by_signals() -> Iterator[list[int]]:
    """A signal that ends the process raises an exception, so that the partial file is removed. DuckDB raises an
    exception of its own if it is interrupted. Yields the signals that have come."""
    came: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        came.append(number)
        raise SystemExit(128 + number)

    usual = {number: signal.getsignal(number) for number in _SIGNALS}
    usual = {number: handler for number, handler in usual.items() if handler in _UNHANDLED}
    for number in usual:
        signal.signal(number, end)
    try:
        yield came
    except Exception:
        if came:
            raise SystemExit(128 + came[0]) from None
        raise
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)
