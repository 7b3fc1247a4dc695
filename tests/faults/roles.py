"""Who lives in the town and is killed: drivers and writers; and a reader who watches.

Each is forked from a process that has imported everything, wraps the calls at which it
may die, and reports what it has done; a driver starts its Java machine ahead of time and then waits
for the command to begin.
"""

from __future__ import annotations

import faulthandler
import os
import select
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from everview.errors import EverviewError
from everview.maintain.epoch_sizes import EpochSize, EpochSizes, GroupSizes
from everview.zones.pipeline import Pipeline
from everview.zones.session import new_session
from tests.faults.points import FOLDER, install
from tests.faults.town import disagreement, next_step, open_town, step
from tests.faults.victims import LINE, Arguments, Reports

OPERATIONS = 1000
CHECKED = 0.05
"""Seconds between two looks at whether a pipeline still runs."""
DRIVER = "EVERVIEW_FAULT_DRIVER"
"""The variable by which the processes that a driver has started are known."""

ATTEMPTS = 20
"""How often a task and a stage are tried: more often than they are killed, but what is out of date ends soon."""

SETTINGS = {
    "spark.python.daemon.module": "tests.faults.daemon",
    "spark.task.maxFailures": str(ATTEMPTS),
    "spark.stage.maxConsecutiveAttempts": str(ATTEMPTS),
}


HERE = 3
"""One epoch in so many is done in the driver, the others on Spark."""


class MixedGroup(GroupSizes):
    """Epochs that are done here and on Spark in turn, whatever their size: with a border, a busy machine on which
    epochs take long would never see a small one again."""

    begun = 0

    def next(self, pending: int, *, spark: bool) -> EpochSize:
        size = super().next(pending, spark=spark)
        self.begun += 1
        return replace(size, here=not spark or self.begun % HERE == 0)


class MixedSizes(EpochSizes):
    """The same for every group."""

    def __init__(self, servers: Callable[[], int]) -> None:
        super().__init__(OPERATIONS, servers, in_driver=0)
        self._mixed: defaultdict[str, MixedGroup] = defaultdict(lambda: MixedGroup(OPERATIONS, servers, in_driver=0))

    def of(self, group: str) -> GroupSizes:
        return self._mixed[group]


class MixedPipeline(Pipeline):
    """A pipeline that maintains the views before it hands anything over to Spark, and then does some epochs here."""

    def _sizes(self) -> EpochSizes:
        return MixedSizes(lambda: self.servers)


def drive(reports: Reports, arguments: Arguments) -> None:
    """Start Spark, wait for the command, and maintain the views until no more commands come. A
    pipeline that fails is reported and started again; another one is started too where that is the command."""
    faulthandler.cancel_dump_traceback_later()
    install("driver")
    os.environ[DRIVER] = arguments["mark"]
    _print_to(Path(arguments["printed"]))
    spark = new_session(arguments["master"], **SETTINGS, **arguments["settings"], **_environment())
    reports.send(f"ready {os.getpid()}")
    with Path(arguments["commands"]).open("rb", buffering=0) as commands:
        said = _command(commands.fileno(), None)
        while said != "end":
            said = _maintain(reports, arguments, spark, commands.fileno())
    spark.stop()


def _maintain(reports: Reports, arguments: Arguments, spark: SparkSession, commands: int) -> str:
    pipeline = MixedPipeline(
        arguments["directory"], spark=spark, operations=OPERATIONS, checkpoint=arguments["checkpoint"], wait=60
    )
    try:
        with pipeline:
            reports.send("running")
            while True:
                said = _command(commands, CHECKED)
                if said.startswith("servers "):
                    pipeline.servers = int(said.split()[1])
                elif said:
                    return said
                pipeline.check()
    except EverviewError as error:
        reports.send(f"stopped {error!s}"[: LINE - 100].replace("\n", " "))
        return ""


def _command(commands: int, wait: float | None) -> str:
    """The next command, a line; nothing if none comes in time; the end if nobody is there to give one."""
    if not select.select([commands], [], [], wait)[0]:
        return ""
    said = b""
    while not said.endswith(b"\n"):
        read = os.read(commands, 1)
        if not read:
            return "end"
        said += read
    return said.decode().strip()


def _environment() -> dict[str, str]:
    """What executors, wherever they are started, must find in their environment."""
    wanted = {"PYTHONPATH": os.environ["PYTHONPATH"], FOLDER: os.environ[FOLDER], DRIVER: os.environ[DRIVER]}
    return {f"spark.executorEnv.{name}": value for name, value in wanted.items()}


def _print_to(path: Path) -> None:
    with path.open("ab") as file:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file.fileno(), stream.fileno())


def trade(reports: Reports, arguments: Arguments) -> None:
    """One step after another, each reported when it is done."""
    install("writer")
    faulthandler.cancel_dump_traceback_later()
    with open_town(arguments["directory"]) as db:
        number = next_step(db, arguments["writer"])
        while True:
            step(db, arguments["seed"], arguments["writer"], number)
            reports.send(f"ack {number}")
            number += 1


def watch(reports: Reports, arguments: Arguments) -> None:
    """Take snapshots, as fast as somebody hears of them, and see whether they add up."""
    faulthandler.cancel_dump_traceback_later()
    with open_town(arguments["directory"]) as db:
        while True:
            with db.snapshot() as snapshot:
                found = disagreement(snapshot)
                epoch = snapshot.epoch("total")
            assert not found, f"a reader saw what never was: {found}"
            reports.send(f"seen {epoch}")


ROLES: dict[str, Callable[[Reports, Arguments], None]] = {
    "drive": drive,
    "trade": trade,
    "watch": watch,
}
