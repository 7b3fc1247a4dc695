"""Sums by group on one core: ``python -m bench.sums``. A million rows of ten thousand groups, half
of them taken away; every sum is checked in the same run."""

from __future__ import annotations

import argparse
import math
import sys
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.measure import best_of
from everview.change.types import DOUBLE, Type, parse_type
from everview.operators.accumulators import accumulator
from everview.operators.results import result

BARS = {"BIGINT": 20.0, "DECIMAL(15,2)": 20.0, "DOUBLE": 5.0}
"""Million rows a second that a partial must reach."""


def cases(rows: int) -> list[tuple[str, Type, pa.Array, npt.NDArray[np.float64] | npt.NDArray[np.int64]]]:
    """What the rows are like, their type, the column, and the same numbers unscaled."""
    random = np.random.default_rng(1)
    small, full = random.integers(-(10**9), 10**9, rows), random.integers(-(1 << 63), 1 << 63, rows)
    units = pa.array(small).cast(pa.decimal128(19, 0)).view(pa.decimal128(19, 2))
    cents = np.round(random.random(rows) * 1000, 2)
    mixed = cents * 10.0 ** random.integers(-3, 4, rows)
    widest = (random.random(rows) - 0.5) * 10.0 ** random.integers(-300, 300, rows)
    return [
        ("BIGINT", parse_type("BIGINT"), pa.array(small), small),
        ("BIGINT, all of 64 bits", parse_type("BIGINT"), pa.array(full), full),
        ("DECIMAL(15,2)", parse_type("DECIMAL(15,2)"), units.cast(pa.decimal128(15, 2)), small),
        ("DECIMAL(38,2)", parse_type("DECIMAL(38,2)"), units.cast(pa.decimal128(38, 2)), small),
        ("DOUBLE", DOUBLE, pa.array(cents), cents),
        ("DOUBLE, seven orders", DOUBLE, pa.array(mixed), mixed),
        ("DOUBLE, all orders", DOUBLE, pa.array(widest), widest),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.sums", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--groups", type=int, default=10_000)
    asked = parser.parse_args()
    random = np.random.default_rng(2)
    groups = random.integers(0, asked.groups, asked.rows)
    weights = np.where(random.random(asked.rows) < 0.5, 1, -1)
    print(f"{asked.rows:,} rows, {asked.groups:,} groups")
    print(f"{'':24}{'partial':>12}{'combine':>12}{'add':>12}{'sum':>12}{'avg':>12}{'bytes':>8}")
    fast = [measured(*case, weights, groups, asked.groups) for case in cases(asked.rows)]
    return 0 if all(fast) else 1


def measured(
    name: str, kind: Type, column: pa.Array, numbers: npt.NDArray, weights: npt.NDArray, groups: npt.NDArray, count: int
) -> bool:
    """Print one line; whether it reaches its bar."""
    kept = accumulator("sum", kind)
    state = kept.partial(column, weights, groups, count)
    ones = pa.array(np.ones(count, np.int64))
    times = best_of(
        5,
        lambda: kept.partial(column, weights, groups, count),
        lambda: kept.combine(state, np.arange(count), count),
        lambda: kept.add(state, state),
        lambda: result("sum", kind, state, ones),
        lambda: result("avg", kind, state, ones),
    )
    check(kind, state, numbers * weights, groups, ones)
    speed = len(column) / times[0] / 1e6
    rest = "".join(f"{time * 1e3:>9.2f} ms" for time in times[1:])
    print(f"{name:24}{speed:>8.0f} M/s{rest}{state.nbytes / count:>8.0f}")
    return speed >= BARS.get(name, 0)


def check(kind: Type, state: pa.Array, numbers: npt.NDArray, groups: npt.NDArray, counts: pa.Array) -> None:
    """Some of the sums, recomputed by Python."""
    found = result("sum", kind, state, counts).values
    for group in range(0, len(counts), max(len(counts) // 100, 1)):
        there = numbers[groups == group].tolist()
        if kind == DOUBLE:
            assert found[group].as_py() == math.fsum(there) == float(sum(map(Fraction, there)))
        else:
            storage = found.storage if isinstance(found, pa.ExtensionArray) else found
            begin = 16 * (storage.offset + group)
            unscaled = storage.buffers()[1].to_pybytes()[begin : begin + 16]
            assert int.from_bytes(unscaled, "little", signed=True) == sum(there)


if __name__ == "__main__":
    sys.exit(main())
