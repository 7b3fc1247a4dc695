"""The operators of maintenance plans: one frozen definition for each, which checks itself.

A definition holds all that a worker must know beside the step's inputs, fields and state.
Expressions are SQL over the fields of the input. :data:`AnyOperator` lists them all; the recorded
form of a plan, and the table of workers in :mod:`everview.operators.stages`, follow it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from everview.plan.maintenance.operator_base import Operator, beside, gained
from everview.plan.maintenance.operator_parts import (
    AccumulatedColumn,
    AssembledCall,
    BagOrder,
    ComputedColumn,
    EndColumn,
    EvaluatedCall,
    MatchedKey,
    QueryInput,
    TableColumn,
)
from everview.plan.relations.joins import JoinKind
from everview.plan.relations.sets import SetKind

GroupKey: TypeAlias = tuple[str, ...]
"""The values of a group's key, as SQL."""


# -------------------------------------------------------------- sources


@dataclass(frozen=True, kw_only=True)
class DeltaOperator(Operator):
    """The changes of a base table."""

    name = "delta"
    table: str
    key: tuple[str, ...] = beside(())
    """The fields of the table's primary key."""
    columns: tuple[TableColumn, ...] = gained(TableColumn)


@dataclass(frozen=True, kw_only=True)
class RowsOperator(Operator):
    """Rows of the query itself: inserted once, when the view is built."""

    name = "rows"
    query: str
    rounds: int = 0
    """Of a recursive query: after how many it is given up; 0: it is not recursive."""

    def __post_init__(self) -> None:
        self._require(self.rounds >= 0, "a number of rounds is negative")


# -------------------------------------------------------------- row by row


@dataclass(frozen=True, kw_only=True)
class ComputingOperator(Operator):
    """An operator whose fields are columns of its input, or expressions over them."""

    computed: tuple[ComputedColumn, ...] = gained(ComputedColumn)


@dataclass(frozen=True, kw_only=True)
class FilterProjectOperator(ComputingOperator):
    """The rows that fulfil a condition, with the computed columns."""

    name = "filter-project"
    condition: str | None = None
    """None: all rows."""
    first: tuple[str, ...] = ()
    """Expressions that can fail and are computed here, before any view shares their rows."""


@dataclass(frozen=True, kw_only=True)
class ExpandOperator(Operator):
    """Each row once for each grouping set, with nulls for the columns outside the set."""

    name = "expand"
    groups: tuple[str, ...]
    sets: tuple[tuple[int, ...], ...]
    """For each set the numbers of its groups."""
    columns: tuple[str, ...]
    """The fields that hold the groups."""
    number: str
    """The field that holds the number of the set."""

    def __post_init__(self) -> None:
        self._require(len(self.columns) == len(self.groups), "every group has one field")
        known = range(len(self.groups))
        self._require(all(at in known for one in self.sets for at in one), "a grouping set has an unknown group")


@dataclass(frozen=True, kw_only=True)
class UnnestOperator(Operator):
    """The items of each row's own list."""

    name = "unnest"
    items: str
    outer: bool
    """Whether a row whose list is empty is kept, without an item."""
    item: str = beside("")
    position: str = beside("")
    """The fields that hold the item and its number."""


@dataclass(frozen=True, kw_only=True)
class UnionOperator(Operator):
    """The rows of all inputs."""

    name = "union"
    columns: tuple[str, ...]
    inputs: tuple[tuple[str, ...], ...]
    """For each input its expressions, one for each column."""

    def __post_init__(self) -> None:
        self._require(all(len(one) == len(self.columns) for one in self.inputs), "an input has not all columns")


# -------------------------------------------------------------- aggregates


@dataclass(frozen=True, kw_only=True)
class PreAggregationOperator(Operator):
    """Counts and sums of each group."""

    name = "pre-aggregation"
    key: tuple[str, ...]
    key_names: tuple[str, ...] = beside(())
    """The fields that hold the key."""
    accumulators: tuple[AccumulatedColumn, ...] = gained(AccumulatedColumn)


@dataclass(frozen=True, kw_only=True)
class ExtremeOperator(Operator):
    """The least and the greatest value of each group."""

    name = "extreme"
    key: tuple[str, ...]
    value: str
    filter: str | None
    key_names: tuple[str, ...] = beside(())
    ends: tuple[EndColumn, ...] = gained(EndColumn)

    def __post_init__(self) -> None:
        self._require(all(end.function in ("min", "max") for end in self.ends), "an end is neither min nor max")


@dataclass(frozen=True, kw_only=True)
class GroupReevaluationOperator(Operator):
    """Aggregates that are evaluated over all rows of each group that changes."""

    name = "group re-evaluation"
    key: tuple[str, ...]
    failing: tuple[str, ...] = ()
    """The calls that can fail: views share the step only where these are the same."""
    key_names: tuple[str, ...] = beside(())
    always: tuple[GroupKey, ...] = beside(())
    """The groups that exist even without rows."""
    calls: tuple[EvaluatedCall, ...] = gained(EvaluatedCall)

    def __post_init__(self) -> None:
        self._require(all(len(one) == len(self.key) for one in self.always), "a group has not all parts of the key")


@dataclass(frozen=True, kw_only=True)
class AggregateOperator(Operator):
    """The parts of each group put together."""

    name = "aggregate"
    key: tuple[str, ...]
    """Fields, under the same names in all parts."""
    calls: tuple[AssembledCall, ...]
    groups: int
    """The number of the part that counts the rows of each group."""
    always: tuple[GroupKey, ...]
    """The groups that exist even without rows."""

    def __post_init__(self) -> None:
        self._require(self.groups >= 0, "no part counts the rows")
        self._require(all(len(one) == len(self.key) for one in self.always), "a group has not all parts of the key")
        self._require(all(call.columns for call in self.calls), "a call reads no part")


# -------------------------------------------------------------- rows by key


@dataclass(frozen=True, kw_only=True)
class KeyedRowsOperator(ComputingOperator):
    """The rows of each key in a bag: one step for each input and key, whether a join reads it or not."""

    meaning = "rows by key"
    key: tuple[str, ...]
    order: tuple[BagOrder, ...] | None = None
    """None: the rows have no order."""


@dataclass(frozen=True, kw_only=True)
class PartitionOperator(KeyedRowsOperator):
    """The rows of each group or partition that is evaluated again."""

    name = "partition"


@dataclass(frozen=True, kw_only=True)
class ReverseJoinOperator(KeyedRowsOperator):
    """The rows of each join key; a partition with the same key may be evaluated over them too."""

    name = "reverse-join"


@dataclass(frozen=True, kw_only=True)
class JoinOperator(Operator):
    """The pairs of rows of two bags with equal keys, and rows without a partner."""

    name = "join"
    kind: JoinKind
    on: tuple[MatchedKey, ...]
    rest: str | None
    """The condition beside the equalities, over the fields of both sides."""
    right_prefix: str
    """What the names of the right side's fields begin with."""

    def __post_init__(self) -> None:
        self._require(self.kind is not JoinKind.RIGHT, "a right join is a left join with its sides exchanged")


@dataclass(frozen=True, kw_only=True)
class WindowOperator(Operator):
    """Window functions, evaluated over all rows of each partition that changes."""

    name = "window"
    partition: tuple[str, ...]
    failing: tuple[str, ...] = ()
    """The calls that can fail: views share the step only where these are the same."""
    calls: tuple[EvaluatedCall, ...] = gained(EvaluatedCall)


@dataclass(frozen=True, kw_only=True)
class TopKOperator(Operator):
    """The first rows of each ordered bag."""

    name = "top-k"
    partition: tuple[str, ...]
    limit: int | None
    """None: all rows after the offset."""
    offset: int
    ties: int | None
    """How many parts of the order decide whether a row ties with the last one; None: ties do not count."""

    def __post_init__(self) -> None:
        self._require((self.limit or 0) >= 0 and self.offset >= 0, "a limit or an offset is negative")
        self._require(self.ties is None or self.ties >= 0, "a number of parts is negative")


@dataclass(frozen=True, kw_only=True)
class ReevaluationOperator(Operator):
    """A query evaluated over the partitions that change, the same in all inputs."""

    name = "re-evaluation"
    query: str
    """It calls its inputs in0, in1, …"""
    inputs: tuple[QueryInput, ...]
    columns: tuple[str, ...]
    """The fields, in the order of the query's columns."""
    rounds: int = 0
    """Of a recursive query: after how many it is given up; 0: it is not recursive."""
    reason: str = beside("")
    """Why the query has no operator of its own."""

    def __post_init__(self) -> None:
        self._require(self.rounds >= 0, "a number of rounds is negative")
        self._require(len({len(one.key) for one in self.inputs}) < 2, "the inputs are split by different keys")


# -------------------------------------------------------------- counted rows


@dataclass(frozen=True, kw_only=True)
class DistinctOperator(ComputingOperator):
    """Each different row once."""

    name = "distinct"
    row: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SetOperator(Operator):
    """UNION, INTERSECT and EXCEPT of two inputs."""

    name = "set"
    kind: SetKind
    all: bool
    columns: tuple[str, ...]
    inputs: tuple[tuple[str, ...], ...]
    """For each side its expressions, one for each column but the number of the copy."""

    def __post_init__(self) -> None:
        self._require(len(self.inputs) == 2, "a set operation has two sides")
        self._require(len(self.inputs[0]) == len(self.inputs[1]) <= len(self.columns), "a side has not all columns")


# -------------------------------------------------------------- what is shown


@dataclass(frozen=True, kw_only=True)
class WrittenRowsOperator(ComputingOperator):
    """Rows written into a table that is read: of a view or of an index."""

    columns: tuple[ComputedColumn, ...]
    key: tuple[str, ...]
    """The fields of the row key."""

    def __post_init__(self) -> None:
        known = {column.name for column in self.columns}
        self._require(set(self.key) <= known, "a part of the key is no column")


@dataclass(frozen=True, kw_only=True)
class ViewOperator(WrittenRowsOperator):
    """The rows of a view."""

    name = "view"


@dataclass(frozen=True, kw_only=True)
class IndexOperator(WrittenRowsOperator):
    """The entries of an index: what it is by, and the row key."""

    name = "index"


AnyOperator: TypeAlias = (
    DeltaOperator
    | RowsOperator
    | FilterProjectOperator
    | ExpandOperator
    | UnnestOperator
    | UnionOperator
    | PreAggregationOperator
    | ExtremeOperator
    | GroupReevaluationOperator
    | AggregateOperator
    | ReverseJoinOperator
    | PartitionOperator
    | JoinOperator
    | DistinctOperator
    | SetOperator
    | WindowOperator
    | TopKOperator
    | ReevaluationOperator
    | IndexOperator
    | ViewOperator
)
