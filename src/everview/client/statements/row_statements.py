"""INSERT, UPDATE and DELETE.

A write is a query for the rows to put or the keys to delete, answered over one
snapshot, and applied as one atomic batch once every row of it has been checked.

::

    INSERT INTO t (a, b) SELECT …            SELECT CAST(… AS type of a), … : put, whole rows
    UPDATE t SET b = b + 1 WHERE a > 5       SELECT key, b + 1 FROM t WHERE a > 5 : put these columns
    UPDATE t SET key = key + 1               SELECT key, all columns : delete the old rows, put the new
    DELETE FROM t WHERE a > 5                SELECT key FROM t WHERE a > 5 : delete

INSERT replaces a row whose key exists; columns that are not named become null. An UPDATE that
would give two rows one key is refused. Values are cast to the types of their columns, as DuckDB
casts them in an INSERT.

Statements that read and write run one at a time, over all processes, so that neither of two UPDATEs that
add one to a number is lost. A put through a table or a batch does not wait for them: if it
comes between the reading and the writing of an UPDATE, the UPDATE's columns are the later ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa
from sqlglot import exp

from everview.catalog import Definitions
from everview.catalog.catalog_names import CatalogNames
from everview.change.schema import ROW_ID, Column
from everview.change.types import BIGINT, Type
from everview.client.answers import Answer
from everview.client.reading import SessionContext
from everview.client.result import Result, ResultColumn
from everview.client.statements.collisions import refuse_collisions
from everview.client.statements.table_statements import column_of
from everview.errors import ConflictError, MissingColumnError, SqlError, ValueTypeError
from everview.sql.binding import ASSEMBLED
from everview.sql.check import Checked, check
from everview.sql.dialects import DEFAULT
from everview.sql.statements import Delete, Insert, Statement, Update
from everview.store.contract import Table, TableSnapshot

T = TypeVar("T")

TURN = "statement"
"""The lease of statements that read and write."""

_ATTEMPTS = 5
"""How often a write is tried while other processes change the definition of its table."""


# ------------------------------------------------------------------ INSERT


def insert(context: SessionContext, statement: Insert) -> Result:
    if statement.values is not None:
        return _counted(context, _repeated(lambda: _insert(context, statement)))
    return _in_turn(context, lambda: _insert(context, statement))


def _insert(context: SessionContext, statement: Insert) -> int:
    with _reading(context, statement) as reading:
        table = reading.definitions.table(statement.table)
        shown = table.schema.shown
        named = [column_of(shown, name, f"table {table.name}") for name in statement.columns] or list(shown)
        checked = reading.checked(_cast_alone(statement.query, named))
        if len(checked.columns) != len(named):
            raise SqlError(
                f"table {table.name} is to be given {len(checked.columns)} values for {len(named)} columns",
                detail=f"the columns are {', '.join(column.name for column in named)}",
                hint="name the columns that are given: INSERT INTO table (a, b) …",
            )
        _check_given(table, named)
        others = [column for column in shown if column not in named]
        values = _Values(reading, checked, table, list(zip(named, checked.columns, strict=True)))
        count = 0
        with context.store.batch() as batch:
            writer = batch.table(table)
            for rows in values.batches():
                nulls = [pa.nulls(rows.num_rows, column.type.arrow) for column in others]
                columns = dict(zip((c.name for c in (*named, *others)), (*rows.columns, *nulls), strict=True))
                count += writer.put_many(pa.table(columns))
        return count


def _cast_alone(query: exp.Expr, named: Sequence[Column]) -> exp.Expr:
    """The query; of VALUES with texts beside other values in a column (``1.5`` and ``'nan'``) each value is
    cast to the column's type by itself, as the type of all of them may be able to hold none."""
    if not isinstance(query, exp.Values):
        return query
    query = query.copy()
    for values, column in zip(zip(*(row.expressions for row in query.expressions), strict=True), named, strict=False):
        if len({isinstance(value, exp.Literal) and value.is_string for value in values}) > 1:
            for value in values:
                value.replace(exp.cast(value.copy(), str(column.type), dialect=DEFAULT))
    return query


def _check_given(table: Table, named: Sequence[Column]) -> None:
    for column in table.schema.shown:
        if not column.nullable and column not in named:
            why = "is part of the key" if column.name in table.schema.key else "is NOT NULL"
            raise MissingColumnError(
                f"table {table.name}: column {column.name} has no value",
                detail=f"it {why}, and INSERT does not name it",
                hint=f"name {column.name} behind the table, and give it a value",
            )


# ------------------------------------------------------------------ UPDATE


def update(context: SessionContext, statement: Update) -> Result:
    return _in_turn(context, lambda: _update(context, statement))


def _update(context: SessionContext, statement: Update) -> int:
    with _reading(context, statement) as reading:
        table = reading.definitions.table(statement.table)
        schema = table.schema
        where = f"table {table.name}"
        set_to = {column_of(schema.shown, name, where).name: value for name, value in statement.assignments}
        moves = any(name in schema.key for name in set_to)
        new = [column for column in schema.shown if moves or column.name in set_to]
        given = [set_to.get(column.name, _column(statement, column.name)) for column in new]
        rows = reading.rows_of(statement, table, list(zip(new, given, strict=True)))
        key = list(schema.key)
        count = 0
        with context.store.batch() as batch:
            writer = batch.table(table)
            if not moves:
                for found in rows.batches():
                    count += writer.put_many(_named_table(found, [*key, *(column.name for column in new)]))
                return count
            found = pa.Table.from_batches(list(rows.batches()), rows.schema)
            old = found.select(range(len(key))).rename_columns(key)
            changed = found.select(range(len(key), found.num_columns)).rename_columns([column.name for column in new])
            refuse_collisions(context.connections, table, reading.snapshot, old, changed.select(key))
            writer.delete_many(old)
            return writer.put_many(changed)


def _column(statement: Update, name: str) -> exp.Expr:
    return exp.column(name, table=statement.alias or statement.table, quoted=True)


# ------------------------------------------------------------------ DELETE


def delete(context: SessionContext, statement: Delete) -> Result:
    return _in_turn(context, lambda: _delete(context, statement))


def _delete(context: SessionContext, statement: Delete) -> int:
    with _reading(context, statement) as reading:
        table = reading.definitions.table(statement.table)
        rows = reading.rows_of(statement, table, [])
        count = 0
        with context.store.batch() as batch:
            writer = batch.table(table)
            for found in rows.batches():
                count += writer.delete_many(_named_table(found, table.schema.key))
        return count


# ------------------------------------------------------------------ what they share


@dataclass(frozen=True)
class _WriteBasis:
    """The version of rows and definitions from which a write is computed."""

    context: SessionContext
    statement: Statement
    snapshot: TableSnapshot
    definitions: Definitions

    def checked(self, query: exp.Expr) -> Checked:
        names = CatalogNames(self.definitions)
        return check(query, names, self.statement.source, allow_volatile=True)

    def rows_of(self, statement: Update | Delete, table: Table, computed: Sequence[tuple[Column, exp.Expr]]) -> _Values:
        """The key of every row that the statement changes, and the values computed for it."""
        alias = statement.alias or table.name
        schema = table.schema
        key = [] if schema.hidden_key else list(schema.key)
        outputs = [exp.alias_(exp.column(name, table=alias, quoted=True), f"k{at}") for at, name in enumerate(key)]
        outputs += [exp.alias_(value.copy(), f"v{at}") for at, (_, value) in enumerate(computed)]
        outputs = outputs or [exp.alias_(exp.true(), "there")]
        place = exp.Table(this=exp.to_identifier(table.name, quoted=True))
        if statement.alias:
            place.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
        query = exp.select(*outputs).from_(place)
        query.meta[ASSEMBLED] = True
        if statement.where is not None:
            query = query.where(statement.where.copy())
        checked = self.checked(query)
        targets = [schema.column(name) for name in key] + [column for column, _ in computed]
        outer = checked.columns[: len(targets)]
        if not schema.hidden_key:
            return _Values(self, checked, table, list(zip(targets, outer, strict=True)), len(key))
        tree = checked.tree.copy()
        assert isinstance(tree, exp.Select)
        target = tree.args["from_"].this
        own = exp.column(ROW_ID, table=target.alias_or_name, quoted=True)
        tree.set("expressions", [exp.alias_(own, ROW_ID, quoted=True), *tree.expressions[: len(targets)]])
        row = schema.column(ROW_ID)
        pairs = [(row, (ROW_ID, row.type)), *zip(targets, outer, strict=True)]
        return _Values(self, replace(checked, tree=tree), table, pairs, 1, target)


class _Values:
    """The rows of a checked query, each column cast to the type of its table column."""

    def __init__(
        self,
        reading: _WriteBasis,
        checked: Checked,
        table: Table,
        pairs: Sequence[tuple[Column, tuple[str, Type]]],
        keys: int = 0,
        target: exp.Table | None = None,
    ) -> None:
        self._reading = reading
        self._checked = checked
        self._table = table
        self._pairs = pairs
        self._keys = keys
        """So many of the first columns are existing keys."""
        self._target = target
        self.schema = pa.schema([pa.field(f"c{at}", column.type.arrow) for at, (column, _) in enumerate(pairs)])

    def batches(self) -> Iterator[pa.RecordBatch]:
        casts = ", ".join(
            f"c{at}" if column.type == kind else f"CAST(c{at} AS {column.type})"
            for at, (column, (_, kind)) in enumerate(self._pairs)
        )
        columns = [ResultColumn(f"c{at}", column.type) for at, (column, _) in enumerate(self._pairs)]
        try:
            yield from self._answer(casts, columns)
        except ValueTypeError as error:
            raise self._blamed(error) from None

    def _answer(self, outputs: str, columns: Sequence[ResultColumn]) -> Answer:
        names = ", ".join(f"c{at}" for at in range(len(self._pairs)))
        tree = self._checked.tree
        if self._target is not None:  # the tree is changed in place, so each answer has a copy of its own
            tree = tree.copy()
            target = tree.args["from_"].this
        else:
            target = None
        reading = self._reading

        def around(query: str) -> str:
            return f"SELECT {outputs} FROM ({query}) AS q ({names})"

        return reading.context.answer(
            tree, columns, reading.definitions, reading.snapshot, target=target, around=around
        )

    def _blamed(self, error: ValueTypeError) -> ValueTypeError:
        """The error with the column whose value cannot be cast, if there is one."""
        for at, (column, (_, kind)) in list(enumerate(self._pairs))[self._keys :]:
            if column.type == kind or self._fails(f"count(c{at})") is not None:
                continue
            reason = self._fails(f"count(CAST(c{at} AS {column.type}))")
            if reason is not None:
                return ValueTypeError(
                    f"table {self._table.name}: column {column.name} is {column.type}, and cannot take this {kind}",
                    detail=reason.detail,
                    hint=f"give a value that can be cast to {column.type}",
                )
        return error

    def _fails(self, output: str) -> ValueTypeError | None:
        try:
            self._answer(output, [ResultColumn("n", BIGINT)]).table()
        except ValueTypeError as error:
            return error
        return None


@contextmanager
def _reading(context: SessionContext, statement: Statement) -> Iterator[_WriteBasis]:
    snapshot, definitions = context.opened(_trees(statement))
    with snapshot:
        yield _WriteBasis(context, statement, snapshot, definitions)


def _trees(statement: Statement) -> list[exp.Expr]:
    """All expressions that a statement evaluates."""
    if isinstance(statement, Insert):
        return [statement.query]
    assert isinstance(statement, Update | Delete)
    assigned = [tree for _, tree in statement.assignments] if isinstance(statement, Update) else []
    return [*assigned, *([] if statement.where is None else [statement.where])]


def _named_table(found: pa.RecordBatch, names: Sequence[str]) -> pa.Table:
    return pa.Table.from_batches([found]).rename_columns(list(names))


def _in_turn(context: SessionContext, work: Callable[[], int]) -> Result:
    """Hold the lease: no other statement writes the rows that this one has read."""
    with context.store.lease(TURN, None):
        return _counted(context, _repeated(work))


def _repeated(work: Callable[[], T]) -> T:
    """Try again if the definition of a table changed meanwhile: nothing was written."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return work()
        except ConflictError:
            continue
    return work()


def _counted(context: SessionContext, count: int) -> Result:
    context.wrote()
    return Result.of([ResultColumn("count", BIGINT)], [[count]])
