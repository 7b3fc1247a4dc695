"""What is evaluated again for the partitions that change: windows, top-k, re-evaluation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from everview.errors import DefinitionError
from everview.plan.expressions import Expr, Field
from everview.plan.relations.calls import Call, Sort
from everview.plan.relations.relation import OverOne, Relation


@dataclass(frozen=True)
class Window(OverOne):
    """Window functions that share a partition: evaluated again for the partitions that change."""

    partition: tuple[Expr, ...]
    calls: tuple[Call, ...]
    """``sql`` holds the whole call with its OVER clause."""
    title = "window"

    def __post_init__(self) -> None:
        self._check_reads([*self.partition, *(read for call in self.calls for read in call.reads)], self.input)
        self._check()

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return (*self.input.fields, *(call.field for call in self.calls))

    @property
    def key(self) -> tuple[str, ...]:
        return self.input.key

    def description(self) -> str:
        return ", ".join(str(call) for call in self.calls)


@dataclass(frozen=True)
class TopK(OverOne):
    """The first rows of each partition in an order; ties beyond the order are settled by the key."""

    partition: tuple[Expr, ...]
    order: tuple[Sort, ...]
    limit: int | None
    offset: int = 0
    ties: bool = False
    """All rows that tie with the last one."""
    title = "top-k"

    def __post_init__(self) -> None:
        self._check_reads([*self.partition, *(sort.by for sort in self.order)], self.input)
        if self.offset < 0 or (self.limit is not None and self.limit < 0):
            raise DefinitionError("LIMIT and OFFSET are not negative")

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields

    @property
    def key(self) -> tuple[str, ...]:
        fields = [part.field for part in self.partition]
        if self.limit == 1 and not self.ties and None not in fields:
            return tuple(dict.fromkeys(name for name in fields if name is not None))
        return self.input.key

    def description(self) -> str:
        first = "all" if self.limit is None else str(self.limit)
        ties = " with ties" if self.ties else ""
        skip = f" after {self.offset}" if self.offset else ""
        order = ", ".join(str(sort) for sort in self.order) or "key"
        by = f" per {', '.join(map(str, self.partition))}" if self.partition else ""
        return f"first {first}{ties}{skip} by {order}{by}"


@dataclass(frozen=True)
class Reevaluate(Relation):
    """Anything deterministic: a query over the inputs, evaluated again for the partitions that
    change. Input n is the table ``in<n>`` of the query, with the input's fields as columns."""

    sources: tuple[Relation, ...]
    query: str
    columns: tuple[Field, ...]
    identity: tuple[str, ...]
    """The fields that identify the result's rows; may include a hidden copy number."""
    partition: tuple[tuple[Expr, ...], ...] = ()
    """For each input the expressions that split it into partitions; none: everything is one."""
    reason: str = ""
    shown_as: tuple[str, ...] = ()
    """The columns that have the values of the partition, part by part; none where one is not shown."""
    rounds: int = 0
    """Of a recursive query: after how many it is given up."""
    title = "re-evaluation"

    def __post_init__(self) -> None:
        if self.partition and len(self.partition) != len(self.sources):
            raise DefinitionError("a re-evaluation splits all of its inputs or none")
        if self.shown_as and len(self.shown_as) != len(self.partition[0] if self.partition else ()):
            raise DefinitionError("a re-evaluation shows all parts of its partition or none")
        if not set(self.shown_as) <= {field.name for field in self.columns}:
            raise DefinitionError("a re-evaluation shows its partition in columns that it has")
        for source, parts in zip(self.sources, self.partition, strict=False):
            self._check_reads(parts, source)
        self._check()

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.columns

    @property
    def key(self) -> tuple[str, ...]:
        return self.identity

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return self.sources

    def with_inputs(self, *inputs: Relation) -> Reevaluate:
        return replace(self, sources=inputs)

    def description(self) -> str:
        split = "; ".join(", ".join(map(str, parts)) for parts in self.partition)
        return f"{self.query}" + (f" PER {split}" if split else "") + (f" -- {self.reason}" if self.reason else "")
