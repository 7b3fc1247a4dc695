"""Descent: which parts of a condition may be asked of a node's inputs instead of its result.

A part goes below a node if the rows it drops there are exactly the rows, and
the only influence on rows, that it would drop above.

| node | goes below |
|---|---|
| project | everything, over what the fields are defined as |
| join: inner | what reads one side, to that side |
| join: left, right | what reads the side whose rows all stay |
| join: full | nothing |
| join: semi, anti | everything, to the left side |
| aggregate | what reads group columns (those of every grouping set) |
| distinct, set operation, union all | what reads shown columns, to all inputs |
| window, top-k | what reads partition expressions only: the whole partition goes or stays |
| unnest | what does not read the item |

A part that can fail never overtakes an earlier one that stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from everview.change.types import Type
from everview.plan.expressions import Expr, Field, parsed, written
from everview.plan.relations import (
    Aggregate,
    Distinct,
    Join,
    JoinKind,
    Project,
    Relation,
    SetOperation,
    TopK,
    Union,
    Unnest,
    Window,
)
from everview.plan.rules.conditions import can_fail, goes_by_equality, substituted

ASKED = {
    JoinKind.INNER: (0, 1),
    JoinKind.LEFT: (0,),
    JoinKind.RIGHT: (1,),
    JoinKind.FULL: (),
    JoinKind.SEMI: (0,),
    JoinKind.ANTI: (0,),
}
"""The sides of a join whose rows a condition above the join may drop."""

MATCHED = {
    JoinKind.INNER: (0, 1),
    JoinKind.LEFT: (1,),
    JoinKind.RIGHT: (0,),
    JoinKind.FULL: (),
    JoinKind.SEMI: (0, 1),
    JoinKind.ANTI: (1,),
}
"""The sides of a join whose rows matter only where they match: its own condition may drop them."""

Descent = tuple[tuple[tuple[Expr, ...], ...], tuple[Expr, ...]]
"""For each input what goes there, and what stays."""


def below(node: Relation, parts: Iterable[Expr]) -> Descent:
    """Where the parts of a condition above a node may go."""
    if isinstance(node, Join):
        return below_join(node, parts, ASKED[node.kind])
    there: list[Expr] = []
    staying: list[Expr] = []
    for part in parts:
        goes = _goes_below(node, part) and not (staying and can_fail(part.sql))
        (there if goes else staying).append(part)
    downs = (tuple(_translated(node, number, part) for part in there) for number in range(len(node.inputs)))
    return tuple(downs), tuple(staying)


def below_join(node: Join, parts: Iterable[Expr], sides: Sequence[int]) -> Descent:
    """The same for a join: each part to the one of these sides that has all it reads."""
    there: tuple[list[Expr], list[Expr]] = ([], [])
    staying: list[Expr] = []
    for part in parts:
        side = next((n for n in sides if part.fields and part.fields <= node.inputs[n].by_name.keys()), None)
        if side is None or (staying and can_fail(part.sql)):
            staying.append(part)
        else:
            there[side].append(part)
    return (tuple(there[0]), tuple(there[1])), tuple(staying)


def _goes_below(node: Relation, part: Expr) -> bool:
    if isinstance(node, Project):
        return True
    if not part.fields:
        return False
    if isinstance(node, Aggregate):
        everywhere = set(range(len(node.groups))).intersection(*node.sets)
        return _reads_only(part, [field for n, (field, _) in enumerate(node.groups) if n in everywhere])
    if isinstance(node, Distinct):
        return _reads_only(part, node.fields)
    if isinstance(node, Union | SetOperation):
        return _reads_only(part, node.columns) and all(
            shown.type == column.type
            for found in node.inputs
            for shown, column in zip(found.shown, node.columns, strict=True)
            if column.name in part.fields
        )
    if isinstance(node, Window | TopK):
        return _reads_only_expressions(part, node.partition)
    if isinstance(node, Unnest):
        return part.fields <= node.input.by_name.keys()
    return False


def _reads_only(part: Expr, fields: Sequence[Field]) -> bool:
    types = {field.name: field.type for field in fields}
    return part.fields <= types.keys() and goes_by_equality(part, (types[name] for name in part.fields))


def _reads_only_expressions(part: Expr, expressions: Sequence[Expr]) -> bool:
    types = {found.sql: found.type for found in expressions}
    read: list[Type] = []

    def covered(tree: exp.Expr) -> bool:
        found = types.get(written(tree))
        if found is not None:
            read.append(found)
            return True
        return not isinstance(tree, exp.Column) and all(map(covered, tree.iter_expressions()))

    return bool(types) and covered(parsed(part.sql)) and goes_by_equality(part, read)


def _translated(node: Relation, number: int, part: Expr) -> Expr:
    """The part over the fields of an input."""
    if isinstance(node, Project):
        return substituted(part, {field.name: found for field, found in node.outputs})
    if isinstance(node, Aggregate):
        return substituted(part, {field.name: found for field, found in node.groups})
    if isinstance(node, Union | SetOperation):
        shown = node.inputs[number].shown
        return part.renamed({column.name: field.name for column, field in zip(node.columns, shown, strict=True)})
    return part
