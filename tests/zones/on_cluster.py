"""A driver on a cluster: ``python -m tests.zones.on_cluster <master> <settings>``.

A process has one Spark application, so pipelines on a cluster run in a process of their own,
which reads commands from its standard input, a line of JSON each, and answers the same way.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from everview.errors import EverviewError
from everview.zones.pipeline import Pipeline
from everview.zones.session import new_session
from tests.zones.clusters import QUICK, ROOT
from tests.zones.mishaps import Failing, Recording, Slow, Troubled, pipeline_of

KINDS: dict[str, type[Troubled] | None] = {"plain": None, "failing": Failing, "slow": Slow, "recording": Recording}


class Commands:
    """What the driver can do."""

    def __init__(self, master: str, settings: dict[str, str]) -> None:
        self.spark = new_session(master, **settings)
        self.pipeline: Pipeline | None = None

    def start(self, place: str, kind: str = "plain", marks: str = "", seed: int = 0, **options: Any) -> None:
        self.pipeline = pipeline_of(KINDS[kind], marks, seed)(place, spark=self.spark, in_driver=0, **options)
        self.pipeline.start()

    def check(self) -> None:
        assert self.pipeline is not None
        self.pipeline.check()

    def drain(self, timeout: float) -> None:
        assert self.pipeline is not None
        self.pipeline.drain(timeout=timeout)

    def serve(self, servers: int) -> None:
        assert self.pipeline is not None
        self.pipeline.servers = servers

    def stop(self) -> int:
        assert self.pipeline is not None
        self.pipeline.stop()
        return len(self.pipeline.reports)

    def python(self, executable: str) -> str:
        """Let executors run another Python from now on; which one they ran."""
        context = self.spark.sparkContext
        before, context.pythonExec = context.pythonExec, executable
        return before


class Driver:
    """The process, from the outside."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            assert self.process.stdin is not None and self.process.stdout is not None
            self.process.stdin.write(json.dumps({"do": name, **arguments}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
            assert line, "the driver is gone"
            answer = json.loads(line)
            if "error" in answer:
                raise EverviewError(answer["error"], detail=answer["detail"], hint=answer["hint"])
            return answer["result"]

        return call


@contextmanager
def driver(master: str, settings: dict[str, str], log: Path) -> Iterator[Driver]:
    """A driver process, as long as the block lasts."""
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.zones.on_cluster", master, json.dumps(settings)],
            cwd=ROOT,
            env=os.environ | {"JDK_JAVA_OPTIONS": QUICK},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        yield Driver(process)
    finally:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        try:
            process.wait(60)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def main(master: str, settings: str) -> None:
    commands = Commands(master, json.loads(settings))
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer = {"result": getattr(commands, command.pop("do"))(**command)}
        except EverviewError as error:
            answer = {"error": f"{type(error).__name__}: {error.message}", "detail": error.detail, "hint": error.hint}
        print(json.dumps(answer), flush=True)
    commands.spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
