"""Patterns and parts of texts in other dialects.

LIKE, SIMILAR TO, regular expressions and substrings are written so that DuckDB finds in
them what the dialect finds.

A regular expression that is a literal is tried: DuckDB's (RE2) has no look-around and no back references,
and a text with them is refused. The dot of PostgreSQL's matches the end of a line, as the option ``s`` has it.
"""

from __future__ import annotations

import re

from sqlglot import exp

from everview.sql.marks import fails
from everview.sql.meanings import Meaning, Substring
from everview.sql.typer import Failure, typer

_POSTGRES = frozenset({"postgres", "risingwave", "materialize", "redshift"})
_TSQL = frozenset({"tsql", "fabric"})
_DOLLARS = frozenset({"mysql", "singlestore", "doris", "starrocks", "spark", "spark2", "databricks", "hive"})
"""Where a replacement names a group ``$1``."""

_EXPRESSIONS = (
    exp.RegexpLike,
    exp.RegexpILike,
    exp.RegexpReplace,
    exp.RegexpExtract,
    exp.RegexpExtractAll,
    exp.RegexpCount,
    exp.RegexpFullMatch,
)


class NoCounterpart(Exception):
    """There is nothing in DuckDB that means the same: what is wrong, and what to write."""


def _like(node: exp.Expr, meaning: Meaning, dialect: str) -> exp.Expr | None:
    if not isinstance(node, exp.Like | exp.ILike):
        return None
    pattern = node.expression
    literal = isinstance(pattern, exp.Literal)
    if dialect in _TSQL and literal and "[" in pattern.name:
        raise NoCounterpart("DuckDB's LIKE has no sets of characters", "write several conditions with OR")
    changed = exp.ILike(**_copied(node)) if not meaning.like_case and type(node) is exp.Like else None
    escaped = isinstance(node.parent, exp.Escape) or isinstance(pattern, exp.Any | exp.All | exp.Tuple)
    if not meaning.like_escape or escaped or (literal and "\\" not in pattern.name):
        return changed
    return exp.Escape(this=changed or node.copy(), expression=exp.Literal.string("\\"))


def _copied(node: exp.Expr) -> dict[str, object]:
    return {key: value.copy() if isinstance(value, exp.Expr) else value for key, value in node.args.items()}


def _similar(node: exp.Expr, _meaning: Meaning, dialect: str) -> exp.Expr | None:
    if not isinstance(node, exp.SimilarTo) or dialect not in _POSTGRES:
        return None
    if not isinstance(node.expression, exp.Literal) or isinstance(node.parent, exp.Escape):
        raise NoCounterpart("SIMILAR TO needs a pattern that is a literal", "write a regular expression: … ~ '^(…)$'")
    pattern = [node.this.copy(), exp.Literal.string(_as_expression(node.expression.name)), exp.Literal.string("s")]
    return exp.Anonymous(this="REGEXP_FULL_MATCH", expressions=pattern)


def _as_expression(pattern: str) -> str:
    """A pattern of SIMILAR TO as a regular expression."""
    found, at, inside = [], 0, False
    while at < len(pattern):
        char = pattern[at]
        if char == "\\" and at + 1 < len(pattern):
            at += 1
            found.append(re.escape(pattern[at]))
        elif inside:
            inside = char != "]"
            found.append(char)
        else:
            inside = char == "["
            found.append({"%": ".*", "_": ".", ".": r"\.", "^": r"\^", "$": r"\$"}.get(char, char))
        at += 1
    return "".join(found)


def _expression(node: exp.Expr, meaning: Meaning, dialect: str) -> exp.Expr | None:
    """Regular expressions."""
    if not isinstance(node, _EXPRESSIONS):
        return None
    pattern = node.expression
    if isinstance(pattern, exp.Literal) and pattern.is_string:
        found = typer().value(f"regexp_matches('', {pattern.sql(dialect='duckdb')})")
        if isinstance(found, Failure):
            what = f"DuckDB has no regular expression {pattern.name!r}"
            raise NoCounterpart(what, "write it without look-around, back references and escapes of its own")
    if isinstance(node, exp.RegexpReplace):
        return _replacement(node, dialect)
    options = ""
    if isinstance(node, exp.RegexpILike) or (isinstance(node, exp.RegexpLike) and meaning.collation is not None):
        options += "i"
    if isinstance(node, exp.RegexpLike | exp.RegexpILike) and dialect in _POSTGRES:
        options += "s"
    if not options or node.args.get("flag") is not None:
        return None
    return exp.RegexpLike(this=node.this.copy(), expression=pattern.copy(), flag=exp.Literal.string(options))


def _replacement(node: exp.RegexpReplace, dialect: str) -> exp.Expr | None:
    changed = node.copy()
    new, options = node.args.get("replacement"), node.args.get("modifiers")
    if isinstance(new, exp.Literal) and dialect in _DOLLARS and "$" in new.name:
        changed.set("replacement", exp.Literal.string(re.sub(r"\$(\d)", r"\\\1", new.name)))
    if dialect in _POSTGRES:
        if isinstance(new, exp.Literal) and "\\&" in new.name:
            changed.set("replacement", exp.Literal.string(new.name.replace("\\&", "\\0")))
        if options is None or isinstance(options, exp.Literal):
            changed.set("modifiers", exp.Literal.string(f"{options.name if options else ''}s"))
    return None if changed == node else changed


def _substring(node: exp.Expr, meaning: Meaning, dialect: str) -> exp.Expr | None:
    if not isinstance(node, exp.Substring):
        return None
    text, start, length = node.this, node.args.get("start"), node.args.get("length")
    if isinstance(start, exp.Literal) and start.is_string:
        return _first_match(text, start, dialect)
    if start is None:
        return None
    sound = _length(length, meaning, [part for part in (text, start) if not isinstance(part, exp.Literal)])
    if isinstance(start, exp.Literal) and start.is_int and int(start.name) > 0:
        return None if sound is length else _part(text, start, sound)
    first = exp.Literal.number(1)
    match meaning.substring:
        case Substring.FROM_END:
            return None
        case Substring.ZERO_IS_ONE:
            odd: exp.Expr = exp.EQ(this=_closed(start), expression=exp.Literal.number(0))
            instead = _part(text, first, sound)
        case Substring.ZERO_IS_NOTHING:
            odd = exp.EQ(this=_closed(start), expression=exp.Literal.number(0))
            instead = _part(text, first, exp.Literal.number(0))
        case Substring.BEFORE_FIRST:
            odd = exp.LT(this=_closed(start), expression=exp.Literal.number(1))
            instead = _part(text, first, _left_over(start, sound))
    if isinstance(start, exp.Literal) or (isinstance(start, exp.Neg) and isinstance(start.this, exp.Literal)):
        zero = start.name == "0"
        return instead if zero or meaning.substring is Substring.BEFORE_FIRST else None
    return exp.Case(ifs=[exp.If(this=odd, true=instead)], default=_part(text, start, sound))


def _length(length: exp.Expr | None, meaning: Meaning, others: list[exp.Expr]) -> exp.Expr | None:
    """A length below 0: DuckDB counts backwards. It fails only where no other argument is null."""
    if length is None or isinstance(length, exp.Literal) or meaning.substring is Substring.FROM_END:
        return length
    negative: exp.Expr = exp.LT(this=_closed(length), expression=exp.Literal.number(0))
    present = [exp.Not(this=exp.Is(this=_closed(other), expression=exp.Null())) for other in others]
    negative = exp.and_(negative, *present)
    before = meaning.substring is Substring.BEFORE_FIRST
    instead = fails("a negative length of a substring", "BIGINT") if before else exp.Literal.number(0)
    return exp.Case(ifs=[exp.If(this=negative, true=instead)], default=length.copy())


def _left_over(start: exp.Expr, length: exp.Expr | None) -> exp.Expr | None:
    """How many characters are left of a length that begins before the first character."""
    if length is None:
        return None
    end = exp.Sub(this=exp.Add(this=_closed(start), expression=_closed(length)), expression=exp.Literal.number(1))
    negative = exp.LT(this=end.copy(), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=negative, true=exp.Literal.number(0))], default=end)


def _part(text: exp.Expr, start: exp.Expr, length: exp.Expr | None) -> exp.Expr:
    return exp.Substring(this=text.copy(), start=start.copy(), length=None if length is None else length.copy())


def _closed(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node.copy()) if isinstance(node, exp.Binary | exp.Neg) else node.copy()


def _first_match(text: exp.Expr, pattern: exp.Expr, dialect: str) -> exp.Expr | None:
    """PostgreSQL's substring(text from pattern): its first group, or all of it; null if there is none."""
    if dialect not in _POSTGRES:
        return None
    try:
        group = min(re.compile(pattern.name).groups, 1)
    except re.error:
        raise NoCounterpart(f"DuckDB has no regular expression {pattern.name!r}", "write a simpler one") from None
    return exp.Case(ifs=[exp.If(this=_matches(text, pattern), true=_extract(text, pattern, group))])


def _matches(text: exp.Expr, pattern: exp.Expr) -> exp.Expr:
    parts = [text.copy(), pattern.copy(), exp.Literal.string("s")]
    return exp.Anonymous(this="REGEXP_MATCHES", expressions=parts)


def _extract(text: exp.Expr, pattern: exp.Expr, group: int) -> exp.Expr:
    parts = [text.copy(), pattern.copy(), exp.Literal.number(group), exp.Literal.string("s")]
    return exp.Anonymous(this="REGEXP_EXTRACT", expressions=parts)


def _match(node: exp.Expr, _meaning: Meaning, dialect: str) -> exp.Expr | None:
    """PostgreSQL's regexp_match: the groups of the first match as a list, or all of it."""
    if not isinstance(node, exp.Anonymous) or node.name.lower() != "regexp_match" or dialect not in _POSTGRES:
        return None
    text, pattern, *more = node.expressions
    if more or not isinstance(pattern, exp.Literal) or re.search(r"\)[?*{|]|\|", pattern.name):
        what = "regexp_match needs a pattern that is a literal, and groups that are always found"
        raise NoCounterpart(what, "write regexp_extract in DuckDB's SQL")
    try:
        count = re.compile(pattern.name).groups
    except re.error:
        raise NoCounterpart(f"DuckDB has no regular expression {pattern.name!r}", "write a simpler one") from None
    groups = range(1, count + 1) if count else range(1)
    found = exp.Array(expressions=[_extract(text, pattern, group) for group in groups])
    return exp.Case(ifs=[exp.If(this=_matches(text, pattern), true=found)])


_FORMATS = {"Month": None, "Mon": "%b", "Day": None, "Dy": "%a"}
"""Words of PostgreSQL's formats that sqlglot leaves as they are. The long names are filled up with blanks."""


def _format(node: exp.Expr, _meaning: Meaning, dialect: str) -> exp.Expr | None:
    if not isinstance(node, exp.StrToDate | exp.StrToTime | exp.TimeToStr) or dialect not in _POSTGRES:
        return None
    written = node.args.get("format")
    if not isinstance(written, exp.Literal):
        return None
    text = written.name
    for word, instead in _FORMATS.items():
        text = text.replace(word, instead or word)
    if re.search(r"[A-Za-z]", re.sub(r"%-?[A-Za-z]", "", text)):
        raise NoCounterpart(f"the format {written.name!r} has no counterpart in DuckDB", "write strftime or strptime")
    if text == written.name:
        return None
    changed = node.copy()
    changed.set("format", exp.Literal.string(text))
    return changed


PATTERNS = (_like, _similar, _expression, _substring, _match, _format)
