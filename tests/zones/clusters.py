"""Spark's servers, started for tests: a standalone cluster of separate processes, and Spark Connect.

Each is a few Java processes from the package that pip has installed, on free ports of this
machine, and all of them are gone when the ``with`` block ends, however it ends.

    >>> with standalone(folder) as cluster:                       # doctest: +SKIP
    ...     spark = new_session(cluster.url, **cluster.settings)
    ...     os.kill(cluster.executors()[0], signal.SIGKILL)

The two workers have addresses of their own: Spark starts the copy of a slow task on another host only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from bench.processes import family

ROOT = Path(__file__).parents[2]
HOME = Path(pyspark.__file__).parent
START = 120.0
HOSTS = ("127.0.0.1", "127.0.0.2")
CORES = 2
QUICK = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""For Java processes that live for a minute."""

_prctl = ctypes.CDLL(None).prctl
_PR_SET_PDEATHSIG = 1


@dataclass
class Server:
    """A Java process, what it writes to, and what it has said of itself."""

    process: subprocess.Popen[bytes]
    log: Path

    def said(self, pattern: str) -> re.Match[str]:
        """Wait until it says something."""
        end = time.monotonic() + START
        while (found := re.search(pattern, self.log.read_text(errors="replace"))) is None:
            assert self.process.poll() is None, f"it has ended:\n{self.log.read_text(errors='replace')[-3000:]}"
            assert time.monotonic() < end, f"not a word of {pattern}:\n{self.log.read_text(errors='replace')[-3000:]}"
            time.sleep(0.02)
        return found


@contextmanager
def server(folder: Path, name: str, *command: str) -> Iterator[Server]:
    """One of Spark's commands. It and all that it starts are killed at the end, and with this process."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"{name}.log"
    path = os.environ.get("PYTHONPATH")
    environment = os.environ | {
        "SPARK_HOME": str(HOME),
        "SPARK_DAEMON_MEMORY": "256m" if command[0] == "spark-class" else "1g",
        "SPARK_DAEMON_JAVA_OPTS": QUICK,
        "SPARK_WORKER_DIR": str(folder / "work"),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(ROOT), *map(os.path.abspath, path.split(os.pathsep) if path else ())]),
    }
    environment.pop("SPARK_REMOTE", None)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(HOME / "bin" / command[0]), *command[1:]],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=lambda: _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL),
        )
    try:
        yield Server(process, log)
    finally:
        for one in reversed(family(process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        process.wait(60)


@dataclass
class Cluster:
    """A master and its workers."""

    url: str
    workers: list[Server]
    settings: dict[str, str] = field(
        default_factory=lambda: {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.cores": str(CORES),
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": QUICK,
        }
    )
    """What a session on it should have."""

    def executors(self) -> list[int]:
        """The executors' Java processes that are there now."""
        return [one for one in self._processes() if _runs(one, "CoarseGrainedExecutorBackend")]

    def python_workers(self) -> list[int]:
        """The processes that the executors' Python daemons have forked."""
        daemons = [one for one in self._processes() if _runs(one, "-m\0everview.zones.daemon\0")]
        return [one for one in daemons if _parent_of(one) in daemons]

    def _processes(self) -> list[int]:
        return [one for worker in self.workers for one in family(worker.process.pid)]


def _runs(process: int, what: str) -> bool:
    with contextlib.suppress(OSError):
        return what.encode() in Path(f"/proc/{process}/cmdline").read_bytes()
    return False


def _parent_of(process: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return -1


@contextmanager
def standalone(folder: Path) -> Iterator[Cluster]:
    """A cluster with a worker on each of the hosts."""
    with ExitStack() as held:
        name = "org.apache.spark.deploy.master.Master"
        options = ["--host", HOSTS[0], "--port", "0", "--webui-port", "0"]
        master = held.enter_context(server(folder, "master", "spark-class", name, *options))
        url = master.said(r"Starting Spark master at (spark://\S+)")[1]
        workers = []
        for number, host in enumerate(HOSTS):
            name = "org.apache.spark.deploy.worker.Worker"
            options = ["--host", host, "--webui-port", "0", "--cores", str(CORES), "--memory", "600m", url]
            workers.append(held.enter_context(server(folder, f"worker-{number}", "spark-class", name, *options)))
        for worker in workers:
            worker.said("Successfully registered with master")
        yield Cluster(url, workers)


@dataclass
class ConnectServer:
    """A server of Spark Connect."""

    url: str
    server: Server


@contextmanager
def connect(folder: Path, master: str = "local[2,4]", **settings: str) -> Iterator[ConnectServer]:
    """A server of Spark Connect, started as the documentation says."""
    ours = subprocess.run([sys.executable, "-m", "everview.zones.session"], cwd=ROOT, capture_output=True, check=True)
    settings = {
        "spark.connect.grpc.binding.address": HOSTS[0],
        "spark.connect.grpc.binding.port": "0",
        "spark.ui.enabled": "false",
        "spark.driver.host": HOSTS[0],
        "spark.driver.bindAddress": HOSTS[0],
        "spark.driver.extraJavaOptions": QUICK,
        **settings,
    }
    options = ours.stdout.decode().split()
    # Otherwise each session's first task fetches classes from its own driver, and sometimes waits for them for ever.
    options += ["--conf", "spark.sql.artifact.isolation.enabled=false"]
    options += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    name = "org.apache.spark.sql.connect.service.SparkConnectServer"
    with server(folder, "connect", "spark-submit", "--class", name, "--master", master, *options) as found:
        port = found.said(r"Spark Connect server started at: \S*?:(\d+)")[1]
        yield ConnectServer(f"sc://{HOSTS[0]}:{port}", found)
