"""WITH TIES in the user's words, as a rank in DuckDB's SQL."""

from __future__ import annotations

import pytest

from everview.sql.ties import worded_rank


@pytest.mark.parametrize(
    ("words", "rank"),
    [
        (
            "SELECT a, b FROM t WHERE a > 1 ORDER BY b DESC, a LIMIT 3 WITH TIES",
            "SELECT a, b FROM t WHERE a > 1 QUALIFY rank() OVER (ORDER BY b DESC, a) <= 3",
        ),
        (
            "SELECT a FROM t GROUP BY a\nORDER BY count(*)\nFETCH NEXT 2 ROWS WITH TIES",
            "SELECT a FROM t GROUP BY a QUALIFY rank() OVER (ORDER BY count(*)) <= 2",
        ),
    ],
)
def test_ties_are_a_rank(words: str, rank: str) -> None:
    assert worded_rank(words) == rank


@pytest.mark.parametrize(
    "words",
    [
        "SELECT a FROM t ORDER BY a LIMIT 3",
        "SELECT a, b FROM t ORDER BY 2 LIMIT 3 WITH TIES",
        "SELECT -a AS a FROM t ORDER BY a LIMIT 3 WITH TIES",
        "SELECT -a a FROM t ORDER BY a LIMIT 3 WITH TIES",
        "SELECT DISTINCT a FROM t ORDER BY a LIMIT 3 WITH TIES",
        "SELECT a FROM t UNION SELECT b FROM u ORDER BY a LIMIT 3 WITH TIES",
        "SELECT a FROM t ORDER BY a LIMIT 3 OFFSET 1 WITH TIES",
    ],
)
def test_what_a_rank_would_not_mean_stays(words: str) -> None:
    assert worded_rank(words) is None
