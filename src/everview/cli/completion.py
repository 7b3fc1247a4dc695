"""Completion of words in the shell.

In a place for a table or view, their names are offered; after a name and a dot, its columns; elsewhere the
columns of all tables and views in the statement, the names themselves, and keywords.

    >>> known = Known({"orders": ("id", "amount"), "Old Orders": ("id",)}, ("by_day",))
    >>> candidates("SELECT * FROM o", "o", known)
    ['orders']
    >>> candidates("SELECT am", "am", known, "SELECT am FROM orders")
    ['amount']
    >>> candidates("SELECT o.", "o.", known, "SELECT o. FROM orders o")
    ['o.amount', 'o.id']
    >>> candidates("sel", "sel", known)
    ['select']
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_KEYWORDS = """
    ADD ALL ALTER AND ANY AS ASC BETWEEN BY CASCADE CASE CAST COLUMN CREATE CROSS DELETE DESC DESCRIBE DIALECT
    DISTINCT DROP ELSE END EXCEPT EXISTS EXPLAIN FALSE FILTER FLUSH FOR FORMAT FROM FULL GLOBAL GROUP GROUPS HAVING
    IF ILIKE IN INDEX INDEXES INNER INSERT INTERSECT INTO IS JOIN KEY LEFT LIKE LIMIT MATERIALIZED NATURAL NOT NULL
    NULLS OFFSET ON OR ORDER OUTER OVER PARTITION PRIMARY QUALIFY REPLACE RIGHT SELECT SEMI SET SHOW TABLE TABLES
    THEN TRUE UNION UPDATE USING VALUES VIEW VIEWS WHEN WHERE WINDOW WITH
    BIGINT BOOLEAN DATE DECIMAL DOUBLE INTEGER INTERVAL TIMESTAMP TIMESTAMPTZ VARCHAR
    AVG COALESCE COUNT MAX MIN SUM
"""
KEYWORDS = frozenset(_KEYWORDS.split())
COMMANDS = ("\\?", "\\d", "\\dv", "\\q", "\\timing")
_BEFORE_RELATIONS = frozenset({"FROM", "JOIN", "INTO", "UPDATE", "TABLE", "VIEW", "DESCRIBE", "DESC", "\\D", "\\DV"})
_LAST_WORD = re.compile(r"([\w\\?]+)\s+$")
_WORD = re.compile(r'"((?:[^"]|"")*)"|([\w.]+)')
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[a-z_]+)?")


@dataclass(frozen=True)
class Known:
    """The names that completion knows."""

    relations: Mapping[str, tuple[str, ...]]
    """Tables and views, with their columns."""
    indexes: tuple[str, ...] = ()


def candidates(before: str, word: str, known: Known, text: str | None = None) -> list[str]:
    """The completions of the word that ends the text before the cursor; ``text`` is the whole statement,
    including the part after the cursor."""
    start = before[: len(before) - len(word)]
    if word.startswith("\\"):
        return [one for one in COMMANDS if one.startswith(word)]
    last = _LAST_WORD.search(start)
    if last is not None and last[1].upper() == "INDEX":
        return _matching(word, map(written, known.indexes))
    relations = [written(name) for name in known.relations]
    if last is not None and last[1].upper() in _BEFORE_RELATIONS:
        return _matching(word, relations)
    named = _named(before if text is None else text, known)
    owner, dot, _ = word.rpartition(".")
    if dot and owner.lower() in named:
        return _matching(word, (f"{owner}.{written(column)}" for column in named[owner.lower()]))
    columns = [written(column) for one in named.values() for column in one]
    keywords = [one.lower() if word.islower() else one for one in KEYWORDS]
    found = _matching(word, [*columns, *relations])
    return found + [one for one in _matching(word, keywords) if word and one not in found]


def _named(text: str, known: Known) -> dict[str, tuple[str, ...]]:
    """The tables and views in a text, by name and alias, with their columns."""
    relations = {name.lower(): columns for name, columns in known.relations.items()}
    words = [(quoted or plain).replace('""', '"') for quoted, plain in _WORD.findall(text)]
    found: dict[str, tuple[str, ...]] = {}
    for at, word in enumerate(words):
        columns = relations.get(word.lower())
        if columns is None:
            continue
        found[word.lower()] = columns
        behind = [one for one in words[at + 1 : at + 3] if one.upper() != "AS"][:1]
        if behind and behind[0].upper() not in KEYWORDS:
            found.setdefault(behind[0].lower(), columns)
    return found


def _matching(word: str, names: Iterable[str]) -> list[str]:
    return sorted({name for name in names if name.lower().startswith(word.lower())})


def written(name: str) -> str:
    """A name as a statement writes it: in quotes if it needs them."""
    if _PLAIN.fullmatch(name) and name.upper() not in KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'
