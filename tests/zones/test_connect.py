"""Pipelines through Spark Connect: the server does the epochs, the client holds the lease.

The server takes long to start, so all of it is one test with parts; the last one ends the server.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from everview.client.database import Database
from everview.errors import DamagedEntryError, DefinitionError, EverviewError, LeaseTakenError, StaleEpochError
from everview.maintain.coordination import holder_of, require_holder
from everview.maintain.maintainer import LEASE
from everview.zones.pipeline import Pipeline
from everview.zones.protection import is_remote
from everview.zones.session import gone, new_session
from tests.zones.clusters import ROOT, ConnectServer, connect
from tests.zones.market import PATIENCE, business, check_now, do_business, epoch, open_market, wait_for
from tests.zones.mishaps import Raising, pipeline_of
from tests.zones.shop import assert_all_is_right, open_shop


@dataclass
class Through:
    """Where a part of the test runs."""

    server: ConnectServer
    spark: SparkSession
    folder: Path
    db: Database

    @property
    def place(self) -> Path:
        return self.folder / "store"


def views_are_maintained_while_they_come_and_go(by: Through) -> None:
    by.spark.conf.set("spark.sql.adaptive.enabled", "true")
    with by.db.maintain(spark=by.spark, servers=3) as maintaining:
        with business(by.db, seed=1):
            before = epoch(by.db)
            by.db.sql("CREATE MATERIALIZED VIEW notes AS SELECT note, max(amount) AS most FROM orders GROUP BY note")
            by.db.sql("CREATE MATERIALIZED VIEW later WITH (refresh = 'lazy') AS SELECT count(*) AS n FROM orders")
            running = maintaining.running
            assert isinstance(running, Pipeline)
            running.servers = 1
            wait_for(lambda: epoch(by.db) > before + 3, maintaining.check)
            check_now(by.db)
            by.db.sql("DROP MATERIALIZED VIEW popular")
        maintaining.drain(timeout=PATIENCE)
        by.db.flush(timeout=PATIENCE)
        assert_all_is_right(by.db)
    assert by.db.store.views.begun("main") is None
    assert by.spark.conf.get("spark.sql.adaptive.enabled") == "true"


def a_client_that_is_killed_and_one_that_goes_on(by: Through) -> None:
    """The stream that the first leaves in the server ends when it notices."""
    with _client(by) as client, business(by.db, 1):
        _in_a_later_epoch(by, client)
        with pytest.raises(LeaseTakenError, match=f"process {client.pid}"):
            Pipeline(by.place, spark=by.spark, in_driver=0).start()
        os.kill(client.pid, signal.SIGKILL)
        client.wait()
        by.server.server.said(rf"started by process {client.pid}, which does not maintain the store any more")
        check_now(by.db)
    with _client(by) as client:
        with business(by.db, 2):
            _in_a_later_epoch(by, client)
            check_now(by.db)
        by.db.flush(timeout=PATIENCE)
        assert_all_is_right(by.db)
        said, _ = client.communicate(timeout=PATIENCE)
        assert said == "stopped\n" and client.returncode == 0
    assert by.db.store.views.begun("main") is None and by.db.store.holder(LEASE) is None


@contextlib.contextmanager
def _client(by: Through) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.zones.on_connect", by.server.url, str(by.place)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        assert process.stdout.readline() == "running\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def _in_a_later_epoch(by: Through, client: subprocess.Popen[str]) -> None:
    def there() -> None:
        assert client.poll() is None

    before = epoch(by.db)
    wait_for(lambda: epoch(by.db) > before, there)
    wait_for(lambda: by.db.store.views.begun("main") is not None, there)


def what_fails_in_a_task_reaches_the_client_as_it_was(by: Through) -> None:
    """The stream's own epoch fails: the build of the views was before."""
    by.db.flush()
    before = epoch(by.db)
    do_business(by.db, 1)
    with pytest.raises(DamagedEntryError, match="group 7") as found, _broken(by) as pipeline:
        pipeline.drain(timeout=PATIENCE)
    assert found.value.hint == "rebuild the view"
    assert epoch(by.db) == before
    Pipeline(by.place, spark=by.spark, in_driver=0).catch_up()
    assert_all_is_right(by.db)


def _broken(by: Through) -> Pipeline:
    return pipeline_of(Raising)(by.place, spark=by.spark, in_driver=0)


def a_server_that_is_gone(by: Through) -> None:
    """It is raised, and everything is released: another process goes on."""
    with (
        pytest.raises(EverviewError, match="the pipeline of group main has stopped") as found,
        Pipeline(by.place, spark=by.spark, in_driver=0) as pipeline,
    ):
        do_business(by.db, 1)
        pipeline.drain(timeout=PATIENCE)
        by.server.server.process.kill()
        by.server.server.process.wait()
        do_business(by.db, 2)
        pipeline.drain(timeout=PATIENCE)
    assert found.value.detail == "the server of Spark Connect does not answer"
    with pytest.raises(EverviewError, match="cannot start a Spark session on sc://") as found:
        new_session(by.server.url)
    assert found.value.detail == "the server of Spark Connect does not answer"
    by.db.flush()
    assert_all_is_right(by.db)


PARTS: tuple[Callable[[Through], None], ...] = (
    views_are_maintained_while_they_come_and_go,
    a_client_that_is_killed_and_one_that_goes_on,
    what_fails_in_a_task_reaches_the_client_as_it_was,
    a_server_that_is_gone,
)


def test_through_spark_connect(tmp_path: Path, subtests: pytest.Subtests) -> None:
    with connect(tmp_path / "server") as server:
        spark = new_session(server.url)
        assert is_remote(spark)
        for part in PARTS:
            folder = tmp_path / part.__name__
            folder.mkdir()
            with subtests.test(part.__name__), open_market(folder / "store") as db:
                part(Through(server, spark, folder, db))
        gone(spark)
        spark.stop()


def test_the_packages_that_spark_connect_needs_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql.connect.session", None)
    with pytest.raises(DefinitionError, match="needs packages") as found:
        new_session("sc://127.0.0.1:1")
    assert found.value.hint == "pip install everview[connect]"


def test_work_for_somebody_who_is_gone_is_refused(tmp_path: Path) -> None:
    with open_shop(tmp_path / "store") as db:
        with db.store.lease(LEASE):
            me = holder_of(db.store)
            require_holder(db.store, me)
            with pytest.raises(StaleEpochError, match="process 1, which does not maintain"):
                require_holder(db.store, "process 1")
        with pytest.raises(StaleEpochError, match="no process does"):
            require_holder(db.store, me)
