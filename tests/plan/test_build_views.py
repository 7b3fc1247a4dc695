"""Views on views, indexes, named queries and WITH TIES mean what they say."""

from __future__ import annotations

import duckdb
import pytest

from everview.change.schema import Column
from everview.plan.build.from_clause import ROW
from everview.plan.compile import CompiledView, compile_index, compile_view, plan_views
from everview.sql.check import check
from everview.sql.dialects import to_sql
from everview.sql.namespace import NamedRelation, Names
from everview.sql.parse import parse
from everview.sql.statements import CreateIndex, CreateMaterializedView, CreateView
from tests.plan.evaluate import evaluated
from tests.plan.evaluate_plan import Evaluation
from tests.plan.shop import filled, relations

VIEWS = {
    "group key": "select customer as k, count(*) as n, sum(amount) as s from orders group by customer",
    "key left out": "select amount as k, price as s, customer as n from orders where amount > 0",
    "part of a key": "select order_id as k, quantity as n, quantity + 1 as s from items",
    "no key at all": "select customer as k, page as s, 1 as n from visits",
    "hidden set number": "select customer as k, amount as n, count(*) as s from orders group by rollup (k, n)",
    "copies": "select customer as k, 1 as n, 2 as s from orders intersect all select customer, 1, 2 from visits",
    "branches": "select customer as k, id as n, amount as s from orders union all select id, since, 0 from customers",
    "one row": "select count(*) as n, max(customer) as k, min(amount) as s from orders",
    "unnested": "select id as n, customer as k, unnest(tags) as s from orders",
    "re-evaluated": "select o.amount as k, c.since as n, 1 as s from orders o join customers c on o.amount < c.since",
}
"""What distinguishes the rows of a view, and a view with the columns k, n, s."""

QUERIES = (
    "select * from v",
    "select k, count(*) as c from v group by k",
    "select a.k, b.n from v a join v b on a.k = b.k",
    "select v.n, c.name from v left join customers c on c.id = v.k",
    "select id from orders o where exists (select 1 from v where v.k = o.customer)",
    "select n from v union all select n from v",
    "select distinct n from v",
    "select k, row_number() over (partition by k order by n, s) as r from v",
    "select k, n, s from v order by k, n, s limit 3",
)


def compiled(text: str, known: list[NamedRelation]) -> CompiledView:
    (statement,) = parse(text)
    if isinstance(statement, CreateIndex):
        return compile_index(statement, Names(known))
    assert isinstance(statement, CreateMaterializedView)
    return compile_view(statement, Names(known))


def bag(rows: list[tuple[object, ...]]) -> list[str]:
    return sorted(map(repr, rows))


def with_view(seed: int, text: str) -> duckdb.DuckDBPyConnection:
    connection = filled(seed)
    connection.execute(f"CREATE VIEW v AS {text}")
    return connection


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("row_key", VIEWS)
def test_a_view_on_a_view_means_the_query_on_the_query(row_key: str, query: str) -> None:
    text = VIEWS[row_key]
    below = compiled(f"CREATE MATERIALIZED VIEW v AS {text}", list(relations()))
    above = compiled(f"CREATE MATERIALIZED VIEW w AS {query}", [*relations(), below.named])
    plan = plan_views([below, above])
    expected = bag(with_view(1, text).execute(query).fetchall())
    stored = filled(1)
    stored.execute(f"CREATE TABLE v AS SELECT *, CAST(row_number() OVER () AS VARCHAR) AS {ROW} FROM ({text})")
    assert bag(evaluated(stored, above.relation)) == expected
    assert bag(Evaluation(plan, filled(1)).view("w")) == expected


@pytest.mark.parametrize("row_key", VIEWS)
def test_an_index_holds_every_row_of_its_view(row_key: str) -> None:
    below = compiled(f"CREATE MATERIALIZED VIEW v AS {VIEWS[row_key]}", list(relations()))
    index = compiled("CREATE INDEX i ON v (s, k)", [*relations(), below.named])
    plan = plan_views([below, index])
    more = [name for name in below.named.key if name not in ("s", "k")]
    for seed in range(2):
        shown = ", ".join(["s", "k", *more])
        expected = bag(with_view(seed, VIEWS[row_key]).execute(f"SELECT {shown} FROM v").fetchall())
        assert bag(Evaluation(plan, filled(seed)).view("i")) == expected


def test_an_index_on_a_table_without_a_key_holds_equal_rows_apart() -> None:
    index = compiled("CREATE INDEX i ON visits (page)", list(relations()))
    plan = plan_views([index])
    connection = filled(0)
    expected = bag(connection.execute("SELECT page FROM visits").fetchall())
    assert bag(Evaluation(plan, connection).view("i")) == expected


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("row_key", ["group key", "key left out", "copies", "hidden set number"])
def test_a_named_query_is_its_text(row_key: str, query: str) -> None:
    (statement,) = parse(f"CREATE VIEW v AS {VIEWS[row_key]}")
    assert isinstance(statement, CreateView)
    found = check(statement.query, Names(relations()), statement.source)
    columns = tuple(Column(name, type) for name, type in found.columns)
    named = NamedRelation("v", "named query", columns, query=to_sql(statement.query))
    above = compiled(f"CREATE MATERIALIZED VIEW w AS {query}", [*relations(), named])
    expected = bag(with_view(0, VIEWS[row_key]).execute(query).fetchall())
    assert bag(evaluated(filled(0), above.relation)) == expected


TIES = (
    (
        "select id, amount from orders order by amount limit 3 with ties",
        "select id, amount from orders qualify rank() over (order by amount) <= 3",
    ),
    (
        "select id, amount as a from orders order by a desc, price nulls first fetch first 2 rows with ties",
        "select id, amount as a from orders qualify rank() over (order by amount desc, price nulls first) <= 2",
    ),
    (
        "select customer, count(*) as n from orders group by customer order by n desc limit 2 with ties",
        "select customer, count(*) as n from orders group by customer qualify rank() over (order by n desc) <= 2",
    ),
    (
        "select distinct customer, amount from orders order by amount limit 2 with ties",
        "select * from (select distinct customer, amount from orders) qualify rank() over (order by amount) <= 2",
    ),
    (
        "select customer as k from orders union all select since from customers order by 1 limit 4 with ties",
        "select * from (select customer as k from orders union all select since from customers) "
        "qualify rank() over (order by k) <= 4",
    ),
    (
        "select o.id, t.quantity from orders o, lateral (select quantity from items i where i.order_id = o.id "
        "order by quantity limit 1 with ties) t",
        "select o.id, t.quantity from orders o, items t where t.order_id = o.id "
        "qualify rank() over (partition by o.id order by t.quantity) <= 1",
    ),
    (
        "select s.id from (select id, customer from orders order by customer limit 2 with ties) s where s.id > 2",
        "select id from (select id, customer from orders qualify rank() over (order by customer) <= 2) where id > 2",
    ),
)


@pytest.mark.parametrize(("text", "plain"), TIES)
def test_with_ties_keeps_all_rows_that_tie_with_the_last(text: str, plain: str) -> None:
    view = compiled(f"CREATE MATERIALIZED VIEW v AS {text}", list(relations()))
    assert not view.notices
    for seed in range(3):
        connection = filled(seed)
        expected = bag(connection.execute(plain).fetchall())
        assert bag(evaluated(connection, view.relation)) == expected
        assert bag(Evaluation(plan_views([view]), connection).view("v")) == expected
