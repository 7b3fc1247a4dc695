"""A query, checked: every name resolved, every type known, or a clear error.

:func:`check` takes the tree of a query and a namespace, asks DuckDB what the
query's columns are, and returns a tree in which every column is tied to its source.

The steps, in order:

0. what another dialect means by operations on values of these types is written out
   (:mod:`everview.sql.typed_meanings`);
1. names of WITH queries, named queries, TUMBLE and HOP are expanded (:mod:`everview.sql.expand`);
2. what is volatile is refused (:mod:`everview.sql.volatile`);
3. DuckDB says which columns of which types the query has, or why it has none
   (:mod:`everview.sql.typer`, :mod:`everview.sql.refusals`);
4. columns are tied to their sources (:mod:`everview.sql.scopes`);
5. WITH TIES becomes a rank (:mod:`everview.sql.ties`);
6. what takes its rows in the order of a subquery says so (:mod:`everview.sql.inherited_orders`).

For ``SELECT customer, sum(amount) FROM orders GROUP BY 1`` the columns are
``(('customer', Type('INTEGER')), ('sum(amount)', Type('DOUBLE')))``.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from everview.errors import SqlRefusedError, SqlTypeError
from everview.sql.alias_calls import refuse_unnamed
from everview.sql.as_of import endless_join
from everview.sql.calls import is_aggregate
from everview.sql.constants import Resolved, mark_constants, template, with_constants
from everview.sql.dialects import to_sql, too_deep
from everview.sql.expand import WHOLE, expanded
from everview.sql.inherited_orders import with_inherited_orders
from everview.sql.known_parts import refuse_unknown_parts
from everview.sql.namespace import Namespace, Relation, fold
from everview.sql.open_orders import OpenOrder, open_orders
from everview.sql.positions import error_at, offset_of, otherwise_at
from everview.sql.quiet import quiet
from everview.sql.refusals import refusal
from everview.sql.scopes import qualified
from everview.sql.source_text import as_written, has_names, wording
from everview.sql.statements import OwnWords
from everview.sql.ties import TIES, mark_ties, write_ties
from everview.sql.typed_meanings import with_types
from everview.sql.typer import Columns, Described, Failure, storable, typer
from everview.sql.unknown import unknown_at
from everview.sql.volatile import refuse_volatile


@dataclass(frozen=True)
class ReadOrder:
    """One key of the order in which a view is read."""

    expression: exp.Expr
    """A name without a table is an output column."""
    column: str | None
    """The output column that it is, if it is one."""
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Checked:
    """A query whose names and types are known."""

    tree: exp.Query
    """Qualified as :mod:`everview.sql.scopes` says."""
    columns: Columns
    uses: tuple[Relation, ...]
    """The tables and materialized views it reads."""
    order: tuple[ReadOrder, ...]
    """The ORDER BY of a query without LIMIT."""
    open_orders: tuple[OpenOrder, ...]
    has_unwritten_order: bool = False
    """Whether something in it depends on an order that only DuckDB knows, for a subquery gives it."""

    @property
    def wholes(self) -> tuple[exp.Expr, ...]:
        """The subqueries that DuckDB evaluates as they stand."""
        return tuple(node for node in self.tree.walk() if node.meta.get(WHOLE))


def check(
    query: exp.Expr,
    namespace: Namespace,
    text: str,
    *,
    words: OwnWords | None = None,
    allow_volatile: bool = False,
) -> Checked:
    """Check a query that was read from ``text``, where it is worded so. An ad hoc SELECT may use volatile functions.
    Two columns may have one name."""
    with quiet(), otherwise_at(text, offset_of(query) or 0):
        try:
            return _check(query, namespace, text, words, allow_volatile)
        except RecursionError:
            raise too_deep() from None


def _check(
    query: exp.Expr,
    namespace: Namespace,
    text: str,
    words: OwnWords | None,
    allow_volatile: bool,
) -> Checked:
    refuse_unknown_parts(query, text)
    query = with_types(query, namespace, text)
    tree, uses = expanded(query, namespace, text)
    if not allow_volatile:
        refuse_volatile(tree, text, columns=_named(tree, uses))
    refuse_unnamed(tree, text)
    _refuse_open_pivots(tree, text)
    _refuse_row_ids(tree, uses, text)
    mark_ties(tree, text)
    resolved, columns = _resolved(query, tree, uses, text, words, rehearsed=not allow_volatile)
    resolved, written = with_inherited_orders(write_ties(resolved, text))
    assert isinstance(resolved, exp.Query)
    return Checked(resolved, columns, uses, _read_order(resolved), open_orders(resolved, text), not written)


_KNOWN: dict[tuple[object, ...], Resolved] = {}
_MOST_KNOWN = 1000
"""Queries that were resolved, by what they are without their constants; past so many all are forgotten."""


def _resolved(
    query: exp.Expr,
    tree: exp.Expr,
    uses: tuple[Relation, ...],
    text: str,
    words: OwnWords | None,
    rehearsed: bool,
) -> tuple[exp.Expr, Columns]:
    constants = mark_constants(tree)
    named = has_names(query)
    ties = tuple(TIES in limit.meta for limit in tree.find_all(exp.Limit))
    key = (template(tree, constants), wording(query, text, words), ties, uses)
    known = _KNOWN.get(key) if named else None
    again = with_constants(known, tree, constants) if known is not None else None
    if known is not None and again is not None:
        return again, known.columns
    inputs = {relation.name: [(column.name, column.type) for column in relation.columns] for relation in uses}
    sql = to_sql(tree)
    described = as_written(query, text, words, inputs, typer().attempt(sql, inputs))
    if isinstance(described, Failure):
        raise refusal(described, tree, sql, text, uses)
    failure = typer().rehearse(sql, inputs, run=not _makes_rows(tree)) if rehearsed else None
    if failure is not None:
        raise refusal(failure, tree, sql, text, uses)
    columns = _typed(described, tree, text)
    found = qualified(tree, uses, inputs, described)
    if named:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[key] = Resolved(tree, found.copy(), columns)
    return found, columns


_ROWS = (exp.Unnest, exp.Explode, exp.GenerateSeries, exp.Lateral)


def _makes_rows(tree: exp.Expr) -> bool:
    """Whether a query over empty tables may have rows nevertheless, many of them or one that fails only there: it
    is not evaluated to see whether it can be."""
    if any(with_.recursive for with_ in tree.find_all(exp.With)) or endless_join(tree) is not None:
        return True
    functions = any(isinstance(table.this, exp.Func) for table in tree.find_all(exp.Table))
    functions = functions or any(is_aggregate(node) for node in tree.walk())
    return functions or next(tree.find_all(*_ROWS), None) is not None


def _typed(described: Described, tree: exp.Expr, text: str) -> Columns:
    columns = []
    for number, (name, type) in enumerate(described.columns):
        try:
            columns.append((name, storable(name, type)))
        except SqlTypeError as error:
            offset = offset_of(_output(tree, number, described))
            raise error_at(SqlTypeError, text, offset, error.message, why=error.detail, hint=error.hint) from None
    return tuple(columns)


def _output(tree: exp.Expr, number: int, described: Described) -> exp.Expr:
    """The expression of an output column, as far as it can be told; else the query."""
    first = tree
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.this
    if isinstance(first, exp.Select) and len(first.expressions) == len(described.columns):
        found: exp.Expr = first.expressions[number]
        return found
    return tree


_VALUES = ("expressions", "query", "field", "unnest")
"""Where the values of an IN stand."""


def _refuse_open_pivots(tree: exp.Expr, text: str) -> None:
    for pivot in tree.find_all(exp.Pivot):
        on = pivot.expressions if pivot.this is not None else pivot.args.get("fields") or []
        if any(isinstance(part, exp.In) and not any(map(part.args.get, _VALUES)) for part in on):
            raise error_at(
                SqlRefusedError,
                text,
                offset_of(pivot),
                "PIVOT is told that it has no columns",
                hint="list the values: PIVOT … ON column IN (value, …) USING …",
            )
        if not pivot.args.get("unpivot") and not all(isinstance(part, exp.In | exp.Alias) for part in on):
            raise error_at(
                SqlRefusedError,
                text,
                offset_of(pivot),
                "PIVOT needs to be told its columns",
                why="without them they depend on the rows, and a view has the same columns always",
                hint="list the values: PIVOT … ON column IN (value, …) USING …",
            )


def _named(tree: exp.Expr, uses: tuple[Relation, ...]) -> frozenset[str]:
    """Every name that a column has somewhere in a query: in a table, or as an alias."""
    names = [column.name for relation in uses for column in relation.columns]
    names += [alias.alias for alias in tree.find_all(exp.Alias)]
    names += [name.name for alias in tree.find_all(exp.TableAlias) for name in alias.columns]
    return frozenset(map(fold, names))


def _refuse_row_ids(tree: exp.Expr, uses: tuple[Relation, ...], text: str) -> None:
    """DuckDB's ``rowid`` numbers the rows of its own copy of a table, which says nothing here."""
    ids = [column for column in tree.find_all(exp.Column) if fold(column.name) == "rowid"]
    if not ids:
        return
    if "rowid" not in _named(tree, uses):
        raise unknown_at(
            text, offset_of(ids[0].this), "there is no column rowid", width=5, hint="use the table's primary key"
        )


def _read_order(tree: exp.Query) -> tuple[ReadOrder, ...]:
    order = tree.args.get("order")
    if order is None or tree.args.get("limit") is not None or tree.args.get("offset") is not None:
        return ()
    outputs = {part.output_name: part.unalias() for part in tree.selects}
    found = []
    for ordered in order.expressions:
        key = ordered.this
        column = key.name if isinstance(key, exp.Column) and not key.table and key.name in outputs else None
        if column is None:
            column = next((name for name, value in outputs.items() if value == key), None)
        found.append(ReadOrder(key, column, bool(ordered.args.get("desc")), bool(ordered.args.get("nulls_first"))))
    return tuple(found)
