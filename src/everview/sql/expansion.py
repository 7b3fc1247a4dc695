"""Names of tables replaced by what they stand for.

After expansion a query reads tables and views of the namespace and nothing else:
WITH and ``CREATE VIEW`` names have become subqueries, TUMBLE and HOP plain SQL, and everything
unknown is an error that names what was probably meant.

::

    WITH big AS (SELECT * FROM orders WHERE amount > 100) SELECT count(*) FROM big AS b
    SELECT count(*) FROM (SELECT * FROM orders WHERE amount > 100) AS b

A name is looked up as DuckDB does it: in the WITH of its own query, then of the queries around
it, then in the namespace; a WITH query sees those before it, not itself. A recursive one cannot
be written out. It stays whole, as a subquery of its own that is marked :data:`WHOLE`: what is
inside is DuckDB's to evaluate, and later steps see its columns only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from everview.errors import SqlError, SqlRefusedError, UnknownObjectError
from everview.sql.copies import copied
from everview.sql.dialects import DEFAULT, reader, to_sql
from everview.sql.namespace import (
    SYSTEM,
    SYSTEM_TABLES,
    TABLE_FUNCTIONS,
    NamedRelation,
    Namespace,
    fold,
    nearest,
    system_name,
)
from everview.sql.positions import error_at, offset_of, unknown_at
from everview.sql.time_windows import TIME_WINDOWS, WINDOW_COLUMNS, time_windows
from everview.sql.typer import typer

WHOLE = "whole"
"""The mark in ``meta`` of a subquery that is evaluated as it stands."""

RECURRING = "recurring"
"""The schema in which a recursive query with USING KEY finds all of its rows so far."""

_LARGEST = 100_000
"""Nodes of an expanded query, past which it is refused: each use of a WITH query is a copy."""

_KEPT = ("joins", "laterals", "pivots", "sample")
"""What may be attached to a table and stays when the table becomes a subquery."""


@dataclass(frozen=True)
class _Defined:
    """What a WITH name stands for: a query, and the names it gives its columns."""

    body: exp.Expr
    columns: tuple[exp.Identifier, ...] = ()
    recursive: exp.With | None = None


_Names: TypeAlias = Mapping[str, _Defined | None]
"""WITH names in sight; None is the name of the recursive query that is being read."""


def expanded(query: exp.Expr, namespace: Namespace, text: str) -> tuple[exp.Expr, tuple[NamedRelation, ...]]:
    """The query with all names replaced, and the relations it reads. The original is left as it is."""
    expansion = _Expansion(namespace, text)
    holder = exp.Paren(this=copied(query))
    expansion.visit(holder.this, {})
    return holder.this.pop(), tuple(expansion.uses.values())


class _Expansion:
    def __init__(self, namespace: Namespace, text: str) -> None:
        self.uses: dict[str, NamedRelation] = {}
        self._namespace = namespace
        self._text = text
        self._open: list[str] = []
        self._size = 0

    def visit(self, node: exp.Expr, names: _Names) -> None:
        """Expand a node and what is below it, in place."""
        with_ = node.args.get("with_")
        if with_ is not None:
            node.set("with_", None)
            names = self._with(with_, names)
        # Python's stack grows with the nesting of queries only, not with the length of conditions.
        for found in list(node.walk(bfs=False, prune=lambda below: below is not node and _ends_walk(below))):
            if found is not node and found.args.get("with_") is not None:
                self.visit(found, names)
            elif isinstance(found, exp.Table):
                for child in list(found.iter_expressions()) if found is not node else ():
                    self.visit(child, names)
                self._table(found, names)
            elif isinstance(found, exp.Column):
                _without_schema(found)
            elif isinstance(found, exp.DML | exp.DDL):
                hint = "write the change as a statement of its own"
                raise self._error(SqlRefusedError, found, "a query only reads", hint=hint)

    def _with(self, with_: exp.With, names: _Names) -> _Names:
        for cte in with_.expressions:
            name = fold(cte.alias)
            alias = cte.args["alias"]
            columns = tuple(alias.columns)
            if with_.recursive and isinstance(cte.this, exp.SetOperation):
                recursive = self._recursive(cte, {**names, name: None})
                if recursive:
                    names = {**names, name: _Defined(cte.this, columns, recursive)}
                    continue
            body = cte.this
            self.visit(body, names)
            names = {**names, name: _Defined(cte.this, columns)}
        return names

    def _recursive(self, cte: exp.CTE, names: _Names) -> exp.With | None:
        """The WITH of a query that reads itself; None if it does not after all."""
        self.visit(cte.this, names)
        if not any(table.meta.get("itself") == fold(cte.alias) for table in cte.this.find_all(exp.Table)):
            return None
        return exp.With(expressions=[cte], recursive=True)

    # -------------------------------------------------------------- tables

    def _table(self, table: exp.Table, names: _Names) -> None:
        if isinstance(table.this, exp.Func):
            return self._function(table, names)
        if isinstance(table.this, exp.Values):
            return _rows(table)
        if not isinstance(table.this, exp.Identifier):
            raise self._error(SqlRefusedError, table, f"{to_sql(table)} is not a table")
        if table.args.get("when"):
            raise self._error(
                SqlRefusedError, table, "a query reads the present", hint=f"leave out what follows {table.name}"
            )
        folded = fold(table.name)
        if fold(table.db) == RECURRING and folded in names and names[folded] is None:
            table.meta["itself"] = folded
            return None
        if not table.args.get("db") and folded in names:
            defined = names[folded]
            if defined is None:
                table.meta["itself"] = folded
                return None
            return self._replace(table, self._copy(defined, table), defined.columns, bool(defined.recursive))
        relation = self._relation(table, names)
        if relation.kind == "named query":
            return self._named_query(table, relation)
        self.uses.setdefault(fold(relation.name), relation)
        if not table.alias:
            table.set("alias", exp.TableAlias(this=table.this.copy()))
        table.this.set("this", relation.name)
        table.set("db", None)
        table.set("catalog", None)
        return None

    def _relation(self, table: exp.Table, names: _Names) -> NamedRelation:
        schema = table.args.get("db")
        if schema is not None and not isinstance(schema, exp.Identifier):
            raise self._error(SqlRefusedError, table, f"{to_sql(table)} is not a table")
        if schema is not None and fold(schema.name) == SYSTEM and not table.args.get("catalog"):
            return self._system(table)
        if schema is not None and (fold(schema.name) != "main" or table.args.get("catalog")):
            there = self._namespace.find(table.name) is not None
            shared = f"write {table.name}: all tables and views share one schema"
            hint = shared if there else "SHOW TABLES and SHOW VIEWS list what is there"
            raise unknown_at(self._text, offset_of(schema), f"there is no schema {schema.name}", hint=hint)
        relation = self._namespace.find(table.name)
        if relation is not None:
            return relation
        existing = [*self._namespace.names(), *names]
        near = nearest(table.name, existing)
        if near:
            hint = f"did you mean {near}?"
        elif existing:
            listed = sorted(self._namespace.names(), key=fold)[:10]
            hint = f"the tables and views are {', '.join(listed)}" + (", …" if len(existing) > 10 else "")
        else:
            hint = "there are no tables yet: begin with CREATE TABLE"
        raise unknown_at(
            self._text,
            offset_of(table.this),
            f"there is no table or view {table.name}",
            width=len(table.name),
            hint=hint,
        )

    def _system(self, table: exp.Table) -> NamedRelation:
        """A table with the status of views: a SELECT can read it, a definition cannot."""
        relation = self._namespace.find(system_name(table.name))
        if relation is not None:
            return relation
        there = fold(table.name) in SYSTEM_TABLES
        what = f"{SYSTEM}.{table.name} cannot be read here" if there else f"there is no table {SYSTEM}.{table.name}"
        listed = ", ".join(f"{SYSTEM}.{name}" for name in SYSTEM_TABLES)
        raise unknown_at(
            self._text,
            offset_of(table.this),
            what,
            width=len(table.name),
            hint=f"a SELECT of its own reads {listed}; views cannot" if there else f"there are {listed}",
        )

    def _copy(self, defined: _Defined, table: exp.Table) -> exp.Expr:
        self._size += sum(1 for _ in defined.body.walk())
        if self._size > _LARGEST:
            raise self._error(
                SqlRefusedError,
                table,
                "the query is too large once its WITH queries and named queries are written out",
                hint="make a materialized view of the part that is used most often",
            )
        if defined.recursive is None:
            return copied(defined.body)
        name = defined.recursive.expressions[0].alias
        every = exp.select("*").from_(exp.Table(this=exp.to_identifier(name, quoted=True)))
        every.set("with_", copied(defined.recursive))
        return every

    def _named_query(self, table: exp.Table, relation: NamedRelation) -> None:
        if fold(relation.name) in self._open:
            raise self._error(SqlRefusedError, table, f"{relation.name} is defined by itself")
        own = reader(DEFAULT)
        body = own.meaning(own.read(relation.query), relation.query)
        place = {key: table.this.meta[key] for key in ("start", "end", "line", "col") if key in table.this.meta}
        for node in body.walk():
            if "start" in node.meta:
                # What is wrong inside is wrong for the user where the name stands.
                node.meta.update(place) if place else node.meta.clear()
        self._open.append(fold(relation.name))
        holder = exp.Paren(this=body)
        self.visit(body, {})
        self._open.pop()
        columns = tuple(exp.to_identifier(column.name, quoted=True) for column in relation.columns)
        self._replace(table, self._copy(_Defined(holder.this), table), columns, whole=False)

    def _replace(self, table: exp.Table, body: exp.Expr, columns: tuple[exp.Identifier, ...], whole: bool) -> None:
        alias = table.args.get("alias")
        named = list(alias.columns) if alias else []
        name = alias.this.copy() if alias and alias.this else table.this.copy()
        names = [*named, *(column.copy() for column in columns[len(named) :])]
        subquery = exp.Subquery(this=body, alias=exp.TableAlias(this=name, columns=names or None))
        for key in _KEPT:
            if table.args.get(key):
                subquery.set(key, table.args[key])
        if whole:
            subquery.meta[WHOLE] = True
        table.replace(subquery)

    # -------------------------------------------------------------- table functions

    def _function(self, table: exp.Table, names: _Names) -> None:
        call = table.this
        name = call.name.lower() if isinstance(call, exp.Anonymous) else to_sql(call).partition("(")[0].lower()
        if name in TIME_WINDOWS:
            body = time_windows(call, self._text)
            self.visit(body, names)
            self._refuse_window_columns(body, call)
            if not table.alias:
                table.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
            return self._replace(table, body, (), whole=False)
        if name in TABLE_FUNCTIONS:
            return None
        if any(name == known for known, kind, _, _ in typer().functions() if kind in ("table", "table_macro")):
            raise self._error(
                SqlRefusedError,
                call,
                f"{name}() cannot be read from",
                why="it reads what is no table or view of this database, whose changes are in no log",
                hint="load the rows into a table with INSERT, or write the query out",
            )
        near = nearest(name, TABLE_FUNCTIONS | TIME_WINDOWS)
        hint = f"did you mean {near}?" if near else f"there are {', '.join(sorted(TABLE_FUNCTIONS | TIME_WINDOWS))}"
        raise unknown_at(self._text, offset_of(call), f"there is no table function {name}", width=len(name), hint=hint)

    def _refuse_window_columns(self, body: exp.Expr, call: exp.Expr) -> None:
        for table in body.find_all(exp.Table):
            relation = self.uses.get(fold(table.name))
            taken = relation and next((name for name in WINDOW_COLUMNS if relation.column(name)), None)
            if relation and taken and table.parent_select in (body, body.find(exp.Select)):
                raise self._error(
                    SqlError,
                    call,
                    f"{call.name.upper()} adds a column {taken}, and {relation.name} has one already",
                    hint=f"rename it first: {call.name.upper()}((SELECT {taken} AS … FROM {relation.name}), …)",
                )

    def _error(
        self, kind: type[SqlError], node: exp.Expr, what: str, *, why: str | None = None, hint: str | None = None
    ) -> SqlError | UnknownObjectError:
        return error_at(kind, self._text, offset_of(node), what, why=why, hint=hint)


def _rows(table: exp.Table) -> None:
    """VALUES in parentheses of their own: what sqlglot takes for a table is a subquery."""
    alias = table.args.get("alias")
    values = table.this.pop()
    values.set("alias", alias.copy() if alias else None)
    name = exp.TableAlias(this=alias.this.copy()) if alias and alias.this else None
    subquery = exp.Subquery(this=exp.select("*").from_(values), alias=name)
    for key in _KEPT:
        if table.args.get(key):
            subquery.set(key, table.args[key])
    table.replace(subquery)


def _without_schema(column: exp.Column) -> None:
    """``main.orders.amount`` is ``orders.amount``."""
    schema = column.args.get("db")
    known = ("main", SYSTEM)
    if isinstance(schema, exp.Identifier) and fold(schema.name) in known and not column.args.get("catalog"):
        column.set("db", None)


def _ends_walk(node: exp.Expr) -> bool:
    return isinstance(node, exp.Table) or node.args.get("with_") is not None


def is_whole(node: exp.Expr) -> bool:
    """Whether a node is, or stands in, a subquery that is evaluated as it stands."""
    around: exp.Expr | None = node
    while around is not None:
        if around.meta.get(WHOLE):
            return True
        around = around.parent
    return False
