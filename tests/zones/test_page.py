"""The first example of docs/zones.md, on Spark."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark.sql import SparkSession

import everview
from everview.zones.pipeline import Pipeline
from tests.test_pages import BLOCK, page


def test_the_first_example_runs(spark: SparkSession, tmp_path: Path) -> None:
    code = next(code for kind, code in BLOCK.findall(page("zones.md")) if kind == "python")
    assert re.search(r"with Pipeline\(.*\) as pipeline:", code)
    with everview.open(tmp_path / "store") as db:
        db.sql("CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INTEGER, amount DECIMAL(10,2))")
        names = {"db": db, "path": tmp_path / "store", "Pipeline": Pipeline, "new_session": lambda: spark}
        exec(compile(code, "zones.md", "exec"), names)
        assert (db.view("totals").get(7) or {})["total"] == 10
