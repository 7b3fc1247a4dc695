"""What all tests share: how hypothesis draws, a Spark session, and which tests come first.

Hypothesis draws the same examples every time, and none of them is too slow.

``EVERVIEW_HYPOTHESIS=random`` draws other examples in every run, ``thorough`` also tries harder where a test can;
a failure prints what repeats it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

settings.register_profile(
    "everview",
    deadline=None,
    derandomize="EVERVIEW_HYPOTHESIS" not in os.environ,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("everview")


LONG = (
    "faults/test_campaign.py",
    "zones/test_service.py",
    "zones/test_connect.py",
    "zones/test_cluster.py",
    "cli/test_demo.py",
    "zones/test_leftovers.py",
    "zones/test_live.py",
)
"""Tests of minutes, which begin first: nobody waits for the last of them at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.nodeid.partition("::")[0].endswith(LONG))


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A session on this machine; Spark is loaded only by tests that ask for it. A session that exists
    already is not stopped here."""
    from pyspark.sql import SparkSession

    from everview.zones.session import new_session

    there = SparkSession.getActiveSession() is not None
    session = new_session()
    yield session
    if not there:
        session.stop()
