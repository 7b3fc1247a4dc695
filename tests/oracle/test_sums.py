"""Sums of any floats after any history: what math.fsum makes of the rows that are there."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from pathlib import Path

import pytest

from everview.change.schema import Schema
from tests.oracle.maintained import Maintained

TABLE = {"t": Schema.of({"id": "INTEGER", "g": "INTEGER", "x": "DOUBLE"}, key=["id"])}
VIEW = {"v": "SELECT g, count(x) AS n, sum(x) AS s, avg(x) AS a FROM t GROUP BY g", "w": "SELECT sum(x) AS s FROM t"}


def drawn(rng: random.Random) -> float | None:
    """Floats of all sizes, which cancel now and then; some that are not finite, and nulls."""
    chance = rng.random()
    if chance < 0.05:
        return rng.choice([math.inf, -math.inf, math.nan, None])
    if chance < 0.3:
        return rng.choice([1e300, -1e300, 1e-300, 0.1, -0.1, 1e16, -1e16, 5e-324, 0.0, -0.0])
    return rng.uniform(-1, 1) * 10.0 ** rng.randint(-18, 18)


def summed(values: list[float]) -> float | None:
    if not values:
        return None
    if any(map(math.isnan, values)) or {math.inf, -math.inf} <= set(values):
        return math.nan
    return math.fsum(values)


def same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return one == other or (math.isnan(one) and math.isnan(other))


@pytest.mark.parametrize("seed", range(4))
def test_sums_never_drift(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    maintained = Maintained(tmp_path / "store", TABLE, VIEW)
    rows: dict[int, tuple[int, float | None]] = {}
    for _ in range(12):
        for _ in range(rng.choice([1, 5, 40])):
            key = rng.randrange(60)
            if rng.random() < 0.3:
                rows.pop(key, None)
                maintained.table("t").delete(key)
            else:
                rows[key] = (rng.randrange(4), drawn(rng))
                maintained.table("t").put({"id": key, "g": rows[key][0], "x": rows[key][1]})
        maintained.epoch()
        groups: dict[int, list[float]] = defaultdict(list)
        for group, value in rows.values():
            groups[group] += [] if value is None else [value]
        found = {row["g"]: row for row in maintained.view("v").to_pylist()}
        assert found.keys() == groups.keys()
        for group, values in groups.items():
            total = summed(values)
            assert found[group]["n"] == len(values)
            assert same(found[group]["s"], total)
            assert same(found[group]["a"], None if total is None else total / len(values))
        assert same(maintained.view("w")["s"][0].as_py(), summed([v for values in groups.values() for v in values]))
    maintained.close()
