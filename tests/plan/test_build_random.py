"""What the builder makes of random queries means what they mean."""

from __future__ import annotations

import random

import pytest

from tests.plan.random_building import compare
from tests.queries.random_queries import random_query


@pytest.mark.parametrize("seed", range(60))
def test_a_random_query_is_built_as_it_says(seed: int) -> None:
    query = random_query(random.Random(seed), depth=1 + seed % 2)
    try:
        compare(query, range(2))
    except Exception as error:
        raise AssertionError(query.text) from error
