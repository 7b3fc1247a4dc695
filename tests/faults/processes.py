"""The parent's side: starting victims, listening to them, and killing them.

A victim is killed with SIGKILL while it works, after a random number of
reports and a random moment later, and what it reported before is what was acknowledged.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from tests.faults.victims import LINE, PIPE

ROOT = Path(__file__).parents[2]
DEADLINE = 60.0


class Nursery:
    """Starts victims quickly, by a process that forks them: in the roles that are always there, and in
    those of more modules. ``environment`` is what they find besides our own."""

    def __init__(self, *modules: str, **environment: str) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._zygote = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.zygote", str(theirs.fileno()), *modules],
            pass_fds=[theirs.fileno()],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])} | environment,
        )
        theirs.close()
        self._requests.settimeout(DEADLINE)

    def start(self, role: str, **arguments: object) -> Victim:
        ours, theirs = os.pipe()
        fcntl.fcntl(theirs, fcntl.F_SETPIPE_SZ, PIPE)
        request = json.dumps({"role": role, "arguments": arguments}).encode()
        socket.send_fds(self._requests, [request], [theirs])
        os.close(theirs)
        return Victim(self, json.loads(self._requests.recv(64)), ours)

    def reap(self, process: int) -> int:
        self._requests.send(json.dumps({"reap": process}).encode())
        return int(json.loads(self._requests.recv(64)))

    def close(self) -> None:
        self._requests.close()
        self._zygote.wait(DEADLINE)


class Victim:
    """A process at work in a store, and what it has reported."""

    def __init__(self, nursery: Nursery, process: int, descriptor: int) -> None:
        self._nursery = nursery
        self._process = process
        self._descriptor = descriptor
        self._buffer = b""
        self.reports: list[str] = []
        self.ended = False

    @property
    def process(self) -> int:
        return self._process

    def hear(self, most: int) -> list[str]:
        """What it has reported since, at most so many reports; waits for none."""
        before = len(self.reports)
        while len(self.reports) < before + most and self._receive(0, (before + most - len(self.reports)) * LINE):
            pass
        return self.reports[before:]

    def wait(self, seconds: float) -> None:
        """Wait for a report, but not longer."""
        if self.ended or not self._receive(seconds):
            return

    def is_dead(self) -> bool:
        """Whether it waits to be reaped."""
        return Path(f"/proc/{self._process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"

    def listen(self, reports: int) -> None:
        """Wait until it has reported so many times in all."""
        end = time.monotonic() + DEADLINE
        while len(self.reports) < reports and not self.ended:
            self._receive(max(0.0, end - time.monotonic()))
            assert time.monotonic() < end, "the victim does not go on: somebody killed holds it up"

    def _receive(self, wait: float, most: int = 1 << 16) -> bool:
        readable, _, _ = select.select([self._descriptor], [], [], wait)
        if not readable:
            return False
        data = os.read(self._descriptor, most)
        if not data:
            self.ended = True
        self._buffer += data
        if self._buffer.startswith(b"failed"):
            while data:
                data = os.read(self._descriptor, 1 << 16)
                self._buffer += data
            raise AssertionError(self._buffer.decode())
        while len(self._buffer) >= LINE:
            self.reports.append(self._buffer[:LINE].decode().strip())
            self._buffer = self._buffer[LINE:]
        return bool(data)

    def kill(self, rng: random.Random) -> list[str]:
        """Kill it some moment from now, and return all it ever reported."""
        moment = time.monotonic() + rng.choice([0.0, rng.uniform(0, 0.003)])
        while (left := moment - time.monotonic()) > 0:
            if not self._receive(left):
                break
        os.kill(self._process, signal.SIGKILL)
        return self.bury()

    def bury(self) -> list[str]:
        """Wait for the end of one that is killed, and return all it ever reported."""
        end = time.monotonic() + DEADLINE
        while not self.ended:
            self._receive(max(0.0, end - time.monotonic()))
            assert time.monotonic() < end
        os.close(self._descriptor)
        assert self._nursery.reap(self._process) in (-signal.SIGKILL, 0)
        return self.reports
