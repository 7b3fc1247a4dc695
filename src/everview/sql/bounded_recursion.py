"""Recursions in a user's own words, which ask in every round whether they may go on.

DuckDB's tree of the words gets a condition more wherever a recursion reads itself, and DuckDB
writes the text of that tree.

::

    WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r
    WITH RECURSIVE r (n) AS ((SELECT 1) UNION ALL (SELECT (n + 1) FROM r WHERE EVERVIEW_GOES_ON(9))) SELECT n FROM r

What the condition does is with those who evaluate it (:mod:`everview.operators.recursion`). Words in which
DuckDB reads something else once it has written them stay as they are.
"""

from __future__ import annotations

import copy
import json

from everview.sql.own_parse import Json, canonical, nodes, parse_tree, same_reading
from everview.sql.typer import Failure, typer

GOES_ON = "EVERVIEW_GOES_ON"


def bounded(words: str, limit: int) -> str:
    """The words with their recursions asking after ``limit`` rounds; the very words where there is none."""
    found = typer().tree(words)
    if isinstance(found, Failure) or not any(_recursions(found)):
        return words
    plain = _written(found)
    if plain is None or not same_reading(words, plain):
        return words
    asking = copy.deepcopy(found)
    for recursion in _recursions(asking):
        for select in _readers(recursion["right"], recursion["cte_name"].lower()):
            _ask(select, limit)
    text = _written(asking)
    return words if text is None or canonical(parse_tree(text)) != canonical(asking[0]["node"]) else text


def _recursions(tree: object) -> list[Json]:
    return [node for node in nodes(tree) if node.get("type") == "RECURSIVE_CTE_NODE"]


def _readers(tree: Json, name: str) -> list[Json]:
    """The SELECTs that read a recursion, those in subqueries too."""
    selects = [node for node in nodes(tree) if node.get("type") == "SELECT_NODE"]
    return [select for select in selects if name in _read(select.get("from_table") or {})]


def _read(source: Json) -> set[str]:
    """The names of what is read side by side."""
    if source.get("type") == "JOIN":
        return _read(source["left"]) | _read(source["right"])
    return {source["table_name"].lower()} if source.get("type") == "BASE_TABLE" else set()


def _ask(select: Json, limit: int) -> None:
    """Add the condition."""
    sample = parse_tree(f"SELECT 1 WHERE there AND {GOES_ON}({limit})")
    assert sample is not None
    both = sample["where_clause"]
    if select.get("where_clause") is None:
        select["where_clause"] = both["children"][1]
    else:
        both["children"][0] = select["where_clause"]
        select["where_clause"] = both


def _written(statements: list[dict[str, object]]) -> str | None:
    """The text that DuckDB writes for a tree; None where it writes none."""
    return typer().text(json.dumps({"error": False, "statements": statements}))
