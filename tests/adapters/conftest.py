"""Fixtures of the conformance suite: every test that takes one runs on every adapter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from everview.store.contract import Store
from tests.adapters.under_test import ADAPTERS, StoreUnderTest


@pytest.fixture(params=sorted(ADAPTERS))
def under_test(request: pytest.FixtureRequest, tmp_path: Path) -> StoreUnderTest:
    return ADAPTERS[request.param](tmp_path / "store")


@pytest.fixture
def store(under_test: StoreUnderTest) -> Iterator[Store]:
    opened = under_test.open()
    yield opened
    opened.close()
