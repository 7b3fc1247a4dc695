"""Epochs whose result no one reads, so that the first one that a user waits for is not the first one.

Before large epochs are handed over to a Spark that has just started, it maintains a store of one row in a directory of
its own, which starts all the processes and loads all the classes that the first epoch would otherwise wait for.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from pyspark.sql import SparkSession

from everview.catalog import Catalog
from everview.catalog.compiling import define_view
from everview.change.schema import Schema
from everview.scratch import scratch
from everview.sql.parse import parse
from everview.sql.statements import CreateMaterializedView
from everview.store.embedded import EmbeddedStore
from everview.zones.pipeline import Pipeline

_VIEW = "CREATE MATERIALIZED VIEW numbers AS SELECT number, count(*) AS n FROM rows GROUP BY number"


EPOCHS = 3
"""The first one starts everything; the others are quick, and have Java compile what it has interpreted so far."""


def rehearse(spark: SparkSession, is_over: Callable[[], bool] = bool) -> float:
    """Do what a pipeline does on Spark, from its start to a commit, where it leaves nothing behind; returns how long
    the last epoch has taken. It ends early where it ``is_over``."""
    took = 0.0
    with scratch() as folder:
        place = folder / "store"
        with EmbeddedStore.open(place, create=True) as store:
            catalog = Catalog(store.metadata, store.views)
            table = catalog.create_table("rows", Schema.of({"id": "BIGINT", "number": "BIGINT"}, key=["id"]))
            (statement,) = parse(_VIEW)
            assert isinstance(statement, CreateMaterializedView)
            catalog.create_view(define_view(statement, catalog.definitions())[0])
            with Pipeline(place, spark=spark, in_driver=0) as pipeline:
                for number in range(EPOCHS):
                    if is_over():
                        break
                    started = time.monotonic()
                    store.table(table).put({"id": number, "number": 1})
                    pipeline.drain()
                    took = time.monotonic() - started
    return took
