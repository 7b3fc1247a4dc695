"""What the catalog holds beside tables: views, indexes, named queries, groups, and their past.

A definition is a frozen dataclass that checks itself; the catalog fills in
the three fields a caller cannot know (``id``, ``version``, ``created``).

What is made of tables and of each other (a view, an index, a named query) is *derived*: it has
``depends_on``, and what it depends on is not dropped alone.

Tables are :class:`everview.store.contract.Table`: stores need them too.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeAlias, TypeVar

from everview.catalog.names import checked_group_name, checked_name
from everview.change.schema import Column
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
class Ordering:
    """One part of the order in which a view is read: SQL over its columns and hidden fields."""

    sql: str
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True)
class ViewDefinition:
    """A view: its text, what it reads, how it is maintained, and where its state lies.

    ``depends_on`` holds ids of tables and views, not names: a plan belongs to the very
    objects it was compiled against, not to others that took their names later. A state
    table with the id :data:`NEW` is numbered by the catalog; one with the id of another
    view's state table is shared with that view.
    """

    kind: ClassVar[str] = "view"

    name: str
    sql: str
    """The query in DuckDB's SQL, parameters filled in: together with ``columns`` and ``seen`` it
    compiles to the same plan always."""
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
    text: str = ""
    """The statement as it was written."""
    dialect: str = "duckdb"
    """What it was written in."""
    columns: tuple[Column, ...] = ()
    """What a query sees of it."""
    key: tuple[str, ...] = ()
    """The columns that distinguish its rows; none if it has one row at most."""
    bag: bool = False
    """Its row key is not among its columns, so equal rows may repeat; then ``key`` is empty."""
    order: tuple[Ordering, ...] = ()
    seen: Mapping[int, int] = field(default_factory=dict, hash=False)
    """The schema version of each table it reads: columns that are added later are none of its."""
    words: str = ""
    """The query to the letter, parameters filled in; empty where it was not written in DuckDB's SQL."""
    verbatim: str = ""
    """Why it is maintained by evaluating its own words; empty where it has a plan of its own."""
    validated: str = ""
    """What came of trying its plan before it could be read."""

    def __post_init__(self) -> None:
        checked_name("view", self.name)
        object.__setattr__(self, "options", dict(self.options))
        object.__setattr__(self, "seen", dict(self.seen))
        _check_state(f"view {self.name}", self.group, self.state)
        names = [column.name for column in self.columns]
        if (self.bag and self.key) or not set(self.key) <= set(names):
            raise DefinitionError(f"view {self.name} has the columns {names} and cannot have the key {self.key}")


@dataclass(frozen=True)
class IndexDefinition:
    """The rows of a table or view by other columns than its key."""

    kind: ClassVar[str] = "index"

    name: str
    on: int
    """The id of the table or view."""
    columns: tuple[str, ...]
    group: str = MAIN
    fingerprint: str = ""
    state: tuple[StateTable, ...] = ()
    status: ViewStatus = ViewStatus.BUILDING
    id: int = NEW
    version: int = 0
    created: float = 0.0

    def __post_init__(self) -> None:
        checked_name("index", self.name)
        if not self.columns or len(set(self.columns)) != len(self.columns):
            raise DefinitionError(f"index {self.name} needs columns, each of them once")
        _check_state(f"index {self.name}", self.group, self.state)

    @property
    def depends_on(self) -> tuple[int, ...]:
        return (self.on,)


@dataclass(frozen=True)
class NamedQuery:
    """What ``CREATE VIEW`` makes: a name for a query, put in its place wherever it is used."""

    kind: ClassVar[str] = "view"
    state: ClassVar[tuple[StateTable, ...]] = ()

    name: str
    sql: str
    """The query in DuckDB's SQL, parameters filled in."""
    columns: tuple[Column, ...]
    depends_on: tuple[int, ...] = ()
    text: str = ""
    dialect: str = "duckdb"
    id: int = NEW
    version: int = 0
    created: float = 0.0

    def __post_init__(self) -> None:
        checked_name("view", self.name)


Maintained: TypeAlias = ViewDefinition | IndexDefinition
"""What has state that follows the logs."""

Derived: TypeAlias = ViewDefinition | IndexDefinition | NamedQuery


def _check_state(what: str, group: str, state: tuple[StateTable, ...]) -> None:
    for table in state:
        if table.group != group:
            raise DefinitionError(
                f"{what} of group {group} cannot keep its state in {table.name}",
                detail=f"that state table belongs to group {table.group}",
            )
    names = [table.name for table in state]
    if len(set(names)) != len(names):
        raise DefinitionError(f"{what} names a state table twice: {', '.join(names)}")


@dataclass(frozen=True)
class Past(Generic[D]):
    """A definition as a catalog version wrote it. ``dropped`` marks the version that
    removed the object: from it on there is none."""

    version: int
    definition: D
    dropped: bool


@dataclass(frozen=True)
class GroupProgress:
    """How far a group is: the last committed epoch, and the one under way."""

    committed: Commit
    begun: Begun | None
