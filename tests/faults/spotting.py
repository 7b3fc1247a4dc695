"""Finding the processes of a driver: its Java machine, executors, Python workers, the source.

Whatever a driver starts inherits a variable with the driver's mark, also what outlives it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.roles import DRIVER


@dataclass
class Spotted:
    """Process numbers, by what they are."""

    machines: list[int] = field(default_factory=list)
    executors: list[int] = field(default_factory=list)
    workers: list[int] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    others: list[int] = field(default_factory=list)

    @property
    def everybody(self) -> list[int]:
        return [*self.machines, *self.executors, *self.workers, *self.sources, *self.others]


def marked(mark: str) -> Spotted:
    """The processes whose mark begins so. Daemons look as the workers that they fork, which are
    their children."""
    found = Spotted()
    wanted = f"\0{DRIVER}={mark}".encode()
    lines: dict[int, bytes] = {}
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and wanted in b"\0" + (entry / "environ").read_bytes():
                process = int(entry.name)
                lines[process] = (entry / "cmdline").read_bytes()
                parents[process] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    for process, line in lines.items():
        forked = lines.get(parents[process]) == line
        if b"SparkSubmit" in line:
            found.machines.append(process)
        elif b"ExecutorBackend" in line:
            found.executors.append(process)
        elif forked and b"tests.faults.daemon" in line:
            found.workers.append(process)
        elif b"python_streaming_source_runner" in line:
            found.sources.append(process)
        else:
            found.others.append(process)
    return found


def kill_all(processes: Iterable[int]) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
