"""DuckDB's complaints in our words, at the user's place in the user's text.

DuckDB complains of a text that sqlglot has written out of the tree; that text
read back is the same tree, so what stands at DuckDB's offset there is, node for node, something
that stands at a known offset in what the user wrote.

::

    the user's text     select nam from orders o         nam stands at 7
    DuckDB reads        SELECT nam FROM orders AS o      … and is unknown at 7
    after expansion     SELECT b.nam FROM (SELECT …) AS b   and so on: texts differ, trees do not
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from everview.change.types import Kind
from everview.errors import EverviewError, SqlError, SqlSyntaxError, SqlTypeError
from everview.sql.copies import copied
from everview.sql.dialects import DEFAULT, reader, to_sql
from everview.sql.namespace import NamedRelation, fold, inputs_of, nearest
from everview.sql.positions import error_at, offset_of, unknown_at
from everview.sql.typer import Described, Failure, typer

_QUOTED = r'"((?:[^"]|"")*)"'
_NOT_IN_TABLE = re.compile(rf"[Tt]able {_QUOTED} does not have a column named {_QUOTED}")
_NO_COLUMN = r"does not have a column named|in (?:EXCLUDE|REPLACE) list not found"
_TYPE = r"([A-Z][A-Z0-9_]*(?: [A-Z]+)*(?:\([^)]*\))?(?:\[\d*\])*)"


def refusal(failure: Failure, tree: exp.Expr, sql: str, text: str, relations: Sequence[NamedRelation]) -> EverviewError:
    """The error to raise for DuckDB's complaint about ``sql``, which was written from ``tree``."""
    node = _node_at(failure.offset, tree, sql)
    offset, width = _place(node, failure, tree, text)
    message = failure.message.replace("INTEGER_LITERAL", "INTEGER").replace("STRING_LITERAL", "VARCHAR")
    if failure.subtype == "COLUMN_NOT_FOUND" or re.search(_NO_COLUMN, message):
        qualified = _NOT_IN_TABLE.search(message)
        columns = _columns_around(node, relations, qualified[1] if qualified else None)
        return _unknown_column(failure, text, offset, width, columns)
    found = re.match(rf"Referenced table {_QUOTED} not found", message)
    if found:
        tables = re.findall(_QUOTED, message)[1:]
        return unknown_at(
            text, offset, f"there is no table {found[1]} in this FROM", width=width, hint=_meant(found[1], tables)
        )
    if failure.subtype == "MISSING_ENTRY":
        return _missing(failure, text, offset, width)
    for pattern, kind, what, hint in _KNOWN:
        match = re.search(pattern, message, re.DOTALL)
        if match:
            return error_at(
                kind,
                text,
                offset,
                match.expand(what),
                width=width,
                why=_why(failure),
                hint=match.expand(hint) if hint else None,
            )
    unclear = re.search(r'best candidate function for the function call "(.*?)"\. ', message)
    if unclear:
        return _no_overload(replace(failure, call=unclear[1]), text, offset, width)
    if failure.subtype == "NO_MATCHING_FUNCTION":
        made_by_window = failure.name == "time_bucket" and "time_bucket" not in text.lower()
        return (_no_time if made_by_window else _no_overload)(failure, text, offset, width)
    kind = {"Parser": SqlSyntaxError, "Conversion": SqlTypeError}.get(failure.kind, SqlError)
    what = "the query cannot be read" if kind is SqlSyntaxError else "the query cannot be evaluated"
    return error_at(kind, text, offset, what, width=width, why=_sentence(message))


_CAST = "write the conversion that is meant: CAST(… AS …)"

_KNOWN: tuple[tuple[str, type[SqlError], str, str | None], ...] = (
    (
        rf"Ambiguous reference to column name {_QUOTED} \(use: ('[^']*') or \2\)",
        SqlError,
        r"column \1 is in two tables of one name",
        "give each table an alias of its own: … AS a, … AS b",
    ),
    (
        rf"Ambiguous reference to column name {_QUOTED} \(use: (.*)\)",
        SqlError,
        r"column \1 is in several tables",
        r"write one of \2",
    ),
    (
        rf"column {_QUOTED} must appear in the GROUP BY clause",
        SqlError,
        r"column \1 is neither grouped nor aggregated",
        r"add it to GROUP BY, or aggregate it: max(\1)",
    ),
    (
        rf"Cannot compare values of type {_TYPE} and (?:type )?{_TYPE}",
        SqlTypeError,
        r"\1 and \2 cannot be compared",
        _CAST,
    ),
    (
        rf"Cannot (?:mix values|combine types) of (?:type )?{_TYPE} and (?:type )?{_TYPE}",
        SqlTypeError,
        r"\1 and \2 have no type in common",
        _CAST,
    ),
    (
        r"same number of result columns",
        SqlTypeError,
        "the queries of UNION, INTERSECT or EXCEPT have different numbers of columns",
        "select as many columns in each",
    ),
    (
        r"Subquery returns (\d+) columns? - expected (\d+)",
        SqlTypeError,
        r"the subquery has \1 columns where \2 is expected",
        "select the column that is meant",
    ),
    (
        r"No matching columns found that match regex \"([^\"]*)\"",
        SqlError,
        r"no column has a name that matches '\1'",
        "name the columns, or write another pattern",
    ),
    (
        rf"Column {_QUOTED} does not exist on (left|right) side of join",
        SqlError,
        r"USING names \1, which the \2 side of the join does not have",
        "join with ON, and name the column of each side",
    ),
    (
        rf"Could not find key {_QUOTED} in struct\s+Candidate Entries: (.*)",
        SqlTypeError,
        r"the struct has no field \1",
        r"there is \2",
    ),
    (
        r"aggregate function calls cannot be nested",
        SqlError,
        "an aggregate is inside another",
        "aggregate in a subquery of FROM first",
    ),
    (
        r"(WHERE|ON|GROUP BY) clause cannot contain aggregates",
        SqlError,
        r"\1 cannot contain an aggregate",
        "filter groups with HAVING, or aggregate in a subquery of FROM",
    ),
    (
        r"(\w+) clause cannot contain window functions",
        SqlError,
        r"\1 cannot contain a window function",
        "filter with QUALIFY, or compute it in a subquery of FROM",
    ),
    (
        r"(ORDER|GROUP BY) term out of range - should be between 1 and (\d+)",
        SqlError,
        r"there is no column of that number",
        r"the columns are numbered 1 to \2",
    ),
)


# ------------------------------------------------------------------ kinds of complaints


def _unknown_column(
    failure: Failure, text: str, offset: int | None, width: int, columns: Sequence[str]
) -> EverviewError:
    qualified = _NOT_IN_TABLE.search(failure.message)
    name = _name(failure)
    where = f" in {qualified[1]}" if qualified else ""
    near = nearest(name, columns)
    if near is not None and near.lower() == name.lower() and not qualified:
        return error_at(
            SqlError,
            text,
            offset,
            f"column {name} cannot be used here",
            width=width,
            why="columns are not known in this place",
            hint="write a constant, or join the tables first",
        )
    hint = f"did you mean {near}?" if near else None
    if hint is None and columns:
        hint = f"the columns are {', '.join(columns[:20])}" + (", …" if len(columns) > 20 else "")
    return unknown_at(text, offset, f"there is no column {name}{where}", width=width, hint=hint)


def _columns_around(node: exp.Expr | None, relations: Sequence[NamedRelation], table: str | None) -> list[str]:
    """The columns that can be named where a node stands, of one table or of all, as far as DuckDB can be asked."""
    inputs = inputs_of(relations)
    select = node.parent_select if node is not None else None
    while isinstance(select, exp.Select):
        probe = exp.Select(expressions=[exp.Star() if table is None else exp.column(exp.Star(), table, quoted=True)])
        for key in ("from_", "joins"):
            probe.set(key, select.args.get(key))
        probe = copied(probe)
        for join in probe.args.get("joins") or ():
            if join.args.get("on"):  # it may be what is wrong
                join.set("on", exp.true())
        found = typer().attempt(to_sql(probe), inputs)
        if isinstance(found, Described):
            return list(dict.fromkeys(found.names))
        select = select.parent_select
    return [
        column.name
        for relation in relations
        if table is None or fold(relation.name) == fold(table)
        for column in relation.columns
    ]


def _missing(failure: Failure, text: str, offset: int | None, width: int) -> EverviewError:
    found = re.match(r"(.*?) with name (.*?) does not exist", failure.message)
    kind, name = (found[1].lower(), found[2]) if found else ("object", failure.name)
    kind = "function" if "function" in kind else kind
    existing = [candidate.removeprefix("main.") for candidate in failure.candidates]
    if kind == "function":
        existing += [known for known, _, _, _ in typer().functions() if known.isidentifier()]
    if kind == "type":
        existing += [known.value for known in Kind]
    return error_at(
        SqlTypeError, text, offset, f"there is no {kind} {name}", width=width, hint=_meant(name, existing, listed=False)
    )


def _no_overload(failure: Failure, text: str, offset: int | None, width: int) -> EverviewError:
    found = re.fullmatch(r"(.*?)\((.*)\)", failure.call, re.DOTALL)
    name, given = (found[1], found[2]) if found else (failure.name, "")
    types = " and ".join(re.sub(r"\b(INTEGER|STRING)_LITERAL\b", r"\1", part) for part in _arguments(given))
    types = types.replace("STRING", "VARCHAR")
    takes = list(dict.fromkeys(re.findall(rf"\n\t\"?{re.escape(name)}\"?\((.*?)\) ->", failure.message)))
    takes = takes if name.isidentifier() else []
    forms = [re.sub(r'"?[a-z_]\w*"? (?=[A-Z])', "", form).replace(", /", "") for form in takes]
    listed = "; ".join([*forms[:4], *(["…"] if len(forms) > 4 else [])])
    what = f"{name} does not take {types}" if types else f"{name} takes arguments"
    return error_at(
        SqlTypeError, text, offset, what, width=width, why=f"it takes {listed}" if listed else None, hint=_CAST
    )


def _arguments(given: str) -> list[str]:
    """The types of a call, cut at the commas that are not inside a type."""
    parts, depth = [""], 0
    for char in given:
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts if part.strip()]


def _no_time(failure: Failure, text: str, offset: int | None, width: int) -> EverviewError:
    given = _arguments(failure.call.partition("(")[2].removesuffix(")"))
    return error_at(
        SqlTypeError,
        text,
        offset,
        f"windows of time need a DATE, TIMESTAMP or TIMESTAMPTZ column, not {given[-1] if given else 'this'}",
        width=width,
        hint="name another column, or make a time of it in a subquery: TUMBLE((SELECT …), …)",
    )


def _meant(name: str, existing: Sequence[str], listed: bool = True) -> str | None:
    near = nearest(name, existing)
    if near:
        return f"did you mean {near}?"
    return f"there are {', '.join(existing[:10])}" if listed and existing else None


def _name(failure: Failure) -> str:
    """The name that the complaint is about, if it is about one."""
    qualified = _NOT_IN_TABLE.search(failure.message)
    if qualified:
        return qualified[2]
    named = re.search(_QUOTED, failure.message)
    return failure.name or (named[1] if named else "")


def _why(failure: Failure) -> str | None:
    return _sentence(failure.message) if failure.kind == "Conversion" else None


def _sentence(message: str) -> str:
    return message.partition("\n")[0].strip() or "DuckDB gives no reason"


# ------------------------------------------------------------------ places


def _node_at(offset: int | None, tree: exp.Expr, sql: str) -> exp.Expr | None:
    """The node of the tree that DuckDB means by an offset into the text written from it: the one
    that begins there, or the smallest around it, or the first after it."""
    if offset is None:
        return None
    own = reader(DEFAULT)
    try:
        again = own.read(sql)
    except EverviewError:
        return None
    around: tuple[int, exp.Expr] | None = None
    after: tuple[int, exp.Expr] | None = None
    extents = _extents(again)
    for written, read in _pairs(tree, again):
        if id(read) not in extents:
            continue
        first, last = extents[id(read)]
        if read.meta.get("start") == offset:
            return written
        if first <= offset <= last and (around is None or last - first < around[0]):
            around = (last - first, written)
        if first >= offset and (after is None or first < after[0]):
            after = (first, written)
    found = after if around is None or (after is not None and isinstance(around[1], exp.Query)) else around
    return found[1] if found else None


def _extents(tree: exp.Expr) -> dict[int, tuple[int, int]]:
    """From where to where in the text each node stands, by its id, as far as its parts have places."""
    found: dict[int, tuple[int, int]] = {}
    for node in reversed(list(tree.walk(bfs=False))):
        parts = [found[id(part)] for part in node.iter_expressions() if id(part) in found]
        if "start" in node.meta:
            parts.append((node.meta["start"], node.meta["end"]))
        if parts:
            found[id(node)] = min(parts)[0], max(end for _, end in parts)
    return found


def _pairs(tree: exp.Expr, again: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """The nodes of two trees that stand in the same place, as far as the trees are alike."""
    waiting = [(tree, again)]
    while waiting:
        written, read = waiting.pop()
        yield written, read
        for key, value in written.args.items():
            other = read.args.get(key)
            if isinstance(value, exp.Expr) and isinstance(other, exp.Expr):
                waiting.append((value, other))
            elif isinstance(value, list) and isinstance(other, list) and len(value) == len(other):
                waiting.extend(
                    (one, two)
                    for one, two in zip(value, other, strict=True)
                    if isinstance(one, exp.Expr) and isinstance(two, exp.Expr)
                )


def _place(node: exp.Expr | None, failure: Failure, tree: exp.Expr, text: str) -> tuple[int | None, int]:
    """Where to point in the user's text, and how far."""
    around = offset_of(node if node is not None else tree)
    start = node.meta.get("start") if node is not None else None
    width = int(node.meta["end"]) - start + 1 if node is not None and start is not None else 1
    name = _name(failure)
    if name and around is not None and text[around : around + len(name)].lower() != name.lower():
        # The name itself is what the user looks for: types have no place of their own in a tree.
        places = [found.start() for found in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)]
        if places:
            return min(places, key=lambda place: abs(place - around)), len(name)
    return around, width
