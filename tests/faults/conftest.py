from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.processes import Nursery


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    nursery = Nursery()
    yield nursery
    nursery.close()
