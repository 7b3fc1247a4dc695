"""The passes over the tree of a query, in the order in which they run, each with the reason for its place.

A checked query is made from a parsed one by :data:`PASSES`, which change a :class:`QueryState`. One of them
ties columns to their tables, in passes of its own: :data:`NAME_PASSES`, which change a
:class:`~everview.sql.resolution.Resolution`. And one of those is run for every SELECT: :data:`SELECT_PASSES`.

What every pass keeps:

- The columns of the query: their number, names, order and types. DuckDB describes the query before names are
  resolved and again after, and what differs is not used.
- The places in the text (``meta``) of what it does not replace, so that errors of later passes show them.
- The parts that another stage has marked as whole: DuckDB evaluates them as they stand.

A worked example, ``SELECT name, count(*) FROM big GROUP BY ALL`` over
``CREATE VIEW big AS SELECT * FROM orders WHERE amount > 100``::

    expand_names             SELECT name, count(*) FROM (SELECT * FROM orders …) AS big(id, name, amount) GROUP BY ALL
    describe_columns         name VARCHAR, count_star() BIGINT
    qualify_columns
      qualify_names          SELECT big.name AS name, count(*) AS _col_1 FROM (SELECT orders.id AS id, … GROUP BY ALL
      rewrite_selects        … GROUP BY big.name
      name_outputs           SELECT big.name AS "name", count(*) AS "count_star()" …

A text in another dialect has been translated to DuckDB's SQL before (:mod:`everview.sql.dialects`); what its operations
mean where that depends on types is written out by the second pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from sqlglot import exp
from sqlglot.optimizer.scope import traverse_scope

from everview.sql.binding import as_written, has_names, makes_rows, typed_columns, wording
from everview.sql.call_forms import (
    replace_alias_calls,
    rewrite_comprehensions,
    rewrite_method_calls,
    write_out_macros,
)
from everview.sql.column_references import (
    name_positional_columns,
    order_by_place,
    unite_by_position,
    write_out_column_sets,
)
from everview.sql.constants import (
    ResolvedQuery,
    known_query,
    mark_constants,
    remember_query,
    template,
    with_constants,
)
from everview.sql.dialects import to_sql
from everview.sql.expansion import expanded
from everview.sql.inherited_orders import with_inherited_orders
from everview.sql.namespace import NamedRelation, Namespace, inputs_of
from everview.sql.refusals import refusal
from everview.sql.refused_constructs import (
    column_names,
    refuse_pivots_without_columns,
    refuse_row_ids,
    refuse_unknown_parts,
    refuse_unnamed_aliases,
)
from everview.sql.resolution import Resolution, SelectScope, qualified
from everview.sql.scopes import (
    fold_names,
    hide_whole_parts,
    name_outputs,
    name_subquery_columns,
    put_whole_parts_back,
    qualify_names,
    qualify_order_by,
    quote_names,
    refuse_stars,
    refuse_unqualified,
    spell_as_declared,
    write_out_rows,
)
from everview.sql.select_clauses import (
    choose_joined_columns,
    order_by_all_columns,
    take_off_parentheses,
    write_out_grouping,
    write_out_windows,
)
from everview.sql.statements import OwnWords
from everview.sql.ties import TIES, mark_ties, write_ties
from everview.sql.typed_meanings import with_types
from everview.sql.typer import Columns, Described, Failure, Inputs, typer
from everview.sql.volatile import refuse_volatile

State = TypeVar("State")


@dataclass(frozen=True)
class Pass(Generic[State]):
    """One step, and why it stands where it stands."""

    function: Callable[[State], None]
    reason: str
    resolves: bool = False
    """Whether it is left out for a query that differs from one resolved before in constants only."""

    @property
    def name(self) -> str:
        return self.function.__name__


@dataclass
class QueryState:
    """A query on its way through the passes."""

    query: exp.Expr
    """As it was read, in DuckDB's meaning after the second pass: not changed in place."""
    namespace: Namespace
    text: str
    """What it was read from: all places in its tree refer to it."""
    words: OwnWords | None = None
    allow_volatile: bool = False
    tree: exp.Expr = field(init=False)
    """What the passes make of the query."""
    uses: tuple[NamedRelation, ...] = ()
    """The tables and views it reads."""
    inputs: Inputs = field(default_factory=dict)
    """Their columns, as DuckDB is given them."""
    sql: str = ""
    """The text that DuckDB is given."""
    described: Described = field(default_factory=lambda: Described(()))
    """The columns of the query as DuckDB describes them."""
    columns: Columns = ()
    template: tuple[object, ...] | None = None
    """What it is without its constants; None where that may show in the name of a column."""
    unresolved: exp.Expr = field(init=False)
    """The tree before its names were resolved."""
    is_resolved: bool = False
    """Whether it was resolved before, but for its constants."""
    has_unwritten_order: bool = False
    """Whether something in it depends on an order that only DuckDB knows."""

    def __post_init__(self) -> None:
        self.tree = self.unresolved = self.query


def run_passes(query: QueryState) -> None:
    """Run all passes."""
    for step in PASSES:
        if not (step.resolves and query.is_resolved):
            step.function(query)


# ------------------------------------------------------------------ of a query


def refuse_unknown(query: QueryState) -> None:
    refuse_unknown_parts(query.query, query.text)


def write_out_meanings(query: QueryState) -> None:
    query.query = with_types(query.query, query.namespace, query.text)


def expand_names(query: QueryState) -> None:
    query.tree, query.uses = expanded(query.query, query.namespace, query.text)


def refuse_volatility(query: QueryState) -> None:
    if not query.allow_volatile:
        refuse_volatile(query.tree, query.text, columns=column_names(query.tree, query.uses))


def refuse_constructs(query: QueryState) -> None:
    refuse_unnamed_aliases(query.tree, query.text)
    refuse_pivots_without_columns(query.tree, query.text)
    refuse_row_ids(query.tree, query.uses, query.text)


def mark_limits(query: QueryState) -> None:
    mark_ties(query.tree, query.text)


def recall_resolved(query: QueryState) -> None:
    query.unresolved = query.tree
    constants = mark_constants(query.tree)
    if not has_names(query.query):
        return
    ties = tuple(TIES in limit.meta for limit in query.tree.find_all(exp.Limit))
    worded = wording(query.query, query.text, query.words)
    query.template = (template(query.tree, constants), worded, ties, query.uses, query.allow_volatile)
    known = known_query(query.template)
    tree = with_constants(known, query.tree, constants) if known is not None else None
    if known is not None and tree is not None:
        query.tree, query.columns, query.is_resolved = tree, known.columns, True


def describe_columns(query: QueryState) -> None:
    query.sql, query.inputs = to_sql(query.tree), inputs_of(query.uses)
    described = as_written(query.query, query.text, query.words, query.inputs, typer().attempt(query.sql, query.inputs))
    if isinstance(described, Failure):
        raise refusal(described, query.tree, query.sql, query.text, query.uses)
    query.described = described


def rehearse(query: QueryState) -> None:
    if query.allow_volatile:
        return
    failure = typer().rehearse(query.sql, query.inputs, run=not makes_rows(query.tree))
    if failure is not None:
        raise refusal(failure, query.tree, query.sql, query.text, query.uses)


def check_types(query: QueryState) -> None:
    query.columns = typed_columns(query.described, query.tree, query.text)


def qualify_columns(query: QueryState) -> None:
    query.tree = qualified(query.tree, query.uses, query.inputs, query.described, resolve_names)


def remember_resolved(query: QueryState) -> None:
    if query.template is not None:
        remember_query(query.template, ResolvedQuery(query.unresolved, query.tree.copy(), query.columns))


def write_out_ties(query: QueryState) -> None:
    query.tree = write_ties(query.tree, query.text)


def write_out_orders(query: QueryState) -> None:
    query.tree, is_written = with_inherited_orders(query.tree)
    query.has_unwritten_order = not is_written


PASSES: tuple[Pass[QueryState], ...] = (
    Pass(refuse_unknown, "first: no part of the tree that no pass knows may get lost on the way"),
    Pass(write_out_meanings, "before names are expanded, which copies a WITH query to every place that reads it"),
    Pass(expand_names, "from here on the query reads tables and views only, so DuckDB can be asked about it"),
    Pass(refuse_volatility, "after names are expanded, since a named query may hold what is volatile"),
    Pass(refuse_constructs, "before DuckDB is asked, which accepts them or refuses them in words of its own"),
    Pass(mark_limits, "before the query is written out for DuckDB, which has no WITH TIES"),
    Pass(recall_resolved, "after every refusal that goes by the text, and before all that is asked of DuckDB"),
    Pass(describe_columns, "before names are resolved: DuckDB's errors name what the user wrote", resolves=True),
    Pass(rehearse, "once it is known that DuckDB can read the query", resolves=True),
    Pass(check_types, "while output columns stand where the user wrote them, which the error shows", resolves=True),
    Pass(qualify_columns, "once there is a description to compare the result with", resolves=True),
    Pass(remember_resolved, "before ties and orders, which are written out for a recalled query too", resolves=True),
    Pass(write_out_ties, "once names are resolved: ORDER BY may name an output column, a rank cannot"),
    Pass(write_out_orders, "last: a rank is a window, behind which the order of a subquery is lost"),
)

# ------------------------------------------------------------------ of the names in it


def resolve_names(query: Resolution) -> None:
    """Run the passes that tie columns to tables."""
    for step in NAME_PASSES:
        step.function(query)


def rewrite_selects(query: Resolution) -> None:
    for scope in traverse_scope(query.tree.this):
        if isinstance(scope.expression, exp.Select):
            for step in SELECT_PASSES:
                step.function(SelectScope(scope.expression, scope, query))


NAME_PASSES: tuple[Pass[Resolution], ...] = (
    Pass(take_off_parentheses, "before a FROM is copied together with its joins: those in parentheses belong to it"),
    Pass(rewrite_method_calls, "before calls are looked for by their names"),
    Pass(rewrite_comprehensions, "after method calls: x.upper() has to be a call over the column x"),
    Pass(write_out_macros, "once every call is a plain one, with its name and all its arguments"),
    Pass(name_positional_columns, "while FROM is as DuckDB reads it, which is asked which column has the number"),
    Pass(unite_by_position, "before the columns of subqueries get names: it makes new subqueries"),
    Pass(write_out_column_sets, "before the columns of a SELECT are counted or named: it makes more of them"),
    Pass(replace_alias_calls, "after sets of columns: alias(COLUMNS(*)) is then one call for each column"),
    Pass(name_subquery_columns, "after every pass that adds columns, and before sqlglot names them otherwise"),
    Pass(order_by_place, "once the columns of subqueries have names, and before sqlglot renames them"),
    Pass(hide_whole_parts, "after the last pass that asks DuckDB, which does not know the tables put in their place"),
    Pass(fold_names, "after parts are hidden, whose names keep their spelling, and before names are compared"),
    Pass(qualify_names, "once sqlglot can read all that is left, and equal names are spelled alike"),
    Pass(order_by_all_columns, "once the columns are known one by one"),
    Pass(rewrite_selects, "once columns have tables; inner queries before those that read their columns"),
    Pass(spell_as_declared, "after the last pass that compares names in lower case"),
    Pass(refuse_unqualified, "after the last pass that gives columns their tables"),
    Pass(quote_names, "once names have their spelling, on which it depends whether they need quotes"),
    Pass(name_outputs, "after every pass that folds names: these keep DuckDB's spelling"),
    Pass(put_whole_parts_back, "last: no pass may change what is in them"),
)

# ------------------------------------------------------------------ of one SELECT

SELECT_PASSES: tuple[Pass[SelectScope], ...] = (
    Pass(refuse_stars, "first: with a star left the columns are not known"),
    Pass(qualify_order_by, "before output columns are rewritten, which ORDER BY may name instead of columns of FROM"),
    Pass(write_out_rows, "before GROUP BY ALL copies the columns, rows among them"),
    Pass(choose_joined_columns, "before GROUP BY ALL copies them: until then they are sqlglot's coalesce"),
    Pass(write_out_windows, "before expressions are copied to where no WINDOW clause is"),
    Pass(write_out_grouping, "last: it copies expressions, which are final now"),
)
