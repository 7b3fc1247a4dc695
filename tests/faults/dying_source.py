"""The source of the log, in a process that may die.

Spark loads this module in several processes, most of which only ask for the schema, so
crash points are loaded where a reader is made.
"""

from __future__ import annotations

from pyspark.sql.types import StructType

from everview.zones.source import LogReader, LogSource


class DyingSource(LogSource):
    """The source, whose process may die."""

    def streamReader(self, schema: StructType) -> LogReader:
        from tests.faults.points import install

        install("source")
        return super().streamReader(schema)
