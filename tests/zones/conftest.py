"""One Spark session for all tests of this folder: it takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from everview.client.database import Database
from everview.zones.session import new_session
from tests.zones.shop import open_shop


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = new_session()
    yield session
    session.stop()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Where the store of a test is."""
    return tmp_path / "store"


@pytest.fixture
def shop(store: Path) -> Iterator[Database]:
    """A store with a table of orders and the view of their totals."""
    with open_shop(store) as found:
        yield found


@pytest.fixture
def db(shop: Database) -> Database:
    return shop
