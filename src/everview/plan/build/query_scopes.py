"""Stages: a relation under construction, and how the query's columns are its fields.

The query reads ``o.amount`` and the relation has a field of some name for it;
a :class:`QueryScope` turns the one into the other, and an expression that has been computed
already (a group column, an aggregate, a window function) into the field that holds it.

Three forms of a column occur in a tree: with a table (as in the query), without one (a
field, already found), and as a bare identifier (the parameter of a lambda).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from everview.plan.build.context import BuildContext, NoOperator, field_column, text_of
from everview.plan.collations import compared_by
from everview.plan.expressions import Expr
from everview.plan.relations import Filter, Relation, Sort
from everview.sql.aggregates import WRAPPERS, names_of
from everview.sql.copies import copied

Columns = dict[tuple[str, str], str]
"""(table alias, column), both in lower case, to the field."""


@dataclass
class QueryScope:
    """A relation under construction."""

    context: BuildContext
    relation: Relation
    columns: Columns
    known: dict[str, str] = field(default_factory=dict)
    """Texts over fields that have been computed, and the field that holds each."""

    def lower(self, node: exp.Expr) -> exp.Expr:
        """The tree over fields."""
        return self._computed(lowered(node, self.columns))

    def _computed(self, tree: exp.Expr, call: bool = False) -> exp.Expr:
        """What is known as a whole goes before its parts; once its parts are replaced, it may be known
        by what it has become: a window over aggregates is. A ``call`` is what a window computes, which
        is no aggregate, whatever its form."""
        if not self.known or isinstance(tree, exp.Identifier):
            return tree
        name = None if call else self.known.get(text_of(tree))
        if name is not None:
            return field_column(name)
        passes = isinstance(tree, exp.Window) or (call and isinstance(tree, WRAPPERS))
        for part in list(tree.iter_expressions()):
            changed = self._computed(part, passes and part is tree.this)
            if changed is not part:
                part.replace(changed)
        name = None if call else self.known.get(text_of(tree))
        return tree if name is None else field_column(name)

    def texts(self, nodes: Iterable[exp.Expr]) -> list[str]:
        return [text_of(self.lower(node).unnest()) for node in nodes]

    def exprs(self, nodes: Iterable[exp.Expr]) -> list[Expr]:
        return self.context.typed(self.texts(nodes), self.relation)

    def expr(self, node: exp.Expr) -> Expr:
        return self.exprs([node])[0]

    def keep(self, condition: exp.Expr) -> None:
        """Keep the rows for which a condition holds."""
        self.relation = Filter(self.relation, self.context.condition(self.lower(condition), self.relation))

    def sorts(self, order: exp.Expr | None) -> tuple[Sort, ...]:
        """The parts of an ORDER BY."""
        parts = ordered(order)
        expressions = self.exprs([part.this for part in parts])
        return tuple(as_sort(by, part) for by, part in zip(expressions, parts, strict=True))


def _windowed(tree: exp.Expr) -> bool:
    """Whether this is what a window function calls: the same text elsewhere is an aggregate of the group."""
    while isinstance(tree.parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls) and tree.arg_key == "this":
        tree = tree.parent
    return isinstance(tree.parent, exp.Window) and tree.arg_key == "this"


def lowered(node: exp.Expr, columns: Columns) -> exp.Expr:
    """The tree with the query's columns replaced by fields. A field whose part is taken stands in
    parentheses: ``"s.a".x`` would read as the column x of a table."""

    def change(found: exp.Expr) -> exp.Expr:
        if isinstance(found, exp.Query):
            raise NoOperator("a subquery in this place", found)
        if isinstance(found, exp.Column) and found.table:
            name = columns.get((found.table.lower(), found.name.lower()))
            if name is None:
                raise NoOperator("a column of an outer query in this place", found)
            made = field_column(name, found)
            return exp.Paren(this=made) if isinstance(found.parent, exp.Dot) else made
        return found

    return copied(node).transform(change, copy=False)


def ordered(order: exp.Expr | None) -> list[exp.Ordered]:
    if order is None:
        return []
    return [part if isinstance(part, exp.Ordered) else exp.Ordered(this=part) for part in order.expressions]


def as_sort(by: Expr, part: exp.Ordered) -> Sort:
    return Sort(compared_by(by), bool(part.args.get("desc")), bool(part.args.get("nulls_first")))


def by_key(relation: Relation, order: Sequence[Sort] = ()) -> tuple[Sort, ...]:
    """The order, settled by the key where it leaves ties."""
    there = {sort.by.field for sort in order}
    more = (
        Sort(Expr(text_of(field_column(name)), relation.field(name).type)) for name in relation.key if name not in there
    )
    return (*order, *more)


def conjuncts(condition: exp.Expr | None) -> list[exp.Expr]:
    """The parts that must all hold; TRUE is none."""
    if condition is None:
        return []
    found = condition.unnest()
    if isinstance(found, exp.And):
        return [*conjuncts(found.this), *conjuncts(found.expression)]
    if isinstance(found, exp.Boolean) and found.this:
        return []
    return [found]


def with_implied(conditions: list[exp.Expr]) -> list[exp.Expr]:
    """The conditions, and the equalities that all branches of an OR among them have in common: a
    join whose condition is such an OR has join keys after all."""
    found = list(conditions)
    for condition in conditions:
        if isinstance(condition, exp.Or):
            branches = [conjuncts(branch) for branch in condition.flatten()]
            found += [
                one.copy()
                for one in branches[0]
                if isinstance(one, exp.EQ | exp.NullSafeEQ) and all(one in branch for branch in branches[1:])
            ]
    return found


def inside(node: exp.Expr) -> Iterator[exp.Expr]:
    """A node and its parts, without what stands in queries inside it; those queries themselves."""
    yield node
    if not isinstance(node, exp.Query):
        for part in node.iter_expressions():
            yield from inside(part)


def has_query(node: exp.Expr) -> bool:
    return any(isinstance(part, exp.Query) for part in inside(node))


def free_columns(node: exp.Expr, bound: frozenset[str] = frozenset()) -> list[exp.Column]:
    """The columns in a tree that belong to queries around it, given the aliases in sight."""
    if isinstance(node, exp.Select):
        bound = bound | names_of(node)
    found: list[exp.Column] = []
    if isinstance(node, exp.Column):
        return [node] if node.table and node.table.lower() not in bound else []
    for part in node.iter_expressions():
        found += free_columns(part, bound)
    return found


def is_local(node: exp.Expr, columns: Columns) -> bool:
    """Whether a tree reads nothing but these columns (and fields)."""
    return not free_columns(node, frozenset(alias for alias, _ in columns))
