"""For every query of the corpora, what the rules make of its relation shows the same rows."""

from __future__ import annotations

import pytest

from everview.plan.rules import rewrite
from tests.plan.evaluate import evaluated
from tests.plan.test_build_corpora import QUERIES, built, rounded
from tests.queries.corpora import connect, corpus, fill
from tests.queries.data import tables


@pytest.mark.parametrize(("name", "query"), QUERIES)
def test_rules_keep_the_rows_of_a_query_of_the_corpora(name: str, query: str) -> None:
    found = corpus(name)
    before = built(found, found.queries[query]).relation
    after = rewrite(before)
    assert [field.name for field in after.shown] == [field.name for field in before.shown]
    assert set(after.key) <= set(before.key)
    some = 0
    for seed in (1, 4):
        connection = connect()
        fill(connection, found, tables(found.schema, scale=0.3, seed=seed))
        rows = rounded(evaluated(connection, before))
        assert rounded(evaluated(connection, after)) == rows, f"with the rows of seed {seed}"
        some += len(rows)
    assert some, "a query without rows proves nothing"
