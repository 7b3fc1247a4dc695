"""Processes that are killed while a client writes: a store, the service that maintains it, and a reader.

Each is a process that knows nothing of the others. A kill comes in the middle of an epoch, and afterwards the commits
show second by second what readers saw.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from bench.beside import is_reported, service
from bench.processes import family
from bench.workloads.filled import filled
from everview.catalog import MAIN
from everview.cli.demo.children import Child
from everview.errors import EverviewError
from everview.store.contract import Commit

DAEMON = b"everview.zones.daemon"
LOOK = 0.01
"""Seconds between two reads."""
COLLECT = 5.0
"""Seconds after which commits are collected: a store keeps ten thousand, as many as small epochs are in minutes."""


@dataclass
class Struck:
    """Something was killed."""

    what: str
    at: float
    unfinished: bool
    """Whether an epoch was under way."""
    slowest: float = 0.0
    """Seconds of the slowest read from then on."""
    reads: int = 0


class Scene:
    """A store, its maintainers, and a reader."""

    def __init__(self, folder: Path, held: ExitStack, keys: int, seed: int, java: str) -> None:
        self.path = folder / "store"
        self.db, (self.stream,) = filled(self.path, "q2", keys, seed)
        held.enter_context(self.db)
        self._held = held
        self._java = java
        self._view = self.db.view("q2")
        self._logs = 0
        self._commits: dict[int, Commit] = {}
        self._collected = time.monotonic()
        self.struck: list[Struck] = []

    def service(self, *, in_driver: int | None = None) -> tuple[Child, Path]:
        """Another one that maintains the store, or waits for its turn. ``in_driver`` is the most operations of an epoch
        that it does in its own process; None: it chooses."""
        self._logs += 1
        log = self.path.with_name(f"service-{self._logs}.log")
        child = service(self.path, log, java=self._java, in_driver=in_driver)
        self._held.callback(child.kill)
        return child, log

    def begin(self, what: str) -> None:
        """From now on reads belong to something else."""
        self.struck.append(Struck(what, time.time(), self.db.store.views.begun(MAIN) is not None))

    def strike(self, what: str, kill: Callable[[], object]) -> None:
        """Kill in the middle of an epoch; where none begins within a second, between two."""
        ends = time.monotonic() + 1.0
        while self.db.store.views.begun(MAIN) is None and time.monotonic() < ends:
            time.sleep(0.0005)
        self.begin(what)
        kill()

    def watch(self, until: Callable[[], bool]) -> None:
        """Read now and then, as a client would."""
        while not until():
            begun = time.perf_counter()
            self._view.get(self.struck[-1].reads % self.stream.groups)
            self.struck[-1].slowest = max(self.struck[-1].slowest, time.perf_counter() - begun)
            self.struck[-1].reads += 1
            if time.monotonic() > self._collected + COLLECT:
                self.commits()
            time.sleep(LOOK)

    def watch_for(self, seconds: float) -> None:
        """For so long, and until two epochs more are committed: a busy machine may take longer."""
        ends, wanted = time.monotonic() + seconds, self.db.store.views.committed(MAIN).epoch + 2
        self.watch(lambda: time.monotonic() > ends and self.db.store.views.committed(MAIN).epoch >= wanted)

    def watch_to(self, moment: float) -> None:
        """Until a moment, as a time of :func:`time.monotonic`."""
        self.watch(lambda: time.monotonic() >= moment)

    def watch_until(self, event: str, child: Child, log: Path) -> None:
        """Until a service has reported an event."""

        def reported() -> bool:
            child.check()
            return is_reported(log, event)

        self.watch(reported)

    def commits(self) -> list[Commit]:
        """All commits since the store was made, the oldest first."""
        self._commits |= {commit.epoch: commit for commit in self.db.store.views.history(MAIN)}
        self._collected = time.monotonic()
        return [self._commits[epoch] for epoch in sorted(self._commits)]


def view_servers(driver: Child) -> list[int]:
    """The Python workers of a driver: forks of the daemon that Spark starts, which look as it does."""
    lines: dict[int, bytes] = {}
    parents: dict[int, int] = {}
    for process in family(driver.id):
        with suppress(OSError):
            lines[process] = Path(f"/proc/{process}/cmdline").read_bytes()
            parents[process] = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return [one for one, line in lines.items() if DAEMON in line and lines.get(parents[one]) == line]


def killed(processes: Sequence[int]) -> None:
    """Kill processes with a signal that none can catch."""
    if not processes:
        raise EverviewError("there is no view server to kill", hint="the pipeline has none before its first epoch")
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
