"""Changes, and condensing them.

One sentence: a change is a row with a weight in the column ``__weight``; condensing sums
the weights of equal rows and drops the zeros, so that what is left is the net effect.

Two situations, two functions. :func:`condense` takes any changes::

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

A region that leaves a node and comes back breaks the chain inside that node's log: the
links between lie in another log. So a chain is the writes of one key *and incarnation*.
"""

from __future__ import annotations

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.entries import DELETE, HAD, INCARNATION, KEY, KIND, OLD, WEIGHT
from everview.change.schema import Schema

_NUMBER = "__number"


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
    numbered = changes.append_column(_NUMBER, pa.array(np.arange(len(changes))))
    plain = all(_groupable(changes.schema.field(name).type) for name in names)
    sums = _sums_in_arrow(numbered, names) if plain else _sums_in_duckdb(numbered, names)
    rows, weights = sums
    left = np.flatnonzero(weights)
    left = left[np.argsort(rows[left], kind="stable")]
    kept = changes.select(names).take(pa.array(rows[left]))
    return kept.append_column(WEIGHT, pa.array(weights[left]))


Sums = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


def _groupable(kind: pa.DataType) -> bool:
    """Whether Arrow itself can group by a column of this type."""
    return (
        not pa.types.is_nested(kind) and not isinstance(kind, pa.BaseExtensionType) and not pa.types.is_interval(kind)
    )


def _sums_in_arrow(numbered: pa.Table, names: list[str]) -> Sums:
    grouped = numbered.group_by(names, use_threads=False).aggregate([(WEIGHT, "sum"), (_NUMBER, "min")])
    return grouped[f"{_NUMBER}_min"].to_numpy(), grouped[f"{WEIGHT}_sum"].to_numpy()


def _sums_in_duckdb(numbered: pa.Table, names: list[str]) -> Sums:
    columns = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.register("numbered", numbered)
        found = connection.sql(
            f"SELECT min({_NUMBER}) AS r, sum({WEIGHT})::BIGINT AS w FROM numbered GROUP BY {columns or '()'}"
        ).fetchnumpy()
    return np.asarray(found["r"], np.int64), np.asarray(found["w"], np.int64)


def net_changes(entries: pa.Table, schema: Schema) -> pa.Table:
    """The net effect of log entries with before-images, as changes of the table's rows. The
    entries are in log order."""
    chains = _chains(entries)
    count = len(entries)
    first = np.empty(int(chains.max()) + 1 if count else 0, np.int64)
    last = first.copy()
    positions = np.arange(count)
    first[chains[::-1]] = positions[::-1]
    last[chains] = positions
    gone = first[_numpy(entries[HAD])[first]]
    come = last[_numpy(entries[KIND])[last] != DELETE]
    return pa.concat_tables([with_weight(_old(entries, schema, gone), -1), with_weight(_new(entries, schema, come), 1)])


def _chains(entries: pa.Table) -> npt.NDArray[np.int64]:
    """A number for each chain, the same for all of its entries."""
    keys = pc.dictionary_encode(entries[KEY].combine_chunks())
    codes: npt.NDArray[np.int64] = keys.indices.to_numpy().astype(np.int64)
    incarnations = entries[INCARNATION].to_numpy()
    if len(incarnations) and incarnations.min() != incarnations.max():
        both = codes << 32 | incarnations
        codes = np.unique(both, return_inverse=True)[1].astype(np.int64)
    return codes


def _old(entries: pa.Table, schema: Schema, chosen: npt.NDArray[np.int64]) -> pa.Table:
    columns = [entries[name if name in schema.key else OLD + name] for name in schema.names]
    return pa.table(columns, names=list(schema.names)).take(pa.array(chosen))


def _new(entries: pa.Table, schema: Schema, chosen: npt.NDArray[np.int64]) -> pa.Table:
    return entries.select(list(schema.names)).take(pa.array(chosen))


def _numpy(column: pa.ChunkedArray) -> npt.NDArray[np.generic]:
    values: npt.NDArray[np.generic] = column.combine_chunks().to_numpy(zero_copy_only=False)
    return values
