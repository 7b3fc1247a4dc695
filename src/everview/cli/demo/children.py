"""Processes of the demonstration that leave nothing behind.

A child is started in a session of its own, all that it starts stays in that session, and a
child is gone when no process of the session is left.

A pipeline is a Python process, a Java process that it starts, and Python processes which that starts. A
SIGKILL that hits the first one leaves the others, which notice it and end within moments.
Those that have not ended by then are killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from everview.errors import EverviewError

BEAT = 0.02
TAIL = 2_000
"""Bytes of a child's log that an error shows."""


class Child:
    """``python -m …`` as a process of its own; what it says goes to a file."""

    def __init__(self, name: str, log: Path, *arguments: str) -> None:
        self.name = name
        self._log = log
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *arguments],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def id(self) -> int:
        return self._process.pid

    def check(self) -> None:
        """Raise where it has ended by itself."""
        code = self._process.poll()
        if code is not None:
            raise self._ended(code)

    def _ended(self, code: int) -> EverviewError:
        said = self._log.read_bytes()[-TAIL:].decode("utf-8", "replace").strip()
        return EverviewError(
            f"the {self.name} has ended by itself with {code}",
            detail=said or None,
            hint=f"all it said is in {self._log}",
        )

    def crash(self, patience: float = 20.0) -> None:
        """SIGKILL, which no process can catch; returns when what it had started is gone too."""
        self._process.kill()
        self._process.wait()
        self._close()
        self._outlive(patience)

    def finish(self, number: int | None = None, patience: float = 60.0) -> None:
        """End it: by a signal, or by closing its input. Raises where it does not end well."""
        self._close()
        if number is not None:
            self._process.send_signal(number)
        try:
            code = self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self.kill()
            raise EverviewError(f"the {self.name} did not end in {patience:g} s", hint=f"see {self._log}") from None
        self._outlive(patience)
        if code:
            raise self._ended(code)

    def kill(self) -> None:
        """At once, with everything that it started."""
        self._close()
        self._process.kill()
        self._outlive(0)
        self._process.wait()

    def _close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    def _outlive(self, patience: float) -> None:
        """Return when nobody of its session is left; who is left after so many seconds is killed."""
        ends = time.monotonic() + patience
        while left := members(self.id):
            if time.monotonic() >= ends:
                for process in left:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)
            time.sleep(BEAT)


def members(session: int) -> list[int]:
    """The living processes of a session."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, of, *_ = stat.read_text("utf-8", "replace").rpartition(")")[2].split()
        except (OSError, ValueError):
            continue  # it has ended meanwhile
        if int(of) == session and state not in "ZX":
            found.append(int(stat.parent.name))
    return found
