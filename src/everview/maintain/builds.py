"""Where a build is, as the store remembers it.

A :class:`Build` is one small document that is written before and after each chunk, so
whoever comes next knows which chunk is to be taken in, or that the views are about to join.

::

    maintenance/build/<group>     target, views, plan, the chunk under way, whether it is joining
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from everview.catalog import Maintained
from everview.maintain.plans import BUILDS
from everview.maintain.tasks import Chunk, chunk_from_json, chunk_to_json
from everview.store.contract import Store


@dataclass(frozen=True)
class Build:
    """Where a build is."""

    group: str
    target: str
    views: tuple[tuple[int, int], ...]
    """Ids of the views and indexes that it builds, and the versions of their definitions."""
    plan: str
    chunk: Chunk | None
    """The chunk to take in next; None: all rows are in."""
    base: int
    """The build's last committed epoch when the chunk was chosen: a later one is the chunk's."""
    started: bool = False
    joined: str | None = None
    """The plan with which the target's next epoch makes the views its own."""
    epoch: int | None = None
    """That epoch, once it has begun."""
    replaces: bool = False
    """Whether its views are there already, and its tables take the place of theirs."""

    def builds(self, one: Maintained) -> bool:
        """Whether it builds this view or index as it is defined now."""
        return (one.id, one.version) in self.views

    @property
    def name(self) -> str:
        return BUILDS + self.group

    def document(self) -> bytes:
        said: dict[str, Any] = {
            "target": self.target,
            "views": self.views,
            "plan": self.plan,
            "chunk": None if self.chunk is None else chunk_to_json(self.chunk),
            "base": self.base,
            "started": self.started,
            "joined": self.joined,
            "epoch": self.epoch,
            "replaces": self.replaces,
        }
        return json.dumps(said).encode()


def builds_of(store: Store) -> list[Build]:
    """The builds under way, the oldest first."""
    _, found = store.metadata.documents(BUILDS)
    return sorted(
        (_read(name.removeprefix(BUILDS), document) for name, document in found.items()),
        key=lambda build: int(build.group.rpartition("-")[2]),
    )


def _read(group: str, document: bytes) -> Build:
    said = json.loads(document)
    return Build(
        group,
        said["target"],
        tuple((id, version) for id, version in said["views"]),
        said["plan"],
        None if said["chunk"] is None else chunk_from_json(said["chunk"]),
        said["base"],
        said["started"],
        said["joined"],
        said["epoch"],
        said.get("replaces", False),
    )
