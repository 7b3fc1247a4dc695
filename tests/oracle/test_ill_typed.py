"""Queries whose types do not fit never break a view: they are refused, right, or in quarantine."""

from __future__ import annotations

import pytest

from tests.oracle.ill_typed import accepted, defects, tried


@pytest.mark.parametrize("seed", range(4))
def test_random_queries_whose_types_do_not_fit(seed: int) -> None:
    outcome, wrong = tried(seed, 75)
    assert not wrong, "\n".join(f"{query}\n  {said}" for query, said in wrong.items())
    assert outcome["accepted"] > 10
    assert outcome["refused"] > 10


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM r WHERE a = 'y'",
        "SELECT id FROM r WHERE a IN ('1', 'y')",
        "SELECT id FROM r WHERE CASE WHEN (t OR -1) THEN 'y' ELSE '1' END IN (DATE '2024-01-01')",
        "SELECT id FROM r WHERE (n OR '1') IN (SELECT id FROM r AS i)",
        "SELECT id FROM r WHERE (s AND id) IN (SELECT id FROM r AS i)",
        "SELECT id FROM r WHERE EXISTS (SELECT 1 FROM r AS i WHERE i.f = (r.a OR r.b))",
        "SELECT CAST(f AS DECIMAL(4,1)) AS x FROM r UNION ALL SELECT NULL FROM r",
        "SELECT max(l) AS x FROM r",
        "SELECT id, (SELECT max(l) FROM r AS i WHERE 1) AS x FROM r",
    ],
)
def test_queries_that_broke_a_view(query: str) -> None:
    assert accepted(query)
    assert not defects([query])
