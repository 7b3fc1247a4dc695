"""Two hundred kills on Spark: workers, executors, sources, drivers, writers, at named points and at any moment."""

from __future__ import annotations

import os
from pathlib import Path

from tests.faults.campaign import Campaign
from tests.zones.clusters import standalone

SEED = int(os.environ.get("EVERVIEW_FAULT_SEED", "1"))
IN_ONE_PROCESS = 180
ON_A_CLUSTER = 24


def test_nothing_is_lost_and_nothing_is_done_twice(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "town", SEED, say=print)
    campaign.run(IN_ONE_PROCESS)
    assert not campaign.missed, "nobody died at these points"
    assert campaign.died.total() >= IN_ONE_PROCESS


def test_nor_where_executors_are_processes_of_their_own(tmp_path: Path) -> None:
    with standalone(tmp_path / "spark") as cluster:
        campaign = Campaign(tmp_path / "town", SEED, cluster=cluster, say=print)
        campaign.run(ON_A_CLUSTER)
    assert not campaign.missed, "nobody died at these points"
    assert campaign.died.total() >= ON_A_CLUSTER
