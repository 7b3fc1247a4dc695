"""The Spark session and its settings.

An epoch is a few small tasks that must come and go quickly, so everything
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
with what it was, and give the job up where it differs; but reports hold times, which always do, and steps
are pure, so what differs does not matter: the comparison is switched off. Nor does it matter what a driver that
was killed has left in its checkpoint, such as a file that is half written.

A Spark row is a block of up to megabytes, hence the small Arrow batches. Spark's own log is
off: what goes wrong reaches the caller as an error of ours.

A server that is there before us, such as one of Spark Connect, must be started with what only its start
can set, or epochs are slower and others can reach it: ``python -m everview.zones.session`` prints it as options of
Spark's commands. A Spark that is started here is closed to others (:mod:`everview.zones.protection`).
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from everview.errors import DefinitionError, EverviewError
from everview.zones.batch_source import EverviewSource
from everview.zones.failures import error_of
from everview.zones.protection import (
    CLOSED,
    JAVA_OPTIONS,
    LOOPBACK,
    is_local,
    is_remote,
    java_options,
    notice_if_open,
    protection,
    start_java,
)
from everview.zones.source import LogSource

_LOGGING = Path(__file__).with_name("log4j2.properties")

FOR_SERVERS = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.locality.wait": "0s",
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.python.daemon.module": "everview.zones.daemon",
}
"""What only the start of Spark can set, and what executors receive with everything else."""

_AT_START = FOR_SERVERS | {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
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
            raise error_of(error, f"cannot start a Spark session on {master}") from error
    settings = _AT_START | _AT_RUNTIME | settings
    if SparkContext._active_spark_context is None:
        settings = _of_our_own(master or f"local[2,{ATTEMPTS}]", settings)
        start_java(settings)
    builder = SparkSession.builder.master(master or f"local[2,{ATTEMPTS}]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return prepared(builder.getOrCreate())


def _of_our_own(master: str, settings: dict[str, str]) -> dict[str, str]:
    """The settings of a Spark that is started here."""
    options = java_options(settings, f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}")
    own = {"spark.master": master, "spark.app.name": "everview", **protection(master, settings)}
    return {**own, JAVA_OPTIONS: options}


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
    notice_if_open(spark)
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


def for_servers(master: str) -> dict[str, str]:
    """What a server of Spark Connect on a master is to be started with."""
    closed = CLOSED if is_local(master) else {}
    return {**FOR_SERVERS, **closed, "spark.connect.grpc.binding.address": LOOPBACK}


if __name__ == "__main__":
    print(*(f"--conf {name}={value}" for name, value in for_servers(*(sys.argv[1:] or ["local"])).items()))
