"""Plans of real queries: their views are what the queries say, and state is where its rows are."""

from __future__ import annotations

import pytest

from everview.plan.compile import compile_text, plan_views
from everview.plan.maintenance import MaintenancePlan, ViewInput, plan_group
from everview.plan.rules import rewrite
from everview.sql.namespace import Names
from tests.plan.build_queries import OPERATORS, REEVALUATED
from tests.plan.evaluate_plan import Evaluation, Where
from tests.plan.shop import built, filled, relations
from tests.plan.test_build_corpora import built as built_of
from tests.queries.corpora import CORPORA, connect, corpus, fill, without_window_functions
from tests.queries.data import tables


def rounded(rows: list[tuple[object, ...]]) -> list[str]:
    """Rows in one order, floats without the digits that depend on the order of additions."""
    return sorted(repr(tuple(f"{v:.9g}" if isinstance(v, float) else v for v in row)) for row in rows)


def view_of(name: str, text: str) -> ViewInput:
    found = built(text)
    return ViewInput(name, rewrite(found.relation))


@pytest.mark.parametrize("text", [*OPERATORS, *REEVALUATED])
def test_a_planned_view_is_what_its_query_says(text: str) -> None:
    plan = plan_group([view_of("v", text)], before_images=False)
    places: Where = {}
    for seed in range(2):
        connection = filled(seed)
        expected = connection.execute(text).fetchall()
        assert rounded(Evaluation(plan, connection, places).view("v")) == rounded(expected), f"seed {seed}"


def test_the_views_of_one_group_do_not_disturb_each_other() -> None:
    texts = {f"v{number:03}": text for number, text in enumerate(OPERATORS)}
    plan = plan_group([view_of(name, text) for name, text in texts.items()])
    assert MaintenancePlan.from_json(plan.to_json()) == plan
    places: Where = {}
    for seed in range(2):
        connection = filled(seed)
        evaluation = Evaluation(plan, connection, places)
        for name, text in texts.items():
            assert rounded(evaluation.view(name)) == rounded(connection.execute(text).fetchall()), text


LOWER = {
    "keyless": "SELECT amount FROM orders WHERE amount > 1",
    "pairs": "SELECT o.amount, i.quantity FROM orders AS o JOIN items AS i ON o.customer = i.product",
    "sums": "SELECT customer, sum(amount) AS s FROM orders GROUP BY customer",
}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT amount + 1 AS b FROM keyless WHERE amount < 4",
        "SELECT amount FROM pairs WHERE quantity > 1",
        "SELECT amount, count(*) AS n FROM pairs GROUP BY amount",
        "SELECT p.amount, k.amount AS b FROM pairs AS p JOIN keyless AS k ON p.quantity = k.amount",
        "SELECT amount FROM keyless UNION ALL SELECT quantity FROM pairs UNION ALL SELECT customer FROM visits",
        "SELECT quantity FROM pairs ORDER BY amount, quantity LIMIT 3",
        "SELECT s.customer, k.amount FROM sums AS s LEFT JOIN keyless AS k ON s.s = k.amount",
    ],
)
def test_a_view_on_views_is_what_its_query_says(text: str) -> None:
    names = {found.name: found for found in relations()}
    views = []
    for name, query in [*LOWER.items(), ("upper", text)]:
        view = compile_text(f"CREATE MATERIALIZED VIEW {name} AS {query}", Names(names.values()))
        names[name] = view.named
        views.append(view)
    plan = plan_views(views)
    places: Where = {}
    for seed in range(4):
        connection = filled(seed)
        for name, query in LOWER.items():
            connection.execute(f"CREATE VIEW {name} AS {query}")
        expected = connection.execute(text).fetchall()
        for name in LOWER:
            connection.execute(f"DROP VIEW {name}")
        assert rounded(Evaluation(plan, connection, places).view("upper")) == rounded(expected), f"seed {seed}"


@pytest.mark.parametrize("name", [found.name for found in CORPORA])
def test_the_queries_of_a_corpus_are_one_group(name: str) -> None:
    found = corpus(name)
    views = [
        ViewInput(f"view_{query}", rewrite(built_of(found, text).relation)) for query, text in found.queries.items()
    ]
    plan = plan_group(views)
    places: Where = {}
    for seed in range(2):
        connection = connect()
        fill(connection, found, tables(found.schema, scale=0.3, seed=seed))
        evaluation = Evaluation(plan, connection, places)
        for query, text in found.queries.items():
            expected = connection.execute(without_window_functions(text)).fetchall()
            assert rounded(evaluation.view(f"view_{query}")) == rounded(expected), query
