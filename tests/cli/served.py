"""The ``everview`` command as a process of its own, and what it says."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PATIENCE = 300.0


class Served:
    """``everview run … --json``; ``module`` may be another one that ends in it."""

    def __init__(
        self,
        store: Path,
        *options: str,
        module: str = "everview.cli",
        environment: Mapping[str, str] | None = None,
        folder: Path = ROOT,
        umask: int = -1,
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, "run", str(store), "--json", *options],
            cwd=folder,
            umask=umask,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._said = b""
        self.events: list[dict[str, Any]] = []

    def until(self, event: str, patience: float = PATIENCE) -> dict[str, Any]:
        """The next event of that name."""
        ends = time.monotonic() + patience
        while True:
            found = self._next(max(0.0, ends - time.monotonic()))
            assert found is not None, f"{self.events} and no {event}: {self._errors()}"
            self.events.append(found)
            assert found["event"] != "error" or event == "error" or found["retry_in"] is not None, found
            if found["event"] == event:
                return found

    def _next(self, patience: float) -> dict[str, Any] | None:
        assert self.process.stdout is not None
        while b"\n" not in self._said:
            if not select.select([self.process.stdout], [], [], patience)[0]:
                return None
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            if not more:
                return None
            self._said += more
        line, self._said = self._said.split(b"\n", 1)
        found: dict[str, Any] = json.loads(line)
        return found

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def interrupt(self) -> None:
        """As Ctrl-C in a terminal does it: all processes of the command get the signal."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self) -> int:
        """Wait for its end; the exit code."""
        code = self.process.wait(PATIENCE)
        while (found := self._next(0)) is not None:
            self.events.append(found)
        return code

    def _errors(self) -> str:
        if self.process.poll() is None or self.process.stderr is None:
            return "it still runs"
        return self.process.stderr.read().decode()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


@contextmanager
def served(
    store: Path,
    *options: str,
    module: str = "everview.cli",
    environment: Mapping[str, str] | None = None,
    folder: Path = ROOT,
    umask: int = -1,
) -> Iterator[Served]:
    found = Served(store, *options, module=module, environment=environment, folder=folder, umask=umask)
    try:
        yield found
    finally:
        found.close()
