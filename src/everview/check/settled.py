"""Nondeterministic orderings of a query, settled by the keys of its rows.

Where SQL does not determine an order the row key does, so the key of the rows is appended
to every ORDER BY that does not name it, and the recomputation has the same answer as the view.

::

    SELECT id FROM t ORDER BY x LIMIT 3            SELECT t.id FROM t ORDER BY t.x, t.id LIMIT 3
    SELECT g, first(x) FROM t GROUP BY g           SELECT t.g, first(t.x ORDER BY t.id) FROM t GROUP BY t.g
    row_number() OVER (ORDER BY x)                 row_number() OVER (ORDER BY t.x, t.id)

The rows of a SELECT are distinguished by the keys of what it reads, those of a grouped one by the group's
columns, those of DISTINCT and of set operations by what they show. A subquery passes its key on in
columns of its own. Which key that is cannot always be derived from the text (of several sources, of UNION
ALL, of lists, of a view whose key is not among its columns): then the order stays as near as it can be
said, and :attr:`Settled.doubts` lists where, for the rows at a tie may be others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from everview.sql.aggregates import aggregates, called, computed_parts, outer_aggregates
from everview.sql.dialects import DEFAULT, reader, to_sql
from everview.sql.expansion import WHOLE, is_whole
from everview.sql.nondeterministic_orders import nondeterministic_orders

KEY = "__key_"
"""What key columns are called that subqueries pass on."""

_ONE_BY_ONE = frozenset({"row_number", "lag", "lead", "ntile"})
_PICKED = frozenset({"first_value", "last_value", "nth_value", "fill"})
_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple, exp.Literal)
_WRAPPED = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)

KeyOf = Callable[[str], Sequence[str] | None]
"""The key columns of a table or view by its name; None where they cannot be seen."""


@dataclass
class Settled:
    """A query without nondeterministic orderings."""

    tree: exp.Expr
    doubts: list[str] = field(default_factory=list)
    """Constructs whose order could not be settled for sure."""


def settled(tree: exp.Expr, key_of: KeyOf) -> Settled:
    """A checked query with every ordering completed. The original is not changed."""
    holder = exp.Paren(this=tree.copy())
    found = Settled(holder)
    for order in nondeterministic_orders(holder, ""):
        if not _Settling(key_of).order(order.node):
            found.doubts.append(order.what)
    if any(join.method.upper() == "POSITIONAL" for join in holder.find_all(exp.Join)):
        found.doubts.append("POSITIONAL JOIN")
    found.tree = holder.this.pop()
    return found


class _Settling:
    """One construct at a time: whether what was appended is the rows' key for sure."""

    def __init__(self, key_of: KeyOf) -> None:
        self._key_of = key_of
        self._sure = True

    def order(self, node: exp.Expr) -> bool:
        query = node.find_ancestor(exp.Query)
        if query is None or is_whole(node):
            return False
        if isinstance(node, exp.Limit | exp.Offset | exp.Distinct):
            _extend(query, self._rows(query))
        elif isinstance(query, exp.Select) and isinstance(node, exp.Window):
            self._window(node, self._groups(query) if _is_grouped(query) else self._sources(query))
        elif isinstance(query, exp.Select):
            self._call(node, self._sources(query))
        else:
            return False
        return self._sure

    # -------------------------------------------------------------- what distinguishes rows

    def _rows(self, query: exp.Query) -> list[exp.Expr]:
        distinct = query.args.get("distinct")
        if isinstance(query, exp.SetOperation):
            self._sure = self._sure and bool(distinct)
            return _places(query)
        if not isinstance(query, exp.Select):
            self._sure = False
            return []
        if distinct is not None and distinct.args.get("on") is None:
            return _places(query)
        return self._groups(query) if _is_grouped(query) else self._sources(query)

    def _groups(self, query: exp.Select) -> list[exp.Expr]:
        group = query.args.get("group")
        if group is None:
            return []
        sets = any(group.args.get(word) for word in ("all", "rollup", "cube", "grouping_sets"))
        if sets or any(isinstance(one, _SETS) for one in group.expressions):
            self._sure = False
            return []
        return [one.copy() for one in group.expressions]

    def _sources(self, query: exp.Select) -> list[exp.Expr]:
        """The keys of what a SELECT reads, as the row key of joins is put together: a side of which
        every row of the other meets one at most adds nothing."""
        first = query.args.get("from_")
        if first is None:
            return []
        if first.this.args.get("joins") or query.args.get("laterals"):
            self._sure = False
        left = self._source(first.this)
        for join in query.args.get("joins") or ():
            if join.kind.upper() in ("SEMI", "ANTI"):
                continue
            right = self._source(join.this)
            equal = {text for one in _conjuncts(join.args.get("on")) for text in _equated(one)}
            outer = join.side.upper()
            if outer in ("", "LEFT") and right and {to_sql(key) for key in right} <= equal:
                continue
            if outer in ("", "RIGHT") and left and {to_sql(key) for key in left} <= equal:
                left = right
                continue
            self._sure = self._sure and join.args.get("on") is not None
            left = [*left, *right]
        return left

    def _source(self, source: exp.Expr) -> list[exp.Expr]:
        alias = source.alias_or_name
        alias_columns = source.args["alias"].columns if isinstance(source.args.get("alias"), exp.TableAlias) else ()
        names: Sequence[str] | None = None
        if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier) and not alias_columns:
            names = self._key_of(source.name)
        elif isinstance(source, exp.Subquery) and not source.meta.get(WHOLE):
            names = self._exported(source.this)
        if names is None:
            self._sure = False
            return []
        return [_column(name, alias) for name in names]

    def _exported(self, query: exp.Expr) -> list[str] | None:
        """The columns under which a subquery passes the key of its rows on, made where it does not."""
        if isinstance(query, exp.SetOperation) and query.args.get("distinct"):
            return [part.alias_or_name for part in query.selects]
        if not isinstance(query, exp.Select):
            return None
        distinct = query.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is None:
            return [part.alias_or_name for part in query.expressions]
        found: list[str] = []
        shown = {to_sql(part.unalias()): part.alias_or_name for part in reversed(query.expressions)}
        for key in self._groups(query) if _is_grouped(query) else self._sources(query):
            name = shown.get(to_sql(key))
            if name is None:
                name = f"{KEY}{len(query.expressions)}"
                query.select(exp.alias_(key, name, quoted=True), copy=False)
            found.append(name)
        return found

    # -------------------------------------------------------------- where the order goes

    def _window(self, window: exp.Window, keys: Sequence[exp.Expr]) -> None:
        call, spec = window.this, window.args.get("spec")
        while isinstance(call, _WRAPPED):
            call = call.this
        rows = spec is not None and str(spec.args.get("kind") or "").upper() == "ROWS" and not spec.args.get("exclude")
        if called(call) in _ONE_BY_ONE or rows:
            _extend(window, keys)
        elif called(call) not in _PICKED and not nondeterministic_orders(exp.Paren(this=call.copy()), ""):
            self._sure = False  # a frame of rows without some of them: which ones, the tie decides
        elif call.find(exp.Order, exp.Distinct) is None:  # peers share a frame, and a longer order would cut it
            order = window.args.get("order")
            self._call(call, [*(part.copy() for part in (order.expressions if order else ())), *keys])

    def _call(self, call: exp.Expr, keys: Sequence[exp.Expr]) -> None:
        """Append to the ORDER BY inside a call. With DISTINCT only the values themselves can order it."""
        if isinstance(call, exp.AnyValue) and isinstance(call.parent, exp.IgnoreNulls):
            call = call.parent  # sqlglot writes out for any_value what it does anyway
        distinct, order = call.find(exp.Distinct), call.find(exp.Order)
        text = to_sql(call)
        if isinstance(call.parent, exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls) or not text.endswith(")"):
            self._sure = False
            return
        if distinct is not None:
            if order is not None:
                return
            keys = distinct.expressions[:1]
        there = {to_sql(part.this) for part in order.expressions} if order is not None else set()
        more = [to_sql(key) for key in keys if to_sql(key) not in there]
        if more:
            text = f"{text[:-1]}{', ' if order is not None else ' ORDER BY '}{', '.join(more)})"
            again = reader(DEFAULT).read(f"SELECT {text}")
            assert isinstance(again, exp.Select)
            call.replace(again.expressions[0].copy())


def _is_grouped(query: exp.Select) -> bool:
    if query.args.get("group") is not None or query.args.get("having") is not None:
        return True
    return any(map(aggregates, computed_parts(query))) or bool(outer_aggregates(query))


def _places(query: exp.Query) -> list[exp.Expr]:
    return [exp.Literal.number(number) for number in range(1, len(query.selects) + 1)]


def _extend(holder: exp.Expr, keys: Sequence[exp.Expr]) -> None:
    """Append to the ORDER BY of a query or window what it does not have yet."""
    order = holder.args.get("order")
    parts = list(order.expressions) if order is not None else []
    there = {to_sql(part.this) for part in parts}
    more = [exp.Ordered(this=key.copy(), nulls_first=False) for key in keys if to_sql(key) not in there]
    if more:
        holder.set("order", exp.Order(expressions=[*parts, *more]))


def _conjuncts(condition: exp.Expr | None) -> list[exp.Expr]:
    if condition is None:
        return []
    plain = condition.unnest()
    return [*_conjuncts(plain.left), *_conjuncts(plain.right)] if isinstance(plain, exp.And) else [plain]


def _equated(condition: exp.Expr) -> list[str]:
    sides = [condition.left, condition.right] if isinstance(condition, exp.EQ) else []
    columns = [side for side in sides if isinstance(side, exp.Column)]
    return [to_sql(_column(one.name, one.table)) for one in columns] if len(columns) == 2 else []


def _column(name: str, table: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(table, quoted=True))
