"""What runs beside a measurement: a core that is busy, a process that maintains the views.

Cores of a machine slow each other down whatever they do, so the report shows what maintenance costs
a client beside what a busy core costs that has nothing to do with the store.

Maintenance is the service itself, ``everview run``, as a process of its own with all that it starts.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import everview
from everview.catalog import MAIN
from everview.change.frontier import Frontier
from everview.cli.demo.children import Child
from everview.errors import DeadlineError

POLL = 0.002
PATIENCE = 180.0
STARTED = "started"
SPARK = "spark"
"""Reported once Spark has started, and takes the large epochs."""
JAVA = "JAVA_TOOL_OPTIONS"


def two_cores() -> tuple[int, int]:
    """The first and the last core that this process may use; the same one where there is only one."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[0], cores[-1]


@contextmanager
def on_core(core: int | None) -> Iterator[None]:
    """While this thread, and whatever it starts meanwhile, keeps to one core (None: as before)."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, before if core is None else {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def spinning(core: int) -> Iterator[int]:
    """While a core computes something that has nothing to do with the store, in a process of this number."""
    with on_core(core):
        one = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    with one:
        try:
            yield one.pid
        finally:
            one.kill()


def service(
    path: Path,
    log: Path,
    *,
    core: int | None = None,
    local: bool = False,
    master: str | None = None,
    servers: int = 2,
    java: str = "",
    in_driver: int | None = None,
) -> Child:
    """``everview run`` as a process of its own: on Spark, or ``local`` without it. It waits its turn. ``java`` are
    options of the Java machine, ``in_driver`` the most operations of an epoch that it does without Spark; None: it
    chooses."""
    asked = ["--local"] if local else ["--servers", str(servers)]
    asked += [] if master is None else ["--master", master]
    asked += [] if in_driver is None else ["--in-driver", str(in_driver)]
    with on_core(core), _java(java):
        return Child("pipeline", log, "everview.cli", "run", str(path), "--json", "--wait", "forever", *asked)


@contextmanager
def _java(options: str) -> Iterator[None]:
    """While Java machines that are started have options."""
    before = os.environ.get(JAVA, "")
    os.environ[JAVA] = f"{before} {options}".strip()
    try:
        yield
    finally:
        os.environ[JAVA] = before
        if not before:
            del os.environ[JAVA]


@contextmanager
def maintained(
    db: everview.Database,
    path: Path,
    *,
    core: int | None = None,
    local: bool = False,
    master: str | None = None,
    servers: int = 2,
) -> Iterator[Child]:
    """While another process maintains the views, from when they show all that was written before, and Spark, if it
    uses that, has started."""
    log = path.with_name(f"{path.name}-{time.monotonic_ns()}.log")
    child = service(path, log, core=core, local=local, master=master, servers=servers)
    try:
        await_started(child, log)
        if not local:
            await_event(child, log, SPARK)
        await_shown(db, child=child)
        yield child
    except BaseException:
        child.kill()
        raise
    child.finish(signal.SIGTERM)


def await_started(child: Child, log: Path, patience: float = PATIENCE) -> None:
    """Return when a service reports that it maintains the store."""
    await_event(child, log, STARTED, patience)


def await_event(child: Child, log: Path, event: str, patience: float = PATIENCE) -> None:
    """Return when a service has reported an event."""
    ends = time.monotonic() + patience
    while not is_reported(log, event):
        child.check()
        if time.monotonic() > ends:
            raise DeadlineError(f"{child.name} has not reported {event!r} after {patience:g} s", hint=f"see {log}")
        time.sleep(POLL)


def is_reported(log: Path, event: str) -> bool:
    """Whether a service has reported an event so far."""
    return f'"event": "{event}"'.encode() in log.read_bytes()


def await_shown(
    db: everview.Database,
    frontier: Frontier | None = None,
    *,
    child: Child | None = None,
    patience: float = PATIENCE,
) -> None:
    """Return when the views show everything up to a frontier, by default all that has been written."""
    wanted = db.store.log.latest() if frontier is None else frontier
    ends = time.monotonic() + patience
    while not wanted <= db.store.views.committed(MAIN).frontier:
        if child is not None:
            child.check()
        if time.monotonic() > ends:
            reached = db.store.views.committed(MAIN).frontier
            raise DeadlineError(f"the views are at {reached}, not at {wanted}, after {patience:g} s")
        time.sleep(POLL)
