"""Several processes, one catalog."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from everview.catalog import Catalog
from everview.store.embedded.store import EmbeddedStore

TABLES = 15

CREATE = """
import sys
from everview.catalog import Catalog
from everview.change.schema import Schema
from everview.store.embedded.store import EmbeddedStore

path, worker, tables = sys.argv[1], sys.argv[2], int(sys.argv[3])
store = EmbeddedStore.open(path, durability="none")
catalog = Catalog(store.metadata, store.views)
schema = Schema.of({"id": "BIGINT"}, key=["id"])
for number in range(tables):
    catalog.create_table(f"t{worker}_{number}", schema)
    catalog.create_table("shared", schema, if_not_exists=True)
store.close()
"""


def test_processes_that_change_at_once_lose_nothing_and_are_noticed(tmp_path: Path) -> None:
    store = EmbeddedStore.open(tmp_path / "store", create=True, durability="none")
    catalog = Catalog(store.metadata, store.views)
    workers = [
        subprocess.Popen([sys.executable, "-c", CREATE, str(tmp_path / "store"), str(worker), str(TABLES)])
        for worker in range(3)
    ]
    expected = 3 * TABLES + 1
    version, seen = 0, 0
    while seen < expected:
        moved = catalog.watch(version, poll=0.001, timeout=60)
        assert moved > version, "no change was noticed in a minute"
        version, tables = moved, catalog.tables()
        assert len(tables) >= seen
        seen = len(tables)
    assert [worker.wait() for worker in workers] == [0, 0, 0]
    names = {f"t{worker}_{number}" for worker in range(3) for number in range(TABLES)} | {"shared"}
    assert {table.name for table in catalog.tables()} == names
    assert [table.id for table in catalog.tables()] == list(range(1, expected + 1))
    assert catalog.version() == expected
    assert catalog.epochs("main").committed.epoch == 0
    store.close()
