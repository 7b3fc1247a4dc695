"""Fixtures of the conformance suite, and how hard hypothesis tries.

``EVERVIEW_HYPOTHESIS=thorough`` runs many more histories; ``--hypothesis-seed`` repeats a run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from everview.store.contract import Store
from tests.adapters.under_test import ADAPTERS, StoreUnderTest

_SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]

settings.register_profile(
    "ci", max_examples=25, stateful_step_count=40, deadline=None, print_blob=True, suppress_health_check=_SLOW_IS_FINE
)
settings.register_profile("thorough", settings.get_profile("ci"), max_examples=1000, stateful_step_count=80)
settings.load_profile(os.environ.get("EVERVIEW_HYPOTHESIS", "ci"))


@pytest.fixture(params=sorted(ADAPTERS))
def under_test(request: pytest.FixtureRequest, tmp_path: Path) -> StoreUnderTest:
    return ADAPTERS[request.param](tmp_path / "store")


@pytest.fixture
def store(under_test: StoreUnderTest) -> Iterator[Store]:
    opened = under_test.open()
    yield opened
    opened.close()
