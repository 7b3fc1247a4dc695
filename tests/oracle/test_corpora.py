"""The corpora's queries, all of a corpus in one group, through ten rounds of changes."""

from __future__ import annotations

import pytest

from tests.oracle.corpora import play
from tests.queries.corpora import CORPORA


@pytest.mark.parametrize("name", [found.name for found in CORPORA])
def test_all_views_equal_recomputation_after_every_round(name: str) -> None:
    play(name, scale=1.0, rounds=10)
