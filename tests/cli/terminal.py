"""A command in a terminal of its own: what it shows, and what is typed."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.cli.served import PATIENCE, ROOT

STEERING = re.compile(r"\x1b\[[0-9;?>=]*[A-Za-z]|\x1b[=>78]|\x07")
UP, TAB, CTRL_C, CTRL_D = "\x1b[A", "\t", "\x03", "\x04"


def _before() -> None:
    """As a terminal starts programs: Ctrl-C is a signal, even where the process that started the tests ignores it."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Terminal:
    """``everview …`` whose input and output are a terminal of so many lines and columns."""

    def __init__(self, *words: object, lines: int = 24, columns: int = 80, variables: Mapping[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        environment |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TERM": "xterm", "INPUTRC": os.devnull}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "everview.cli", *map(str, words)],
            cwd=ROOT,
            env={**environment, **variables},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=_before,
        )
        self._theirs = theirs
        self.settings = termios.tcgetattr(theirs)
        self.raw = ""
        """All that was shown, with what steers the terminal."""
        self._seen = ""

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def until(self, text: str) -> str:
        """What is shown up to and with the next such text."""
        ends = time.monotonic() + PATIENCE
        while text not in self._seen:
            assert self._read(ends), f"no {text!r} in {self._seen!r}"
        found, _, self._seen = self._seen.partition(text)
        return found + text

    def _read(self, ends: float) -> bool:
        if not select.select([self._ours], [], [], max(0.0, ends - time.monotonic()))[0]:
            return False
        try:
            more = os.read(self._ours, 1 << 16)
        except OSError:  # all who had the terminal open are gone
            return False
        self.raw += more.decode(errors="replace")
        self._seen = STEERING.sub("", self._seen + more.decode(errors="replace"))
        return bool(more)

    def interrupt(self) -> None:
        """Press Ctrl-C, once the command waits for what is typed: in the moment between its prompt and that,
        Python would note the key and handle it only after the next one."""
        ends = time.monotonic() + PATIENCE
        while Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2][0] != "S":
            assert time.monotonic() < ends, "the command does not come to rest"
        self.type(CTRL_C)

    def enter(self, line: str, shown: str) -> str:
        """Type a line; what is shown up to and with a text that follows it."""
        self.type(line + "\n")
        return self.until(shown)

    def end(self) -> int:
        """Wait for its end; the exit code. What it shows meanwhile is read."""
        ends = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < ends:
            self._read(time.monotonic() + 0.05)
        while self._read(0.0):
            pass
        return self.process.wait(0)

    def is_as_before(self) -> bool:
        """Whether the terminal reads and echoes as it did before the command."""
        return termios.tcgetattr(self._theirs) == self.settings

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE)
        for end in (self._ours, self._theirs):
            os.close(end)


@contextmanager
def terminal(
    *words: object, lines: int = 24, columns: int = 80, variables: Mapping[str, str] | None = None
) -> Iterator[Terminal]:
    found = Terminal(*words, lines=lines, columns=columns, variables=variables or {})
    try:
        yield found
    finally:
        found.close()
