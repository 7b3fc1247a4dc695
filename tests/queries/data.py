"""Random data for every corpus: tables to start from, and rounds of changes to go on with.

Recipes make candidate rows, and this module keeps what is common to all of
them: unique keys, the schema's types, nulls, and references that mostly hold.

    >>> before = tables("papers/000", seed=7)
    >>> before["ticket"].num_rows
    60
    >>> for change in changes("papers/000", rounds=2, seed=7):
    ...     before = applied(before, change)

A round is a mapping from table name to :class:`Change`. No key occurs twice in a round, so
its parts may be applied in any order; a history in which a key is written several times
within one epoch is several rounds taken together. Deleted keys come back in later rounds.

References hold in :func:`tables`, save for nulls. In a round, a deleted parent takes its
children with it nine times out of ten; otherwise these stay behind without a partner until
a row with the same key is inserted again. New and updated children name rows that are there.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tests.queries import nexmark_rows, paper_rows, tpch_rows
from tests.queries.corpora import TableShape, corpus
from tests.queries.draw import Draw, Recipe

RECIPES: Mapping[str, Mapping[str, Recipe]] = {
    "tpch": tpch_rows.RECIPES,
    "nexmark": nexmark_rows.RECIPES,
    "papers/000": paper_rows.TICKETS,
    "papers/002": paper_rows.WEB_DATA,
    "papers/004": paper_rows.KEY_VALUE,
}
"""By schema; tables in an order in which parents stand before children."""

NULLS = 0.02
"""The share of nulls in columns that are neither of the key nor steady."""

CASCADE = 0.9
"""The share of deleted parents whose children go with them."""

Tables = dict[str, pa.Table]


@dataclass(frozen=True)
class Change:
    """What one round does to one table: whole rows in, whole rows replaced, keys out."""

    inserts: pa.Table
    updates: pa.Table
    deletes: pa.Table

    @property
    def puts(self) -> pa.Table:
        """Inserts and updates alike, as a key-value store gets them."""
        return pa.concat_tables([self.inserts, self.updates])


def tables(name: str, scale: float = 1.0, seed: int = 0, nulls: float = NULLS) -> Tables:
    """Every table of a corpus, filled. ``scale`` multiplies the number of rows of all but fixed tables."""
    found = corpus(name)
    present: Tables = {shape.name: shape.schema.empty_table() for shape in found.tables.values()}
    draw = _draw(seed, "tables", scale, present)
    for table, recipe in RECIPES[found.schema].items():
        count = max(1, round(recipe.size * scale))
        present[table] = _fresh(draw, found.tables[table], recipe, count, set(), nulls)
    return present


def changes(
    name: str, rounds: int, scale: float = 1.0, seed: int = 0, nulls: float = NULLS, rate: float = 0.03
) -> Iterator[dict[str, Change]]:
    """Rounds of changes that start from :func:`tables` of the same arguments.

    ``rate`` is the expected share of a table's rows that a round updates and deletes, each;
    inserts keep the tables at about their size. A round may well leave a small table alone.
    """
    found = corpus(name)
    recipes = RECIPES[found.schema]
    present = tables(name, scale, seed, nulls)
    draw = _draw(seed, "changes", scale, present)
    for _ in range(rounds):
        doomed = _deleted(draw, found.tables, recipes, rate)
        made: dict[str, Change] = {}
        for table, recipe in recipes.items():
            shape = found.tables[table]
            gone = _keys(doomed[table], shape.key)
            rows = present[table] = _without(present[table], shape.key, gone)
            updates = _updated(draw, shape, recipe, int(draw.random.poisson(rate * rows.num_rows)), nulls)
            # Half of what a table lost or has in excess is made up for, so that it keeps its size over many rounds.
            wanted = rate * rows.num_rows + (recipe.size * scale - rows.num_rows) / 2
            count = 0 if recipe.fixed else int(draw.random.poisson(max(0.0, wanted)))
            inserts = _fresh(draw, shape, recipe, count, gone | _keys(rows, shape.key), nulls)
            made[table] = Change(inserts, updates, doomed[table].select(list(shape.key)))
            present[table] = _applied(rows, made[table], shape.key)
        yield made


def applied(before: Mapping[str, pa.Table], change: Mapping[str, Change]) -> Tables:
    """The tables after a round."""
    keys = {name: tuple(part.deletes.column_names) for name, part in change.items()}
    return {name: _applied(rows, change[name], keys[name]) if name in change else rows for name, rows in before.items()}


# ------------------------------------------------------------------ the parts of a round


def _draw(seed: int, purpose: str, scale: float, present: Tables) -> Draw:
    return Draw(np.random.default_rng([seed, zlib.crc32(purpose.encode())]), scale, present)


def _fresh(draw: Draw, shape: TableShape, recipe: Recipe, count: int, taken: set, nulls: float) -> pa.Table:
    """New rows whose keys are neither taken nor repeated; fewer where the recipe finds no more."""
    if count == 0:
        return shape.schema.empty_table()
    rows = _typed(recipe.make(draw, count if recipe.fixed else 2 * count + 10), shape)
    seen = set(taken)
    chosen = [
        at
        for at, key in enumerate(_tuples(rows, shape.key))
        if None not in key and key not in seen and not seen.add(key)  # type: ignore[func-returns-value]
    ]
    rows = rows.take(pa.array(chosen if recipe.fixed else chosen[:count], pa.int64()))
    return _with_nulls(draw, rows, [name for name in shape.values if name not in recipe.steady], nulls)


def _updated(draw: Draw, shape: TableShape, recipe: Recipe, count: int, nulls: float) -> pa.Table:
    """Some of the rows with one or more of their columns drawn again."""
    rows = draw.present[shape.name]
    columns = [name for name in shape.values if name not in recipe.steady]
    count = min(count, rows.num_rows)
    if not columns or not count:
        return rows.schema.empty_table()
    rows = rows.take(pa.array(draw.random.choice(rows.num_rows, count, replace=False)))
    drawn = _typed(recipe.make(draw, count), shape)
    if drawn.num_rows != count:
        drawn = drawn.take(pa.array(draw.whole(count, 0, drawn.num_rows - 1)))
    drawn = _with_nulls(draw, drawn, columns, nulls)
    together = {name: reference.columns[0] for reference in recipe.references for name in reference.columns}
    leaders = sorted({together.get(name, name) for name in columns})
    chosen = draw.random.random((len(leaders), count)) < 0.3
    chosen[draw.whole(count, 0, len(leaders) - 1), np.arange(count)] = True
    masks = dict(zip(leaders, chosen, strict=True))
    for name in columns:
        values = pc.if_else(pa.array(masks[together.get(name, name)]), drawn[name], rows[name])
        rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), values)
    return rows


def _deleted(
    draw: Draw, shapes: Mapping[str, TableShape], recipes: Mapping[str, Recipe], rate: float
) -> dict[str, pa.Table]:
    """The rows of each table that a round deletes: some of its own, and children of deleted parents."""
    doomed: dict[str, pa.Table] = {}
    for table, recipe in recipes.items():
        rows = draw.present[table]
        if recipe.fixed:
            doomed[table] = rows.schema.empty_table()
            continue
        going = draw.random.random(rows.num_rows) < rate
        for reference in recipe.references:
            parents = _tuples(doomed[reference.parent], reference.parent_columns)
            falling = {key for key in parents if draw.random.random() < CASCADE}
            going |= np.array([key in falling for key in _tuples(rows, reference.columns)], dtype=bool)
        doomed[table] = rows.filter(pa.array(going))
    return doomed


# ------------------------------------------------------------------ rows and keys


def _typed(columns: Mapping[str, object], shape: TableShape) -> pa.Table:
    """The columns in the schema's order and types."""
    return pa.table(
        [_array(columns[field.name]).cast(field.type, safe=False) for field in shape.schema], schema=shape.schema
    )


def _array(column: object) -> pa.Array | pa.ChunkedArray:
    return column if isinstance(column, pa.Array | pa.ChunkedArray) else pa.array(column)


def _with_nulls(draw: Draw, rows: pa.Table, columns: list[str], share: float) -> pa.Table:
    for name in columns:
        field = rows.schema.field(name)
        kept = pa.array(draw.random.random(rows.num_rows) >= share)
        values = pc.if_else(kept, rows[name], pa.scalar(None, field.type))
        rows = rows.set_column(rows.schema.get_field_index(name), field, values)
    return rows


def _tuples(rows: pa.Table, columns: tuple[str, ...]) -> list[tuple]:
    return list(zip(*(rows[name].to_pylist() for name in columns), strict=True))


def _keys(rows: pa.Table, key: tuple[str, ...]) -> set[tuple]:
    return set(_tuples(rows, key))


def _without(rows: pa.Table, key: tuple[str, ...], gone: set[tuple]) -> pa.Table:
    return rows.filter(pa.array([found not in gone for found in _tuples(rows, key)], pa.bool_()))


def _applied(rows: pa.Table, change: Change, key: tuple[str, ...]) -> pa.Table:
    gone = _keys(change.deletes, key) | _keys(change.updates, key)
    return pa.concat_tables([_without(rows, key, gone), change.updates, change.inserts]).combine_chunks()
