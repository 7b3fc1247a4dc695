"""Expressions as texts: taking conditions apart, putting definitions in."""

from __future__ import annotations

import pytest

from everview.change.types import BIGINT, BOOLEAN
from everview.plan.expressions import Expr, conjunction, conjuncts


@pytest.mark.parametrize(
    ("condition", "parts"),
    [
        ('"a" = 1', ['"a" = 1']),
        ('"a" = 1 AND ("b" = 2 AND "c" = 3)', ['"a" = 1', '"b" = 2', '"c" = 3']),
        ('("b" AND "a")', ['"b"', '"a"']),
        ('"a" OR "b"', ['"a" OR "b"']),
        ('NOT ("a" AND "b")', ['NOT ("a" AND "b")']),
        ('"a" BETWEEN 1 AND 2', ['"a" BETWEEN 1 AND 2']),
        ('"a" NOT LIKE \'x\' AND ("b" OR "c")', ["\"a\" NOT LIKE 'x'", '"b" OR "c"']),
    ],
)
def test_a_condition_is_taken_apart_only_at_its_ands(condition: str, parts: list[str]) -> None:
    assert [part.sql for part in conjuncts(Expr(condition, BOOLEAN))] == parts


def test_parts_are_put_together_in_their_order_and_each_once() -> None:
    parts = [Expr('"s" = 1', BOOLEAN), Expr('"b" OR "a"', BOOLEAN), Expr('"s" = 1', BOOLEAN)]
    whole = conjunction(parts)
    assert whole is not None and whole.sql == '"s" = 1 AND ("b" OR "a")'
    assert conjunction([]) is None


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ('"x"', '"a" + 1'),
        ('"x" * 2', '("a" + 1) * 2'),
        ('("x") * 2', '("a" + 1) * 2'),
        ('CAST("x" AS INT)', 'CAST("a" + 1 AS INT)'),
        ('COALESCE("x", 0)', 'COALESCE("a" + 1, 0)'),
        ('-"x"', '-("a" + 1)'),
        ('"x" IN ("x", 2)', '("a" + 1) IN (("a" + 1), 2)'),
    ],
)
def test_a_definition_is_put_in_with_parentheses_only_where_they_are_needed(text: str, result: str) -> None:
    assert Expr(text, BIGINT).over({"x": Expr('"a" + 1', BIGINT)}).sql == result
