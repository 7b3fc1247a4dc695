"""The table of an aggregate: groups as keys, accumulators as rows.

One sentence: an :class:`AggregateTable` is all that turns the columns of a GROUP BY into
the bytes of a state table and back; the view's own columns are computed from them.

A group column may be null, and SQL puts all nulls into one group: the key encodes the null.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import pyarrow as pa

from everview.change.schema import Column, KeyPart, Schema
from everview.operators.aggregate import Aggregate, Step
from everview.store.contract import Bytes, Deletes, Puts, Records
from everview.store.keys import KeyCodec
from everview.store.rows import RowCodec


@dataclass(frozen=True)
class AggregateTable:
    """An aggregate by some columns of its input, as it is stored."""

    name: str
    group: tuple[KeyPart, ...]
    aggregate: Aggregate

    @functools.cached_property
    def keys(self) -> KeyCodec:
        return KeyCodec(self.group, allow_nan=True, where=f"view {self.name}")

    @functools.cached_property
    def rows(self) -> RowCodec:
        parts = tuple(Column(f"k{i}", part.type, nullable=False) for i, part in enumerate(self.group))
        values = tuple(Column(name, kind, nullable=False) for name, kind in self.aggregate.accumulators.items())
        return RowCodec(Schema(parts + values, tuple(column.name for column in parts)), f"view {self.name}")

    @functools.cached_property
    def arrow(self) -> pa.Schema:
        """The columns of the view."""
        fields = [pa.field(part.name, part.type.arrow) for part in self.group]
        return pa.schema(fields + [pa.field(name, kind.arrow) for name, kind in self.aggregate.visible.items()])

    # -------------------------------------------------------------- maintenance

    def partial(self, changes: pa.Table) -> pa.Table:
        """The effect of changes of the input, by encoded group key."""
        keys = self.keys.encode_columns([changes[part.name] for part in self.group])
        return self.aggregate.partial(keys, changes)

    def step(self, before: Bytes, delta: pa.Table) -> Step:
        """The new state of the groups of ``delta``, whose stored rows were ``before``."""
        return self.aggregate.step(self.rows.decode_columns(before), delta)

    def writes(self, step: Step, before: Bytes) -> tuple[Puts, Deletes]:
        """What the step leaves in the store."""
        stay, go = pa.array(step.stays), pa.array(step.was & ~step.stays)
        values = self.rows.encode_columns([column.filter(stay) for column in step.after])
        puts = Puts(step.keys.filter(stay), values, before.filter(stay))
        return puts, Deletes(step.keys.filter(go), before.filter(go))

    # -------------------------------------------------------------- reading

    def table(self, records: Records) -> pa.Table:
        """Stored groups as rows of the view."""
        accumulators = self.rows.decode_columns(records.values)
        columns = [*self.keys.decode_columns(records.keys), *self.aggregate.shown(accumulators)]
        return pa.table(columns, schema=self.arrow)
