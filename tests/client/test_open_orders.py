"""A plan is tried before its view can be read; what DuckDB itself leaves open is no difference."""

from __future__ import annotations

import pytest

from tests.mutations.judging import judged


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM orders ORDER BY amount LIMIT 3",
        "SELECT id, row_number() OVER (PARTITION BY status ORDER BY amount) AS n FROM orders",
        "SELECT o.id, v.id AS v FROM (SELECT id FROM lands) AS o POSITIONAL JOIN (SELECT id FROM customers) AS v",
        "SELECT id, amount FROM orders ORDER BY amount FETCH FIRST 2 ROWS WITH TIES",
        "SELECT id, -amount AS amount FROM orders ORDER BY amount LIMIT 2 WITH TIES",
    ],
)
def test_an_order_that_is_left_open_is_no_difference(query: str) -> None:
    found = judged(query)
    assert not found.caught, found
    assert found.rounds > 2
