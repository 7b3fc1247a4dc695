"""Texts cut into statements, with quotes, comments and dollar quotes respected.

A statement ends at a semicolon that stands outside of everything that can hold one.

    >>> split("SELECT ';' -- a; b\\n; INSERT INTO t VALUES ($$;$$);")
    ["SELECT ';' -- a; b", 'INSERT INTO t VALUES ($$;$$)']
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_HOLDERS = re.compile(
    r"""
      --[^\n]*                                  # a comment to the end of the line
    | /\*.*?\*/                                 # a comment
    | [eE]'(?:[^'\\]|\\.|'')*'                  # a text with escapes
    | '(?:[^']|'')*'
    | "(?:[^"]|"")*"
    | \$(?P<tag>[A-Za-z_]*)\$.*?\$(?P=tag)\$
    | ;
    """,
    re.VERBOSE | re.DOTALL,
)
_OPENING = re.compile(r"\s*\(*\s*(\w+)")
QUERIES = frozenset({"select", "with", "values", "from", "table", "pivot", "unpivot"})
"""Words that a query begins with."""


def pieces(text: str) -> Iterator[tuple[str, int]]:
    """Statements, and where in the text each of them ends."""
    start = 0
    for found in _HOLDERS.finditer(text):
        if found.group() == ";":
            yield text[start : found.start()].strip(), found.end()
            start = found.end()
    yield text[start:].strip(), len(text)


def split(text: str) -> list[str]:
    """The statements of a text."""
    return [piece for piece, _ in pieces(text) if plain(piece).strip()]


def plain(text: str) -> str:
    """Without comments; texts in quotes stay."""

    def kept(found: re.Match[str]) -> str:
        return " " if found.group().startswith(("--", "/*")) else found.group()

    return _HOLDERS.sub(kept, text)


def bare(text: str) -> str:
    """In lower case, without comments, and with all texts in quotes emptied: for looking for words."""

    def emptied(found: re.Match[str]) -> str:
        held = found.group()
        if held.startswith(("--", "/*")):
            return " "
        return '"' if held.startswith('"') else "''" if held != ";" else held

    return _HOLDERS.sub(emptied, text).lower()


def words_of(text: str) -> set[str]:
    """All words of a text in lower case, those in double quotes too."""
    return set(re.findall(r"\w+", plain(text).lower()))


def first_word(text: str) -> str:
    """The word that a statement begins with, in lower case, after comments and parentheses."""
    found = _OPENING.match(plain(text))
    return found[1].lower() if found else ""


def is_query(text: str) -> bool:
    return first_word(text) in QUERIES


def closing(text: str, start: int, pair: str = "()") -> int:
    """Where what is opened at a place is closed, or -1."""
    depth = 0
    at = start
    while at < len(text):
        held = _HOLDERS.match(text, at)
        if held and held.group() != ";":
            at = held.end()
            continue
        depth += (text[at] == pair[0]) - (text[at] == pair[1])
        if not depth:
            return at
        at += 1
    return -1


def top_level(text: str, by: str = ",") -> list[str]:
    """The parts of a list, cut where no parenthesis or bracket is open."""
    parts: list[str] = []
    depth = start = at = 0
    while at < len(text):
        held = _HOLDERS.match(text, at)
        if held and held.group() != ";":
            at = held.end()
            continue
        depth += (text[at] in "([{<") - (text[at] in ")]}>")
        if text[at] == by and depth <= 0:
            parts.append(text[start:at].strip())
            start = at + 1
        at += 1
    return [*parts, text[start:].strip()]
