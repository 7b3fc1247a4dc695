"""Values as SQL literals: those of rows that are there, and generated ones of any type.

A value is a text that means the same to DuckDB and to Everview, and a :class:`Pool` has for each type
the values that files and queries contain, NULL, ties, and the extremes of the type.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence

import duckdb

_WHOLE = {
    "TINYINT": 8,
    "SMALLINT": 16,
    "INTEGER": 32,
    "BIGINT": 64,
    "HUGEINT": 128,
    "UTINYINT": -8,
    "USMALLINT": -16,
    "UINTEGER": -32,
    "UBIGINT": -64,
    "UHUGEINT": -128,
}
_USUAL: dict[str, tuple[str, ...]] = {
    "DOUBLE": ("0", "1", "2.5", "-1", "0.1", "3"),
    "FLOAT": ("0", "1", "2.5", "-1", "0.25"),
    "VARCHAR": ("", "a", "b", "A", "ab", "1", " a", "ä"),
    "BOOLEAN": ("true", "false"),
    "DATE": ("2020-01-01", "2020-02-29", "1992-03-04", "2021-12-31"),
    "TIME": ("00:00:00", "12:30:00", "23:59:59.999999"),
    "TIMESTAMP": ("2020-01-01 00:00:00", "2020-02-29 12:00:00.5", "1992-03-04 01:02:03"),
    "TIMESTAMP WITH TIME ZONE": ("2020-01-01 00:00:00+00", "2020-06-01 12:00:00+02"),
    "INTERVAL": ("1 day", "1 month", "30 days", "00:00:01", "-1 day"),
    "BLOB": ("", "a", "\\x00\\xFF"),
    "UUID": ("00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    "JSON": ("1", '{"a": 1}', "[1, 2]", "null"),
}
_EXTREME: dict[str, tuple[str, ...]] = {
    "DOUBLE": ("nan", "inf", "-inf", "1e300", "-0.0"),
    "FLOAT": ("nan", "inf", "-inf", "1e30", "-0.0"),
    "VARCHAR": ("\U0010fffd", "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz", "NULL", "nan"),
    "DATE": ("0001-01-01", "9999-12-31"),
    "TIME": ("24:00:00",),
    "TIMESTAMP": ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"),
    "TIMESTAMP WITH TIME ZONE": ("0001-01-01 00:00:00+00", "9999-12-31 23:59:59+00"),
    "INTERVAL": ("1000 years", "-1000 years", "0 days"),
}
NUMBERS = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")
TEXTS = re.compile(r"'((?:[^']|'')*)'")


def literal(text: str | None, kind: str) -> str:
    """A value, given as DuckDB casts it to text, as a literal of its type."""
    if text is None:
        return "NULL"
    if (kind in _WHOLE or kind.startswith("DECIMAL")) and NUMBERS.fullmatch(text):
        return text
    quoted = "'" + text.replace("'", "''") + "'"
    return quoted if kind == "VARCHAR" else f"CAST({quoted} AS {kind})"


def _usual(kind: str) -> tuple[str, ...]:
    if kind in _WHOLE:
        return ("0", "1", "2", "3", "5", "10") + (("-1", "-2") if _WHOLE[kind] > 0 else ())
    if kind.startswith("DECIMAL"):
        return ("0", "1", "2.5", "-1", "0.1")
    if kind.endswith("]"):
        inner = _usual(kind.rpartition("[")[0])
        return ("[]", "[NULL]", *(f"[{value}]" for value in inner[:3]), f"[{', '.join(inner[:2])}, NULL]")
    return _USUAL.get(kind, ())


def _extreme(kind: str) -> tuple[str, ...]:
    if kind in _WHOLE:
        bits = _WHOLE[kind]
        return (str(2 ** (bits - 1) - 1), str(-(2 ** (bits - 1)))) if bits > 0 else (str(2**-bits - 1),)
    if found := re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", kind):
        whole, places = int(found[1]) - int(found[2]), int(found[2])
        most = "9" * whole + ("." + "9" * places if places else "") if whole else "0." + "9" * places
        return (most, "-" + most)
    return _EXTREME.get(kind, ())


class Pool:
    """Literals of each type. Columns of one type share them, so that joins and groups meet."""

    def __init__(self, values: Mapping[str, Iterable[str]], texts: Sequence[str], judge: duckdb.DuckDBPyConnection):
        """``values`` are literals of rows by type, ``texts`` queries whose constants occur in rows too."""
        constants: list[str] = []
        for text in texts:
            constants += NUMBERS.findall(text)[:20]
            constants += [found.replace("''", "'") for found in TEXTS.findall(text)[:20]]
        constants = list(dict.fromkeys(constants))[:200]
        self._seen = {kind: list(dict.fromkeys(found))[:60] for kind, found in values.items()}
        self._usual = {kind: _fitting(kind, _usual(kind), judge) for kind in values}
        self._constants = {kind: _fitting(kind, constants, judge) for kind in values}
        self._extreme = {kind: _fitting(kind, _extreme(kind), judge) for kind in values}

    def draw(self, kind: str, rng: random.Random, *, extreme: bool = False) -> str:
        """A literal; NULL once in six times."""
        if rng.random() < 1 / 6:
            return "NULL"
        if extreme and self._extreme[kind] and rng.random() < 0.5:
            return rng.choice(self._extreme[kind])
        sources = [self._seen[kind], self._usual[kind], self._constants[kind]]
        sources = [source for source in sources if source]
        return rng.choice(rng.choice(sources)) if sources else "NULL"


def _fitting(kind: str, texts: Sequence[str], judge: duckdb.DuckDBPyConnection) -> list[str]:
    """Literals of the texts that a type can take."""
    found: list[str] = []
    for text in texts:
        try:
            row = judge.execute(f"SELECT CAST(TRY_CAST($1 AS {kind}) AS VARCHAR)", [text]).fetchone()
        except duckdb.Error:
            continue
        if row and row[0] is not None:
            found.append(literal(row[0], kind))
    return list(dict.fromkeys(found))
