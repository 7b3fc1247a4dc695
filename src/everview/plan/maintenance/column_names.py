"""Canonical names: what a column is called, whatever its aliases.

A column of a base table is ``table.column`` wherever it goes, what is computed is
called by its own text, and a join that meets the same tables twice numbers the second side.

    SELECT o.amount * 2 AS twice FROM orders AS o        orders.amount * 2
    SELECT count(*) FROM orders GROUP BY customer        orders.count(*)
    orders AS a JOIN orders AS b ON a.id = b.parent      orders.id, 2:orders.parent

So names do not depend on what a query calls things, nor on which other columns are there. A
column of a table that is not a plain word stands in quotes, so nothing computed can be
mistaken for it. Long texts are cut and end in a hash.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from everview.plan.maintenance.fingerprint import fingerprint

_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_TOKEN = re.compile(r"""'(?:[^']|'')*'|"((?:[^"]|"")*)"|\$(\d+)""")
_LONGEST = 60


def column_name(table: str, column: str) -> str:
    """Of a base table's column."""
    return f"{table}.{column if _WORD.fullmatch(column) else _quoted(column)}"


def computed_name(labels: Sequence[str], sql: str) -> str:
    """Of what is computed from the fields of these sources."""
    own = f"{labels[0]}."

    def plain(name: str) -> str:
        short = name.removeprefix(own)
        return short if _WORD.fullmatch(short) else name

    text = pretty(sql, plain)
    if _WORD.fullmatch(text) or text.startswith('"'):
        text = f"({text})"
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST - 12]}… #{fingerprint('expression', sql)[:8]}"
    return own + text


def above(what: str, labels: Sequence[str]) -> tuple[str, ...]:
    """The sources of rows to which a step has added columns that no expression over the others
    gives: what a further such step calls the same, such as ``count(*)``, is something else."""
    return (f"{what} {labels[0]}", *labels)


def side_prefix(left: Sequence[str], right: Sequence[str]) -> str:
    """What the names of a join's right side begin with: nothing where the sides have no source
    in common."""
    taken, prefix, number = set(left), "", 1
    while any(prefix + label in taken for label in right):
        number += 1
        prefix = f"{number}:"
    return prefix


def pretty(sql: str, shown: Callable[[str], str] = str) -> str:
    """SQL for people: names without quotes."""

    def change(match: re.Match[str]) -> str:
        name = match.group(1)
        return match.group() if name is None else shown(name.replace('""', '"'))

    return _TOKEN.sub(change, sql)


def filled(sql: str, constants: Sequence[str]) -> str:
    """SQL with the parameters ``$1``, ``$2``, … replaced by constants."""

    def change(match: re.Match[str]) -> str:
        number = match.group(2)
        return match.group() if number is None else constants[int(number) - 1]

    return _TOKEN.sub(change, sql) if constants else sql


def numbered_from(sql: str, first: int) -> str:
    """SQL with its parameters ``$1``, ``$2``, … numbered from another number."""

    def change(match: re.Match[str]) -> str:
        number = match.group(2)
        return match.group() if number is None else f"${int(number) + first - 1}"

    return _TOKEN.sub(change, sql) if first != 1 else sql


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
