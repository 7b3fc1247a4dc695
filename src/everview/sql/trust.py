"""Whether our reading of a query can be trusted.

It can if DuckDB reads the same query in the user's own words and in the text that is
written from our tree (:mod:`everview.sql.own_parse`).

Thousands of views that differ in constants are worded alike, so two texts are compared with their literals
left out, once, and beside that the literals one by one.
"""

from __future__ import annotations

import re

from everview.sql.own_parse import parse_tree, same_reading

_LITERAL = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|(?<![\w.])\d+(?:\.\d+)?(?![\w.])""")
_KNOWN: dict[tuple[str, str], bool] = {}
_MOST = 10_000


def is_trusted(words: str, rendered: str) -> bool:
    """Whether a query means the same in both texts; also where DuckDB reads none in the words: then they
    say something that is Everview's own."""
    own, ours = _literals(words), _literals(rendered)
    shapes = shape(words), shape(rendered)
    if own == ours and shapes in _KNOWN:
        return _KNOWN[shapes]
    found = parse_tree(words) is None or same_reading(words, rendered)
    if own == ours:
        if len(_KNOWN) >= _MOST:
            _KNOWN.clear()
        _KNOWN[shapes] = found
    return found


def shape(text: str) -> str:
    """A text without its constants."""
    return _LITERAL.sub(_shape, text)


def _literals(text: str) -> list[str]:
    return [literal for literal in _LITERAL.findall(text) if not literal.startswith('"')]


def _shape(match: re.Match[str]) -> str:
    literal = match.group()
    return literal if literal.startswith('"') else "''" if literal.startswith("'") else "0." if "." in literal else "0"
