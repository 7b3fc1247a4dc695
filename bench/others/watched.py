"""A process that measures a system: what it says, line by line, and how much memory it has.

It is watched from outside, with all that it starts, and is ended when its time is over.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.processes import memory
from bench.report.registry import ROOT

SAMPLE = 0.5
"""Seconds between two looks at memory."""


class Watched:
    """A process that measures, what it prints, and the most memory it had since the last line."""

    def __init__(self, python: Path, task: Path, limit: float) -> None:
        self._log = task.with_suffix(".log")
        environment = {"PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT))), "PATHWAY_THREADS": "2"}
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [python, "-m", "bench.others.child", str(task)],
                cwd=ROOT,
                env=os.environ | environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        wanted = json.loads(task.read_text())["systems"]
        self._waiting = [(one["system"], asked["view"]) for one in wanted for asked in one["views"]]
        self._limit = limit
        self._most = 0.0
        self._late = False
        self._over = threading.Event()

    def lines(self) -> Iterator[dict[str, Any]]:
        watch = threading.Thread(target=self._watch, daemon=True)
        watch.start()
        assert self._process.stdout is not None
        try:
            for text in self._process.stdout:
                if text.startswith('{"system"'):
                    line = json.loads(text)
                    self._waiting.remove((line["system"], line["view"]))
                    yield {**line, "megabytes": round(max(self._most, memory(self._process.pid).own))}
                    self._most = 0.0
            code = self._process.wait()
        finally:
            self._over.set()
            self._end()
            watch.join()
        why = f"it took longer than {self._limit:,.0f} s" if self._late else f"exit code {code}: {self._last_words()}"
        for system, view in self._waiting:
            yield {"system": system, "view": view, "failed": why}

    def _watch(self) -> None:
        ends = time.monotonic() + self._limit
        while not self._over.wait(SAMPLE):
            self._most = max(self._most, memory(self._process.pid).own)
            if time.monotonic() > ends:
                self._late = True
                self._end()
                return

    def _end(self) -> None:
        """The process, and all that it has started and not ended."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return

    def _last_words(self) -> str:
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        return lines[-1] if lines else "it said nothing"
