"""Crash points: named moments at which a process kills itself on request.

Calls of the product are wrapped where a process starts, and the process that comes to a
point for the k-th time after a token with the point's name was laid down takes the token and dies.

A token is a file, so it works across processes that others started; taking it is one rename, so it
kills once. The product knows nothing of this: Spark's workers come from a daemon that wraps before it
forks (:mod:`tests.faults.daemon`), drivers and
writers wrap before they begin (:mod:`tests.faults.roles`).
"""

from __future__ import annotations

import functools
import importlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

FOLDER = "EVERVIEW_FAULT_TOKENS"
"""The variable that names the folder of tokens."""
TAKEN = "taken"

POINTS: tuple[str, ...] = (
    "worker before log read",
    "worker after log read",
    "worker before write",
    "worker inside write",
    "worker after write",
    "worker before write_bags",
    "worker inside write_bags",
    "worker after write_bags",
    "worker before add_to_bags",
    "worker inside add_to_bags",
    "worker after add_to_bags",
    "worker before transaction",
    "worker inside transaction",
    "worker after transaction",
    "executor before write",
    "executor after write",
    "executor inside write_bags",
    "driver before hand-over",
    "driver after hand-over",
    "driver before begin",
    "driver inside begin",
    "driver after begin",
    "driver before work here",
    "driver after work here",
    "driver before epoch",
    "driver before commit",
    "driver inside commit",
    "driver after commit",
    "driver inside sweep",
    "driver before documents",
    "driver after documents",
    "driver inside join",
    "driver before publish",
    "driver after publish",
    "driver inside drop",
    "driver inside trim",
    "writer before transaction",
    "writer inside transaction",
    "writer after transaction",
    "writer before durable point",
    "writer after durable point",
)
"""Who dies, when, and at what call. Inside a transaction: all is written and nothing is committed.
Inside any other call: after one of the transactions that it makes. An executor dies with the worker that
comes to the point, and takes with it what the epoch's earlier stages have sent."""

_CALLS: dict[str, str] = {
    "log read": "store.embedded.logs:EmbeddedLog.read",
    "write": "store.embedded.views:EmbeddedViews.write",
    "write_bags": "store.embedded.views:EmbeddedViews.write_bags",
    "add_to_bags": "store.embedded.views:EmbeddedViews.add_to_bags",
    "begin": "store.embedded.views:EmbeddedViews.begin",
    "commit": "store.embedded.views:EmbeddedViews.commit",
    "sweep": "store.embedded.views:EmbeddedViews.sweep",
    "drop": "store.embedded.views:EmbeddedViews.drop",
    "trim": "store.embedded.logs:EmbeddedLog.trim",
    "documents": "store.embedded.metadata:EmbeddedMetadata.commit",
    "epoch": "zones.spark_executor:SparkExecutor.work",
    "work here": "maintain.executor:LocalExecutor.work",
    "hand-over": "zones.pipeline:Pipeline._hand_over",
    "join": "maintain.building:Builder.meet",
    "publish": "maintain.building:Builder.publish",
    "durable point": "store.embedded.durability:write_point",
}
_TRANSACTION = "store.embedded.environment:Environment.update"

_installed: set[str] = set()
_under_way = threading.local()
_passed: dict[str, tuple[int, int]] = {}
"""By point: which token was seen last, and how often we came by since."""


def split(point: str) -> tuple[str, str, str]:
    """Who, when, what."""
    who, when, what = point.split(" ", 2)
    return who, when, what


def install(who: str) -> None:
    """Wrap the calls at which a process of this kind may die."""
    if who in _installed:
        return
    _installed.add(who)
    for what in dict.fromkeys(what for one, _, what in map(split, POINTS) if one == who and what in _CALLS):
        _wrap(_CALLS[what], lambda original, what=what: _watched(who, what, original))  # type: ignore[misc]
    _wrap(_TRANSACTION, lambda original: _transaction(who, original))


def _wrap(target: str, wrapped: Callable[[Any], Any]) -> None:
    module, _, path = target.partition(":")
    owner: Any = importlib.import_module(f"everview.{module}")
    *classes, name = path.split(".")
    for one in classes:
        owner = getattr(owner, one)
    setattr(owner, name, wrapped(getattr(owner, name)))


def _watched(who: str, what: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def called(*arguments: Any, **named: Any) -> Any:
        near(f"{who} before {what}")
        with _inside(what):
            result = original(*arguments, **named)
        near(f"{who} after {what}")
        return result

    return called


def _transaction(who: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def update(environment: Any, work: Callable[[Any], Any]) -> Any:
        def done(transaction: Any) -> Any:
            result = work(transaction)
            near(f"{who} inside transaction")
            return result

        near(f"{who} before transaction")
        result = original(environment, done)
        near(f"{who} after transaction")
        for what in getattr(_under_way, "calls", ()):
            near(f"{who} inside {what}")
        return result

    return update


@contextmanager
def _inside(what: str) -> Iterator[None]:
    outer = getattr(_under_way, "calls", ())
    _under_way.calls = (*outer, what)
    try:
        yield
    finally:
        _under_way.calls = outer


def near(point: str) -> None:
    """Die here, if a token says so and it is time."""
    token = Path(os.environ[FOLDER], point)
    try:
        laid = token.stat().st_mtime_ns
        known, passed = _passed.get(point, (0, 0))
        passed = passed + 1 if known == laid else 1
        _passed[point] = (laid, passed)
        if passed >= int(token.read_text()):
            token.rename(token.parent / TAKEN / point)
            if point.startswith("executor"):
                os.kill(_executor(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
    except FileNotFoundError:
        return


def _executor() -> int:
    """The Java process whose daemon has forked this one."""
    return int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1])


# ------------------------------------------------------------------ the side of the campaign


class Tokens:
    """The folder of tokens."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.joinpath(TAKEN).mkdir(parents=True)

    def lay(self, point: str, count: int) -> None:
        """Somebody is to die when it comes to the point for the count-th time from now on."""
        draft = self.folder / TAKEN / f"{point} is laid"
        draft.write_text(str(count))
        draft.rename(self.folder / point)

    def taken(self, point: str) -> bool:
        """Whether it has happened; true once."""
        with suppress(FileNotFoundError):
            self.folder.joinpath(TAKEN, point).unlink()
            return True
        return False

    def withdraw(self, point: str) -> None:
        self.folder.joinpath(point).unlink(missing_ok=True)
