"""Apache Flink SQL, in an environment of its own: changes from Debezium's JSON, the view's changes into CSV files.

Files of Debezium's messages are tables to Flink, its SQL computes the view of them with parallelism 2
and mini-batches, and ``TO_CHANGELOG`` leaves the view's own changes in files.

Of what Flink's package from PyPI can read and write, this took the least processor time over a million operations:
less than CSV through ``FROM_CHANGELOG``, and less than the view's changes as Debezium's JSON. All changes of a key are
in one of two files, so that two readers keep them in order. A mini-batch is 10,000 rows in each of the two tasks, or
a second. State is on the heap, which is the fastest there is, and checkpoints are off. A table to look the view up in
would be another system (JDBC, a lake), for which the package has no connector.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment

from bench.others.child import Take, Taken
from bench.others.views import RESULTS, columns, query, shape, tables

SETTINGS = {
    "parallelism.default": "2",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "1 s",
    "table.exec.mini-batch.size": "10000",
    "table.optimizer.agg-phase-strategy": "TWO_PHASE",
    "taskmanager.memory.network.max": "128mb",
}


@contextmanager
def system() -> Iterator[Take]:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in SETTINGS.items():
        environment.get_config().set(name, value)

    def take(view: str, stream: Path, out: Path) -> Taken:
        for name in tables(view):
            environment.execute_sql(f"DROP TEMPORARY TABLE IF EXISTS {name}")
            environment.execute_sql(
                f"CREATE TEMPORARY TABLE {name} ({columns(name)}) WITH "
                f"('connector' = 'filesystem', 'path' = '{stream / 'changes' / name}', 'format' = 'debezium-json')"
            )
        environment.execute_sql("DROP TEMPORARY VIEW IF EXISTS v")
        environment.execute_sql("DROP TEMPORARY TABLE IF EXISTS kept")
        environment.execute_sql(f"CREATE TEMPORARY VIEW v AS {_wide(query(view))}")
        kept = ", ".join(f"{name} {type_}" for name, type_ in RESULTS[shape(view)].items())
        environment.execute_sql(
            f"CREATE TEMPORARY TABLE kept (op STRING, {kept}) WITH "
            f"('connector' = 'filesystem', 'path' = '{out / 'changes'}', 'format' = 'csv')"
        )
        started = time.perf_counter()
        environment.execute_sql("INSERT INTO kept SELECT * FROM TO_CHANGELOG(input => TABLE v)").wait()
        return Taken(time.perf_counter() - started)

    yield take


def _wide(text: str) -> str:
    """Flink's sum of INT is an INT, which the others' is not."""
    return text.replace("sum(c2)", "sum(CAST(c2 AS BIGINT))")
