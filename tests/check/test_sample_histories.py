"""Samples of a shop: enough rows that they meet, in all tables and in one alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from everview.change.schema import Column
from everview.change.types import INTEGER
from everview.check.sample import ROUNDS, Round, Sample
from everview.check.trial_queries import asking
from everview.sql.namespace import NamedRelation
from tests.mutations.shop import SHOP

STAR = (
    "SELECT count(*) FROM customers AS c JOIN orders AS o ON o.customer = c.id JOIN parts AS p ON p.customer = c.id "
    "JOIN lands AS l ON l.id = c.land"
)


def found(*names: str) -> list[NamedRelation]:
    relations = [SHOP.find(name) for name in names]
    return [relation for relation in relations if relation is not None]


def rounds(relations: Sequence[NamedRelation], text: str = "", seed: int = 1) -> list[Round]:
    return list(Sample(relations, text, {}, seed=seed).rounds())


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_join_of_four_tables_has_rows(seed: int) -> None:
    history = rounds(found("customers", "orders", "parts", "lands"), STAR, seed)
    counts = [asking().answer(STAR, dict(one.rows)).column(0)[0].as_py() for one in history]
    assert sum(count > 0 for count in counts) >= 3, counts


@pytest.mark.parametrize("alone", ["orders", "customers"])
def test_each_of_two_tables_changes_alone_in_some_round(alone: str) -> None:
    history = rounds(found("orders", "customers"))
    assert len(history) == ROUNDS
    assert any({*one.comes, *one.goes} == {alone} for one in history)


def test_a_table_is_emptied_and_filled_again() -> None:
    sizes = [len(one.rows["visits"]) for one in rounds(found("visits"))]
    assert 0 in sizes
    assert sizes[-2] > 10 and sizes[-1] > 2


def test_updates_make_single_values_null_under_a_key_that_stays() -> None:
    changed = 0
    for one in rounds(found("orders"))[1:]:
        before = {row["id"]: row for row in one.goes["orders"].to_pylist()} if "orders" in one.goes else {}
        for row in one.comes["orders"].to_pylist() if "orders" in one.comes else ():
            old = before.get(row["id"])
            if old is not None:
                other = [name for name in row if repr(row[name]) != repr(old[name])]
                changed += len(other) == 1 and row[other[0]] is None
    assert changed


def test_in_the_end_few_nulls_are_left() -> None:
    history = rounds(found("visits"))
    nulls = [one.rows["visits"]["a"].null_count for one in history]
    assert nulls[0] > 0
    assert nulls[-1] == 0


def test_constants_of_the_query_are_drawn_often() -> None:
    history = rounds(found("orders"), "SELECT id FROM orders WHERE amount = 12345")
    assert any(12345 in one.rows["orders"]["amount"].to_pylist() for one in history)


def test_a_key_of_one_column_has_room_for_many_rows() -> None:
    assert len(rounds(found("orders"))[0].rows["orders"]) > 20


@pytest.mark.parametrize("seed", range(1, 6))
def test_rows_find_a_partner_in_one_table_and_not_in_another(seed: int) -> None:
    tables = [NamedRelation(name, "table", (Column("k", INTEGER),), bag=True) for name in ("a", "b", "c")]
    history = rounds(tables, "SELECT", seed)
    asked = "SELECT count(*) FROM b WHERE k NOT IN (FROM a WHERE k IS NOT NULL) AND k IN (FROM c)"
    rows = [{name: table.select(["k"]) for name, table in one.rows.items()} for one in history]
    assert any(asking().answer(asked, one).column(0)[0].as_py() for one in rows)


@pytest.mark.parametrize("seed", range(1, 6))
def test_no_two_rows_tie_at_last_in_what_the_query_is_ordered_by(seed: int) -> None:
    columns = tuple(Column(name, INTEGER) for name in ("o", "p"))
    query = "SELECT list(p) FROM (FROM a ORDER BY o DESC)"
    (*_, last) = rounds([NamedRelation("a", "table", columns, bag=True)], query, seed)
    found = last.rows["a"].to_pydict()
    assert len(found["o"]) > 4 and len(set(found["o"])) == len(found["o"]) > len(set(found["p"])) > 1
