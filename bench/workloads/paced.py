"""A writer that writes so many operations a second, whatever the views do, as a process of its own.

It notes when it wrote each batch and where the logs ended then, so that afterwards the commits of
epochs show how long every batch took to be seen.

    writer = PacedWriter(10_000, path, Stream("bt1", keys, groups, seed))
    …
    writer.finish().waits(db.store.views.history("main"))    # seconds, a number for each batch

Operations come in batches, a hundred times a second; at a hundred operations a second and less they are single
puts. A writer that falls behind its pace goes on as fast as it can: how much it wrote is in what it notes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import select
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import everview
from bench.workloads.synthetic import Stream
from everview.change.frontier import Frontier
from everview.cli.demo.children import Child
from everview.client.table_handles import TableHandle
from everview.errors import DeadlineError
from everview.store.contract import Commit

BEAT = 0.01
"""Seconds between two batches."""
PREPARED = 32
"""Batches that are made beforehand."""
AT_MOST = 500_000
"""Rows that are made beforehand, at most."""


def prepared(stream: Stream, size: int, count: int) -> list[pa.Table]:
    """Batches to be written in turns, for ever: so many of this size, and then as many with the same keys and other
    values, so that a batch that is written again changes its rows again."""
    rng = np.random.default_rng(stream.seed)
    keys = [stream.drawn(rng, size) for _ in range(count)]
    return [stream.rows(rng, ids) for ids in (*keys, *keys)]


@dataclass(frozen=True)
class Written:
    """What a writer wrote: when each batch was begun, its operations, and where the logs ended when it was
    acknowledged."""

    times: npt.NDArray[np.float64]
    operations: npt.NDArray[np.int64]
    frontiers: tuple[Frontier, ...]

    @property
    def rate(self) -> float:
        """Operations per second."""
        spent = float(self.times[-1] - self.times[0])
        return float(self.operations[:-1].sum()) / spent if spent > 0 else float(self.operations.sum())

    def after(self, moment: float) -> Written:
        """What was written from a moment on."""
        first = int(np.searchsorted(self.times, moment))
        return Written(self.times[first:], self.operations[first:], self.frontiers[first:])

    def waits(self, commits: Sequence[Commit]) -> npt.NDArray[np.float64]:
        """Seconds from the beginning of each batch to the first commit that shows it. Commits in any
        order; batches that none of them shows are left out."""
        ordered = sorted(commits, key=lambda commit: commit.epoch)
        found = []
        place = 0
        for begun, frontier in zip(self.times, self.frontiers, strict=True):
            while place < len(ordered) and not frontier <= ordered[place].frontier:
                place += 1
            if place == len(ordered):
                break
            found.append(ordered[place].time - begun)
        return np.array(found)

    def to_json(self) -> str:
        plain = {"times": self.times.tolist(), "operations": self.operations.tolist()}
        return json.dumps({**plain, "frontiers": [str(frontier) for frontier in self.frontiers]})

    @staticmethod
    def from_json(text: str) -> Written:
        plain = json.loads(text)
        frontiers = tuple(Frontier.parse(one) for one in plain["frontiers"])
        return Written(np.array(plain["times"], np.float64), np.array(plain["operations"], np.int64), frontiers)


class PacedWriter:
    """A writer in a process of its own: it begins when it is made, and :meth:`finish` ends it."""

    def __init__(self, rate: float, path: Path, stream: Stream) -> None:
        self._notes = path.with_name(f"{path.name}-written-{time.monotonic_ns()}.json")
        shape = ["--keys", str(stream.keys), "--groups", str(stream.groups), "--seed", str(stream.seed)]
        self._child = Child(
            "writer",
            self._notes.with_suffix(".log"),
            *("bench.workloads.paced", str(path), stream.table, str(self._notes), "--rate", str(rate), *shape),
        )

    def begun(self, patience: float = 60.0) -> None:
        """Return when it has written its first batch."""
        ends = time.monotonic() + patience
        while not self._notes.exists():
            self._child.check()
            if time.monotonic() > ends:
                raise DeadlineError(f"the writer has not begun after {patience:g} s")
            time.sleep(BEAT)

    def check(self) -> None:
        """Raise where it has ended by itself."""
        self._child.check()

    def finish(self) -> Written:
        """End it; what it wrote."""
        self._child.finish()
        return Written.from_json(self._notes.read_text())

    def kill(self) -> None:
        self._child.kill()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.workloads.paced", description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("table")
    parser.add_argument("notes", type=Path)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--keys", type=int, required=True)
    parser.add_argument("--groups", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    asked = parser.parse_args()
    stream = Stream(asked.table, asked.keys, asked.groups, asked.seed, deletes=0)
    with everview.open(asked.path, create=False) as db:
        written = write(db, stream, asked.rate, asked.notes.touch)
        asked.notes.write_text(written.to_json())


def write(db: everview.Database, stream: Stream, rate: float, begun: Callable[[], object]) -> Written:
    """Write until standard input is closed; ``begun`` is called after the first batch."""
    size = max(1, round(rate * BEAT))
    batches = prepared(stream, size, min(PREPARED, max(1, AT_MOST // size)))
    table = db.table(stream.table)
    times: list[float] = []
    frontiers: list[Frontier] = []
    began = time.perf_counter()
    for number, rows in enumerate(itertools.cycle(batches)):
        due = began + number * size / rate - time.perf_counter()
        if _over(max(0.0, due)):
            break
        times.append(time.time())
        _put(table, rows)
        frontiers.append(db.store.log.latest())
        if not number:
            begun()
    return Written(np.array(times), np.full(len(times), size, np.int64), tuple(frontiers))


def _put(table: TableHandle, rows: pa.Table) -> None:
    if rows.num_rows == 1:
        table.put(rows.to_pylist()[0])
    else:
        table.put_many(rows)


def _over(seconds: float) -> bool:
    """Whether standard input is closed within so many seconds."""
    return bool(select.select([sys.stdin], [], [], seconds)[0])


if __name__ == "__main__":
    main()
