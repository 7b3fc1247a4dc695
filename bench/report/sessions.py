"""The Spark session of a process that measures.

Spark takes seconds to start, so all experiments of a process share one session, and nobody
but the runner ends it.

    spark = session()            # on two cores, with everview's settings
    spark = session("local[8]")  # another master: what was there is ended first

An experiment need not close anything. One that changes settings of Spark's works in ``session().newSession()``,
so that the next one does not meet them.
"""

from __future__ import annotations

from pyspark import SparkContext
from pyspark.sql import SparkSession

from everview.zones.session import new_session

_open: dict[str | None, SparkSession] = {}
"""At most one, by its master."""


def session(master: str | None = None) -> SparkSession:
    """The session of this process on a master, by default on two cores of this machine."""
    if master not in _open or SparkContext._active_spark_context is None:
        close()
        _open[master] = new_session(master)
    return _open[master]


def close() -> None:
    """End the session of this process, if there is one."""
    for spark in _open.values():
        if SparkContext._active_spark_context is not None:
            spark.stop()
    _open.clear()
