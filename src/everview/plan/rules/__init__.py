"""Rules: a relation becomes another with the same rows that is cheaper to keep.

One rule is one function from relation to relation in a file of its own, and
:data:`RULES` is the order in which they are applied, each until it changes nothing.

What every rule keeps:

- The shown fields of the root, their names, order and types, and its rows.
- The key of the root, or a part of it: a rule may learn that fewer fields identify the rows
  (a LEFT JOIN that is an INNER JOIN), never more or others.
- Fields keep their names in between, so what stands above need not be changed.
- No expression is evaluated on rows on which the query would not have evaluated it, with one
  exception that DuckDB makes too: a filter goes below joins. The parts of one condition keep
  their order, and a part that can fail never overtakes an earlier one (``conditions.py``).

A worked example: ``SELECT o.id, c.name FROM o LEFT JOIN c ON o.cid = c.id WHERE c.land = 'x'``::

    project o.id, c.name  [o.id]
      filter "c.land" = 'x'  [o.id]
        join left ON "o.cid" = "c.id"  [o.id]
          scan o (id, cid, at)  [o.id]
          scan c (id, name, land)  [c.id]

``c.land = 'x'`` is not true where ``c`` is missing, so *outer_to_inner* makes the join an inner
one; then *push_filters* may ask it of ``c`` alone; and *prune_columns* no longer keeps ``c.land``
for the join, nor any other column that nothing reads::

    project o.id, c.name  [o.id]
      join inner ON "o.cid" = "c.id"  [o.id]
        scan o (id, cid)  [o.id]
        project c.id, c.name  [c.id]
          filter "c.land" = 'x'  [c.id]
            scan c (id, name, land)  [c.id]
"""

from __future__ import annotations

from collections.abc import Callable

from everview.plan.relations import Relation
from everview.plan.rules.fold_constants import fold_constants
from everview.plan.rules.join_dimensions import join_dimensions
from everview.plan.rules.join_equalities import join_equalities
from everview.plan.rules.merge_filters import merge_filters
from everview.plan.rules.merge_projections import merge_projections
from everview.plan.rules.merge_unions import merge_unions
from everview.plan.rules.order_joins import order_joins
from everview.plan.rules.outer_to_inner import outer_to_inner
from everview.plan.rules.prune_columns import prune_columns
from everview.plan.rules.push_filters import push_filters
from everview.plan.rules.reevaluate_pairs import reevaluate_pairs
from everview.plan.rules.remove_identities import remove_identities
from everview.plan.rules.settle_ties import settle_ties
from everview.plan.rules.split_reevaluations import split_reevaluations

__all__ = ["RULES", "Rule", "rewrite"]

Rule = Callable[[Relation], Relation]
"""Returns the very same object where nothing changes."""

RULES: tuple[Rule, ...] = (
    settle_ties,  # before any key gets smaller
    merge_filters,
    fold_constants,
    outer_to_inner,
    push_filters,  # more of them go down where joins are inner
    join_equalities,  # what could not go down
    order_joins,
    join_dimensions,  # of a chain that has an equality for every join
    merge_projections,
    prune_columns,  # puts projections where they save state: nothing after it moves them
    merge_unions,  # fewer of the keys it makes shorter are read now
    remove_identities,
    reevaluate_pairs,  # of what is left without an equality, as small as it is now
    split_reevaluations,
)


def rewrite(relation: Relation, trace: Callable[[str, Relation], None] | None = None) -> Relation:
    """All rules in order, each until it changes nothing. ``trace`` is called with every rule that
    changed something, and what came out."""
    for rule in RULES:
        before = relation
        while (after := rule(relation)) is not relation:
            relation = after
        if trace is not None and relation is not before:
            trace(rule.__name__, relation)
    return relation
