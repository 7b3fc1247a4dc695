"""Types of queries, asked of DuckDB itself.

A :class:`Typer` holds an empty database in memory in which the inputs of a query
exist without rows, and lets DuckDB's own binder find what columns and types the query has, or
what is wrong with it.

    >>> tables = {"t": [("a", parse_type("INTEGER")), ("b", parse_type("INTEGER"))]}
    >>> typer().describe("SELECT a // 2 AS half, sum(b) FROM t GROUP BY ALL", tables)
    (('half', Type('INTEGER')), ('sum(b)', Type('HUGEINT')))

So there is no second opinion about types, implicit casts, overloads or the names of columns
without an alias. Each set of inputs lives in a schema of its own and answers are remembered: an
answer depends on the text and the inputs, never on what was asked before.
"""

from __future__ import annotations

import functools
import json
import os
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import duckdb

from everview.change.types import Type, parse_type
from everview.errors import DefinitionError, SqlTypeError
from everview.sql.result_values import fetched
from everview.sql.settings import closed_at_exit, connect

Columns: TypeAlias = tuple[tuple[str, Type], ...]
Inputs: TypeAlias = Mapping[str, Sequence[tuple[str, Type]]]

_SCHEMAS = 500
_ANSWERS = 10_000
"""How many sets of inputs and how many answers are kept; past it all are forgotten."""


_TREE = "SELECT json_serialize_sql(?::VARCHAR, skip_empty := true, skip_null := true, skip_default := true)"

_FATAL = ("INTERNAL", "FATAL")
"""Failures after which a database answers nothing any more."""


@dataclass(frozen=True)
class Failure:
    """Why DuckDB refused a query, in its words. ``offset`` counts characters of the query."""

    kind: str
    message: str
    subtype: str = ""
    name: str = ""
    candidates: tuple[str, ...] = ()
    call: str = ""
    offset: int | None = None


@dataclass(frozen=True)
class Described:
    """The columns of a query as DuckDB names them, with the text of their types."""

    columns: tuple[tuple[str, str], ...]

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(type for _, type in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    def typed(self) -> Columns:
        return tuple((name, storable(name, type)) for name, type in self.columns)


class Typer:
    """Describes queries. May be used by several threads, and goes on after a fork."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._open()
        closed_at_exit(self)

    def was_idle(self) -> bool:
        """In a forked child: whether no other thread of the parent held the lock. Here it is free."""
        free = self._lock.acquire(blocking=False)
        self._lock = threading.RLock()
        return free

    def _open(self) -> None:
        self._process = os.getpid()
        self._schemas: dict[tuple[object, ...], str] = {}
        self._answers: dict[tuple[str, str], Described | Failure] = {}
        self._current = ""
        self._connection = connect(errors_as_json=True)

    def close(self) -> None:
        """Nothing can be described any more."""
        self._connection.close()
        del self._connection

    def attempt(self, sql: str, inputs: Inputs) -> Described | Failure:
        """DuckDB's description of the query, or why it refuses it."""
        with self._lock:
            if self._process != os.getpid() or len(self._schemas) > _SCHEMAS or len(self._answers) > _ANSWERS:
                self._open()
            schema = self._schema_of(inputs)
            found = self._answers.get((schema, sql))
            if found is None:
                found = self._ask(schema, sql)
                if isinstance(found, Failure) and found.kind in _FATAL:
                    self._open()
                else:
                    self._answers[schema, sql] = found
            return found

    def rehearse(self, sql: str, inputs: Inputs, run: bool) -> Failure | None:
        """Why DuckDB cannot evaluate a query that it can describe, whatever the rows: constants are computed
        when it is optimized, and with ``run`` it is evaluated over the empty inputs too."""
        with self._lock:
            if isinstance(self.attempt(sql, inputs), Failure):
                return None
            self._enter(self._schema_of(inputs))
            for before in ("EXPLAIN ", *([""] if run else [])):
                try:
                    self._connection.execute(f"{before}{sql}").complete()
                except duckdb.Error as error:
                    failure = _failure(error, before, sql)
                    if failure.kind in _FATAL:
                        self._open()
                    return failure
        return None

    def describe(self, sql: str, inputs: Inputs) -> Columns:
        """The names and types of the query's columns."""
        found = self.attempt(sql, inputs)
        if isinstance(found, Failure):
            raise SqlTypeError("DuckDB cannot evaluate a query", detail=f"{found.message}\n{sql}")
        return found.typed()

    def value(self, sql: str) -> object:
        """The value of a constant expression; a :class:`Failure` where it has none."""
        with self._lock:
            try:
                ((found,),) = fetched(self._connection, f"SELECT {sql}")
            except duckdb.Error as error:
                return _failure(error, "SELECT ", sql)
            return found

    def functions(self) -> tuple[tuple[str, str, str, str], ...]:
        """DuckDB's functions: name, type, stability, and what a macro stands for."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT DISTINCT lower(function_name), function_type, coalesce(stability, ''),"
                " lower(coalesce(macro_definition, '')) FROM duckdb_functions() ORDER BY ALL"
            ).fetchall()
        return tuple((name, kind, stability, macro) for name, kind, stability, macro in rows)

    def macros(self) -> tuple[tuple[str, tuple[str, ...], str], ...]:
        """DuckDB's macros: name, parameters, and the expression each stands for."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT lower(function_name), parameters, macro_definition FROM duckdb_functions()"
                " WHERE function_type = 'macro' ORDER BY ALL"
            ).fetchall()
        return tuple((name, tuple(parameters), definition) for name, parameters, definition in rows)

    def synonyms(self) -> tuple[tuple[str, str], ...]:
        """Other names of functions, each with the first one."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT DISTINCT lower(function_name), lower(alias_of) FROM duckdb_functions()"
                " WHERE alias_of IS NOT NULL AND alias_of <> '' ORDER BY ALL"
            ).fetchall()
        return tuple((name, first) for name, first in rows)

    def tree(self, sql: str) -> list[dict[str, object]] | Failure:
        """What DuckDB's parser makes of a text: a tree for each of its queries."""
        with self._lock:
            try:
                row = self._connection.execute(_TREE, [sql]).fetchone()
            except duckdb.Error as error:
                return _failure(error, "", sql)
        found: dict[str, Any] = json.loads(row[0]) if row else {"error": True}
        if found.get("error"):
            at = found.get("position")
            return Failure(
                kind=str(found.get("error_type", "")).title(),
                message=str(found.get("error_message", "")),
                offset=None if at is None else len(sql.encode()[: int(at)].decode(errors="ignore")),
            )
        statements: list[dict[str, object]] = found["statements"]
        return statements

    def text(self, tree: str) -> str | None:
        """What DuckDB writes for such trees, given as JSON; None where it cannot."""
        with self._lock:
            try:
                row = self._connection.execute("SELECT json_deserialize_sql(CAST(? AS JSON))", [tree]).fetchone()
            except duckdb.Error:
                return None
        return None if row is None else str(row[0])

    def _ask(self, schema: str, sql: str) -> Described | Failure:
        self._enter(schema)
        try:
            rows = self._connection.execute(f"DESCRIBE {sql}").fetchall()
        except duckdb.Error as error:
            return _failure(error, "DESCRIBE ", sql)
        return Described(tuple((row[0], row[1]) for row in rows))

    def _enter(self, schema: str) -> None:
        if self._current != schema:
            self._connection.execute(f"SET schema = '{schema}'")
            self._current = schema

    def _schema_of(self, inputs: Inputs) -> str:
        signature = tuple(sorted((name, tuple(columns)) for name, columns in inputs.items()))
        schema = self._schemas.get(signature)
        if schema is None:
            schema = f"inputs_{len(self._schemas)}"
            self._connection.execute(f"CREATE SCHEMA {schema}")
            for name, columns in inputs.items():
                described = ", ".join(f"{_quoted(column)} {type}" for column, type in columns)
                self._connection.execute(f"CREATE TABLE {schema}.{_quoted(name)} ({described})")
            self._schemas[signature] = schema
        return schema


@functools.cache
def typer() -> Typer:
    """The typer of this process."""
    return Typer()


def storable(column: str, text: str) -> Type:
    """DuckDB's type as one of ours; those that a table cannot hold are an error with a cast."""
    try:
        return parse_type(text)
    except DefinitionError:
        hint = f"cast it to a type that a table can hold: CAST(… AS {_substitute(text)})"
        raise SqlTypeError(
            f"column {column} has the type {text}", detail="no table or view can hold it", hint=hint
        ) from None


_SUBSTITUTES = (
    (r"\bTIMESTAMPTZ_NS\b", "TIMESTAMPTZ"),
    (r"\bTIME_NS\b", "TIME"),
    (r"\bVARIANT\b", "JSON"),
    (r"\b(UNION|GEOMETRY)\(.*\)|\bGEOMETRY\b", "VARCHAR"),
)


def _substitute(text: str) -> str:
    for pattern, instead in _SUBSTITUTES:
        text = re.sub(pattern, instead, text)
    try:
        return str(parse_type(text))
    except DefinitionError:
        return "VARCHAR"


def _failure(error: duckdb.Error, before: str, sql: str) -> Failure:
    """DuckDB's error, which is JSON after the words for its class. It counts bytes, from the
    start of what stood before the query."""
    text = str(error)
    try:
        plain = json.loads(text[text.index("{") :])
    except ValueError:
        return Failure(type(error).__name__, text.partition("\n")[0])
    at = plain.get("position")
    return Failure(
        kind=plain.get("exception_type", ""),
        message=plain.get("exception_message", "").strip(),
        subtype=plain.get("error_subtype", ""),
        name=plain.get("name", ""),
        candidates=tuple(part for part in plain.get("candidates", "").split(",") if part),
        call=plain.get("call", ""),
        offset=None if at is None else len(sql.encode()[: max(0, int(at) - len(before))].decode(errors="ignore")),
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
