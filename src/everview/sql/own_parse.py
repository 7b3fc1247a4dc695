"""DuckDB's own parse of a text, in a form in which equal meanings are equal.

DuckDB prints the tree that its parser makes of a query (``json_serialize_sql``), and two
texts whose trees agree, positions, letter case, synonyms of functions and spellings of NOT aside, mean the
same to DuckDB.

::

    SELECT A::text FROM t WHERE b NOT LIKE 'x'
    SELECT CAST(a AS VARCHAR) FROM t WHERE NOT b LIKE 'x'        the same tree

So the text that is written from our tree can be held against the user's own words without a second
reading of ours. Where the trees differ, our reading is not trusted (:mod:`everview.sql.words`).

Thousands of views that differ in constants are worded alike, so two texts are compared with their literals
left out, once, and beside that the literals one by one (:func:`is_trusted`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from everview.sql.typer import Failure, typer

Json: TypeAlias = dict[str, Any]

_DROPPED = frozenset({"query_location", "query_location_length", "is_operator", "qualified_name", "syntax_type"})
"""Places in the text, and how something was spelled."""
_NAMES = frozenset(
    {"alias", "table_name", "schema_name", "catalog_name", "relation_name", "collation", "type_name", "name"}
)
_LISTS_OF_NAMES = frozenset({"column_names", "column_name_alias", "using_columns", "aliases", "exclude_list"})
_UNITS = frozenset({"date_part", "date_trunc", "date_diff", "date_sub", "datepart", "datetrunc", "datediff"})
"""Functions whose first argument is a word in any letter case."""
_UNIT_SYNONYMS = {"dayofweek": "dow", "weekday": "dow", "dayofyear": "doy", "weekofyear": "week"}


def parse_tree(words: str) -> Json | None:
    """The tree of the one query that a text is; None where DuckDB reads no query, or several, in it."""
    found = typer().tree(words)
    if isinstance(found, Failure) or len(found) != 1:
        return None
    node = found[0].get("node")
    return node if isinstance(node, dict) else None


def same_reading(words: str, rendered: str) -> bool:
    """Whether DuckDB reads the same query in both texts."""
    own = parse_tree(words)
    return own is not None and canonical(own) == canonical(parse_tree(rendered))


def nodes(tree: object) -> Iterator[Json]:
    """All parts of a tree, each before what it consists of."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


# ------------------------------------------------------------------ one form for one meaning


def canonical(node: Any) -> Any:
    """A tree without what makes no difference."""
    if isinstance(node, list):
        return [canonical(part) for part in node]
    if not isinstance(node, dict):
        return node
    plain = {key: _part(key, value) for key, value in node.items() if key not in _DROPPED}
    rule = _order if "null_order" in plain else _RULES.get(str(plain.get("class") or plain.get("type")))
    return plain if rule is None else rule(plain)


def _part(key: str, value: Any) -> Any:
    if key in _NAMES and isinstance(value, str):
        return value.lower()
    if key in _LISTS_OF_NAMES and isinstance(value, list):
        return [one.lower() if isinstance(one, str) else canonical(one) for one in value]
    return canonical(value)


def _call(call: Json) -> Json:
    call["function_name"] = name = _function(call["function_name"])
    arguments = [part["expression"] for part in call.get("arguments", ())]
    if call.get("order_bys") == {"type": "ORDER_MODIFIER"}:
        del call["order_bys"]
    if name.startswith("!~~"):
        return _not({**call, "function_name": name[1:]})
    if name == "+" and len(arguments) == 1:
        return {**arguments[0], **({"alias": call["alias"]} if "alias" in call else {})}
    number = _number(arguments[0]) if name == "-" and len(arguments) == 1 else None
    if number is not None:
        opposite = number.removeprefix("-") if number.startswith("-") else f"-{number}"
        return _with_alias(_constant(arguments[0], opposite), call)
    if name == "if" and len(arguments) == 3:
        check = {"when_expr": arguments[0], "then_expr": arguments[1]}
        return _with_alias({**_CASE, "case_checks": [check], "else_expr": arguments[2]}, call)
    if name in ("range", "generate_series") and len(arguments) == 1:
        zero = {"class": "CONSTANT", "type": "VALUE_CONSTANT", "literal": {"kind": "INTEGER", "text": "0"}}
        call["arguments"] = [{"expression": zero}, *call["arguments"]]
    if name == "unhex" and len(arguments) == 1 and _literal(arguments[0], "STRING") is not None:
        constant = {**arguments[0], "literal": {"kind": "HEX", "text": arguments[0]["literal"]["text"]}}
        return _with_alias(constant, call)
    if name in _UNITS and arguments and _literal(arguments[0], "STRING") is not None:
        unit = str(_literal(arguments[0], "STRING")).lower()
        arguments[0]["literal"]["text"] = _UNIT_SYNONYMS.get(unit, unit.removesuffix("s"))
    return _length_of_time(call, name, arguments)


_CASE: Json = {"class": "CASE", "type": "CASE_EXPR"}


def _length_of_time(call: Json, name: str, arguments: list[Json]) -> Json:
    """``INTERVAL 1 DAY`` and ``INTERVAL '1' DAY`` are calls of a constant, ``INTERVAL '1 day'`` is a cast."""
    if not name.startswith("to_") or len(arguments) != 1:
        return call
    inner = arguments[0]
    while inner.get("class") == "CAST" or inner.get("function_name") == "trunc":
        inner = inner["child"] if inner.get("class") == "CAST" else inner["arguments"][0]["expression"]
    number = inner.get("literal", {}).get("text")
    if inner.get("class") != "CONSTANT" or number is None:
        return call
    return _with_alias(_interval(f"{number} {name.removeprefix('to_')}") or call, call)


@functools.lru_cache(maxsize=1000)
def _interval_text(text: str) -> str | None:
    quoted = text.replace("'", "''")
    found = typer().value(f"CAST(CAST('{quoted}' AS INTERVAL) AS VARCHAR)")
    return found if isinstance(found, str) else None


def _interval(text: str) -> Json | None:
    found = _interval_text(text)
    return None if found is None else {"class": "INTERVAL", "text": found}


def _cast(cast: Json) -> Json:
    kind = cast.get("type_expr", {})
    text = _literal(cast["child"], "STRING")
    if kind.get("type_name") == "interval" and text is not None and not cast.get("try_cast"):
        return _with_alias(_interval(text) or cast, cast)
    return cast


def _operator(node: Json) -> Json:
    if node.get("type") == "ARRAY_CONSTRUCTOR":
        arguments = [{"expression": child} for child in node.get("children", ())]
        made = {"class": "FUNCTION", "type": "FUNCTION", "function_name": "list_value"}
        return _with_alias({**made, **({"arguments": arguments} if arguments else {})}, node)
    if node.get("type") != "OPERATOR_NOT":
        return node
    child = node["children"][0]
    opposite = _OPPOSITES.get(str(child.get("type")))
    return node if opposite is None else _with_alias({**child, "type": opposite}, node)


_OPPOSITES = {
    "OPERATOR_IS_NULL": "OPERATOR_IS_NOT_NULL",
    "OPERATOR_IS_NOT_NULL": "OPERATOR_IS_NULL",
    "COMPARE_DISTINCT_FROM": "COMPARE_NOT_DISTINCT_FROM",
    "COMPARE_NOT_DISTINCT_FROM": "COMPARE_DISTINCT_FROM",
}
"""What is never null has an opposite that equals its NOT."""


def _not(node: Json) -> Json:
    bare = {key: value for key, value in node.items() if key != "alias"}
    return _with_alias({"class": "OPERATOR", "type": "OPERATOR_NOT", "children": [bare]}, node)


def _with_alias(node: Json, named: Json) -> Json:
    bare = {key: value for key, value in node.items() if key != "alias"}
    return {**bare, "alias": named["alias"]} if "alias" in named else bare


def _case(case: Json) -> Json:
    if _is_null(case.get("else_expr", {})):
        return {key: value for key, value in case.items() if key != "else_expr"}
    return case


def _window(window: Json) -> Json:
    return {**window, "function_name": _function(window["function_name"])}


def _type_of(kind: Json) -> Json:
    name = _type(kind["type_name"])
    children = kind.get("children")
    if name == "varchar" or (name == "decimal" and [_number(child) for child in children or ()] == ["18", "3"]):
        children = None
    plain = {key: value for key, value in kind.items() if key != "children"}
    return {**plain, "type_name": name, **({"children": children} if children else {})}


def _join(join: Json) -> Json:
    """A join on TRUE is a cross join."""
    plain = {key: value for key, value in join.items() if key != "is_implicit"}
    condition = plain.get("condition", {}).get("literal")
    if plain.get("join_type") == "INNER" and condition == {"kind": "BOOLEAN", "text": "true"}:
        del plain["condition"]
        plain["ref_type"] = "CROSS"
    return plain


_OF_ROWS = ("valueslist", "_values")
"""What VALUES without a name of their own are called."""


def _rows(rows: Json) -> Json:
    return {key: value for key, value in rows.items() if key != "alias" or value not in _OF_ROWS}


def _subquery(query: Json) -> Json:
    """VALUES in parentheses are the rows of a SELECT of everything."""
    inner = query.get("subquery", {}).get("node", {})
    rows = inner.get("from_table", {})
    if rows.get("type") != "EXPRESSION_LIST" or "alias" in rows or {*inner} - _EVERYTHING.keys() - {"from_table"}:
        return query
    if {key: inner.get(key) for key in _EVERYTHING} != _EVERYTHING:
        return query
    plain = {key: value for key, value in query.items() if key not in ("subquery", "type")}
    return _rows({**rows, **plain})


_EVERYTHING: Json = {
    "type": "SELECT_NODE",
    "cte_map": {},
    "select_list": [{"class": "STAR", "type": "STAR"}],
    "aggregate_handling": "STANDARD_HANDLING",
}


def _order(order: Json) -> Json:
    """ASC and NULLS LAST are the default, written or not."""
    nulls = "ORDER_DEFAULT" if order["null_order"].replace("_", " ") == "NULLS LAST" else order["null_order"]
    way = "ORDER_DEFAULT" if order["type"] == "ASCENDING" else order["type"]
    return {**order, "null_order": nulls, "type": way}


def _number_as_written(constant: Json) -> Json:
    number = _number(constant)
    if number is None:
        return constant
    sign, digits = ("-", number[1:]) if number.startswith("-") else ("", number)
    return _constant(constant, f"{sign}{'0' * digits.startswith('.')}{digits.replace('_', '').lower()}")


_RULES: dict[str, Callable[[Json], Json]] = {
    "CASE": _case,
    "CAST": _cast,
    "CONSTANT": _number_as_written,
    "EXPRESSION_LIST": _rows,
    "FUNCTION": _call,
    "JOIN": _join,
    "OPERATOR": _operator,
    "SUBQUERY": _subquery,
    "TYPE": _type_of,
    "WINDOW": _window,
}


def _literal(node: Json, kind: str) -> str | None:
    found = node.get("literal", {})
    return found.get("text") if found.get("kind") == kind else None


def _number(node: Json) -> str | None:
    return _literal(node, "INTEGER") or _literal(node, "NUMERIC")


def _is_null(node: Json) -> bool:
    return bool(node.get("literal", {}).get("kind") == "NULL_LITERAL")


def _constant(node: Json, text: str) -> Json:
    return {**node, "literal": {**node["literal"], "text": text}}


@functools.cache
def _synonyms() -> dict[str, str]:
    return dict(typer().synonyms())


def _function(name: str) -> str:
    """The first name of a function."""
    folded = name.lower()
    return _synonyms().get(folded, folded)


@functools.lru_cache(maxsize=1000)
def _type(name: str) -> str:
    """What DuckDB calls a type that goes by several names; one that it does not know stays."""
    found = typer().value(f"lower(typeof(CAST(NULL AS {name})))") if name.isidentifier() else None
    return found.partition("(")[0] if isinstance(found, str) else name


# ------------------------------------------------------------------ whether our reading is trusted

_CONSTANT = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|(?<![\w.])\d+(?:\.\d+)?(?![\w.])""")
_TRUSTED: dict[tuple[str, str], bool] = {}
_MOST_TRUSTED = 10_000


def is_trusted(words: str, rendered: str) -> bool:
    """Whether a query means the same in both texts; also where DuckDB reads none in the words: then they
    have something that is Everview's own."""
    own, ours = _literals(words), _literals(rendered)
    shapes = shape(words), shape(rendered)
    if own == ours and shapes in _TRUSTED:
        return _TRUSTED[shapes]
    found = parse_tree(words) is None or same_reading(words, rendered)
    if own == ours:
        if len(_TRUSTED) >= _MOST_TRUSTED:
            _TRUSTED.clear()
        _TRUSTED[shapes] = found
    return found


def shape(text: str) -> str:
    """A text without its constants."""
    return _CONSTANT.sub(_shape, text)


def _literals(text: str) -> list[str]:
    return [literal for literal in _CONSTANT.findall(text) if not literal.startswith('"')]


def _shape(match: re.Match[str]) -> str:
    literal = match.group()
    return literal if literal.startswith('"') else "''" if literal.startswith("'") else "0." if "." in literal else "0"
