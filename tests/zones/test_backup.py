"""Backups of a store that a pipeline on Spark maintains, and pipelines over the copies."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

import everview
from everview.client.database import Database
from everview.zones.pipeline import Pipeline
from tests.zones.shop import assert_all_is_right, trade

PATIENCE = 120.0


def test_backups_while_a_pipeline_runs(shop: Database, spark: SparkSession, tmp_path: Path) -> None:
    """Each copy is right as it is, and goes on from its own epoch: with a checkpoint that has seen later ones, on Spark
    and without it."""
    checkpoint = tmp_path / "checkpoint"
    copies = [tmp_path / f"copy {number}" for number in range(4)]
    with Pipeline(tmp_path / "store", spark=spark, in_driver=0, operations=50, checkpoint=checkpoint) as pipeline:
        for number, copy in enumerate(copies):
            trade(shop, 20, number)
            shop.backup(copy)
        pipeline.drain(timeout=PATIENCE)
        assert_all_is_right(shop)
    for number, copy in enumerate(copies):
        with everview.open(copy, create=False) as db:
            assert db.store.inspect().problems == []  # type: ignore[attr-defined]
            assert db.verify(state=True).right
            if number % 2:
                db.flush()
            else:
                Pipeline(copy, spark=spark, in_driver=0, checkpoint=checkpoint).catch_up()
            assert_all_is_right(db)
            trade(db, 5, 100 + number)
            db.flush()
            assert db.verify(state=True).right
