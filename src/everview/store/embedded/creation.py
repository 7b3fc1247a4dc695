"""Creating a store in a directory.

A creation first writes down which files it is going to make, and only files that are
written down there, in a directory that is not a store yet, are ever removed.

::

    lock                 taken first; empty
    creating.json        the names of the files to come
    base.mdb …           made, with the store's identity in each
    durable              the first durable point
    everview.json        from here on it is a store
                         creating.json is removed

A process may be killed at any of these steps. The next call finds ``creating.json`` without
``everview.json``, and starts over. Everything else in the directory was made by others: the call is
refused, and nothing is touched. That includes a store that has lost its ``everview.json``: its files
are there, and no ``creating.json``.
"""

from __future__ import annotations

import enum
import json
import os
import stat
import uuid
from pathlib import Path

from everview.errors import NotAStoreError, StoreError
from everview.store.embedded import layout
from everview.store.embedded.points import read_point

CREATING = "creating.json"
_FIRST_POINT = 1
"""The durable point that a creation makes; a store that was ever written to has a later one."""


class Finding(enum.Enum):
    """What a directory holds, if it is nothing that must be left alone."""

    STORE = "store"
    EMPTY = "empty"
    INTERRUPTED = "interrupted"
    """A creation, which may be under way in another process."""


def make_directory(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise NotAStoreError(f"{directory} is a file, not the directory of a store") from None
    except OSError as error:
        raise StoreError(
            f"cannot make the directory {directory}", detail=str(error), hint="check the path and its permissions"
        ) from error


def survey(directory: Path) -> Finding:
    """What the directory holds. What is neither a store nor a place for one is refused."""
    names = _entries(directory)
    if layout.MARKER in names:
        _require_files(directory, layout.MARKER, layout.LOCK, layout.DURABLE)
        return Finding.STORE
    planned = _planned(directory) if CREATING in names else None
    if planned is None:
        others = names - {layout.LOCK}
        if not others and _is_empty_lock(directory):
            return Finding.EMPTY
        if (directory / layout.MARKER).exists():  # made since the names were read
            return Finding.STORE
        raise _not_ours(directory, others or {layout.LOCK})
    others = {name for name in names - planned if name != layout.LOCK}
    if others or not all(_is_plain(directory / name) for name in names):
        if (directory / layout.MARKER).exists():
            return Finding.STORE
        raise _not_ours(directory, others or names)
    return Finding.INTERRUPTED


def plan_creation(directory: Path, settings: layout.Settings) -> layout.Marker:
    """Write down what is to be made, in a directory that is empty, and return what to declare at the end."""
    directory.chmod(0o700)
    files = [name for file in settings.files for name in (file, file + "-lock")]
    content = {"creating": [CREATING, *files, layout.DURABLE, layout.NEW_MARKER]}
    with open(directory / CREATING, "x", encoding="utf-8", opener=layout.private) as file:
        json.dump(content, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    layout.sync_directory(directory)
    return layout.Marker(settings, uuid.uuid4().hex)


def finish_creation(directory: Path, marker: layout.Marker) -> None:
    """Declare the directory a store."""
    layout.write_marker(directory, marker)
    tidy(directory)


def tidy(directory: Path) -> None:
    """Remove what a creation leaves that was killed after its last step but one."""
    (directory / CREATING).unlink(missing_ok=True)


def remove_interrupted(directory: Path) -> None:
    """Remove the files of a creation that did not end. The caller holds the lock, and has surveyed the
    directory since. The plan goes last, so that this may be interrupted too."""
    planned = _planned(directory)
    point = read_point(directory)
    if planned is None or (point is not None and point.number > _FIRST_POINT):
        raise _not_ours(directory, {layout.DURABLE})
    for name in sorted(planned - {CREATING}):
        (directory / name).unlink(missing_ok=True)
    layout.sync_directory(directory)
    tidy(directory)


def _require_files(directory: Path, *names: str) -> None:
    """Refuse what is no file in the place of one: opening a pipe would wait for ever."""
    for name in names:
        path = directory / name
        if path.exists() and not path.is_file():
            raise NotAStoreError(f"{path} is not a file", detail="nothing was changed", hint=layout.RESTORE)


def _entries(directory: Path) -> set[str]:
    try:
        return {entry.name for entry in directory.iterdir()}
    except FileNotFoundError:
        raise NotAStoreError(f"there is no store in {directory}", hint="open it with create=True to make one") from None
    except NotADirectoryError:
        raise NotAStoreError(f"{directory} is a file, not the directory of a store") from None
    except OSError as error:
        raise StoreError(f"cannot read the directory {directory}", detail=str(error)) from error


def _planned(directory: Path) -> frozenset[str] | None:
    """The files that a creation wrote down, or None if the file is somebody else's. A creation that was killed
    before it wrote anything down leaves an empty file, and no other."""
    if not _is_plain(directory / CREATING):
        return None
    try:
        text = (directory / CREATING).read_text("utf-8")
        names = json.loads(text)["creating"] if text else []
        return frozenset({CREATING, *(name for name in names if Path(name).name == name)})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_plain(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return True


def _is_empty_lock(directory: Path) -> bool:
    try:
        found = (directory / layout.LOCK).lstat()
    except FileNotFoundError:
        return True
    return stat.S_ISREG(found.st_mode) and found.st_size == 0


def _not_ours(directory: Path, names: set[str]) -> NotAStoreError:
    shown = sorted(names)
    listed = ", ".join(shown[:5]) + (f" and {len(shown) - 5} more" if len(shown) > 5 else "")
    if layout.BASE in names or layout.DURABLE in names:
        return NotAStoreError(
            f"{directory} holds files of a store, but no {layout.MARKER}",
            detail=f"it holds {listed}; nothing was changed",
            hint=f"restore {layout.MARKER} from a backup, or create the store in another directory",
        )
    return NotAStoreError(
        f"{directory} is not a store",
        detail=f"it holds {listed}; nothing was changed",
        hint="name an empty or new directory to create a store in",
    )
