"""What DuckDB itself answers: the same rows, the stranger's own words, nothing of ours.

An :class:`Oracle` is a plain DuckDB with the tables of an extract, and its answers are bags of rows
whose values are written as DuckDB writes them.

It decides four things: whether a query is for us at all (:meth:`Oracle.rejection`), what its answer is over the rows
that are there (:meth:`Oracle.answer`), whether two answers are the same (:func:`same`), and whether the answer
depends on what SQL leaves open (:meth:`Oracle.alternatives`): the order of the rows, or the optimizer.
"""

from __future__ import annotations

import functools
import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from everview.store.encoding.registering import register, unregister
from tests.strangers.extraction import Extract, Table, connect, limited, quoted
from tests.strangers.histories import History
from tests.strangers.statements import bare, is_query, words_of

ROWS = 20_000
"""An answer of more rows is not compared."""
PERMUTATIONS = 64
"""Orders of the rows in which a question is asked again whose answer is not that of a view."""
_LIMIT = re.compile(
    r"\s(?:limit\s+\d+(?:\.\d+)?\s*(?:%|percent)?(?:\s+offset\s+\d+)?|offset\s+\d+)\s*;?\s*$", re.IGNORECASE
)
_ORDER = re.compile(r"\border\s+by\b(?![^()]*\))", re.IGNORECASE)
"""Outside of parentheses."""
_DIRECTION = re.compile(r"\b(?:asc|desc|nulls\s+(?:first|last))\b", re.IGNORECASE)
_NO_SORTED_JOINS = "SET nested_loop_join_threshold = 1000000000; SET merge_join_threshold = 1000000000"
"""A join by < sorts its rows: whatever order they come in, they leave in one."""
DIGITS = 1e-9
"""The relative difference up to which two sums of DOUBLE are the same."""

Row = tuple[str | None, ...]


@dataclass(frozen=True)
class Answer:
    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[Row, ...]


class NoAnswerError(Exception):
    """DuckDB raises an error for these rows, or takes too long."""


class TooLargeError(NoAnswerError):
    """DuckDB takes longer for an answer, or it has more rows, than is worth waiting for."""


_KEYWORDS = (
    "current_date|current_time|current_timestamp|localtime|localtimestamp|current_user|session_user|current_role|user"
)
_OUTSIDE = re.compile(
    r"\b(tablesample|using\s+sample|information_schema|pg_catalog|sqlite_master|sqlite_schema|sqlite_temp_\w+|version\s*\("
    r"|(?:duckdb|pragma|pg|read|parquet|sniff|repeat_row|test|seq_scan|index_scan|glob|mz|rw|has|query|icu)_\w+\s*\("
    r"|duckdb_\w+|mz_\w+|rw_\w+|pg_\w+|glob\s*\(|query\s*\(|query_table\s*\(|txid_\w+|reservoir_quantile|approx_quantile|summarize)",
)
_AGE = re.compile(r"\bage\s*\([^,()]*(?:\([^()]*\)[^,()]*)*\)")


@functools.cache
def _volatile() -> re.Pattern[str]:
    """Functions that DuckDB does not call consistent, and words that mean such a function."""
    found = connect().execute(
        "SELECT DISTINCT function_name FROM duckdb_functions()"
        " WHERE stability IN ('VOLATILE', 'CONSISTENT_WITHIN_QUERY') AND function_name <> 'error'"
    )
    names = "|".join(re.escape(name) for (name,) in found.fetchall())
    return re.compile(rf"\b(?:{names})\s*\(|\b(?:{_KEYWORDS})\b(?!\s*\.)")


Foretold = dict[str, list[Answer | None]]
"""The answers to queries, by their numbers, before the first round and after each; None where there is none."""


class Oracle:
    """The tables of an extract in DuckDB, empty at first."""

    def __init__(self, extract: Extract) -> None:
        self.extract = extract
        self._named = {named.name.lower(): named for named in extract.named}
        self._names = {*self._named, *(table.name.lower() for table in extract.tables)}
        self.connection = connect()
        for table in extract.tables:
            self.connection.execute(table.definition(key=False))
        self._define(self.connection)

    def _define(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Named queries, in an order in which each can be made; those that cannot be are left out."""
        waiting = list(self.extract.named)
        while waiting:
            left = []
            for named in waiting:
                try:
                    connection.execute(named.definition)
                except duckdb.Error:
                    left.append(named)
            if len(left) == len(waiting):
                return
            waiting = left

    def reads(self, query: str) -> set[str]:
        """The tables and named queries that a query may read, also through others, in lower case: those whose
        names occur in it."""
        found = self._named_in(query)
        waiting = list(found)
        while waiting:
            named = self._named.get(waiting.pop())
            more = self._named_in(named.query) - found if named else set()
            found |= more
            waiting += more
        return found

    def _named_in(self, text: str) -> set[str]:
        words, low = words_of(text), text.lower()
        return {name for name in self._names if name in words or quoted(name) in low}

    def rejection(self, query: str) -> str | None:
        """Why a query is not for us, asked while the tables are empty; None where it is."""
        read = self.reads(query)
        words = " ".join(
            bare(text) for text in (query, *(self._named[name].query for name in read & self._named.keys()))
        )
        if _volatile().search(words) or _AGE.search(words):
            return "volatile"
        if _OUTSIDE.search(words):
            return "reads the system"
        if re.search(r"\b(rowid|ctid|oid|tableoid|xmin|_rowid_)\b", words):
            return "physical row ids"
        if not is_query(query) or "$" in bare(query) or "?" in bare(query):
            return "not a query"
        try:
            with limited(self.connection):
                kinds = [statement.type for statement in self.connection.extract_statements(query)]
                if kinds != [duckdb.StatementType.SELECT]:
                    return "not a query"
                self.connection.execute(f"CREATE OR REPLACE TEMP VIEW strangers_probe AS {query}")
                self.connection.execute("DROP VIEW strangers_probe")
                self.answer(query)
        except (duckdb.Error, NoAnswerError):
            return "rejected by DuckDB"
        return None

    def answer(self, query: str, connection: duckdb.DuckDBPyConnection | None = None) -> Answer:
        """The answer over the rows that are there."""
        asked = connection or self.connection
        try:
            with limited(asked):
                asked.execute(f"CREATE OR REPLACE TEMP TABLE strangers_answer AS {query}\n")
                described = asked.execute("DESCRIBE strangers_answer").fetchall()
                casts = ", ".join(f"CAST({quoted(str(row[0]))} AS VARCHAR)" for row in described)
                rows = asked.execute(f"SELECT {casts} FROM strangers_answer LIMIT {ROWS + 1}").fetchall()
        except (duckdb.InterruptException, duckdb.OutOfMemoryException) as error:
            raise TooLargeError(str(error)) from error
        except (duckdb.Error, RuntimeError, UnicodeDecodeError) as error:
            raise NoAnswerError(str(error)) from error
        if len(rows) > ROWS:
            raise TooLargeError("too many rows")
        return Answer(tuple(str(row[0]) for row in described), tuple(str(row[1]) for row in described), tuple(rows))

    def foretell(self, history: History, queries: Mapping[str, str]) -> tuple[History, Foretold]:
        """The history without writes that DuckDB rejects, and the answers all through it, without queries that are
        too large in any of its rounds."""
        found: Foretold = {number: [] for number in queries}
        done: list[tuple[str, ...]] = []
        for texts in (history.before, *history.rounds):
            done.append(tuple(text for text in texts if self._written(text)))
            for number in list(found):
                try:
                    found[number].append(self.answer(queries[number]))
                except TooLargeError:
                    del found[number]
                except NoAnswerError:
                    found[number].append(None)
        return History(done[0], tuple(done[1:])), found

    def _written(self, text: str) -> bool:
        try:
            self.connection.execute(text)
        except duckdb.Error:
            return False
        return True

    def unlimited(self, query: str) -> Answer | None:
        """The rows of which a LIMIT takes some. None of a query without LIMIT."""
        found = _LIMIT.search(query)
        try:
            return None if found is None else self.answer(query[: found.start()])
        except NoAnswerError:
            return None

    def order(self, query: str, answer: Answer) -> list[int] | None:
        """The places of the columns that a query is ordered by; None where these are not all columns that it shows."""
        found = list(_ORDER.finditer(query))
        if not found:
            return []
        asked = _LIMIT.sub("", query[found[-1].end() :])
        names = [name.lower() for name in answer.names]
        places = []
        for part in asked.split(","):
            word = _DIRECTION.sub("", part).strip().lower()
            name = word.rpartition(".")[2].strip('"')
            if word.isdigit() and int(word) <= len(names):
                places.append(int(word) - 1)
            elif names.count(name) == 1:
                places.append(names.index(name))
            else:
                return None
        return places

    def alternatives(self, query: str, seed: int) -> Iterator[Answer | None]:
        """What DuckDB also answers: without its optimizer, and with the rows in other orders. None is an error, also
        one that only a row in an empty table brings about: what no row is compared with is not evaluated."""
        rng = random.Random(seed)
        read = self.reads(query)
        if self._fails_with_rows(query, read):
            yield None
        for number in range(PERMUTATIONS + 1):
            other = connect()
            if not number:
                other.execute("PRAGMA disable_optimizer")
            elif number % 2:
                other.execute(_NO_SORTED_JOINS)
            for table in self.extract.tables:
                other.execute(table.definition(key=False))
                if table.name.lower() not in read:
                    continue
                bits = [quoted(name) for name, kind in table.columns if kind == "BIT"]  # Arrow has bytes for them
                texts = f" REPLACE ({', '.join(f'CAST({name} AS VARCHAR) AS {name}' for name in bits)})" if bits else ""
                rows = self.connection.sql(f"SELECT *{texts} FROM {quoted(table.name)}").to_arrow_table()
                order = list(range(rows.num_rows))
                if number:
                    rng.shuffle(order) if number > 1 else order.reverse()
                if order:
                    other.register("strangers_rows", rows.take(order))
                    other.execute(f"INSERT INTO {quoted(table.name)} SELECT * FROM strangers_rows")
                    other.unregister("strangers_rows")
            self._define(other)
            try:
                found = self.answer(query, other)
            except NoAnswerError:
                found = None
            finally:
                other.close()
            yield found

    def _fails_with_rows(self, query: str, read: Iterable[str]) -> bool:
        empty = [
            table
            for table in self.extract.tables
            if table.name.lower() in read
            and not self.connection.execute(f"SELECT 1 FROM {quoted(table.name)} LIMIT 1").fetchall()
        ]
        return bool(empty) and any(self._fails_with(query, empty, value) for value in ("NULL", "'1'"))

    def _fails_with(self, query: str, empty: Iterable[Table], value: str) -> bool:
        """Whether the query has no answer with one row of such values in tables that are empty."""
        self.connection.execute("BEGIN")
        try:
            for table in empty:
                values = ", ".join(f"TRY_CAST({value} AS {kind})" for _, kind in table.columns)
                self.connection.execute(f"INSERT INTO {quoted(table.name)} VALUES ({values})")
            self.answer(query)
        except NoAnswerError:
            return True
        except duckdb.Error:
            return False
        finally:
            self.connection.execute("ROLLBACK")
        return False

    def written(self, rows: pa.Table) -> tuple[Row, ...]:
        """Rows with their values as DuckDB writes them."""
        register(self.connection, "strangers_rows", rows)
        try:
            return tuple(self.connection.execute("SELECT CAST(COLUMNS(*) AS VARCHAR) FROM strangers_rows").fetchall())
        finally:
            unregister(self.connection, "strangers_rows", rows)

    def equal(self, query: str, rows: pa.Table) -> bool:
        """Whether rows equal the answer by DuckDB's own comparison, though they look otherwise: 0.0 and -0.0, a month
        and 30 days."""
        answer = self.answer(query)
        casts = ", ".join(f"CAST(c{at} AS {kind}) AS c{at}" for at, kind in enumerate(answer.types))
        register(self.connection, "strangers_rows", rows)
        try:
            others = self.connection.execute(
                f"SELECT 1 FROM (SELECT * FROM strangers_answer EXCEPT ALL SELECT {casts} FROM strangers_rows)"
            ).fetchall()
        except duckdb.Error:
            return False
        finally:
            unregister(self.connection, "strangers_rows", rows)
        return len(answer.rows) == rows.num_rows and not others

    def close(self) -> None:
        self.connection.close()


def same(expected: Answer, rows: tuple[Row, ...]) -> bool:
    """Whether rows are those of an answer, as bags; of DOUBLE columns nine digits count."""
    if Counter(expected.rows) == Counter(rows):
        return True
    inexact = [at for at, kind in enumerate(expected.types) if kind == "DOUBLE"]
    if not inexact or len(expected.rows) != len(rows):
        return False
    one, other = (sorted(found, key=lambda row: _ordered(row, inexact)) for found in (expected.rows, rows))
    return all(_near(left, right, inexact) for left, right in zip(one, other, strict=True))


def _ordered(row: Row, inexact: list[int]) -> tuple[object, ...]:
    exact = tuple((value is not None, value or "") for at, value in enumerate(row) if at not in inexact)
    floats = tuple((row[at] is not None, _number(row[at])) for at in inexact)
    return (exact, floats)


def _number(text: str | None) -> float:
    """NaN sorts as the largest."""
    value = float(text) if text is not None else 0.0
    return math.inf if math.isnan(value) else value


def _near(one: Row, other: Row, inexact: list[int]) -> bool:
    for at, (left, right) in enumerate(zip(one, other, strict=True)):
        if left == right:
            continue
        if at not in inexact or left is None or right is None:
            return False
        if not math.isclose(float(left), float(right), rel_tol=DIGITS, abs_tol=1e-12):
            return False
    return True
