"""The Spark session and its settings.

One sentence: an epoch is a few small tasks that must come and go quickly, so everything
Spark does for large queries and long jobs is switched off.

What each setting buys, measured on two cores with an empty epoch:

- unix domain sockets to the Python workers: 40 ms per Python stage;
- no whole-stage code generation: 60 ms (there is nothing to fuse between two Python stages,
  but the Java compiler would run for every plan);
- plain files for the streaming checkpoint: 100 ms. It may be lost at any time, since the
  store knows the committed frontier, so it needs neither checksums nor renames;
- no adaptive execution, no waiting for locality: tens of milliseconds each;
- a Python daemon that has loaded everything before it forks (:mod:`everview.zones.daemon`):
  seconds at the start, and after a minute without writes, when Spark has ended idle workers;
- asking the source for news every 20 ms instead of 10: half of what an idle pipeline costs
  (a tenth of a core);
- no search for Python data sources among all installed modules: seconds at the start. Ours is
  registered by hand.

Where an executor is lost, tasks whose output went with it are run again. Spark would compare that output
with what it was, and give the job up where it differs; but reports tell times, which always do, and steps
are pure, so what differs does not matter: it is told not to compare. Nor does it matter what a driver that
was killed has left in its checkpoint, such as a file that is half written.

A Spark row is a block of up to megabytes, hence the small Arrow batches. Spark's own log is
off: what goes wrong reaches the caller as an error of ours.

A server that is there before us, such as one of Spark Connect, must be started with what only its start
can set, or epochs are slower: ``python -m everview.zones.session`` prints it as options of Spark's commands.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from everview.errors import DefinitionError, EverviewError
from everview.log.source import LogSource
from everview.zones.batch_source import EverviewSource
from everview.zones.failures import told

_LOGGING = Path(__file__).with_name("log4j2.properties")

FOR_SERVERS = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.locality.wait": "0s",
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.python.daemon.module": "everview.zones.daemon",
}
"""What only the start of Spark can set, and what executors are told with everything else."""

_AT_START = FOR_SERVERS | {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
}
"""What only a new session can be given."""

_AT_RUNTIME = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16",
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "false",
    "spark.sql.streaming.pollingDelay": "20ms",
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
"""What can be set in a session that is there already."""

ATTEMPTS = 4
"""How often a task is tried on a local master, as on a cluster."""

RETRIES = 4
"""How often a server of Spark Connect is tried again that does not answer: for four seconds or more. Spark's
own way is to try for ten minutes, but what such a server knew of a stream is gone with it."""


logging.getLogger("py4j").addHandler(logging.NullHandler())  # it would print what is raised to the caller anyway


def new_session(master: str | None = None, **settings: str) -> SparkSession:
    """A session of our own; by default on two cores of this machine. ``master`` is any of Spark's, such as
    ``local[8]`` or ``spark://host:7077``, or a server of Spark Connect: ``sc://host:15002``."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master is not None and master.startswith("sc://"):
        try:
            return _equipped(_connected(master), settings)
        except EverviewError:
            raise
        except Exception as error:
            raise told(error, f"there is no session on {master}") from error
    builder = SparkSession.builder.master(master or f"local[2,{ATTEMPTS}]").appName("everview")
    for name, value in (_AT_START | _AT_RUNTIME | settings).items():
        builder = builder.config(name, value)
    with _no_search():
        return prepared(builder.getOrCreate())


def _connected(server: str) -> SparkSession:
    """A session through Spark Connect. It can be used like any other, but its class is another one."""
    try:
        from pyspark.sql.connect.session import SparkSession as ConnectSession

        session: Any = ConnectSession.builder.remote(server).create()
    except ImportError as error:
        raise DefinitionError(
            "Spark Connect needs packages that are not there", detail=str(error), hint="pip install everview[connect]"
        ) from error
    return session  # type: ignore[no-any-return]


def is_remote(spark: SparkSession) -> bool:
    """Whether a session is one of Spark Connect, whose functions run in the server."""
    return not isinstance(spark, SparkSession)


@contextmanager
def _no_search() -> Iterator[None]:
    """While a Java process is started that is not to search for data sources: it would do so by the
    Python that is named here, and does not if there is no such Python."""
    if "PYSPARK_DRIVER_PYTHON" in os.environ:
        yield
        return
    os.environ["PYSPARK_DRIVER_PYTHON"] = "no search for data sources"
    try:
        yield
    finally:
        del os.environ["PYSPARK_DRIVER_PYTHON"]


def prepared(spark: SparkSession) -> SparkSession:
    """A session beside the given one, on the same cluster, with our settings: those of the
    given one stay as they are."""
    return _equipped(spark.newSession(), {})


def _equipped(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    if is_remote(spark):
        from pyspark.sql.connect.client.retries import DefaultPolicy

        spark.client.set_retry_policies([DefaultPolicy(max_retries=RETRIES)])
    for name, value in {**_AT_RUNTIME, **settings}.items():
        spark.conf.set(name, value)
    with _active(spark):
        spark.dataSource.register(LogSource)
        spark.dataSource.register(EverviewSource)
    return spark


@contextmanager
def _active(spark: SparkSession) -> Iterator[None]:
    """While a session is the active one of this thread. Spark asks the active session whether a data source
    exists already, whichever it is to be registered in."""
    if is_remote(spark):
        yield
        return
    sessions = SparkSession._get_j_spark_session_class(spark._jvm)
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def gone(spark: SparkSession) -> None:
    """A server of Spark Connect does not answer: it is not worth trying again."""
    if is_remote(spark):
        spark.client.set_retry_policies([])


if __name__ == "__main__":
    print(*(f"--conf {name}={value}" for name, value in FOR_SERVERS.items()))
