"""Views of all kinds on Spark while everything changes: ``python -m tests.zones.live --seconds 600``.

A pipeline maintains random views of tables that another process writes to, and whenever
we look, every view is what its query says of the base rows at the epoch it has reached.

Meanwhile views and indexes are created, replaced and dropped, view servers come and go, regions are
split and move, and nodes are added.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from everview.catalog import ViewDefinition
from everview.client.database import open as open_database
from everview.errors import EverviewError, SnapshotExpiredError
from everview.zones.pipeline import Pipeline
from everview.zones.session import new_session
from tests.oracle import base
from tests.oracle.random_scripts import by_template
from tests.oracle.schemas import History, random_tables
from tests.oracle.script import View
from tests.oracle.templates import TEMPLATES, Pen
from tests.zones.shop import wrong
from tests.zones.writer import do, writing

PATIENCE = 240.0
SERVERS = (1, 8, 3, 1, 2)


class Live:
    """A database of random tables and views."""

    def __init__(self, path: Path, seed: int, views: int) -> None:
        self.path = path
        self.seed = seed
        self.rng = random.Random(seed)
        self.tables = random_tables(random.Random(seed))
        self.db = open_database(path, durability="none", map_size=1 << 30)
        self.plain: dict[str, str] = {}
        self.pipeline: Pipeline | None = None
        self.numbers = iter(range(10_000))
        for name, schema in base.schemas(list(map(str, self.tables))).items():
            self.db.create_table(name, schema)
        history = History(self.rng, self.tables)
        for _ in range(30):
            for write in history.some():
                do(self.db, write)
        self._create(*by_template(seed, views).views)

    def _create(self, *views: View, how: str = "CREATE") -> None:
        self.plain |= {view.name: view.plain for view in views}
        self.db.sql(";\n".join(f"{how} MATERIALIZED VIEW {view.name} AS {view.query}" for view in views))

    def close(self) -> None:
        self.db.close()

    # -------------------------------------------------------------- what must hold

    def check(self) -> int:
        """Compare every view with its query at the epoch that it has reached; which that is."""
        for _ in range(50):
            if self.pipeline is not None:
                self.pipeline.check()
            with contextlib.suppress(SnapshotExpiredError):
                found = wrong(self.db, self.plain)
                assert not found, "\n".join([f"seed {self.seed}", *(f"{name}: {said}" for name, said in found.items())])
                return self.db.store.views.committed("main").epoch
        raise AssertionError("no snapshot stayed readable long enough")

    # -------------------------------------------------------------- what may change

    def change(self) -> str:
        """Do something to the definitions or to the store; says what."""
        kinds: list[Callable[[], str]] = [
            self.create,
            self.create,
            self.replace,
            self.drop,
            self.index,
            self.drop_index,
            self.add_node,
            self.split,
            self.move,
            self.serve,
        ]
        return self.rng.choice(kinds)()

    def _drawn(self, name: str) -> View:
        text = TEMPLATES[self.rng.choice(list(TEMPLATES))](Pen(self.rng, self.tables))
        query, plain = (text, text) if isinstance(text, str) else text
        return View(name, query, plain)

    def create(self) -> str:
        view = self._drawn(f"w{next(self.numbers)}")
        self._create(view)
        return f"created {view.name}"

    def _some_view(self) -> ViewDefinition | None:
        """A view that nothing reads."""
        definitions = self.db.catalog.definitions()
        free = [view for view in definitions.views() if not definitions.dependents(view.id)]
        return self.rng.choice(free) if free else None

    def replace(self) -> str:
        view = self._some_view()
        if view is None:
            return "nothing to replace"
        self._create(self._drawn(view.name), how="CREATE OR REPLACE")
        return f"replaced {view.name}"

    def drop(self) -> str:
        view = self._some_view()
        if view is None:
            return "nothing to drop"
        self.db.sql(f"DROP MATERIALIZED VIEW {view.name}")
        return f"dropped {view.name}"

    def index(self) -> str:
        table = self.rng.choice(self.tables)
        name = f"i{next(self.numbers)}"
        self.db.sql(f"CREATE INDEX {name} ON {table.name} ({self.rng.choice(['g', 'x'])})")
        return f"index {name} on {table.name}"

    def drop_index(self) -> str:
        found = self.db.catalog.indexes()
        if not found:
            return "no index to drop"
        self.db.sql(f"DROP INDEX {found[0].name}")
        return f"dropped index {found[0].name}"

    def add_node(self) -> str:
        return f"added node {self.db.topology.add_node()}"

    def split(self) -> str:
        token = self.rng.randrange(1, 2**32)
        with contextlib.suppress(EverviewError):
            self.db.topology.split(token)
        return f"split at {token}"

    def move(self) -> str:
        region = self.rng.choice(self.db.topology.regions())
        node = self.rng.choice([node for node in self.db.topology.nodes() if node != region.node])
        self.db.topology.move(region.first, node)
        return f"moved region {region.first} to node {node}"

    def serve(self) -> str:
        assert self.pipeline is not None
        self.pipeline.servers = self.rng.choice(SERVERS)
        return f"{self.pipeline.servers} servers"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.zones.live", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--views", type=int, default=50)
    asked = parser.parse_args()
    spark = new_session()
    with tempfile.TemporaryDirectory() as folder:
        live = Live(Path(folder) / "store", asked.seed, asked.views)
        end = time.monotonic() + asked.seconds
        with Pipeline(live.path, spark=spark, in_driver=0) as pipeline:
            live.pipeline = pipeline
            while time.monotonic() < end:
                with writing(live.path, asked.seed):
                    until = time.monotonic() + 20
                    while time.monotonic() < until:
                        print(live.change(), "| epoch", live.check(), flush=True)
                started = time.monotonic()
                pipeline.drain(timeout=PATIENCE)
                print(f"drained after {time.monotonic() - started:.1f} s at epoch", live.check(), flush=True)
        live.close()
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
