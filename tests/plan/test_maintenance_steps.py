"""Relations become steps with state, in zones."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from everview.change.types import BIGINT, VARCHAR, list_of
from everview.errors import DefinitionError
from everview.plan.expressions import Field
from everview.plan.maintenance import MaintenancePlan, Role, Shape, Step, ViewInput, plan_group
from everview.plan.maintenance.operator_base import Operator
from everview.plan.maintenance.operator_definitions import (
    AggregateOperator,
    DeltaOperator,
    DistinctOperator,
    ExpandOperator,
    ExtremeOperator,
    IndexOperator,
    JoinOperator,
    PartitionOperator,
    PreAggregationOperator,
    ReverseJoinOperator,
    RowsOperator,
    SetOperator,
    TopKOperator,
    UnionOperator,
    ViewOperator,
    WindowOperator,
)
from everview.plan.maintenance.operator_parts import ComputedColumn
from everview.plan.relations import (
    Aggregate,
    Distinct,
    JoinKind,
    QueryRows,
    Reevaluate,
    Relation,
    Scan,
    SetKind,
    SetOperation,
    Sort,
    TopK,
    Union,
    Unnest,
    Way,
    Window,
)
from tests.plan.relation_texts import call, expr, grouped, joined, of, scan, select, where

A, B, ORDERS, CUSTOMERS = scan("a"), scan("b"), scan("orders"), scan("customers")
N = Field("n", BIGINT, nullable=False, hidden=True)


def planned(relation: Relation, **options: bool) -> MaintenancePlan:
    return plan_group([ViewInput("v", relation)], **options)


def drawn(plan: MaintenancePlan) -> list[tuple[int, str, list[str]]]:
    """Stage, key and operators of each zone."""
    return [
        (zone.stage, ", ".join(zone.key), [plan.step(step).operator.name for step in zone.steps]) for zone in plan.zones
    ]


def only(plan: MaintenancePlan, kind: type[Operator]) -> Step:
    (found,) = (step for step in plan.steps if isinstance(step.operator, kind))
    return found


def figure_6() -> Relation:
    below = where(scan("bt1"), '"bt1.c2" < 10')
    return select(grouped(below, ["bt1.c1"], call("s", "sum", of(below, "bt1.c2"))), s="s")


def figure_5() -> list[ViewInput]:
    return [
        ViewInput("sum_a", grouped(A, ["a.c1"], call("s", "sum", of(A, "a.c2")))),
        ViewInput("min_a", grouped(A, ["a.c1"], call("m", "min", of(A, "a.c2"), Way.EXTREME))),
        ViewInput("list_a", grouped(A, ["a.c1"], call("l", "list", of(A, "a.c2"), Way.GENERAL))),
        ViewInput("join_ab", joined(A, B, {"a.c1": "b.c1"})),
    ]


def test_figure_6_has_two_zones() -> None:
    plan = planned(figure_6())
    assert drawn(plan) == [
        (1, "bt1.k", ["delta", "filter-project"]),
        (2, "bt1.c1", ["pre-aggregation", "aggregate", "view"]),
    ]
    assert plan.shuffles == 1
    assert [state.name for step in plan.steps for state in step.states] == [
        "PRE-AGGREGATION filtered bt1 by c1",
        "VIEW v",
    ]


def test_figure_5_shares_delta_pre_aggregation_and_reverse_join() -> None:
    plan = plan_group(figure_5(), before_images=False)
    assert sorted(state.name for step in plan.steps for state in step.states) == [
        "DELTA a",
        "DELTA b",
        "EXTREME a.c2 of a by c1",
        "PRE-AGGREGATION a by c1",
        "REVERSE-JOIN a by c1",
        "REVERSE-JOIN b by c1",
        "VIEW join_ab",
        "VIEW list_a",
        "VIEW min_a",
        "VIEW sum_a",
    ]
    shared = {s.states[0].name: plan.users[s.fingerprint] for s in plan.steps if s.states}
    assert shared["DELTA a"] == ("join_ab", "list_a", "min_a", "sum_a")
    assert shared["PRE-AGGREGATION a by c1"] == ("list_a", "min_a", "sum_a")
    assert shared["REVERSE-JOIN a by c1"] == ("join_ab", "list_a")
    assert [(zone.stage, zone.key) for zone in plan.zones] == [
        (1, ("a.k",)),
        (1, ("b.l",)),
        (2, ("a.c1",)),
        (3, ("a.k", "b.l")),
    ]


def test_a_delta_keeps_the_used_columns_of_all_views_and_only_without_before_images() -> None:
    views = [ViewInput("x", select(ORDERS, a="orders.amount")), ViewInput("y", select(ORDERS, s="orders.status"))]
    plan = plan_group(views, before_images=False)
    (table,) = plan.tables
    assert [column.name for column in table.columns] == ["amount", "id", "status"]
    (state,) = only(plan, DeltaOperator).states
    assert [part.name for part in state.key] == ["orders.id"]
    assert [column.name for column in state.fields] == ["orders.amount", "orders.status"]
    assert only(plan_group(views), DeltaOperator).states == ()


def test_aliases_and_names_of_columns_and_views_do_not_matter() -> None:
    o = scan("orders", "o")
    one = select(where(ORDERS, '"orders.amount" > 5'), id="orders.id", twice=expr('"orders.amount" * 2'))
    two = select(where(o, '"o.amount" > 5'), number="o.id", double=expr('"o.amount" * 2'))
    plan = plan_group([ViewInput("x", one), ViewInput("y", two)])
    assert plan.view("x").step == plan.view("y").step
    assert plan.view_fingerprint("x") == plan.view_fingerprint("y")
    assert [column.name for column in plan.view("y").columns] == ["number", "double"]
    assert [column.stored for column in plan.view("y").columns] == ["orders.id", "orders.amount * 2"]
    assert len(plan.steps) == 3


def test_sides_of_a_self_join_are_distinguished() -> None:
    plan = planned(joined(scan("a", "x"), scan("a", "y"), {"x.c1": "y.c2"}))
    assert only(plan, JoinOperator).title == "inner a.c1 = 2:a.c2"
    assert [column.stored for column in plan.view("v").columns] == [
        "a.k",
        "a.c1",
        "a.c2",
        "2:a.k",
        "2:a.c1",
        "2:a.c2",
    ]


def test_a_right_join_is_a_left_join_the_other_way_round() -> None:
    right = planned(joined(A, B, {"a.c1": "b.c1"}, JoinKind.RIGHT))
    left = planned(joined(B, A, {"b.c1": "a.c1"}, JoinKind.LEFT))
    assert only(right, JoinOperator).fingerprint == only(left, JoinOperator).fingerprint
    nullable = {field.name: field.nullable for field in only(right, JoinOperator).fields}
    assert nullable["a.k"] and not nullable["b.l"]


def test_a_semi_join_keeps_nothing_of_the_right_side_but_its_keys() -> None:
    plan = planned(joined(A, B, {"a.c1": "b.c1"}, JoinKind.SEMI))
    kept = {s.states[0].name: [f.name for f in s.states[0].fields] for s in plan.steps if s.states}
    assert kept["REVERSE-JOIN b by c1"] == []
    assert [field.name for field in only(plan, JoinOperator).fields] == ["a.c1", "a.c2", "a.k"]


def test_what_is_computed_below_an_outer_join_is_computed_below_it() -> None:
    b = select(B, l="b.l", c1="b.c1", filled=expr('coalesce("b.d", 0)'))
    plan = planned(joined(A, b, {"a.c1": "c1"}, JoinKind.LEFT))
    (bag,) = (s for s in plan.steps if s.states and s.states[0].name == "REVERSE-JOIN b by c1")
    computed = ComputedColumn("b.COALESCE(d, 0)", 'COALESCE("b.d", 0)')
    assert bag.operator_as(ReverseJoinOperator).computed == (computed,)
    assert plan.view("v").columns[-1].stored == "b.COALESCE(d, 0)"


def test_grouping_by_the_join_key_needs_no_further_shuffle() -> None:
    join = joined(ORDERS, CUSTOMERS, {"orders.customer": "customers.id"})
    by_key = grouped(join, ["customers.id"], call("n", "count"))
    by_more = grouped(join, ["customers.region", "orders.customer"], call("n", "count"))
    by_other = grouped(join, ["customers.region"], call("n", "count"))
    assert [planned(one).shuffles for one in (by_key, by_more, by_other, join)] == [1, 1, 2, 2]


def test_a_left_join_is_located_by_its_left_key_only() -> None:
    join = joined(ORDERS, CUSTOMERS, {"orders.customer": "customers.id"}, JoinKind.LEFT)
    assert planned(grouped(join, ["orders.customer"], call("n", "count"))).shuffles == 1
    assert planned(grouped(join, ["customers.id"], call("n", "count"))).shuffles == 2


def test_a_third_table_joined_by_the_same_key_comes_to_the_same_zone() -> None:
    two = joined(A, B, {"a.c1": "b.c1"})
    three = grouped(joined(two, scan("bt1"), {"b.c1": "bt1.c1"}), ["a.c1"], call("n", "count"))
    plan = planned(three)
    assert plan.shuffles == 1
    assert drawn(plan)[-1][2].count("join") == 2


def test_grouping_by_the_primary_key_stays_with_the_table() -> None:
    assert planned(grouped(A, ["a.k"], call("n", "count"))).shuffles == 0


def test_a_global_aggregate_is_one_record() -> None:
    plan = planned(grouped(A, [], call("n", "count")))
    assert drawn(plan)[-1] == (2, "", ["pre-aggregation", "aggregate", "view"])
    assert only(plan, ViewOperator).states[0].key == ()


def test_aggregates_over_one_key_share_one_record_with_merged_columns() -> None:
    views = [
        ViewInput("x", grouped(A, ["a.c1"], call("s", "sum", of(A, "a.c2")))),
        ViewInput("y", grouped(A, ["a.c1"], call("s", "avg", of(A, "a.c2")), call("n", "count"))),
        ViewInput("z", grouped(A, ["a.c1"], call("n", "count", of(A, "a.k")))),
    ]
    plan = plan_group(views)
    (state,) = only(plan, PreAggregationOperator).states
    assert [field.name for field in state.fields] == ["a.count(*)", "a.count(c2)", "a.count(k)", "a.sum(c2)"]


def test_the_order_of_group_columns_does_not_matter_for_what_is_shared() -> None:
    views = [
        ViewInput("x", grouped(A, ["a.c1", "a.c2"], call("n", "count"))),
        ViewInput("y", grouped(A, ["a.c2", "a.c1"], call("n", "count"))),
    ]
    plan = plan_group(views)
    assert only(plan, AggregateOperator).states == ()
    assert [plan.view(name).key for name in "xy"] == [("a.c1", "a.c2"), ("a.c2", "a.c1")]


def test_a_distinct_count_counts_crossings() -> None:
    plan = planned(grouped(A, ["a.c1"], call("n", "count", of(A, "a.c2"), distinct=True), call("m", "count")))
    assert [step.operator.name for step in plan.steps].count("pre-aggregation") == 2
    assert [part.name for part in only(plan, DistinctOperator).states[0].key] == ["a.c1", "a.c2"]
    assert plan.shuffles == 1
    calls = only(plan, AggregateOperator).operator_as(AggregateOperator).calls
    parts = {call.name: {one.part for one in call.columns} for call in calls}
    assert parts["a.count(*)"] != parts["a.count(DISTINCT c2)"]


def test_min_and_max_of_one_value_share_a_bag_in_order() -> None:
    value = of(A, "a.c2")
    plan = planned(grouped(A, ["a.c1"], call("x", "min", value, Way.EXTREME), call("y", "max", value, Way.EXTREME)))
    (state,) = only(plan, ExtremeOperator).states
    assert state.shape is Shape.BAG and [part.name for part in state.order] == ["value a.c2"]


def test_grouping_sets_multiply_rows_first() -> None:
    groups = ((Field("x", BIGINT), of(A, "a.c1")), (Field("y", BIGINT), of(A, "a.c2")))
    plan = planned(Aggregate(A, groups, (call("count", "count"),), ((0, 1), (0,), ()), N))
    assert only(plan, ExpandOperator).title == "to sets (a.c1, a.c2), (a.c1), ()"
    assert len(plan.view("v").key) == 3


def test_distinct_rows_are_counted() -> None:
    plan = planned(Distinct(select(A, x="a.c1")))
    (state,) = only(plan, DistinctOperator).states
    assert state.role is Role.DISTINCT_COUNT and [part.name for part in state.key] == ["a.c1"]
    assert [f.name for f in only(plan, DistinctOperator).fields] == ["a.c1"]


def test_set_operations_count_both_sides() -> None:
    columns = (Field("x", BIGINT),)
    plan = planned(SetOperation(SetKind.EXCEPT, True, select(A, x="a.c1"), select(B, x="b.c1"), columns, N))
    step = only(plan, SetOperator)
    assert step.title == "except all"
    assert [f.name for f in step.states[0].fields] == ["left copies", "right copies"]
    assert [source.key for source in step.inputs] == [('CAST("a.c1" AS BIGINT)',), ('CAST("b.c1" AS BIGINT)',)]


def test_a_union_of_two_tables_needs_no_shuffle() -> None:
    columns = (Field("x", BIGINT),)
    plan = planned(Union((select(A, x="a.c1"), select(B, x="b.c1")), columns, N))
    assert plan.shuffles == 0 and only(plan, UnionOperator).states == ()
    assert plan.view("v").key == ("union.branch", "union.key 1")


def test_a_union_of_different_depths_meets_in_the_deeper_stage() -> None:
    deep = select(grouped(A, ["a.c1"], call("n", "count")), x="n")
    plan = planned(Union((select(B, x="b.c1"), deep), (Field("x", BIGINT),), N))
    assert plan.shuffles == 1
    assert [source.key for source in only(plan, UnionOperator).inputs] == [('"b.l"',), None]


def test_windows_over_one_partition_share_the_rows() -> None:
    first = call("r", "row_number", way=Way.GENERAL)
    sql = 'row_number() OVER (PARTITION BY "a.c1" ORDER BY "a.c2", "a.k")'
    window = Window(A, (of(A, "a.c1"),), (replace(first, sql=sql),))
    plan = plan_group([ViewInput("w", window), ViewInput("j", joined(A, B, {"a.c1": "b.c1"}))])
    assert [s.states[0].name for s in plan.steps if isinstance(s.operator, ReverseJoinOperator)] == [
        "REVERSE-JOIN a by c1",
        "REVERSE-JOIN b by c1",
    ]
    assert only(plan, WindowOperator).inputs[0].key is None


def test_a_top_k_keeps_its_rows_in_order() -> None:
    by = (Sort(of(A, "a.c2"), descending=True, nulls_first=True), Sort(of(A, "a.c1"), nulls_first=True))
    plan = planned(TopK(A, (of(A, "a.c1"),), by, 3, 1))
    (state,) = only(plan, PartitionOperator).states
    assert [(part.name, part.descending) for part in state.order] == [
        ("a.c2", True),
        ("a.c1 IS NULL", True),
        ("a.c1", False),
        ("a.k", False),
    ]
    assert only(plan, TopKOperator).title == "first 3 after 1"


def test_a_key_that_the_order_has_already_is_not_kept_twice() -> None:
    by = (Sort(of(A, "a.c2")), Sort(of(A, "a.k"), descending=True, nulls_first=True))
    for ties, length in ((False, None), (True, 2)):
        plan = planned(TopK(A, (), by, 3, ties=ties))
        (state,) = only(plan, PartitionOperator).states
        assert [(part.name, part.descending) for part in state.order] == [("a.c2", False), ("a.k", True)]
        assert only(plan, TopKOperator).operator_as(TopKOperator).ties == length


def test_items_of_a_rows_own_list_stay_with_the_row() -> None:
    fields = (Field("k", BIGINT, nullable=False), Field("tags", list_of(VARCHAR)))
    table = Scan("t", "t", fields, ("k",))
    unnest = Unnest(table, of(table, "t.tags"), Field("tag", VARCHAR), N)
    plan = planned(unnest)
    assert plan.shuffles == 0
    assert plan.view("v").key == ("t.k", "t.position(tags)")


def test_rows_of_the_query_are_a_source() -> None:
    plan = planned(joined(A, QueryRows("VALUES (1)", (Field("one", BIGINT),), N), {"a.c1": "one"}))
    assert only(plan, RowsOperator).title == "VALUES (1)"


def test_a_re_evaluation_without_partition_is_one_key() -> None:
    columns = (Field("x", BIGINT),)
    plan = planned(Reevaluate((A, B), "SELECT max(in0.k) AS x FROM in0, in1", columns, ("x",), reason="no equality"))
    assert [s.states[0].name for s in plan.steps if isinstance(s.operator, PartitionOperator)] == [
        "PARTITION all a",
        "PARTITION all b",
    ]
    assert drawn(plan)[-1] == (2, "", ["partition", "partition", "re-evaluation", "view"])


def test_a_re_evaluation_by_partition_is_split() -> None:
    columns = (Field("x", BIGINT),)
    parts = ((of(A, "a.c1"),), (of(B, "b.c1"),))
    plan = planned(Reevaluate((A, B), "SELECT 1 AS x FROM in0, in1", columns, ("x",), parts))
    assert [(zone.stage, zone.key) for zone in plan.zones][2:] == [(2, ("a.c1",)), (3, ("evaluated.1",))]


def test_a_re_evaluation_that_shows_its_partition_needs_no_further_shuffle() -> None:
    columns = (Field("x", BIGINT), Field("y", BIGINT))
    parts = ((of(A, "a.c1"),), (of(B, "b.c1"),))
    node = Reevaluate((A, B), "SELECT c1 AS x, 1 AS y FROM in0, in1", columns, ("x", "y"), parts, shown_as=("x",))
    assert drawn(planned(node))[-1] == (2, "a.c1", ["partition", "partition", "re-evaluation", "view"])


def test_a_re_evaluation_shows_its_partition_in_columns_that_it_has() -> None:
    for shown in (("y",), ("x", "x")):
        with pytest.raises(DefinitionError, match="re-evaluation shows"):
            Reevaluate((A,), "SELECT 1 AS x FROM in0", (N,), ("n",), ((of(A, "a.c1"),),), shown_as=shown)


def test_a_view_on_a_view_reads_its_changes() -> None:
    lower = grouped(A, ["a.c1"], call("n", "count"))
    lower_view = select(lower, c="a.c1", n="n")
    upper = where(Scan("lower", "l", (Field("c", BIGINT), Field("n", BIGINT)), ("c",)), '"l.n" > 3')
    plan = plan_group([ViewInput("a_upper", upper), ViewInput("lower", lower_view)])
    assert [step.operator.name for step in plan.steps] == [
        "delta",
        "pre-aggregation",
        "aggregate",
        "view",
        "filter-project",
        "view",
    ]
    assert [table.name for table in plan.tables] == ["a"]
    assert plan.shuffles == 1


def test_a_view_cannot_be_defined_by_itself() -> None:
    loop = Scan("v", "v", (Field("k", BIGINT, nullable=False),), ("k",))
    with pytest.raises(DefinitionError, match="defined by itself"):
        planned(loop)


def test_an_index_is_its_columns_and_the_row_key() -> None:
    plan = plan_group([ViewInput("by_status", ORDERS, index=("orders.status",))])
    (state,) = only(plan, IndexOperator).states
    assert [part.name for part in state.key] == ["orders.status", "orders.id"] and state.fields == ()
    assert plan.shuffles == 0


def test_projections_upon_projections_do_not_explode() -> None:
    relation: Relation = select(A, k="a.k", x=expr('"a.c1" + "a.c2"'))
    for _ in range(40):
        relation = select(relation, k="k", x=expr('"x" * "x" + "x"'))
    assert len(json.dumps(planned(relation).to_json())) < 200_000


def test_the_order_of_reading_is_over_stored_fields() -> None:
    view = ViewInput("v", select(A, k="a.k", x="a.c1"), (Sort(expr('"x"'), descending=True, nulls_first=True),))
    (order,) = plan_group([view]).view("v").order
    assert (order.sql, order.descending, order.nulls_first) == ('"a.c1"', True, True)


def test_an_order_by_what_is_not_there_is_refused() -> None:
    with pytest.raises(DefinitionError, match="ordered by what its rows do not hold"):
        ViewInput("v", A, (Sort(expr('"gone"')),))


def test_changes_are_redistributed_by_what_they_hold() -> None:
    plan = planned(figure_6())
    wrong = tuple(
        replace(step, inputs=tuple(replace(one, key=('"bt1.gone"',)) for one in step.inputs)) for step in plan.steps
    )
    with pytest.raises(DefinitionError, match="by what they do not hold"):
        replace(plan, steps=wrong)


def test_every_plan_survives_being_recorded() -> None:
    plan = plan_group([*figure_5(), ViewInput("v", figure_6())], before_images=False)
    assert MaintenancePlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan
