"""Groups and partitions of thousands of rows: bags of many chunks, hot keys, and large epochs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from everview.change.schema import Schema
from tests.oracle.maintained import Maintained

TABLES = {
    "t": Schema.of({"id": "INTEGER", "g": "INTEGER", "x": "DOUBLE", "s": "VARCHAR"}, key=["id"]),
    "u": Schema.of({"id": "INTEGER", "g": "INTEGER", "y": "INTEGER"}, key=["id"]),
}
VIEWS = {
    "sums": "SELECT g, count(*) AS n, sum(x) AS s, avg(x) AS a, min(x) AS least, max(x) AS most FROM t GROUP BY g",
    "kinds": "SELECT g, count(DISTINCT x) AS n, min(s) AS first, max(s) AS last FROM t GROUP BY g",
    "whole": "SELECT count(*) AS n, sum(x) AS s, min(id) AS least, max(id) AS most FROM t",
    "pairs": "SELECT t.id, u.id AS other, t.x * u.y AS product FROM t JOIN u ON t.g = u.g AND t.x < u.y",
    "lonely": "SELECT u.id, t.id AS other FROM u LEFT JOIN t ON u.y = t.id",
    "least": "SELECT id, g, x FROM t ORDER BY x DESC, id LIMIT 20 OFFSET 500",
    "first": "SELECT g, id, x FROM t QUALIFY row_number() OVER (PARTITION BY g ORDER BY x, id) <= 3",
    "median": "SELECT g, median(x) AS m FROM t GROUP BY g",
    "running": "SELECT id, sum(x) OVER (PARTITION BY g ORDER BY id ROWS 3 PRECEDING) AS w FROM t",
    "different": "SELECT DISTINCT g, s FROM t",
    "rest": "SELECT id FROM t EXCEPT SELECT y FROM u",
}


class Rows:
    """Draws rows: most of them in one group."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def t(self, count: int) -> pa.Table:
        ids = self.random.choice(4000, count, replace=False)
        groups = np.where(self.random.random(count) < 0.7, 1, self.random.integers(0, 40, count))
        return pa.table(
            {
                "id": pa.array(ids, pa.int32()),
                "g": pa.array(groups, pa.int32(), mask=self.random.random(count) < 0.02),
                "x": pa.array(self.random.integers(-800, 800, count) / 8),
                "s": [f"text {number}" for number in self.random.integers(0, 900, count)],
            }
        )

    def u(self, count: int) -> pa.Table:
        ids, groups = self.random.choice(60, count, replace=False), self.random.integers(0, 8, count)
        return pa.table(
            {
                "id": pa.array(ids, pa.int32()),
                "g": pa.array(groups, pa.int32()),
                "y": pa.array(self.random.integers(-90, 90, count), pa.int32()),
            }
        )


@pytest.mark.parametrize("before_images", [True, False], ids=["with old rows", "without"])
def test_large_groups_equal_recomputation(tmp_path: Path, before_images: bool) -> None:
    rows = Rows(1)
    maintained = Maintained(tmp_path / "store", TABLES, VIEWS, before_images=before_images)
    try:
        maintained.table("t").put_many(rows.t(3000))
        maintained.table("u").put_many(rows.u(20))
        maintained.epoch()
        maintained.check()
        for count in (1, 30, 400, 2500):
            maintained.table("t").put_many(rows.t(count))
            maintained.table("t").delete_many(rows.t(count).select(["id"]))
            maintained.table("u").put_many(rows.u(3))
            maintained.table("u").delete_many(rows.u(2).select(["id"]))
            maintained.epoch()
            maintained.check()
        maintained.table("t").delete_many(pa.table({"id": pa.array(range(4000), pa.int32())}))
        maintained.epoch()
        maintained.check()
    finally:
        maintained.close()
