"""Views verified on Spark and rebuilt by a pipeline, while another process writes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import everview
from everview.check.on_spark import verify_on
from everview.check.report import Verdict
from everview.client.verifying import KeptViews
from everview.errors import UnknownObjectError
from everview.plan.maintenance import Role
from tests.check.damage import Damage, damage, damage_by, held, plan_of, states_of
from tests.check.shop import open_shop
from tests.client.kinds import write
from tests.oracle.schemas import History
from tests.zones.live import Live
from tests.zones.writer import do, writing


def test_the_same_is_found_on_spark_as_in_one_process(db: everview.Database, spark: SparkSession) -> None:
    """Tables are read in parts of a few rows, from snapshots that have gone on."""
    open_shop(db)
    earlier = held(db)
    write(db, random.Random(8), 60)
    db.flush()
    views = {name for name, (state, _) in states_of(plan_of(db)[1]).items() if state.role is Role.VIEW}
    damage(db, earlier, views)
    (broken,) = {plan_of(db)[1].plan.step(plan_of(db)[1].plan.view("picked").step).states[0].fingerprint}
    damage_by(db, {broken: Damage(changed={next(iter(held(db)[broken])): b"\x01"})})
    write(db, random.Random(9), 30)
    here = db.verify()
    there = verify_on(spark, str(db.store.directory), KeptViews(db._context), rows=5)  # type: ignore[attr-defined]
    assert {view.name: view for view in there.views} == {view.name: view for view in here.views}
    assert there.view("picked").verdict is Verdict.WRONG and "cannot be read" in there.view("picked").reason
    with pytest.raises(UnknownObjectError, match="no view nothing"):
        db.verify("nothing", spark=spark)


def test_a_pipeline_rebuilds_while_another_process_writes(tmp_path: Path, spark: SparkSession) -> None:
    """Views of random kinds on Spark: wrong ones are found and healed, and the others never stop."""
    live = Live(tmp_path / "store", seed=4, views=8)
    db = live.db
    db.flush()
    earlier = held(db)
    history = History(random.Random(1), live.tables)
    for _ in range(20):
        for one in history.some():
            do(db, one)
    db.flush()
    shown = {name for name, (state, _) in states_of(plan_of(db)[1]).items() if state.role is Role.VIEW}
    damage(db, earlier, shown)
    with db.maintain(spark) as running:
        with writing(live.path, seed=4):
            wrong = db.verify().to_rebuild
            assert len(wrong) >= 5
            epoch = db.store.views.committed("main").epoch
            db.rebuild(*wrong, timeout=240)
            report = db.verify(spark=spark)
            assert report.right, report
            assert all(view.epoch > epoch for view in report.views)
        running.drain(240)
        assert db.verify(state=True).right
    live.close()
