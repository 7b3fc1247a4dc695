"""What a mutant breaks: an operator, a rule, a builder, or a stage of reading.

Every place of the product that turns a query into rows is a member of one of three enumerations or
has a worker, and ``test_mutations`` holds them to the code, so that a new operator, rule or builder without a
mutant is an error.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TypeAlias

from everview.operators.stages import WORKERS
from everview.plan.maintenance.operator_base import Operator


class Rule(enum.Enum):
    """The rules of ``everview.plan.rules``, by the names of their functions."""

    SETTLE_TIES = "settle_ties"
    MERGE_FILTERS = "merge_filters"
    FOLD_CONSTANTS = "fold_constants"
    OUTER_TO_INNER = "outer_to_inner"
    PUSH_FILTERS = "push_filters"
    JOIN_EQUALITIES = "join_equalities"
    ORDER_JOINS = "order_joins"
    JOIN_DIMENSIONS = "join_dimensions"
    MERGE_PROJECTIONS = "merge_projections"
    PRUNE_COLUMNS = "prune_columns"
    MERGE_UNIONS = "merge_unions"
    REMOVE_IDENTITIES = "remove_identities"
    REEVALUATE_PAIRS = "reevaluate_pairs"
    SPLIT_REEVALUATIONS = "split_reevaluations"


class Builder(enum.Enum):
    """The modules of ``everview.plan.build``."""

    AROUND = "around"
    BARE_NULLS = "bare_nulls"
    COLLATED_COMPARISONS = "collated_comparisons"
    FIRST_ROWS = "first_rows"
    FROM_CLAUSE = "from_clause"
    FUNCTION_CALLS = "function_calls"
    GROUP_BY = "group_by"
    JOIN_CLAUSES = "join_clauses"
    LATERAL = "lateral"
    LINKS = "links"
    ORDER = "order"
    QUERIES = "queries"
    QUERY_SCOPES = "query_scopes"
    REEVALUATE = "reevaluate"
    SELECT = "select"
    SET_OPERATIONS = "set_operations"
    SUBQUERIES = "subqueries"
    WINDOWS = "windows"


NO_BUILDERS = {
    "context": "holds what builders share",
    "indexes": "plans an index, which is no query",
    "verbatim": "takes the user's own words, which are what everything is compared with",
}
"""The other modules of ``everview.plan.build``, and why a fault in them is not a mutant."""


class Reading(enum.Enum):
    """What happens to a text before it is planned."""

    PARSED = "the parser's tree"
    WRITTEN = "the text of a tree"
    EXPANDED = "names of queries expanded"
    RESOLVED = "columns tied to their tables"
    TIES = "WITH TIES as a rank"


Target: TypeAlias = type[Operator] | Rule | Builder | Reading

TARGETS: Mapping[str, tuple[Target, ...]] = {
    "reading": tuple(Reading),
    "building": tuple(Builder),
    "rules": tuple(Rule),
    "operators": tuple(WORKERS),
}
"""The targets of each stage, in the order in which a query meets them."""


def called(target: Target) -> str:
    """What a target is called in a report."""
    return target.value.replace("_", " ") if isinstance(target, enum.Enum) else target.name
