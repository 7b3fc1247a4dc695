"""Relations: what a query means, as a tree of frozen nodes.

Every relation knows its fields and a key, the fields that identify its rows,
and a key that the query does not show is carried along hidden; so every view has a row key.

Keys, by rule:

| relation | key |
|---|---|
| scan | the table's primary key (a hidden row id where it has none) |
| rows | the row's number; none where it is one row |
| filter, window | the input's |
| top-k | the input's; the partition's columns where it keeps one row of each |
| project | the input's; hidden where the query does not show it |
| join: inner, left, right | both sides' keys together; one side's alone where the other is met at most once |
| join: full | both sides' keys together, and a marker of one side where both may be null |
| join: semi, anti | the left side's |
| aggregate | the group's columns, and the number of the grouping set where there are several |
| distinct, union, intersect, except | all shown columns (with ALL: and the number of the copy) |
| union all | the number of the input, and that input's key |
| unnest | the input's key and the position in the list |
| re-evaluation | the key it names |

Names are unique inside a relation: a scan of ``orders AS o`` has the fields ``o.id``,
``o.amount``, …; what a query calls its columns is the business of the last projection.
"""

from __future__ import annotations

from everview.plan.relations.calls import Call, Sort, Way
from everview.plan.relations.groups import Aggregate, Distinct
from everview.plan.relations.joins import Equality, Join, JoinKind, distinguishes_sides, full_join
from everview.plan.relations.partitioned import Reevaluate, TopK, Window
from everview.plan.relations.relation import Relation, outline
from everview.plan.relations.rowwise import Filter, Project, Unnest, project
from everview.plan.relations.sets import SetKind, SetOperation, Union
from everview.plan.relations.sources import QueryRows, Scan

__all__ = [
    "Aggregate",
    "Call",
    "Distinct",
    "Equality",
    "Filter",
    "Join",
    "JoinKind",
    "Project",
    "QueryRows",
    "Reevaluate",
    "Relation",
    "Scan",
    "SetKind",
    "SetOperation",
    "Sort",
    "TopK",
    "Union",
    "Unnest",
    "Way",
    "Window",
    "distinguishes_sides",
    "full_join",
    "outline",
    "project",
]
