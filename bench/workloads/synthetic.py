"""The synthetic workload of the papers' evaluations: operations on tables bt1 and bt2.

A stream draws keys, puts rows there and deletes others, so that how many row keys, aggregation
keys and join keys there are, and how unevenly they are hit, are numbers one can choose.

What the papers vary (004 section 6, 003 section 5.1), and what it is called here:

| papers | here |
|---|---|
| row keys 1k, 10k, 100k | ``keys`` |
| aggregation ratio such as 10k:1k | ``keys`` to ``groups``: the column c1 has so many values |
| join keys 1k, 10k, 100k | ``groups``, the same in both tables |
| selectivity 20, 50, 80 % | a condition on c2, which is spread evenly from 0 to before ``values`` |
| insert, update, delete | a put is an update where the key is there, else an insert; ``deletes`` is a share |
| uniform and Zipf | ``skew``: :data:`UNIFORM`, :class:`Zipf` |

The papers do not say how many operations are deletes; it is 15 % here. A batch is its puts and then its
deletes, of keys that are there. All of it follows from the seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.change.schema import Schema

BATCH = 100_000
DELETES = 0.15
VALUES = 1000
RIGHT = "bt2"
"""The table on the right of joins; all others are like bt1."""

BT1 = Schema.of({"k": "BIGINT", "c1": "INTEGER", "c2": "INTEGER", "c3": "DOUBLE"}, key=["k"])
BT2 = Schema.of({"k": "BIGINT", "c1": "INTEGER", "c4": "INTEGER"}, key=["k"])

Keys = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float64]


class Skew(Protocol):
    """How unevenly keys are hit."""

    def weights(self, keys: int) -> Weights | None:
        """Of the keys from the most to the least wanted; None where all are alike."""


@dataclass(frozen=True)
class Uniform:
    """All keys alike."""

    def weights(self, keys: int) -> Weights | None:
        return None


@dataclass(frozen=True)
class Zipf:
    """The key of rank r is hit in proportion to 1 / r ** exponent."""

    exponent: float = 1.0

    def weights(self, keys: int) -> Weights | None:
        return np.arange(1, keys + 1, dtype=np.float64) ** -self.exponent


UNIFORM = Uniform()


@dataclass(frozen=True)
class Stream:
    """Operations on one table: batches of rows put and keys deleted."""

    table: str
    keys: int
    groups: int
    seed: int
    deletes: float = DELETES
    skew: Skew = UNIFORM
    values: int = VALUES

    @property
    def schema(self) -> Schema:
        return BT2 if self.table == RIGHT else BT1

    def batches(self, operations: int | None = None, size: int = BATCH) -> Iterator[tuple[pa.Table, pa.Table]]:
        """So many operations, in batches of that size; without a number there is no end."""
        rng = np.random.default_rng(self.seed)
        there = np.zeros(self.keys, bool)
        done = 0
        while operations is None or done < operations:
            gone = min(int(size * self.deletes), int(there.sum()))
            ids = self.drawn(rng, size - gone)
            dead = self._chosen(rng, there, gone)
            there[ids] = True
            there[dead] = False
            done += size
            yield self.rows(rng, ids), pa.table({"k": pa.array(dead)})

    def loaded(self, size: int = BATCH) -> Iterator[pa.Table]:
        """Every key once, in order: inserts alone."""
        rng = np.random.default_rng(self.seed)
        for low in range(0, self.keys, size):
            yield self.rows(rng, np.arange(low, min(low + size, self.keys)))

    def rows(self, rng: np.random.Generator, ids: Keys) -> pa.Table:
        """Rows with these keys."""
        count = len(ids)
        columns = {
            "k": pa.array(ids.astype(np.int64)),
            "c1": pa.array(rng.integers(0, self.groups, count).astype(np.int32)),
        }
        if self.table != RIGHT:
            columns["c2"] = pa.array(rng.integers(0, self.values, count).astype(np.int32))
            columns["c3"] = pa.array(
                np.round(rng.normal(100, 50, count) * 64) / 64
            )  # sums of these are exact in any order
        else:
            columns["c4"] = pa.array(rng.integers(0, self.values, count).astype(np.int32))
        return pa.table(columns)

    def drawn(self, rng: np.random.Generator, count: int) -> Keys:
        """Keys of operations, as unevenly as is said."""
        if self._ranked is None:
            return rng.integers(0, self.keys, count)
        _, places, upto = self._ranked
        return places[np.searchsorted(upto, rng.random(count), side="right")]

    def _chosen(self, rng: np.random.Generator, there: npt.NDArray[np.bool_], count: int) -> Keys:
        """So many different keys among those that are there, as unevenly as is said."""
        if not count:
            return np.empty(0, np.int64)
        known = np.flatnonzero(there)
        if self._ranked is None:
            return rng.choice(known, count, replace=False)
        weights, places, _ = self._ranked
        heavy = np.empty(self.keys)
        heavy[places] = weights
        late = rng.exponential(size=len(known)) / heavy[known]  # the first of many clocks, each as fast as its weight
        return known[np.argpartition(late, count - 1)[:count]]

    @cached_property
    def _ranked(self) -> tuple[Weights, Keys, Weights] | None:
        """Weights by rank, the keys of these ranks (hot ones are no neighbours), and the weights added up."""
        weights = self.skew.weights(self.keys)
        if weights is None:
            return None
        places = np.random.default_rng([self.seed, 1]).permutation(self.keys).astype(np.int64)
        upto = np.cumsum(weights / weights.sum())
        upto[-1] = 1.0
        return weights, places, upto


class Table(Protocol):
    """What rows are written to."""

    def put_many(self, rows: pa.Table) -> int: ...

    def delete_many(self, keys: pa.Table) -> int: ...


class Tables(Protocol):
    """What tables are in: a database, for example."""

    def table(self, name: str) -> Table: ...


class Writer:
    """Streams on their way into tables, in turns, for as long as one likes."""

    def __init__(self, tables: Tables, streams: Sequence[Stream], size: int = BATCH) -> None:
        self._tables = tables
        self._streams = streams
        self._size = size // len(streams)
        self._batches = [stream.batches(None, self._size) for stream in streams]

    def write(self, operations: int) -> int:
        """Write so many operations, in whole rounds of batches; how many they were."""
        done = 0
        while done < operations:
            for stream, batches in zip(self._streams, self._batches, strict=True):
                rows, dead = next(batches)
                table = self._tables.table(stream.table)
                table.put_many(rows)
                if dead.num_rows:
                    table.delete_many(dead)
                done += rows.num_rows + dead.num_rows
        return done
