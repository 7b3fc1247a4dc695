"""Views recomputed, by DuckDB, from streams of base rows.

A workspace is a database in memory that spills to a directory, in which every view stands
as a table of what its query returns, views on views over the recomputed ones, never over what is stored.

Each query sees its tables under their names in a schema of its own, with the columns that they had when
the view was created; the hidden key of a table is there where an order needs it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Protocol

import duckdb
import pyarrow as pa

from everview.catalog import Definitions, Maintained, ViewDefinition
from everview.check.compare import Compared, Comparison, quoted
from everview.check.exact_sums import define_exact_sums
from everview.check.user_queries import Question, ViewQuery
from everview.errors import EverviewError
from everview.sql.result_values import fetched
from everview.sql.settings import connect
from everview.store.contract import Table
from everview.store.encoding.registering import register, unregister


class RecomputedRows(Protocol):
    """RecomputedRows in Arrow's stream, which may be read several times."""

    @property
    def schema(self) -> pa.Schema: ...

    def scan(self) -> Iterator[pa.RecordBatch]: ...

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


class Watched:
    """RecomputedRows that remember why reading them broke off: DuckDB reports it in words of its own."""

    def __init__(self, rows: RecomputedRows) -> None:
        self._rows = rows
        self.schema = rows.schema
        self.failure: Exception | None = None

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pa.RecordBatchReader.from_batches(self.schema, self.scan()).__arrow_c_stream__(requested_schema)

    def scan(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._rows.scan()
        except Exception as error:
            self.failure = error
            raise


@dataclass(frozen=True)
class Recomputed:
    """The rows that a view should have, in a table of the workspace."""

    table: str
    query: ViewQuery
    doubts: tuple[str, ...] = ()
    """What SQL leaves open and could not be settled: rows at a tie may be others."""
    exact: bool = True
    """No number is computed from many rows."""
    left_out: str = ""
    """Why rows whose expression failed were left out."""
    asked: int = 0
    """Which of the view's questions it is the answer to."""


class Unreadable(Exception):
    """The base rows cannot be read, and why."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class Unknown(Exception):
    """A view whose rows cannot be computed, and why."""


class Workspace:
    """Recomputes views of one version of the catalog over base rows of one frontier."""

    def __init__(
        self,
        definitions: Definitions,
        base: Callable[[Table], RecomputedRows],
        folder: Path,
        quarantined: Mapping[str, int] | None = None,
    ) -> None:
        self._definitions = definitions
        self._base = base
        self._quarantined = quarantined or {}
        """How many rows, groups and partitions without a value each view lacks."""
        self._tables: dict[int, Watched] = {}
        self._known: dict[int, Recomputed | Unknown] = {}
        self._connection = connect(folder / "spilled")
        define_exact_sums(self._connection)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Workspace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -------------------------------------------------------------- recomputing

    def recomputed(self, one: Maintained) -> Recomputed:
        """The rows that a view or index should have. Raises Unknown where that cannot be known."""
        found = self._known.get(one.id)
        if found is None:
            try:
                found = self._compute(one)
            except Unknown as reason:
                found = reason
            except Unreadable as reason:
                raise reason.cause from None
            self._known[one.id] = found
        if isinstance(found, Unknown):
            raise found
        return found

    def _compute(self, one: Maintained) -> Recomputed:
        query = ViewQuery(one, self._definitions)
        lacks = self._quarantined.get(one.name, 0)
        if query.recursive and lacks:
            raise Unknown(f"it is recursive, and {lacks} partitions of it are quarantined: the whole may have no end")
        if query.endless:
            raise Unknown("DuckDB does not return from an as-of RIGHT or FULL join where no row finds a match")
        below = [self.recomputed(s.of) for s in query.sources if isinstance(s.of, ViewDefinition)]
        for in_words in {question.in_words for question in (*query.questions, query.recorded)}:
            self._define(query, in_words)
        doubts = tuple(doubt for found in below for doubt in found.doubts)
        exact = not query.aggregates and all(found.exact for found in below)
        made = Recomputed(f"main.{_own(one)}", query, doubts, exact)
        return self._answered(made)

    def _answered(self, made: Recomputed) -> Recomputed:
        questions = made.query.questions
        try:
            return self._asked(made, questions[made.asked])
        except (duckdb.ProgrammingError, EverviewError):
            if made.asked + 1 < len(questions):
                return self._answered(replace(made, asked=made.asked + 1))
            return self._as_recorded(made)
        except duckdb.Error as error:
            return self._left_out(made, _words(error))

    def otherwise(self, recomputed: Recomputed) -> Recomputed | None:
        """The answer to what is asked next of the same view; None where nothing is."""
        if recomputed.left_out or recomputed.asked + 1 >= len(recomputed.query.questions):
            return None
        self._connection.execute(f"DROP TABLE {recomputed.table}")
        found = self._answered(replace(recomputed, doubts=(), asked=recomputed.asked + 1))
        self._known[recomputed.query.one.id] = found
        return found

    def _as_recorded(self, made: Recomputed) -> Recomputed:
        """By the recorded text, where no more exact form exists that DuckDB takes."""
        try:
            return self._asked(made, made.query.recorded)
        except duckdb.Error as error:
            return self._left_out(made, _words(error))

    def leaving_out(self, recomputed: Recomputed) -> Recomputed:
        """The same view once more, without the rows that have no value."""
        self._connection.execute(f"DROP TABLE {recomputed.table}")
        one = recomputed.query.one
        self._known[one.id] = found = self._left_out(recomputed, "some have none")
        return found

    def _left_out(self, made: Recomputed, why: str) -> Recomputed:
        try:
            return replace(self._asked(made, made.query.without_failures), left_out=why)
        except (duckdb.Error, EverviewError):
            raise Unknown(f"its query has no answer over these rows: {why}") from None

    def _asked(self, made: Recomputed, question: Question) -> Recomputed:
        self._ask(made.query, question)
        return replace(made, doubts=(*made.doubts, *question.doubts))

    def _define(self, query: ViewQuery, in_words: bool) -> None:
        """The schema in which a query finds what it reads: as the user sees it, or with the hidden keys of tables
        and without named queries, whose texts are written out where they are used."""
        schema = _schema(query.one, in_words)
        self._connection.execute(f"CREATE SCHEMA {schema}")
        self._connection.execute(f"SET search_path = '{schema}'")
        for source in query.sources:
            columns = ""
            if isinstance(source.of, Table):
                hidden = source.of.schema.key if source.of.schema.hidden_key and not in_words else ()
                shown = ", ".join(quoted(name) for name in (*source.columns, *hidden))
                read = f"SELECT {shown} FROM {self._stream(source.of)}"
            elif isinstance(source.of, ViewDefinition):
                read = f"FROM memory.main.{_own(source.of)}"
            elif in_words:
                columns = f" ({', '.join(map(quoted, source.columns))})"
                read = source.of.sql
            else:
                continue
            self._connection.execute(f"CREATE VIEW {schema}.{quoted(source.name)}{columns} AS {read}")
        self._connection.execute("SET search_path = 'main'")

    def _stream(self, table: Table) -> str:
        name = f"temp.__base_{table.id}"
        if table.id not in self._tables:
            self._tables[table.id] = Watched(self._base(table))
            register(self._connection, name.partition(".")[2], self._tables[table.id])
        return name

    def _ask(self, query: ViewQuery, question: Question) -> None:
        names = [quoted(column.name) for column in query.columns]
        typed = ", ".join(f"CAST({n} AS {c.type}) AS {n}" for n, c in zip(names, query.columns, strict=True))
        answer = f"SELECT {typed} FROM (\n{question.sql}\n) AS answer({', '.join(names)})"
        self._connection.execute(f"SET search_path = '{_schema(query.one, question.in_words)}'")
        try:
            self._connection.execute(f"CREATE TABLE memory.main.{_own(query.one)} AS {answer}")
        except duckdb.Error:
            broken = [rows.failure for rows in self._tables.values() if rows.failure is not None]
            if broken:
                raise Unreadable(broken[0]) from None
            raise
        finally:
            self._connection.execute("SET search_path = 'main'")

    # -------------------------------------------------------------- comparing

    def compared(self, recomputed: Recomputed, shown: RecomputedRows, samples: int) -> Compared:
        """How the rows that a view shows differ from those that it should have."""
        query = recomputed.query
        comparison = Comparison(query.columns, query.key, recomputed.exact, samples)
        names = ", ".join(quoted(column.name) for column in query.columns)
        register(self._connection, "__shown", shown)
        try:
            self._connection.execute(f"CREATE TABLE __found AS SELECT {names} FROM __shown")
            return comparison.of(self._connection, recomputed.table, "__found")
        finally:
            self._connection.execute("DROP TABLE IF EXISTS __found")
            with contextlib.suppress(duckdb.Error):
                unregister(self._connection, "__shown", shown)

    def rows(self, recomputed: Recomputed) -> list[tuple[object, ...]]:
        """All rows that a view should have, as Python's values."""
        return fetched(self._connection, f"FROM {recomputed.table}")

    def forget(self, one: Maintained) -> None:
        """Let go of a view's rows."""
        if isinstance(self._known.pop(one.id, None), Recomputed):
            self._connection.execute(f"DROP TABLE IF EXISTS main.{_own(one)}")
            for in_words in (True, False):
                self._connection.execute(f"DROP SCHEMA IF EXISTS {_schema(one, in_words)} CASCADE")


def _own(one: Maintained) -> str:
    return f"__should_be_{one.id}"


def _schema(one: Maintained, in_words: bool) -> str:
    return f"__{'words' if in_words else 'reads'}_{one.id}"


def _words(error: Exception) -> str:
    return error.message if isinstance(error, EverviewError) else str(error).partition("\n")[0]
