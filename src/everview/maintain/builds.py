"""Where a build is, as the store remembers it.

A :class:`Build` is one small document. Each transition of a build (:mod:`everview.maintain.building`) writes it once
or removes it, so the next process knows where to go on.

::

    maintenance/build/<group>     phase, target, views, plan, the chunk under way, the plan with which it joins
"""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass
from typing import Any

from everview.catalog import Definitions, Maintained
from everview.maintain.plans import BUILDS
from everview.maintain.tasks import Chunk, chunk_from_json, chunk_to_json
from everview.store.contract import Store


class BuildPhase(enum.Enum):
    """How far a build is."""

    LOADING = "loading"
    """It is known where the next chunk begins."""
    TAKING = "taking"
    """It is recorded where the chunk ends; the chunk's epoch may be under way."""
    FOLLOWING = "following"
    """All rows are in; it follows the logs to where its group is."""
    JOINING = "joining"
    """The plan of group and build together is recorded; the group begins no epoch but the one that adopts the views."""
    ADOPTED = "adopted"
    """That epoch has begun."""

    @property
    def holds_group(self) -> bool:
        """Whether the group waits for the build."""
        return self in (BuildPhase.JOINING, BuildPhase.ADOPTED)


@dataclass(frozen=True)
class Build:
    """Where a build is."""

    group: str
    target: str
    views: tuple[tuple[int, int], ...]
    """Ids of the views and indexes that it builds, and the versions of their definitions."""
    plan: str
    phase: BuildPhase
    chunk: Chunk | None
    """The chunk to take in next; None: all rows are in."""
    base: int
    """While rows are taken in, the build's last committed epoch when the chunk was chosen: a later one is the
    chunk's. While it joins, the target's epoch at which both are at one frontier."""
    joined: str | None = None
    """The plan with which the target's next epoch adopts the views."""
    epoch: int | None = None
    """That epoch, once it has begun."""
    replaces: bool = False
    """Whether its views are there already, and its tables take the place of theirs."""

    def builds(self, one: Maintained) -> bool:
        """Whether it builds this view or index as it is defined now."""
        return (one.id, one.version) in self.views

    def views_of(self, definitions: Definitions) -> list[Maintained]:
        """The views and indexes that it builds, as they are defined now; without those that are gone, or replaced."""
        found = (definitions.maintained_by_id(id) for id, _ in self.views)
        return [one for one in found if one is not None and self.builds(one)]

    @property
    def name(self) -> str:
        return BUILDS + self.group

    def document(self) -> bytes:
        recorded: dict[str, Any] = {
            "phase": self.phase.value,
            "target": self.target,
            "views": self.views,
            "plan": self.plan,
            "chunk": None if self.chunk is None else chunk_to_json(self.chunk),
            "base": self.base,
            "joined": self.joined,
            "epoch": self.epoch,
            "replaces": self.replaces,
        }
        return json.dumps(recorded).encode()


def builds_of(store: Store) -> list[Build]:
    """The builds under way, the oldest first."""
    _, documents = store.metadata.documents(BUILDS)
    return sorted(
        (_read(name.removeprefix(BUILDS), document) for name, document in documents.items()),
        key=lambda build: int(build.group.rpartition("-")[2]),
    )


def _read(group: str, document: bytes) -> Build:
    recorded = json.loads(document)
    return Build(
        group,
        recorded["target"],
        tuple((id, version) for id, version in recorded["views"]),
        recorded["plan"],
        BuildPhase(recorded["phase"]),
        None if recorded["chunk"] is None else chunk_from_json(recorded["chunk"]),
        recorded["base"],
        recorded["joined"],
        recorded["epoch"],
        recorded["replaces"],
    )
