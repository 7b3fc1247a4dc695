"""A re-evaluation is split by everything by which its query distributes.

What is evaluated again should be little: not the whole of all inputs, but the rows that share some
columns with those that changed. A query that distributes over one choice of columns, one of each
input (see ``distribution.py``), and over another, distributes over both together, since each
part is an input like the whole was. So all choices that hold are taken::

    WITH RECURSIVE r AS (SELECT tenant, id FROM in0 WHERE parent IS NULL UNION ALL
                         SELECT n.tenant, n.id FROM in0 AS n JOIN r ON n.parent = r.id AND n.tenant = r.tenant)
    SELECT * FROM r                                       is split by tenant

A query over one input that distributes over its key is split by that alone: rows by themselves are as
small as it gets. Columns whose equal values may differ (floats, intervals) and lists split nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, product

from sqlglot import exp

from everview.change.types import SIGNED, Type
from everview.plan.expressions import Expr, Field, parsed, quoted
from everview.plan.relations import Reevaluate, Relation
from everview.plan.rules.conditions import is_exact
from everview.plan.rules.distribution import distributed
from everview.plan.rules.trees import bottom_up

_CHOICES = 1_000
"""How many choices of columns are tried."""


def split_reevaluations(relation: Relation) -> Relation:
    return bottom_up(relation, _split)


def _split(node: Relation) -> Relation:
    if not isinstance(node, Reevaluate) or node.partition or not node.sources:
        return node
    tree = parsed(node.query)
    columns = {f"in{n}": [field.name for field in source.fields] for n, source in enumerate(node.sources)}
    found = {
        choice: carried
        for choice in islice(_choices(node, tree), _CHOICES)
        if (carried := distributed(tree, columns, {f"in{n}": field.name for n, field in enumerate(choice)})) is not None
    }
    if len(node.sources) == 1:
        key = set(node.sources[0].key)
        if key <= {field.name for (field,) in found}:
            found = {choice: carried for choice, carried in found.items() if choice[0].name in key}
    if not found:
        return node
    compared = [_compared(choice) for choice in found]
    shown = [_shown(node, parts[0].type, carried) for parts, carried in zip(compared, found.values(), strict=True)]
    named = tuple(name for name in shown if name is not None)
    return replace(
        node,
        partition=tuple(zip(*compared, strict=True)),
        shown_as=named if len(named) == len(shown) else (),
    )


def _shown(node: Reevaluate, type: Type, carried: frozenset[str]) -> str | None:
    """The column of the result that has the value by which inputs are split, in their common type."""
    return next((field.name for field in node.columns if field.name.lower() in carried and field.type == type), None)


def _choices(node: Reevaluate, tree: exp.Expr) -> Iterator[tuple[Field, ...]]:
    """One column of each input, of types that can be compared as they are."""
    named = {found.name.lower() for found in tree.find_all(exp.Identifier)}
    possible = [
        [field for field in source.fields if field.name.lower() in named and _splits(field.type)]
        for source in node.sources
    ]
    return (choice for choice in product(*possible) if _common([field.type for field in choice]) is not None)


def _splits(type: Type) -> bool:
    return is_exact(type) and not type.children


def _common(types: Sequence[Type]) -> Type | None:
    if all(found == types[0] for found in types):
        return types[0]
    if all(found.kind in SIGNED for found in types):
        return max(types, key=lambda found: SIGNED[found.kind])
    return None


def _compared(choice: Sequence[Field]) -> list[Expr]:
    common = _common([field.type for field in choice])
    assert common is not None
    return [
        Expr(quoted(field.name) if field.type == common else f"CAST({quoted(field.name)} AS {common})", common)
        for field in choice
    ]
