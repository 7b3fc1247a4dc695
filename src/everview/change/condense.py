"""Changes, and condensing them.

A change is a row with a weight in the column ``__weight``; condensing sums
the weights of equal rows and drops the zeros, so that what is left is the net effect.

:func:`condense` takes any changes::

    customer  amount  __weight          customer  amount  __weight
    7         10      +1                7         10      +1
    7         12      -1          →     7         12      -1
    7         10      +1
    7         10      -1

:func:`net_changes` takes log entries with before-images, where more is known: the writes
of a key form a chain, each one's old row being the one before's new row. However often a
key was written, its net effect is the first old row (−1) and the last new row (+1)::

    put  k=5  a=1   (nothing before)
    put  k=5  a=2   (before: a=1)   →   k=5  a=3  +1
    put  k=5  a=3   (before: a=2)

A key whose first old row is its last new row has no change at all.

A region that leaves a node and comes back breaks the chain inside that node's log: the
links between lie in another log. So a chain is the writes of one key *and incarnation*.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.entries import DELETE, HAD, INCARNATION, KEY, KIND, OLD, WEIGHT
from everview.change.numbering import Ints, row_numbers, same_values
from everview.change.schema import Schema


def with_weight(rows: pa.Table, weight: int) -> pa.Table:
    """Rows as changes that all have one weight."""
    return rows.append_column(WEIGHT, pa.array(np.full(len(rows), weight, np.int64)))


def condense(changes: pa.Table) -> pa.Table:
    """The net effect of changes: equal rows once, with the sum of their weights, without
    those that sum to zero; in the order of first appearance."""
    names = [name for name in changes.column_names if name != WEIGHT]
    if not names:
        total = pc.sum(changes[WEIGHT]).as_py() or 0
        return pa.table({WEIGHT: pa.array([total] if total else [], pa.int64())})
    numbers = row_numbers(changes[name] for name in names)
    weights = numbers.sums(_numpy(changes[WEIGHT]))
    left = np.flatnonzero(weights)
    if len(left) == len(changes):
        return changes.select([*names, WEIGHT])
    kept = changes.select(names).take(pa.array(numbers.first()[left]))
    return kept.append_column(WEIGHT, pa.array(weights[left]))


def net_changes(entries: pa.Table, schema: Schema) -> pa.Table:
    """The net effect of log entries with before-images, as changes of the table's rows. The
    entries are in log order."""
    incarnations = _numpy(entries[INCARNATION])
    moved = len(incarnations) and incarnations.min() != incarnations.max()
    chains = row_numbers([entries[KEY], entries[INCARNATION]] if moved else [entries[KEY]])
    first, last = chains.first(), chains.last()
    had, left = _numpy(entries[HAD])[first], _numpy(entries[KIND])[last] != DELETE
    both = np.flatnonzero(had & left)
    unchanged = both[_unchanged(entries, schema, first[both], last[both])]
    had[unchanged] = left[unchanged] = False
    old, new = _old(entries, schema, first[had]), entries.select(list(schema.names)).take(pa.array(last[left]))
    return pa.concat_tables([with_weight(old, -1), with_weight(new, 1)])


def _unchanged(entries: pa.Table, schema: Schema, first: Ints, last: Ints) -> Ints:
    """Whether each chain from one row to another ends with its first row."""
    same = np.arange(len(first))
    for column in schema.values:
        if not len(same):
            break
        old = entries[OLD + column.name].take(pa.array(first[same]))
        new = entries[column.name].take(pa.array(last[same]))
        same = same[same_values(old, new)]
    return same


def _old(entries: pa.Table, schema: Schema, chosen: Ints) -> pa.Table:
    columns = [entries[name if name in schema.key else OLD + name] for name in schema.names]
    return pa.table(columns, names=list(schema.names)).take(pa.array(chosen))


def _numpy(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    values: npt.NDArray[Any] = column.combine_chunks().to_numpy(zero_copy_only=False)
    return values
