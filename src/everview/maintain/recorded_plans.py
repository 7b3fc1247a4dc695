"""A plan as it is recorded: as a whole, or as what it changes in another plan.

Beside the compressed content stands which plan it changes, so that it is known which plans are needed without reading
any. A whole plan that an older version of Everview has recorded is its content alone::

    <digest of the plan before, or -> <changes since a whole plan>\n<content, compressed>
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from everview.errors import DamagedEntryError
from everview.operators.bound import BoundChange, BoundPlan

T = TypeVar("T")

_DIGEST = 16
"""Bytes of a plan's digest."""
_NONE = "-"
_COMPRESSED = b"x"
"""What compressed content begins with; no digest does."""


@dataclass(frozen=True)
class RecordedPlan:
    """A plan, as it is recorded."""

    before: str
    """The digest of the plan that it changes; empty: it is whole."""
    changes: int
    """How many changes it is away from a whole plan."""
    content: bytes

    @property
    def digest(self) -> str:
        """Its name."""
        return hashlib.blake2b(self.before.encode() + self.content, digest_size=_DIGEST).hexdigest()

    def to_bytes(self) -> bytes:
        return f"{self.before or _NONE} {self.changes}\n".encode() + zlib.compress(self.content, 1)

    @staticmethod
    def from_bytes(digest: str, recorded: bytes) -> RecordedPlan:
        """What is recorded under this name."""

        def read() -> RecordedPlan:
            head, content = _split(recorded)
            before, changes = head.decode().split(" ")
            found = RecordedPlan("" if before == _NONE else before, int(changes), zlib.decompress(content))
            if found.digest != digest:
                raise ValueError("its bytes are others than those that were recorded")
            return found

        return _read(digest, read)

    def whole(self) -> BoundPlan:
        return _read(self.digest, lambda: BoundPlan.from_bytes(self.content))

    def after(self, before: BoundPlan) -> BoundPlan:
        """The plan that it makes of the one before it."""
        return _read(self.digest, lambda: before.after(BoundChange.from_bytes(self.content)))


def plan_before(recorded: bytes) -> str:
    """The digest of the plan that a recorded one changes; empty: it is whole."""
    before = _split(recorded)[0].partition(b" ")[0].decode(errors="replace")
    return "" if before == _NONE else before


def _split(recorded: bytes) -> tuple[bytes, bytes]:
    if recorded[:1] == _COMPRESSED:
        return f"{_NONE} 0".encode(), recorded
    head, _, content = recorded.partition(b"\n")
    return head, content


def _read(digest: str, read: Callable[[], T]) -> T:
    try:
        return read()
    except Exception as error:  # bytes of anything may fail in any way
        raise DamagedEntryError(
            f"plan {digest} cannot be read",
            detail=f"{type(error).__name__}: {error}",
            hint="restore the store from a backup, or rebuild the views",
        ) from error
