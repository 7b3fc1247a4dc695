"""Changes on their way between steps.

Changes are an Arrow table of a step's fields, with a weight, and with the number of
a member where the step stands for several views.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.condense import condense
from everview.change.entries import WEIGHT
from everview.operators.evaluation import one_array
from everview.operators.limbs import Groups
from everview.operators.members import MEMBER
from everview.plan.maintenance import Step
from everview.store.encoding.ragged import Bytes, column_of, glue


def columns_of(step: Step) -> list[str]:
    """The columns of the changes that a step emits."""
    return [*(field.name for field in step.fields), *([MEMBER] if step.constants else []), WEIGHT]


def schema_of(step: Step) -> pa.Schema:
    fields = [pa.field(field.name, field.type.arrow) for field in step.fields]
    member = [pa.field(MEMBER, pa.int32())] if step.constants else []
    return pa.schema([*fields, *member, pa.field(WEIGHT, pa.int64())])


def empty_changes(step: Step) -> pa.Table:
    return empty(schema_of(step))


def empty(schema: pa.Schema) -> pa.Table:
    """No rows. Arrow's own way knows no lists of HUGEINT."""
    return pa.table([pa.nulls(0, field.type) for field in schema], schema=schema)


def together(step: Step, parts: Sequence[pa.Table]) -> pa.Table:
    """Changes of a step in one table."""
    filled = [part for part in parts if len(part)]
    if not filled:
        return empty_changes(step)
    found = filled[0] if len(filled) == 1 else pa.concat_tables(filled)
    return found.select(columns_of(step))


def condensed(changes: pa.Table) -> pa.Table:
    """The net effect of changes."""
    return condense(changes) if len(changes) > 1 else changes


def repeated(rows: pa.Table, counts: pa.Array) -> pa.Table:
    """Each row as often as its count."""
    numbers = counts.to_numpy(zero_copy_only=False)
    if (numbers == 1).all():
        return rows
    return rows.take(pa.array(np.repeat(np.arange(len(rows)), numbers)))


def weighted(changes: pa.Table, sign: int) -> pa.Table:
    """The changes that come (+1), or that go (−1)."""
    chosen = pc.greater(changes[WEIGHT], 0) if sign > 0 else pc.less(changes[WEIGHT], 0)
    return changes.filter(chosen)


def numbered(rows: pa.Table, keys: Bytes) -> tuple[Groups, pa.Array]:
    """The group of each row, numbered from 0, and a row of each group: rows of one key, and of one
    member where there are members, are one group."""
    if MEMBER in rows.column_names:
        keys = glue(member_bytes(rows[MEMBER]), keys)
    codes = pc.dictionary_encode(keys)
    groups = codes.indices.to_numpy().astype(np.int64)
    first = np.empty(len(codes.dictionary), np.int64)
    first[groups[::-1]] = np.arange(len(groups))[::-1]
    return groups, pa.array(first)


def member_bytes(members: pa.ChunkedArray) -> Bytes:
    """Numbers of members as bytes in front of keys."""
    numbers = one_array(members).to_numpy().astype(">u4")
    return column_of(numbers.tobytes(), 4 * np.arange(len(numbers) + 1))
