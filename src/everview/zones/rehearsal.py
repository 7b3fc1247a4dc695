"""An epoch whose result no one reads, so that the first one that a user waits for is not the first one.

A standby maintains a store of one row in a directory of its own, once, which starts all the
processes and loads all the classes that taking over would otherwise wait for.
"""

from __future__ import annotations

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


def rehearse(spark: SparkSession) -> None:
    """Do what a pipeline does, from its start to a commit, where it leaves nothing behind."""
    with scratch() as folder:
        place = folder / "store"
        with EmbeddedStore.open(place, create=True) as store:
            catalog = Catalog(store.metadata, store.views)
            table = catalog.create_table("rows", Schema.of({"id": "BIGINT", "number": "BIGINT"}, key=["id"]))
            (statement,) = parse(_VIEW)
            assert isinstance(statement, CreateMaterializedView)
            catalog.create_view(define_view(statement, catalog.definitions())[0])
            with Pipeline(place, spark=spark) as pipeline:
                store.table(table).put({"id": 1, "number": 1})
                pipeline.drain()
