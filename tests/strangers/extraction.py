"""A test file, run in DuckDB as far as DuckDB can, and cut into parts in which every table has one shape.

An :class:`Extract` is tables with rows, named queries over them, and the queries that a file asks of
them, in the file's own words.

Constraints, defaults and types by name serve to fill the tables and are not part of them. A table that DuckDB does
not take as it is written is made of those of its columns whose types DuckDB has, under its own or a close name.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import duckdb

from tests.strangers.literals import literal
from tests.strangers.statements import closing, first_word, is_query, plain, top_level, words_of

ROWS = 24
"""How many rows of a table are kept."""
PATIENCE = 3.0
"""Seconds that a statement may take."""
MOST_STATEMENTS = 20_000
MOST_COLUMNS = 60

_SYNONYMS = {
    "jsonb": "JSON",
    "name": "VARCHAR",
    "money": "DECIMAL(19,2)",
    "bytes": "BLOB",
    "varbinary": "BLOB",
    "variant": "JSON",
    "number": "DECIMAL(18,3)",
    "tinytext": "VARCHAR",
    "rw_int256": "HUGEINT",
    "mediumint": "INTEGER",
}
_NAME = r'(?:(?:main|public)\.)?(?P<name>"[^"]+"|\w+)'
_TABLE = re.compile(
    rf"\s*create\s+(?:or\s+replace\s+)?(?:(?:temp|temporary|unlogged|global|local)\s+)*table\s+(?:if\s+not\s+exists\s+)?{_NAME}\s*(?P<rest>\(|as\b)",
    re.IGNORECASE,
)
_VIEW = re.compile(
    rf"\s*create\s+(?:or\s+replace\s+)?(?:(?:temp|temporary|local|recursive)\s+)*(?:materialized\s+)?view\s+(?:if\s+not\s+exists\s+)?{_NAME}\s*(?P<columns>\([^()]*\))?\s*(?:with\s*\([^()]*\)\s*)?as\b",
    re.IGNORECASE,
)
_NO_COLUMN = re.compile(
    r"(constraint|primary\s+key|unique|check|foreign|exclude|like|watermark|index|key|include|period)\b", re.IGNORECASE
)
_UNFINISHED = frozenset({"STRUCT", "MAP", "LIST", "ENUM", "UNION", "ARRAY"})
_QUOTES = '"[]`'
_KEY = re.compile(r"primary\s+key\s*\(([^)]*)\)", re.IGNORECASE)


@dataclass(frozen=True)
class Table:
    name: str
    columns: tuple[tuple[str, str], ...]
    """Names and types."""
    key: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """Literals."""

    def definition(self, *, key: bool) -> str:
        columns = [f"{quoted(name)} {kind}" for name, kind in self.columns]
        if key and self.key:
            columns.append(f"PRIMARY KEY ({', '.join(map(quoted, self.key))})")
        return f"CREATE TABLE {quoted(self.name)} ({', '.join(columns)})"


@dataclass(frozen=True)
class NamedQuery:
    """What the file defines as a view, so that queries can read it."""

    name: str
    columns: str
    query: str

    @property
    def definition(self) -> str:
        return f"CREATE VIEW {quoted(self.name)} {self.columns} AS {self.query}"


@dataclass(frozen=True)
class Extract:
    tables: tuple[Table, ...]
    named: tuple[NamedQuery, ...]
    queries: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def of_json(held: dict[str, Any]) -> Extract:
        tables = (
            Table(
                one["name"],
                tuple((name, kind) for name, kind in one["columns"]),
                tuple(one["key"]),
                tuple(tuple(row) for row in one["rows"]),
            )
            for one in held["tables"]
        )
        return Extract(tuple(tables), tuple(NamedQuery(**one) for one in held["named"]), tuple(held["queries"]))


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def connect() -> duckdb.DuckDBPyConnection:
    """DuckDB with its own defaults, in UTC, in one thread and without files."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET threads = 1")
    connection.execute("SET memory_limit = '2GB'")
    connection.execute("SET temp_directory = ''")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET python_enable_replacements = false")
    return connection


@contextmanager
def limited(connection: duckdb.DuckDBPyConnection, seconds: float = PATIENCE) -> Iterator[None]:
    """Interrupt what the connection does after some seconds."""
    timer = threading.Timer(seconds, connection.interrupt)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@dataclass
class _Part:
    """A part of the file as it grows."""

    columns: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict)
    rows: dict[str, dict[tuple[str, ...], None]] = field(default_factory=dict)
    named: dict[str, NamedQuery] = field(default_factory=dict)
    queries: dict[str, None] = field(default_factory=dict)


class Extraction:
    """Reads statements one after another."""

    def __init__(self) -> None:
        self.connection = connect()
        self._fresh = connect()
        self.part = _Part()
        self.done: list[Extract] = []
        self._changed: set[str] = set()

    def read(self, statements: Iterable[str]) -> list[Extract]:
        for number, text in enumerate(statements):
            if number == MOST_STATEMENTS:
                break
            self._statement(text)
        self._end()
        return self.done

    def _statement(self, text: str) -> None:
        word = first_word(text)
        if is_query(text):
            self.part.queries[text] = None
        elif word == "create" and (found := _VIEW.match(plain(text))):
            self._view(found, plain(text))
        elif word == "create" and (found := _TABLE.match(plain(text))):
            self._table(found, plain(text))
        elif word in ("insert", "update", "delete"):
            if word != "insert":
                self._keep_rows()
            self._changed |= words_of(text) & self.part.columns.keys()
            self._execute(text)
        elif word in ("drop", "alter"):
            self._keep_rows()
            self._execute(text)
            if word == "alter":
                self._look_again(*words_of(text) & self.part.columns.keys())
        elif word == "create" and re.match(r"\s*create\s+(type|sequence)\b", text, re.IGNORECASE):
            self._execute(text)

    def _execute(self, text: str) -> bool:
        try:
            with limited(self.connection):
                self.connection.execute(text)
        except duckdb.Error:
            return False
        return True

    def _view(self, found: re.Match[str], text: str) -> None:
        query = text[found.end() :].strip()
        name = found["name"].strip('"')
        if not is_query(query):
            return
        self.part.queries[query] = None
        named = NamedQuery(name, found["columns"] or "", query)
        if name.lower() not in self.part.columns and self._execute(
            named.definition.replace("CREATE VIEW", "CREATE OR REPLACE VIEW", 1)
        ):
            if self.part.named.get(name.lower(), named) != named:
                self._end()
            self.part.named[name.lower()] = named

    def _table(self, found: re.Match[str], text: str) -> None:
        name = found["name"].strip('"')
        self._keep_rows()
        said = re.sub(
            r"^\s*create\s+((temp|temporary|unlogged|global|local)\s+)+table", "CREATE TABLE", text, flags=re.I
        )
        if not self._execute(said):
            if found["rest"] != "(":
                return
            simple = self._simplified(name, text[found.end() - 1 :])
            if simple is None or not self._execute(simple):
                return
        self._look_again(name)

    def _simplified(self, name: str, rest: str) -> str | None:
        """A table of the columns whose types DuckDB has; None where one has another."""
        end = closing(rest, 0)
        if end < 0:
            return None
        columns: list[str] = []
        key = _KEY.search(rest)
        for said in top_level(rest[1:end]):
            if not said or _NO_COLUMN.match(said):
                continue
            column = re.match(r'("[^"]+"|\[[^\]]+\]|`[^`]+`|[\w$]+)\s*', said)
            kind = self._type(said[column.end() :]) if column else None
            if column is None or kind is None:
                return None
            columns.append(f"{quoted(column[1].strip(_QUOTES))} {kind}")
            if not key and re.search(r"\bprimary\s+key\b", said, re.IGNORECASE):
                columns[-1] += " PRIMARY KEY"
        if key:
            columns.append(f"PRIMARY KEY ({key[1]})")
        return f"CREATE TABLE {quoted(name)} ({', '.join(columns)})" if columns else None

    def _type(self, said: str) -> str | None:
        """The type that a column's definition begins with, in DuckDB's words."""
        words = re.findall(r"\w+|\([^()]*\)|\[\d*\]|<|>|,|\S", said)[:12]
        if not words or re.match(
            r"(not|null|primary|unique|default|check|references|collate|constraint)$", words[0], re.I
        ):
            return "INTEGER"
        words[0] = _SYNONYMS.get(words[0].lower(), words[0])
        for count in range(len(words), 0, -1):
            kind = " ".join(words[:count])
            try:
                row = self.connection.execute(f"SELECT typeof(CAST(NULL AS {kind}))").fetchone()
            except duckdb.Error:
                continue
            if row and row[0] not in _UNFINISHED:
                return str(row[0])
        return None

    def _look_again(self, *names: str) -> None:
        """Learn the shape of tables; where one was known with another, the part ends before it."""
        for table in sorted(names):
            try:
                described = self.connection.execute(f"DESCRIBE {quoted(table)}").fetchall()
            except duckdb.Error:
                continue
            shape = tuple((str(row[0]), str(row[1])) for row in described)
            if len(shape) > MOST_COLUMNS or not self._takes(shape):
                continue
            if self.part.columns.get(table.lower(), shape) != shape:
                self._end()
                self.part.rows[table.lower()] = {}
            self.part.columns[table.lower()] = shape
            self.part.named.pop(table.lower(), None)
            self.part.keys[table.lower()] = tuple(str(row[0]) for row in described if row[3] == "PRI")
            self.part.rows.setdefault(table.lower(), {})
            self._changed.add(table.lower())

    def _takes(self, shape: tuple[tuple[str, str], ...]) -> bool:
        """Whether the types of columns can be written: states of aggregates cannot, and types by name are gone."""
        casts = ", ".join(f"CAST(NULL AS {kind})" for _, kind in shape)
        try:
            self._fresh.execute(f"SELECT {casts}")
        except duckdb.Error:
            return False
        return True

    def _keep_rows(self) -> None:
        """Remember the rows of tables that were written since."""
        for name in self._changed & self.part.columns.keys():
            columns, held = self.part.columns[name], self.part.rows[name]
            if len(held) >= ROWS:
                continue
            casts = ", ".join(f"CAST({quoted(column)} AS VARCHAR)" for column, _ in columns)
            try:
                rows = self.connection.execute(f"SELECT {casts} FROM {quoted(name)} LIMIT {4 * ROWS}").fetchall()
            except duckdb.Error:
                continue
            step = max(1, len(rows) // ROWS)
            for row in rows[::step][: ROWS - len(held)]:
                held[tuple(literal(value, kind) for value, (_, kind) in zip(row, columns, strict=True))] = None
        self._changed.clear()

    def _end(self) -> None:
        """The part is over; what is defined goes on into the next one."""
        self._keep_rows()
        part = self.part
        if part.queries:
            tables = tuple(
                Table(name, columns, part.keys[name], _unique(columns, part.keys[name], part.rows[name]))
                for name, columns in part.columns.items()
            )
            self.done.append(Extract(tables, tuple(part.named.values()), tuple(part.queries)))
        self.part = _Part(dict(part.columns), dict(part.keys), dict(part.rows), dict(part.named))


def _unique(
    columns: tuple[tuple[str, str], ...], key: tuple[str, ...], rows: Iterable[tuple[str, ...]]
) -> tuple[tuple[str, ...], ...]:
    """One row for each key: a file may have deleted a row and written it again."""
    at = [number for number, (name, _) in enumerate(columns) if name in key]
    return tuple({tuple(row[number] for number in at) if at else row: row for row in rows}.values())
