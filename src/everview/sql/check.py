"""A query, checked: every name resolved, every type known, or a clear error.

:func:`check` takes the tree of a query and a namespace, asks DuckDB what the
query's columns are, and returns a tree in which every column is tied to its source.

What it does, in order, is :data:`everview.sql.passes.PASSES`.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from everview.sql.dialects import quiet, too_deep
from everview.sql.expansion import WHOLE
from everview.sql.namespace import NamedRelation, Namespace
from everview.sql.nondeterministic_orders import NondeterministicOrder, nondeterministic_orders
from everview.sql.passes import QueryState, run_passes
from everview.sql.positions import offset_of, otherwise_at
from everview.sql.statements import OwnWords
from everview.sql.typer import Columns


@dataclass(frozen=True)
class SortKey:
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
    """Qualified as in :mod:`everview.sql.resolution`."""
    columns: Columns
    uses: tuple[NamedRelation, ...]
    """The tables and materialized views it reads."""
    order: tuple[SortKey, ...]
    """The ORDER BY of a query without LIMIT."""
    nondeterministic_orders: tuple[NondeterministicOrder, ...]
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
            state = QueryState(query, namespace, text, words, allow_volatile)
            run_passes(state)
            tree = state.tree
            assert isinstance(tree, exp.Query)
            orders = nondeterministic_orders(tree, text)
            return Checked(tree, state.columns, state.uses, _read_order(tree), orders, state.has_unwritten_order)
        except RecursionError:
            raise too_deep() from None


def _read_order(tree: exp.Query) -> tuple[SortKey, ...]:
    order = tree.args.get("order")
    if order is None or tree.args.get("limit") is not None or tree.args.get("offset") is not None:
        return ()
    outputs = {part.output_name: part.unalias() for part in tree.selects}
    keys = []
    for ordered in order.expressions:
        key = ordered.this
        column = key.name if isinstance(key, exp.Column) and not key.table and key.name in outputs else None
        if column is None:
            column = next((name for name, value in outputs.items() if value == key), None)
        keys.append(SortKey(key, column, bool(ordered.args.get("desc")), bool(ordered.args.get("nulls_first"))))
    return tuple(keys)
