"""A query in the user's own words, for DuckDB to evaluate as they stand.

Where our reading of a query cannot be trusted, or there is none, DuckDB's own reading shows
which tables the words read and whether they may be a view, and the words themselves are what is evaluated.

::

    WITH "orders" AS (SELECT … FROM in0)          what the words call orders
    SELECT … FROM (
        SELECT * LIKE 'a%' FROM orders            the words, to the letter
    ) AS q(…)

Nothing of sqlglot is used here. What holds for every view holds for these: they read tables and views of the
database only, and nothing volatile.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from everview.errors import EverviewError, SqlError, SqlRefusedError
from everview.sql.aggregates import aggregate_names
from everview.sql.bounded_recursion import bounded
from everview.sql.namespace import TABLE_FUNCTIONS, NamedRelation, Namespace, fold, inputs_of
from everview.sql.own_parse import Json, nodes, parse_tree
from everview.sql.positions import error_at
from everview.sql.result_values import carried
from everview.sql.typer import Columns, Described, Failure, typer
from everview.sql.volatile import BOUNDS, SAMPLE, WORDS, Reason, reason_of, volatile_names

RECURRING = "recurring"
"""The schema of what a recursion with keys has so far."""
INPUT = "in"
"""What the inputs are called, each with its number."""
_MAIN = re.compile(r'"main"\s*\.\s*|\bmain\s*\.\s*', re.IGNORECASE)


@dataclass(frozen=True)
class Worded:
    """A query that DuckDB reads itself."""

    words: str
    columns: Columns
    uses: tuple[NamedRelation, ...]
    """The tables and views it reads; those that named queries read among them."""
    named: tuple[NamedRelation, ...]
    """The named queries it reads, each after those that it is made of."""

    def over(self, inputs: Mapping[str, str]) -> str:
        """The query over texts that stand for what it reads, by name. Its columns are c0, c1, …"""
        given = [f"{_quoted(one.name)} AS ({inputs[one.name]})" for one in self.uses]
        given += [f"{_quoted(one.name)}({_listed(one)}) AS (\n{one.query}\n)" for one in self.named]
        places = ", ".join(f"c{number}" for number in range(len(self.columns)))
        around = f"WITH {', '.join(given)} " if given else ""
        return f"{around}SELECT * FROM (\n{self.words}\n) AS q({places})"

    def bounded(self, limit: int) -> Worded:
        """The query with recursions that are given up after so many rounds."""
        named = tuple(replace(one, query=bounded(one.query, limit)) if one.query else one for one in self.named)
        return replace(self, words=bounded(self.words, limit), named=named)


def _listed(relation: NamedRelation) -> str:
    return ", ".join(_quoted(column.name) for column in relation.columns)


def worded(
    words: str,
    namespace: Namespace,
    text: str,
    start: int,
    *,
    allow_volatile: bool = False,
) -> Worded:
    """The query that ``words``, which stand in ``text`` from ``start`` on, are to DuckDB. Raises an
    :class:`EverviewError` where they can be no view; an ad hoc SELECT may be volatile. Two columns may have one
    name."""
    tree, found = _read(words, namespace, text, start, allow_volatile)
    if found.qualified:
        words = _MAIN.sub("", words)
    uses, named = tuple(found.uses.values()), tuple(found.named.values())
    inputs = inputs_of(uses)
    plain = Worded(words, (), uses, named)
    asked = plain.over({relation.name: f"SELECT * FROM {INPUT}{number}" for number, relation in enumerate(uses)})
    bare = asked.removesuffix(" AS q()")
    numbered = {f"{INPUT}{number}": inputs[relation.name] for number, relation in enumerate(uses)}
    described = typer().attempt(bare, numbered)
    if isinstance(described, Failure):
        raise error_at(SqlError, text, start, "the query cannot be evaluated", why=described.message.partition("\n")[0])
    held = carried(bare, [kind for _, kind in described.typed()])  # as the rows of a view are held
    failure = None if allow_volatile else typer().rehearse(held, numbered, run=not _makes_rows(tree))
    if failure is not None:
        raise error_at(SqlError, text, start, "the query cannot be evaluated", why=failure.message.partition("\n")[0])
    own = typer().attempt(words, inputs)  # SELECT * of a query gives equal names other ones
    names = own.names if isinstance(own, Described) else described.names
    typed = described.typed()
    return Worded(words, tuple((name, kind) for name, (_, kind) in zip(names, typed, strict=True)), uses, named)


def refuse_foreign(words: str, namespace: Namespace, *, allow_volatile: bool = False) -> None:
    """Raise where words are more than one query, or read what is no table or view, as :func:`worded` does. What
    Everview has operators of its own for may stand in them."""
    _read(words, namespace, words, 0, allow_volatile, is_planned=True)


def _read(
    words: str,
    namespace: Namespace,
    text: str,
    start: int,
    allow_volatile: bool,
    is_planned: bool = False,
) -> tuple[Json, _ReadTables]:
    tree = parse_tree(words)
    if tree is None:
        raise error_at(SqlError, text, start, "DuckDB does not read a query in these words")
    found = _ReadTables(namespace, text, start, allow_volatile, is_planned)
    found.visit(tree)
    found.refuse_keywords()
    return tree, found


def _makes_rows(tree: Json) -> bool:
    """Whether a query over empty tables may have rows nevertheless: then it is not evaluated over them."""
    return any(
        node.get("type") in ("TABLE_FUNCTION", "RECURSIVE_CTE_NODE")
        or str(node.get("function_name", "")).lower() in aggregate_names() | {"unnest", "count_star"}
        for node in nodes(tree)
    )


@dataclass
class _ReadTables:
    """What a tree reads, and whether it may."""

    namespace: Namespace
    text: str
    start: int
    allow_volatile: bool
    is_planned: bool = False
    """Whether Everview evaluates the query with operators of its own: TUMBLE and HOP, which DuckDB does not have, and
    as-of joins, from which it may not return."""
    uses: dict[str, NamedRelation] = field(default_factory=dict)
    named: dict[str, NamedRelation] = field(default_factory=dict)
    keywords: list[Json] = field(default_factory=list)
    """Names that are words of DuckDB's unless a column has them."""
    visiting: set[str] = field(default_factory=set)
    """Named queries that are being read."""
    qualified: bool = False
    """Whether a table is named with its schema."""

    def visit(self, tree: Json) -> None:
        defined = set(_with_names(tree))
        for node in nodes(tree):
            if node.get("type") == "BASE_TABLE":
                self._table(node, defined)
            elif node.get("type") == "TABLE_FUNCTION":
                self._table_function(node)
            elif node.get("type") == "SHOW_REF":
                raise self._error(node, "a view reads tables and views", hint="write SELECT …")
            elif not self.is_planned and node.get("ref_type") == "ASOF" and node.get("join_type") in ("RIGHT", "FULL"):
                raise self._error(
                    node,
                    "an as-of RIGHT or FULL join cannot be evaluated as it stands",
                    why="DuckDB does not return from it where no row finds a match",
                )
            if "at_clause" in node:
                raise self._error(node, "a query reads the present", hint="leave AT (…) out")
            if not self.allow_volatile:
                self._refuse_volatile(node)

    def refuse_keywords(self) -> None:
        """Raise for the first word that is no column of what is read."""
        for node in self.keywords:
            name = _keyword(node)
            if not any(relation.column(name) for relation in self.uses.values()):
                raise self._volatile(node, name, reason_of(name))

    def _refuse_volatile(self, node: Json) -> None:
        if node.get("class") in ("FUNCTION", "WINDOW"):
            name, arguments = node["function_name"].lower(), len(node.get("arguments", ()))
            if name in volatile_names() or (name == "age" and arguments == 1):
                raise self._volatile(node, f"{name}()", reason_of(name))
            if name == "bitstring_agg" and arguments < 2:
                raise self._volatile(node, f"{name}()", BOUNDS)
        if node.get("class") == "COLUMN_REF" and _keyword(node):
            self.keywords.append(node)
        if "sample" in node:
            raise self._volatile(node, "sampling", SAMPLE)

    def _table(self, node: Json, defined: set[str]) -> None:
        name, schema = str(node["table_name"]), str(node.get("schema_name", ""))
        relation = self.namespace.find(name)
        if schema and (fold(schema) != "main" or node.get("catalog_name")):
            if defined and fold(schema) == RECURRING:
                return
            raise self._error(node, f"there is no schema {schema}", hint="all tables and views share one schema")
        if relation is None:
            if fold(name) not in defined:
                raise self._error(node, f"there is no table or view {name}")
            return
        if schema and fold(name) in defined and not self.is_planned:
            raise self._error(
                node,
                f"{schema}.{name} cannot be evaluated as it stands",
                why="a WITH query has the name of the table too",
                hint="give the WITH query another name",
            )
        self.qualified |= bool(schema)
        if relation.kind != "named query":
            self.uses.setdefault(fold(relation.name), relation)
        elif fold(relation.name) not in {*self.named, *self.visiting}:  # inside it a WITH may have its name
            self.visiting.add(fold(relation.name))
            inner = parse_tree(relation.query)
            if inner is None:
                raise self._error(node, f"DuckDB cannot read the view {relation.name}")
            self.visit(inner)
            self.named[fold(relation.name)] = relation

    def _table_function(self, node: Json) -> None:
        name = str(node["function"]["function_name"]).lower()
        if name not in TABLE_FUNCTIONS and not (self.is_planned and name in ("tumble", "hop")):
            raise self._error(
                node,
                f"{name}() cannot be read from",
                why="it reads what is no table or view of this database, whose changes are in no log",
            )

    def _volatile(self, node: Json, what: str, reason: Reason) -> EverviewError:
        return self._error(node, f"{what} cannot be part of a view", why=reason.why, hint=reason.hint)

    def _error(self, node: Json, what: str, why: str | None = None, hint: str | None = None) -> EverviewError:
        return error_at(
            SqlRefusedError, self.text, self.start + int(node.get("query_location", 0)), what, why=why, hint=hint
        )


def _with_names(tree: Json) -> Iterator[str]:
    for node in nodes(tree):
        for one in node.get("cte_map", {}).get("map", ()) if isinstance(node.get("cte_map"), dict) else ():
            yield fold(str(one["key"]))


def _keyword(node: Json) -> str:
    name = str(node["column_names"][0]).lower() if len(node["column_names"]) == 1 else ""
    return name if name in WORDS else ""


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
