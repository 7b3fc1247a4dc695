"""What the catalog holds beside tables: views, groups, and the past of both.

One sentence: a definition is a frozen dataclass that checks itself; the catalog fills in
the three fields a caller cannot know (``id``, ``version``, ``created``).

Tables are :class:`everview.store.contract.Table`: stores need them too.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from everview.catalog.names import checked_group_name, checked_name
from everview.errors import DefinitionError
from everview.store.contract import Begun, Commit, StateTable

D = TypeVar("D", covariant=True)

Option: TypeAlias = str | int | float | bool | None

MAIN = "main"
"""The continuous group that every catalog has."""

NEW = 0
"""The id of something that the catalog has not numbered yet."""


class GroupKind(enum.StrEnum):
    """How the views of a group move."""

    CONTINUOUS = "continuous"
    LAZY = "lazy"
    BUILDING = "building"


class ViewStatus(enum.StrEnum):
    """Whether a view can be read: while it is built it cannot, and a dropped one is in
    the history only."""

    BUILDING = "building"
    LIVE = "live"
    DROPPED = "dropped"


@dataclass(frozen=True)
class Group:
    """Views that move together: one frontier, one epoch at a time."""

    name: str
    kind: GroupKind = GroupKind.CONTINUOUS
    version: int = 0
    created: float = 0.0

    def __post_init__(self) -> None:
        checked_group_name(self.name)


@dataclass(frozen=True)
class ViewDefinition:
    """A view: its text, what it reads, how it is maintained, and where its state lies.

    ``depends_on`` holds ids of tables and views, not names: a plan belongs to the very
    objects it was compiled against, not to others that took their names later. A state
    table with the id :data:`NEW` is numbered by the catalog; one with the id of another
    view's state table is shared with that view.
    """

    name: str
    sql: str
    group: str = MAIN
    depends_on: tuple[int, ...] = ()
    fingerprint: str = ""
    """Equal for equal plans."""
    plan: bytes = field(default=b"", repr=False)
    state: tuple[StateTable, ...] = ()
    options: Mapping[str, Option] = field(default_factory=dict, hash=False)
    status: ViewStatus = ViewStatus.BUILDING
    id: int = NEW
    version: int = 0
    """The catalog version that wrote this definition."""
    created: float = 0.0

    def __post_init__(self) -> None:
        checked_name("view", self.name)
        object.__setattr__(self, "options", dict(self.options))
        for table in self.state:
            if table.group != self.group:
                raise DefinitionError(
                    f"view {self.name} of group {self.group} cannot keep its state in {table.name}",
                    detail=f"that state table belongs to group {table.group}",
                )
        names = [table.name for table in self.state]
        if len(set(names)) != len(names):
            raise DefinitionError(f"view {self.name} names a state table twice: {', '.join(names)}")


@dataclass(frozen=True)
class Past(Generic[D]):
    """A definition as a catalog version wrote it. ``dropped`` marks the version that
    removed the object: from it on there is none."""

    version: int
    definition: D
    dropped: bool


@dataclass(frozen=True)
class Epochs:
    """How far a group is: the last committed epoch, and the one under way."""

    committed: Commit
    begun: Begun | None
