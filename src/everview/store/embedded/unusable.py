"""Why the files of a store can no longer be used by this process."""

from __future__ import annotations

from pathlib import Path

from everview.errors import StoreError


def closed(directory: Path) -> StoreError:
    return StoreError(f"the store in {directory} is closed", hint="open it again")


def forked(directory: Path) -> StoreError:
    return StoreError(
        f"the store in {directory} was opened by the process that this one was forked from",
        detail="an open store cannot be carried over a fork",
        hint="open it in this process with everview.open",
    )


def removed(directory: Path) -> StoreError:
    return StoreError(
        f"the store in {directory} was removed while it is open",
        detail="what is written now would be lost",
        hint="close it, and open what is there now",
    )


def unmapped(path: Path) -> StoreError:
    return StoreError(
        f"{path} can no longer be used by this process",
        detail="its map could not be enlarged",
        hint="raise the limit of address space (ulimit -v), and open the store in a new process",
    )
