"""Re-evaluation of the smallest partition: queries are split only by what keeps their answers."""

from __future__ import annotations

import random

import pytest

from everview.plan.build.context import BuildContext, NoOperator
from everview.plan.build.reevaluate import whole
from everview.plan.relations import Reevaluate
from everview.plan.rules import rewrite
from everview.plan.rules.settle_ties import settle_ties
from everview.plan.rules.split_reevaluations import split_reevaluations
from everview.sql.check import check
from everview.sql.namespace import Names
from everview.sql.parse import parse
from everview.sql.statements import Select
from everview.sql.typer import typer
from tests.plan.build_queries import OPERATORS, REEVALUATED
from tests.plan.evaluate import evaluated
from tests.plan.random_building import filled as random_filled
from tests.plan.random_building import names as random_names
from tests.plan.shop import filled, relations
from tests.queries.random_queries import random_query


def reevaluated(text: str, names: Names | None = None) -> Reevaluate | None:
    """A query as one re-evaluation, as if there were no operators; None where it reads no table."""
    (statement,) = parse(text)
    assert isinstance(statement, Select)
    checked = check(statement.query, names or Names(relations()), text)
    context = BuildContext(typer(), {source.name.lower(): source for source in checked.uses}, text)
    for name, _ in checked.columns:
        context.names.fresh(name)
    found = whole(context, checked.tree, None, NoOperator("anything", checked.tree)).relation
    return found if isinstance(found, Reevaluate) else None


def split(text: str) -> list[list[str]]:
    node = reevaluated(text)
    assert node is not None
    found = split_reevaluations(node)
    assert isinstance(found, Reevaluate)
    return [[part.sql.replace('"', "") for part in parts] for parts in found.partition]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("SELECT id, unnest(tags) AS a, unnest([1, 2]) AS b FROM orders", ("id",)),
        ("SELECT amount, customer AS c, unnest(tags) AS a FROM orders", ("c", "amount")),
        ("SELECT o.id, c.since, c.name FROM orders o JOIN customers c ON o.customer = c.since", ("since",)),
        ("SELECT o.customer, c.name FROM orders o JOIN customers c ON o.customer = c.since", ()),
    ],
)
def test_the_columns_that_show_the_partition_are_known(text: str, shown: tuple[str, ...]) -> None:
    node = reevaluated(text)
    assert node is not None
    found = split_reevaluations(node)
    assert isinstance(found, Reevaluate) and found.partition
    assert found.shown_as == shown


@pytest.mark.parametrize("text", [*OPERATORS, *REEVALUATED])
def test_partitions_alone_give_what_the_whole_gives(text: str) -> None:
    node = reevaluated(text)
    if node is None:
        return
    found = split_reevaluations(node)
    assert isinstance(found, Reevaluate)
    if found.partition:
        for seed in range(3):
            with filled(seed) as connection:
                evaluated(connection, found)


TREE = (
    "WITH RECURSIVE r AS (SELECT customer, id FROM orders WHERE amount < 2 {all} SELECT o.customer, o.id FROM orders o"
    " JOIN r ON o.amount = r.id AND o.id > r.id {more}) SELECT {shown} FROM r"
)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("SELECT id, unnest(tags) AS a, unnest([1, 2]) AS b FROM orders", [["orders.id"]]),
        ("SELECT customer, unnest(tags) AS a, amount FROM orders", [["orders.customer", "orders.amount"]]),
        (TREE.format(all="UNION", more="AND o.customer = r.customer", shown="*"), [["orders.customer"]]),
        (TREE.format(all="UNION ALL", more="AND o.customer = r.customer", shown="customer"), [["orders.customer"]]),
        (TREE.format(all="UNION ALL", more="", shown="*"), []),
        (
            "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM items i WHERE i.order_id = o.id HAVING count(*) > 1)",
            [["orders.id"], ["items.order_id"]],
        ),
        (
            "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM items i WHERE i.order_id > o.id HAVING count(*) > 1)",
            [],
        ),
        (
            "SELECT o.customer, c.since, c.name FROM orders o LEFT JOIN customers c ON o.customer = c.since",
            [["CAST(orders.customer AS BIGINT)"], ["customers.since"]],
        ),
        ("SELECT c.since, o.id FROM orders o LEFT JOIN customers c ON o.customer = c.since", []),
        (
            "SELECT customer FROM orders WHERE customer IN (SELECT customer FROM visits)",
            [["orders.customer"], ["visits.customer"]],
        ),
        ("SELECT customer FROM orders WHERE NOT customer IN (SELECT customer FROM visits)", []),
        ("SELECT customer, count(*) FROM orders GROUP BY customer, ROLLUP (amount)", [["orders.customer"]]),
        ("SELECT customer, count(*) FROM orders GROUP BY ROLLUP (customer, amount)", []),
        ("SELECT price, count(*) FROM orders GROUP BY price", []),
        ("SELECT customer, count(*) FROM orders GROUP BY customer LIMIT 3", []),
        (
            "SELECT customer, (SELECT max(page) FROM visits v WHERE v.customer = o.customer LIMIT 1) FROM orders o",
            [["orders.customer"], ["visits.customer"]],
        ),
        ("SELECT max(amount) FROM orders", []),
        ("SELECT customer FROM orders UNION ALL SELECT 1", []),
        (
            "SELECT customer, amount FROM orders EXCEPT SELECT customer, length(page) FROM visits",
            [["orders.customer"], ["visits.customer"]],
        ),
        (
            "SELECT page, customer FROM visits, (VALUES (1), (2)) AS v(n) WHERE n > customer",
            [["visits.customer", "visits.page"]],
        ),
        ("SELECT v.n, o.id FROM (VALUES (1), (2)) AS v(n) LEFT JOIN orders o ON o.id = v.n", []),
    ],
)
def test_by_what_a_re_evaluation_is_split(text: str, parts: list[list[str]]) -> None:
    assert split(text) == parts
    node = reevaluated(text)
    assert node is not None
    for seed in range(4):
        with filled(seed) as connection:
            evaluated(connection, split_reevaluations(node))


@pytest.mark.parametrize(
    ("text", "settled"),
    [
        ("SELECT id FROM orders LIMIT 30 PERCENT", 'ORDER BY "orders"."id" LIMIT 30 PERCENT'),
        (
            "SELECT customer FROM orders ORDER BY amount DESC LIMIT 30 PERCENT",
            'ORDER BY "orders"."amount" DESC, "orders"."id" LIMIT',
        ),
        (
            "SELECT count(*), customer FROM orders GROUP BY customer LIMIT 30 PERCENT",
            'ORDER BY "orders"."customer" LIMIT',
        ),
        ("SELECT DISTINCT amount, customer FROM orders LIMIT 30 PERCENT", "ORDER BY 1, 2 LIMIT"),
        ("SELECT amount FROM orders UNION ALL SELECT id FROM customers LIMIT 30 PERCENT", "ORDER BY 1 LIMIT"),
        ("SELECT DISTINCT ON (customer) customer, id FROM orders", 'ORDER BY "orders"."id"'),
        ("SELECT first(amount), last(price) FROM orders", 'FIRST("orders"."amount" ORDER BY "orders"."id")'),
        ("SELECT list(page) FROM visits", 'ARRAY_AGG("visits"."page" ORDER BY "visits"."customer", "visits"."page")'),
        ("SELECT list(DISTINCT amount) FROM orders", '(DISTINCT "orders"."amount" ORDER BY "orders"."amount")'),
        ("SELECT arg_max(id, amount) FILTER (WHERE id > 1) FROM orders", 'ORDER BY "orders"."id") FILTER'),
        ("SELECT string_agg(n, '') FROM (SELECT name AS n FROM customers) s", 'ORDER BY "s")'),
        ("SELECT id, lag(id) OVER (ORDER BY amount) FROM orders", 'OVER (ORDER BY "orders"."amount", "orders"."id")'),
        (
            "SELECT id, last_value(id) OVER (ORDER BY amount) FROM orders",
            'LAST_VALUE("orders"."id" ORDER BY "orders"."amount", "orders"."id") OVER (ORDER BY "orders"."amount")',
        ),
        (
            "SELECT customer, row_number() OVER (ORDER BY count(*)) FROM orders GROUP BY customer",
            'OVER (ORDER BY COUNT(*), "orders"."customer")',
        ),
        ("SELECT o.id, c.id AS c FROM orders o POSITIONAL JOIN customers c", 'ORDER BY "in1"."customers.id") AS "c"'),
    ],
)
def test_nondeterministic_orderings_of_a_re_evaluated_text_are_settled_by_the_key(text: str, settled: str) -> None:
    node = reevaluated(text)
    assert node is not None
    found = settle_ties(node)
    assert isinstance(found, Reevaluate)
    assert settled in found.query
    assert settle_ties(found) is found
    for seed in range(2):
        with filled(seed) as connection:
            expected = sorted(map(repr, evaluated(connection, found)))
            for table in ("orders", "customers", "visits"):
                connection.execute(f"CREATE TABLE other AS SELECT * FROM {table} ORDER BY hash({table})")
                connection.execute(f"DROP TABLE {table}; ALTER TABLE other RENAME TO {table}")
            assert sorted(map(repr, evaluated(connection, found))) == expected


@pytest.mark.parametrize("seed", range(60))
def test_random_queries_are_split_only_by_what_keeps_their_answers(seed: int) -> None:
    text = random_query(random.Random(f"split {seed}"), depth=1).text
    node = reevaluated(text, random_names())
    if node is None:
        return
    found = rewrite(node)
    assert rewrite(found) is found
    connection = random_filled(seed % 3)
    expected = sorted(map(repr, evaluated(connection, settle_ties(node))))
    assert sorted(map(repr, evaluated(connection, found))) == expected
