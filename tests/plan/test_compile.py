"""Whole views: the corpora compile, families are found, and broken text is answered, not raised."""

from __future__ import annotations

import contextlib
import functools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.errors import DefinitionError, EverviewError, SqlRefusedError, UnknownObjectError
from everview.plan.compile import CompiledView, compile_text, plan_views
from everview.plan.explain import explain_json, explain_svg, explain_text
from everview.plan.maintenance.operator_definitions import ReevaluationOperator, RowsOperator
from everview.plan.relations import Reevaluate
from everview.sql.namespace import NamedRelation, Names
from everview.sql.parse import parse
from everview.sql.statements import CreateTable
from tests.queries.corpora import CORPORA, Corpus


@functools.cache
def names_of(schema: str) -> Names:
    tables = [statement for statement in parse(schema) if isinstance(statement, CreateTable)]
    return Names([NamedRelation(t.name, "table", t.schema.columns, t.schema.key) for t in tables])


def compiled(corpus: Corpus, query: str) -> CompiledView:
    return compile_text(f"CREATE MATERIALIZED VIEW the_view AS {corpus.queries[query]}", names_of(corpus.schema_text))


QUERIES = [pytest.param(corpus, query, id=f"{corpus.name}-{query}") for corpus in CORPORA for query in corpus.queries]


@pytest.mark.parametrize(("corpus", "query"), QUERIES)
def test_every_query_of_the_corpora_has_operators_of_its_own(corpus: Corpus, query: str) -> None:
    view = compiled(corpus, query)
    assert not [node for node in view.relation.walk() if isinstance(node, Reevaluate)]
    plan = plan_views([view])
    assert [planned.name for planned in plan.views] == ["the_view"]
    assert "the_view" in explain_text(plan)
    assert explain_json(plan)
    assert explain_svg(plan).startswith("<svg")


def test_figure_6_has_two_zones() -> None:
    corpus = next(corpus for corpus in CORPORA if "figure6" in corpus.queries)
    assert len(plan_views([compiled(corpus, "figure6")]).zones) == 2


SHOP = """CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INTEGER, amount DECIMAL(12,2));
          CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR)"""


def test_views_that_differ_in_constants_are_one_family() -> None:
    names = names_of(SHOP)
    texts = [f"CREATE MATERIALIZED VIEW v{n} AS SELECT id, amount FROM orders WHERE amount > {n}" for n in range(200)]
    plan = plan_views([compile_text(text, names) for text in texts])
    (family,) = plan.families
    assert len(family.views) == 200


def test_a_view_reads_what_other_views_show() -> None:
    names = names_of(SHOP)
    totals = compile_text(
        "CREATE MATERIALIZED VIEW totals AS SELECT customer, sum(amount) AS s FROM orders GROUP BY 1", names
    )
    found = [found for name in names.names() if (found := names.find(name)) is not None]
    both = compile_text(
        "CREATE MATERIALIZED VIEW named (who, much) AS SELECT name, s FROM totals JOIN customers ON customer = id",
        Names([*found, totals.named]),
    )
    assert both.uses == ("totals", "customers") or both.uses == ("customers", "totals")
    assert [field.name for field in both.columns] == ["who", "much"]
    assert {view.name for view in plan_views([totals, both]).views} == {"totals", "named"}


def test_what_has_no_operator_is_noticed_or_refused() -> None:
    names = names_of(SHOP)
    query = "SELECT o.id, c.id AS c FROM orders o JOIN customers c ON o.amount > c.id"
    assert compile_text(f"CREATE MATERIALIZED VIEW v AS {query}", names).notices
    with pytest.raises(SqlRefusedError) as caught:
        compile_text(f"CREATE MATERIALIZED VIEW v WITH (on_reevaluation = 'refuse') AS {query}", names)
    assert caught.value.line == 1
    assert caught.value.column > 1


def test_the_session_says_what_becomes_of_what_has_no_operator_unless_the_view_does() -> None:
    names = names_of(SHOP)
    query = "SELECT o.id, c.id AS c FROM orders o JOIN customers c ON o.amount > c.id"
    with pytest.raises(SqlRefusedError, match="has no operator"):
        compile_text(f"CREATE MATERIALIZED VIEW v AS {query}", names, on_reevaluation="refuse")
    own = f"CREATE MATERIALIZED VIEW v WITH (on_reevaluation = 'notice') AS {query}"
    assert compile_text(own, names, on_reevaluation="refuse").notices


def test_an_index_is_by_its_columns_and_the_row_key() -> None:
    index = compile_text("CREATE INDEX i ON orders (Amount, customer)", names_of(SHOP))
    assert index.index == ("amount", "customer")
    assert [field.name for field in index.columns] == ["amount", "customer", "id"]
    assert index.uses == ("orders",)
    assert plan_views([index]).view("i").key == ("orders.amount", "orders.customer", "orders.id")


def test_what_is_not_there_is_not_indexed() -> None:
    for text, why in (
        ("CREATE INDEX i ON order_s (id)", "did you mean orders"),
        ("CREATE INDEX i ON orders (amont)", "did you mean amount"),
    ):
        with pytest.raises(UnknownObjectError, match=why):
            compile_text(text, names_of(SHOP))


def test_a_view_names_all_its_columns_or_none() -> None:
    with pytest.raises(DefinitionError, match="names 1 columns"):
        compile_text("CREATE MATERIALIZED VIEW v (a) AS SELECT id, amount FROM orders", names_of(SHOP))
    with pytest.raises(DefinitionError, match="one CREATE MATERIALIZED VIEW or CREATE INDEX"):
        compile_text("SELECT 1", names_of(SHOP))


@given(st.sampled_from(QUERIES), st.randoms(use_true_random=False))
def test_damaged_queries_get_an_error_or_a_plan(case: object, rng: random.Random) -> None:
    corpus, query = case.values  # type: ignore[attr-defined]
    text = f"CREATE MATERIALIZED VIEW the_view AS {corpus.queries[query]}"
    words = text.split(" ")
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(4, len(words))
        change = rng.choice(["drop", "repeat", "swap", "cut"])
        if change == "drop":
            words[at] = ""
        elif change == "repeat":
            words[at] += " " + words[at]
        elif change == "swap":
            other = rng.randrange(4, len(words))
            words[at], words[other] = words[other], words[at]
        else:
            words[at] = words[at][: len(words[at]) // 2]
    with contextlib.suppress(EverviewError):
        assert plan_views([compile_text(" ".join(words), names_of(corpus.schema_text))]).views


@pytest.mark.parametrize("source", ["SELECT id AS n FROM orders", "SELECT 1 AS n"])
def test_a_recursion_is_given_up_after_the_rounds_that_the_view_says(source: str) -> None:
    query = f"WITH RECURSIVE r AS ({source} UNION ALL SELECT n + 1 FROM r WHERE n < 9) SELECT n FROM r"
    for option, rounds in (("", 100_000), ("WITH (recursion_limit = 7)", 7)):
        view = compile_text(f"CREATE MATERIALIZED VIEW v {option} AS {query}", names_of(SHOP))
        operators = [step.operator for step in plan_views([view]).steps]
        found = [one.rounds for one in operators if isinstance(one, RowsOperator | ReevaluationOperator)]
        assert found == [rounds]
