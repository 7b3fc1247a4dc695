"""What the builder makes of a query means what the query means."""

from __future__ import annotations

import pytest

from everview.plan.build import order
from everview.plan.relations import Reevaluate, TopK
from everview.plan.rules import rewrite
from tests.plan.build_queries import OPERATORS, REEVALUATED
from tests.plan.evaluate import evaluated
from tests.plan.shop import built, filled

SEEDS = range(3)


def agree(text: str) -> None:
    relation = built(text).relation
    for seed in SEEDS:
        connection = filled(seed)
        expected = sorted(map(repr, connection.execute(text).fetchall()))
        assert sorted(map(repr, evaluated(connection, relation))) == expected, f"with the rows of seed {seed}"


@pytest.mark.parametrize("text", OPERATORS)
def test_operators_mean_what_the_query_means(text: str) -> None:
    assert not [node for node in rewrite(built(text).relation).walk() if isinstance(node, Reevaluate)]
    agree(text)


@pytest.mark.parametrize("text", REEVALUATED)
def test_what_has_no_operator_is_re_evaluated_with_a_notice(text: str) -> None:
    found = built(text)
    assert [node for node in rewrite(found.relation).walk() if isinstance(node, Reevaluate)]
    assert found.notices
    agree(text)


def test_a_notice_says_what_it_is_about_and_where() -> None:
    (notice,) = built("SELECT o.id\nFROM orders o, customers c\nWHERE o.amount < c.since").notices
    assert (notice.construct, notice.line, notice.column) == ("a join without an equality", 3, 7)


@pytest.mark.parametrize(("join", "column"), [("CROSS JOIN", 22), (",", 13)])
def test_the_notice_of_a_join_without_any_condition_says_where_its_second_side_stands(join: str, column: int) -> None:
    (notice,) = built(f"SELECT o.id\nFROM orders o\n{join} customers c").notices
    assert (notice.line, notice.column) == (3, column)


def test_a_query_that_is_evaluated_as_a_whole_is_read_in_its_order_as_far_as_it_shows_it() -> None:
    found = built("SELECT id, unnest(tags) AS a, unnest([1]) AS b FROM orders ORDER BY b DESC, id, amount")
    assert [str(sort) for sort in found.order] == ['"b" DESC', '"id"']


def test_an_order_alone_is_how_the_rows_are_read() -> None:
    found = built("SELECT id, amount AS a FROM orders ORDER BY amount DESC, price + 1")
    assert [str(sort) for sort in found.order] == ['"a" DESC', '"order"']
    assert [field.name for field in found.columns] == ["id", "a"]
    assert found.relation.field("order").hidden


def test_the_first_rows_of_each_partition_are_a_top_k() -> None:
    found = built("SELECT id FROM orders QUALIFY row_number() OVER (PARTITION BY customer ORDER BY amount) <= 2")
    (top,) = [node for node in found.relation.walk() if isinstance(node, TopK)]
    assert top.description() == 'first 2 by "orders.amount", "orders.id" per "orders.customer"'


def test_values_that_no_table_can_hold_are_met_inside_a_re_evaluation() -> None:
    found = built("SELECT s.id FROM (SELECT id, '12:00'::TIME_NS AS b FROM orders) s WHERE s.b = '12:00'::TIME_NS")
    (notice,) = found.notices
    assert notice.construct == "a query with values that no table can hold"
    noon = "CASE WHEN amount > 1 THEN '12:00' ELSE '13:00' END::TIME_NS"
    agree(f"SELECT s.id FROM (SELECT id, {noon} AS b FROM orders) s WHERE s.b = '12:00'::TIME_NS")


def test_a_mistake_of_the_builder_costs_a_re_evaluation_and_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        order, "limited", lambda scope, *_: scope.context.expression("no_such_function(1)", scope.relation)
    )
    (notice,) = built("SELECT id FROM orders ORDER BY id LIMIT 3").notices
    assert notice.construct == "a part that cannot be evaluated by itself"


SEVERAL = (
    ("select id, (select page from visits v where v.customer = o.customer) as p from orders o", "line 1, column 20"),
    ("select id from orders\nwhere amount = (select since from customers)", "line 2, column 24"),
    ("select max((select line from items i where i.order_id = o.id)) as m from orders o", "line 1, column 20"),
)


@pytest.mark.parametrize(("text", "place"), SEVERAL)
def test_a_value_of_several_rows_is_an_error_that_says_where(text: str, place: str) -> None:
    relation = built(text).relation
    for form in (relation, rewrite(relation)):
        with pytest.raises(AssertionError, match=f"the subquery at {place} stands for one value and has [0-9]+ rows"):
            evaluated(filled(0), form)


NOT_ASKED = (
    "select id, {} as p from orders o where id < 0",
    "select id from orders o where id < 0 and amount = {}",
    "select id, case when id < 0 then {} end as p from orders o",
    "select o.id from (select id, customer from orders where id > 100) o where 1 = {}",
)


@pytest.mark.parametrize("text", NOT_ASKED)
def test_a_value_of_several_rows_is_no_error_unless_it_is_used(text: str) -> None:
    expected = sorted(filled(0).execute(text.format("NULL")).fetchall())
    for link in ("v.customer = o.customer", "v.customer > 0"):
        relation = built(text.format(f"(select length(page) from visits v where {link})")).relation
        for form in (relation, rewrite(relation)):
            assert sorted(evaluated(filled(0), form)) == expected


def test_self_joins_and_nested_queries_keep_their_names_apart() -> None:
    found = built("SELECT o.id FROM orders o WHERE o.amount = (SELECT max(o.amount) FROM orders o)")
    names = {field.name for node in found.relation.walk() for field in node.fields}
    assert {"o.id", "o#2.id"} <= names
