"""Evaluating SQL over columns: the only place where operators meet DuckDB.

Expressions go in as text with the rows they are about, columns come out row by
row in the same order, and rows whose expression fails are reported and do not stop the rest.

An expression may fail for some rows: a text that is no number, an integer that overflows.
DuckDB then fails for all of them, so the rows are halved until those that fail stand alone::

    >>> import pyarrow as pa
    >>> rows = pa.table({"text": ["7", "seven", "8"]})
    >>> found = Evaluator().columns([('CAST("text" AS INTEGER)', parse_type("INTEGER"))], rows)
    >>> found.columns[0].to_pylist(), sorted(found.failed)
    ([7, None, 8], [1])

Failing is the rare case and pays for itself; where nothing fails the rows are evaluated once.

Values for people, in messages, in the quarantine and in what verify finds (:func:`readable`), are Python's,
or, where Python has none (``infinity``, years before 1 and after 9999), the text that DuckDB writes.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from duckdb.func import PythonUDFType

from everview.change.types import BOOLEAN, VARCHAR, Type, parse_type
from everview.operators.recursion import NO_END, RoundCounter
from everview.plan.expressions import Expr, conjuncts, fields_of, parsed, quoted
from everview.sql.bounded_recursion import GOES_ON
from everview.sql.result_values import carried
from everview.sql.settings import closed_at_exit, connect
from everview.store.encoding.fitting import fit
from everview.store.encoding.registering import register, unregister

Typed = tuple[str, Type]
"""An expression's text and type."""


@dataclass(frozen=True)
class Evaluated:
    """Columns row by row, and the reasons of the rows that have no value: null in all columns."""

    columns: list[pa.Array]
    failed: dict[int, str] = field(default_factory=dict)


class Unevaluable(Exception):
    """DuckDB cannot evaluate the text over these rows; holds the reason."""


class Evaluator:
    """A DuckDB connection under the fixed settings, for one thread at a time."""

    def __init__(self) -> None:
        self._connection = connect()
        self._rounds = RoundCounter()
        self._connection.create_function(
            GOES_ON, self._rounds, ["BIGINT"], "BOOLEAN", type=PythonUDFType.ARROW, side_effects=True
        )
        self._thread = threading.get_ident()
        closed_at_exit(self)

    def was_idle(self) -> bool:
        """In a forked child: whether this is the connection of the thread that lives on here."""
        return self._thread == threading.get_ident()

    def close(self) -> None:
        """Nothing can be evaluated any more."""
        self._connection.close()
        del self._connection

    def answer(self, sql: str) -> pa.Table:
        """What DuckDB answers."""
        return self._connection.sql(sql).to_arrow_table()

    def query(self, sql: str, types: Sequence[tuple[str, Type]], tables: Mapping[str, pa.Table]) -> pa.Table:
        """The answer of a query over the named tables, as columns of these names and types.
        Raises :class:`Unevaluable`."""
        for name, table in tables.items():
            register(self._connection, name, table)
        self._rounds.begin()
        try:
            answer = self.answer(carried(sql, [kind for _, kind in types]))
        except duckdb.Error as error:
            ended = self._rounds.exceeded
            raise Unevaluable(reason_of(error) if ended is None else f"{NO_END} {ended} rounds") from error
        finally:
            for name, table in tables.items():
                unregister(self._connection, name, table)
        columns = [_fitted(column, kind) for column, (_, kind) in zip(answer.columns, types, strict=True)]
        return pa.table(columns, names=[name for name, _ in types])

    def columns(self, expressions: Sequence[Typed], rows: pa.Table) -> Evaluated:
        """The values of expressions over the fields of rows, row by row."""
        wanted = [(sql, kind) for sql, kind in expressions if plain(sql) is None]
        found = self._columns(wanted, rows) if wanted and len(rows) else Evaluated([_none(k) for _, k in wanted])
        computed = iter(found.columns)
        return Evaluated(
            [next(computed) if (name := plain(sql)) is None else one_array(rows[name]) for sql, _ in expressions],
            found.failed,
        )

    def types(self, expressions: Sequence[str], fields: Mapping[str, Type]) -> list[Type]:
        """The types of expressions over fields of these types."""
        if not expressions:
            return []
        empty = pa.table({name: _none(kind) for name, kind in fields.items()} or {"__n": pa.array([], pa.int64())})
        register(self._connection, "input", empty)
        try:
            texts = ", ".join(f"{sql} AS c{number}" for number, sql in enumerate(expressions))
            found = self._connection.execute(f"DESCRIBE SELECT {texts} FROM input").fetchall()
        finally:
            unregister(self._connection, "input", empty)
        return [parse_type(row[1]) for row in found]

    def mask(self, condition: str, rows: pa.Table) -> tuple[pa.Array, dict[int, str]]:
        """For which rows a condition holds (null is no), and the reasons of those without an answer.

        A row for which the condition as a whole has no value is asked part by part (:func:`in_turn`).
        """
        found = self.columns([(condition, BOOLEAN)], rows)
        mask = found.columns[0].fill_null(False)
        if not found.failed:
            return mask, {}
        failing = sorted(found.failed)
        again = self.columns([(in_turn(condition), BOOLEAN)], rows.take(pa.array(failing)))
        held = again.columns[0].fill_null(False).to_numpy(zero_copy_only=False)
        answers = mask.to_numpy(zero_copy_only=False).copy()
        answers[failing] = held
        return pa.array(answers), {failing[row]: reason for row, reason in again.failed.items()}

    def _columns(self, expressions: Sequence[Typed], rows: pa.Table) -> Evaluated:
        read = sorted({name for sql, _ in expressions for name in fields_of(sql)})
        given = rows.select(read) if read else pa.table({"__n": pa.array(np.arange(len(rows)))})
        texts = ", ".join(f"{sql} AS c{number}" for number, (sql, _) in enumerate(expressions))
        types = [(f"c{number}", kind) for number, (_, kind) in enumerate(expressions)]

        def evaluate(part: pa.Table) -> pa.Table:
            return self.query(f"SELECT {texts} FROM input", types, {"input": part})

        failed: dict[int, str] = {}
        made = _halved(evaluate, given, 0, failed)
        filled = [part if part is not None else _nulls(types) for part in made]
        return Evaluated([one_array(column) for column in pa.concat_tables(filled).columns], failed)


def _halved(
    evaluate: Callable[[pa.Table], pa.Table], rows: pa.Table, at: int, failed: dict[int, str]
) -> list[pa.Table | None]:
    """The parts of an answer, None for a row without one."""
    try:
        return [evaluate(rows)]
    except Unevaluable as error:
        if len(rows) == 1:
            failed[at] = str(error)
            return [None]
    middle = len(rows) // 2
    return _halved(evaluate, rows[:middle], at, failed) + _halved(evaluate, rows[middle:], at + middle, failed)


@functools.lru_cache(maxsize=65_536)
def plain(sql: str) -> str | None:
    """The field that an expression is, if it is nothing else."""
    tree = parsed(sql)
    name = str(tree.name)
    return name if sql == quoted(name) else None


def in_turn(condition: str) -> str:
    """The condition with its parts asked one after another, as far as they hold: in ``kind = 'n' AND
    CAST(text AS INTEGER) > 7`` the text is cast only where the kind allows it. DuckDB's filters
    do the same, its columns do not."""
    *parts, last = (part.sql for part in conjuncts(Expr(condition, BOOLEAN)))
    for part in reversed(parts):
        last = f"CASE WHEN {part} THEN {last} ELSE FALSE END"
    return last


def reason_of(error: Exception) -> str:
    """DuckDB's message, in one line."""
    return str(error).strip().partition("\n")[0].strip()


def one_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    if not column.num_chunks:
        return pa.nulls(0, column.type)  # Arrow combines no chunks of a list of an extension type
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _fitted(column: pa.ChunkedArray, kind: Type) -> pa.Array:
    values = one_array(column)
    return values if values.type == kind.arrow else fit(values, kind)


def _none(kind: Type) -> pa.Array:
    return pa.nulls(0, kind.arrow)


def _nulls(types: Sequence[tuple[str, Type]]) -> pa.Table:
    return pa.table([pa.nulls(1, kind.arrow) for _, kind in types], names=[name for name, _ in types])


_held = threading.local()


def evaluator() -> Evaluator:
    """This thread's evaluator: connections are kept from epoch to epoch, and not over a fork."""
    found: Evaluator | None = getattr(_held, "evaluator", None)
    if found is None or _held.process != os.getpid():
        found = Evaluator()
        _held.evaluator, _held.process = found, os.getpid()
    return found


def readable(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """The values of a column. Each is what it is whatever others are beside it."""
    array = one_array(column)
    try:
        found: list[Any] = array.to_pylist()
        return found
    except (OverflowError, ValueError):
        return [_readable(array.slice(number, 1)) for number in range(len(array))]


def _readable(one: pa.Array) -> object:
    try:
        return one.to_pylist()[0]
    except (OverflowError, ValueError):
        text = "SELECT CAST(x AS VARCHAR) AS x FROM input"
        return evaluator().query(text, [("x", VARCHAR)], {"input": pa.table({"x": one})})["x"][0].as_py()
