"""Tasks to which something happens, for tests on any master.

A task here has a store of its own that counts writes, so that it can fail or wait before,
between and after them; what happened is recorded in files, since tasks run in other processes.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from everview.errors import DamagedEntryError
from everview.store.contract import Begun, Store
from everview.zones.pipeline import Pipeline
from everview.zones.shares import Share
from everview.zones.shuffle_blocks import Block
from everview.zones.spark_executor import SparkExecutor
from everview.zones.stage_task import StageTask

WRITES = ("write", "write_bags", "add_to_bags")
MOMENTS = ("before", "between", "after", "done")
ATTEMPTS = 4
"""Of which the last is spared, or Spark would despair of the task."""
BOUND = 20.0
"""Seconds that a task waits for its copy. Where none came, the test says so."""


def mark(marks: str, name: str) -> None:
    """Record for the test that something happened."""
    Path(marks, name).touch()


class Counting:
    """A store whose tasks are watched: ``written`` is called before every write, with its number."""

    def __init__(self, store: Any, written: Callable[[int], None]) -> None:
        self._store = store
        self.views = _Views(store.views, written)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class _Views:
    def __init__(self, views: Any, written: Callable[[int], None]) -> None:
        self._views = views
        self._written = written
        self._count = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._views, name)
        if name not in WRITES:
            return found

        def write(*arguments: Any, **named: Any) -> Any:
            self._written(self._count)
            self._count += 1
            return found(*arguments, **named)

        return write


@dataclass(frozen=True)
class Troubled(StageTask):
    """A task that is watched."""

    marks: str = ""
    seed: int = 0

    def first(self, store: Store, number: int, share: Share) -> Iterator[Block]:
        return super().first(self._watched(store), number, share)

    def later(self, store: Store, number: int, blocks: Any) -> Iterator[Block]:
        return super().later(self._watched(store), number, blocks)

    def _watched(self, store: Store) -> Any:
        return Counting(store, self.written)

    def written(self, count: int) -> None:
        """Called before a write."""

    @property
    def name(self) -> str:
        return f"{self.epoch}-{self.stage}-{_context().partitionId()}"


def _context() -> TaskContext:
    found = TaskContext.get()
    assert found is not None
    return found


@dataclass(frozen=True)
class Recording(Troubled):
    """A task that records each of its writes."""

    def written(self, count: int) -> None:
        mark(self.marks, f"writes-{self.name}-{count}")


class Bad(RuntimeError):
    """What happens to tasks."""


@dataclass(frozen=True)
class Failing(Troubled):
    """A task that fails in half of its attempts: before its writes, between them, after them, or when all
    of its output has been read."""

    def _moment(self) -> tuple[str, int]:
        attempt = _context().attemptNumber()
        rng = random.Random(f"{self.seed}-{self.name}-{attempt}")
        if attempt + 1 >= ATTEMPTS or rng.random() < 0.5:
            return "never", 0
        return rng.choice(MOMENTS), rng.choice((1, 1, 2))

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        moment = self._moment()[0]
        if moment == "before":
            self._fail(moment)
        made = list(super().__call__(batches))
        if moment == "after":
            self._fail(moment)
        yield from made
        if moment == "done":
            self._fail(moment)

    def written(self, count: int) -> None:
        if self._moment() == ("between", count):
            self._fail("between")

    def _fail(self, moment: str) -> None:
        mark(self.marks, f"{moment}-{self.name}-{_context().attemptNumber()}")
        raise Bad(f"fails {moment} its writes")


def failed(marks: Path) -> set[str]:
    """At which moments tasks have failed."""
    return {path.name.partition("-")[0] for path in marks.iterdir()}


@dataclass(frozen=True)
class Slow(Troubled):
    """A task whose first attempt waits, with one write done, until a copy of it has written too; then both
    write at the same time."""

    def written(self, count: int) -> None:
        if count != 1:
            return
        attempt = _context().attemptNumber()
        mark(self.marks, f"wrote-{self.name}-{attempt}")
        if attempt == 0 and self.epoch % 2 == 0:
            ends = time.monotonic() + BOUND
            while time.monotonic() < ends:
                if any(Path(self.marks, f"wrote-{self.name}-{copy}").exists() for copy in range(1, ATTEMPTS)):
                    mark(self.marks, f"both-{self.name}")
                    return
                time.sleep(0.005)
            mark(self.marks, f"alone-{self.name}")


@dataclass(frozen=True)
class Raising(Troubled):
    """A task that finds something wrong."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        list(batches)
        yield from ()
        raise DamagedEntryError("view totals: group 7 does not add up", hint="rebuild the view")


def pipeline_of(task: type[Troubled] | None, marks: Path | str = "", seed: int = 0) -> type[Pipeline]:
    """A pipeline whose tasks are of a kind."""
    if task is None:
        return Pipeline
    kind = task

    class Troubling(SparkExecutor):
        def stage_task(self, begun: Begun, stage: int, servers: int, shares: tuple[Share, ...]) -> StageTask:
            return kind(**vars(super().stage_task(begun, stage, servers, shares)), marks=str(marks), seed=seed)

    class Mishaps(Pipeline):
        EXECUTOR = Troubling

    return Mishaps
