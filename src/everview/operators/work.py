"""What a step may do while it works: read state as of the last epoch, write it stamped with this one.

A :class:`Work` is one attempt of one epoch in one place, and everything that a step
does to the world goes through it, so that a dry run differs from a real one in nothing else.

Steps read state as of E − 1 and never what E has written, so it does not matter which of them
runs first, how often, or whether another attempt came before.

A :class:`Worker` is a step with its texts and codecs made ready once, so that an epoch costs
only what its changes cost. :class:`StepWorker` has what all workers have in common: inputs, members, and
the columns they compute. A part of an aggregate (:class:`AggregatePart`) emits the values of the groups that
its own input changed, and can be asked for those of any other group, as of the last epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.change.entries import WEIGHT
from everview.operators.bound import BoundPlan
from everview.operators.evaluation import Evaluator, Typed, evaluator
from everview.operators.flow import condensed, empty_changes
from everview.operators.members import MEMBER
from everview.operators.quarantine_records import QuarantineChanges
from everview.operators.stored import Keys
from everview.operators.tally import Updates
from everview.plan.expressions import fields_of, quoted
from everview.plan.maintenance import Step
from everview.plan.maintenance.operator_definitions import ComputingOperator
from everview.store.contract import BagEnds, BagRows, Deletes, Puts, StateReader, StateTable, ViewStore
from everview.store.encoding.ragged import Bytes

Mask = npt.NDArray[np.bool_]


class States(Protocol):
    """State tables as a step sees them."""

    @property
    def keeps(self) -> bool:
        """Whether what is written is kept; if not, steps need not make it."""

    def read(self, table: StateTable, keys: Bytes) -> Bytes:
        """The record of each key as of the last epoch, null where there is none."""

    def read_bags(self, table: StateTable, keys: Bytes, first: pa.Int64Array | None = None) -> BagRows:
        """The rows of the given bags as of the last epoch, or the ``first`` so many of each."""

    def bag_ends(self, table: StateTable, keys: Bytes) -> tuple[Bytes, Bytes]:
        """First and last entry of each bag as of the last epoch, null where it is empty."""

    def write(self, table: StateTable, puts: Puts, deletes: Deletes) -> None: ...

    def write_bags(self, table: StateTable, changes: BagRows) -> BagEnds: ...

    def add_to_bags(self, table: StateTable, changes: BagRows) -> None:
        """The same where the ends are not needed."""


@dataclass(frozen=True)
class Written:
    """The states of an epoch that is under way."""

    views: ViewStore
    epoch: int
    keeps: bool = True

    def read(self, table: StateTable, keys: Bytes) -> Bytes:
        return self.views.read(table, keys, self.epoch - 1)

    def read_bags(self, table: StateTable, keys: Bytes, first: pa.Int64Array | None = None) -> BagRows:
        return self.views.read_bags(table, keys, self.epoch - 1, first)

    def bag_ends(self, table: StateTable, keys: Bytes) -> tuple[Bytes, Bytes]:
        return self.views.bag_ends(table, keys, self.epoch - 1)

    def write(self, table: StateTable, puts: Puts, deletes: Deletes) -> None:
        if len(puts.keys) or len(deletes.keys):
            self.views.write(table, self.epoch, puts, deletes)

    def write_bags(self, table: StateTable, changes: BagRows) -> BagEnds:
        return self.views.write_bags(table, self.epoch, changes)

    def add_to_bags(self, table: StateTable, changes: BagRows) -> None:
        self.views.add_to_bags(table, self.epoch, changes)


@dataclass(frozen=True)
class Dry:
    """The states of a dry run: what would be written is computed and forgotten."""

    views: StateReader
    as_of: int
    keeps: bool = False

    def read(self, table: StateTable, keys: Bytes) -> Bytes:
        return self.views.read(table, keys, self.as_of)

    def read_bags(self, table: StateTable, keys: Bytes, first: pa.Int64Array | None = None) -> BagRows:
        return self.views.read_bags(table, keys, self.as_of, first)

    def bag_ends(self, table: StateTable, keys: Bytes) -> tuple[Bytes, Bytes]:
        return self.views.bag_ends(table, keys, self.as_of)

    def write(self, table: StateTable, puts: Puts, deletes: Deletes) -> None:
        """Nothing: records are read as of the last epoch only."""

    def write_bags(self, table: StateTable, changes: BagRows) -> BagEnds:
        return self.views.preview_bags(table, changes, self.as_of)

    def add_to_bags(self, table: StateTable, changes: BagRows) -> None:
        """Nothing: bags are read as of the last epoch only."""


def everything(zone: str, keys: Bytes) -> Mask:
    return np.ones(len(keys), np.bool_)


@dataclass
class Work:
    """One attempt of an epoch, in one place."""

    bound: BoundPlan
    states: States
    quarantine: QuarantineChanges
    evaluator: Evaluator = field(default_factory=evaluator)
    owned: Callable[[str, Bytes], Mask] = everything
    """Which keys of a zone belong to this place."""
    leads: bool = True
    """Whether this is the place that emits what belongs to no key."""
    updates: Updates = field(default_factory=Updates)
    """What is written into views, counted."""

    def owns(self, step: Step, keys: Bytes) -> Mask:
        """Which keys of a step belong to this place: of what is there without any change, it emits
        only these."""
        if not self.bound.plan.zone_of[step.fingerprint].key:  # all keys are where everything is
            keys = Keys((), "a zone's key").encode((), len(keys))
        return self.owned(self.bound.zone_name(step), keys)

    def first(self, step: Step) -> bool:
        """Whether the step has kept nothing yet."""
        return step.fingerprint in self.bound.first


Changes: TypeAlias = pa.Table
"""Rows with a weight (``__weight``), and with the number of a member where a step has members."""


class Worker(Protocol):
    """One step at work. Made once for a plan, and given all that changes from epoch to epoch."""

    def pack(self, work: Work, number: int, changes: Changes) -> pa.Table:
        """Changes of an input, as they are sent to where the step works: fewer of them if possible.
        Whatever is done here can be done to parts of the changes, in any order."""

    def run(self, work: Work, inputs: Sequence[Sequence[pa.Table]]) -> Changes:
        """What the step emits, given all that was packed for each input."""


class AggregatePart(Protocol):
    """A worker of a part."""

    key_names: tuple[str, ...]
    """The fields that hold the key of a group."""

    def values(self, work: Work, groups: pa.Table) -> pa.Table:
        """The part's columns for given groups as of the last epoch, row by row; null in all where
        the part has nothing. ``groups`` holds the key columns under the part's ``key_names``, and
        the number of the part's own member where it has members."""


class StepWorker:
    """A step that is made ready to work."""

    condenses = False
    """Whether what is sent to the step is condensed first: worth it where a row costs more than that."""

    def __init__(self, step: Step, bound: BoundPlan) -> None:
        self.step = step
        self.bound = bound
        self.sources = tuple(bound.plan.step(one.step) for one in step.inputs)
        self.members = bound.members(step)
        columns = step.operator.computed if isinstance(step.operator, ComputingOperator) else ()
        computed = {column.name: column.sql for column in columns}
        self.outputs: tuple[Typed, ...] = tuple(
            (computed.get(field.name, quoted(field.name)), field.type) for field in step.fields
        )
        """What the step's fields are in columns of its (one) input."""

    def reads(self, number: int) -> Iterable[str]:
        """The expressions that the step evaluates over an input."""
        return [sql for sql, _ in self.outputs]

    def needed(self, number: int) -> list[str]:
        """The columns of an input that the step reads, in their order there."""
        read = {name for sql in self.reads(number) for name in fields_of(sql)}
        source = self.sources[number]
        return [field.name for field in source.fields if field.name in read] + ([MEMBER] if source.constants else [])

    def pack(self, work: Work, number: int, changes: Changes) -> pa.Table:
        """Changes in the form in which they are sent to this step."""
        found = changes.select([*self.needed(number), WEIGHT])
        return condensed(found) if self.condenses else found

    def gathered(self, number: int, parts: Sequence[pa.Table]) -> Changes:
        """What was packed for an input, in one table, under the numbers of the step's own members."""
        filled = [part for part in parts if len(part)]
        if not filled:
            found = empty_changes(self.sources[number]).select([*self.needed(number), WEIGHT])
        elif len(filled) == 1:
            found = filled[0]
        else:
            found = pa.concat_tables(filled)
            found = condensed(found) if self.condenses else found
        return found if self.members is None else self.members.translated(number, found)

    def computed(self, work: Work, rows: pa.Table, outputs: Sequence[Typed] | None = None) -> tuple[Changes, pa.Table]:
        """The step's fields of rows, with members and weights; rows whose expression fails are left out
        and quarantined. Also the rows that are left."""
        found = work.evaluator.columns(self.outputs if outputs is None else outputs, rows)
        beside = [name for name in (MEMBER, WEIGHT) if name in rows.column_names]
        made = pa.table(
            [*found.columns, *(rows[name] for name in beside)],
            names=[*(field.name for field in self.step.fields), *beside],
        )
        if not found.failed:
            return made, rows
        work.quarantine.add(self.step, "row", rows, found.failed)
        kept = np.ones(len(rows), np.bool_)
        kept[list(found.failed)] = False
        return made.filter(pa.array(kept)), rows.filter(pa.array(kept))
