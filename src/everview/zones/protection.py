"""A Spark that we start is closed: to other machines, and to other users of this one.

It listens on the loopback address, asks every connection for a secret, keeps its files in a private
directory that is removed at the end, and encrypts the blocks that it writes to disk.

What Spark does by default, and what is set here for a master of this machine:

| | by default | here |
|---|---|---|
| driver and block manager | listen on the machine's address, serve everybody | loopback, a secret per session |
| blocks of rows on disk (shuffles, broadcasts) | readable by all users | private directory, encrypted |
| sockets of Python workers | in the shared temporary directory | in the private directory |
| Python's end of Py4J | on loopback, serves everybody | asks for the secret (:func:`require_secret`) |
| Java's counters (hsperfdata) | in the shared temporary directory | off |

The secret reaches Java through Py4J's connection, which has a secret of its own. Settings that are given to a new
Java process are on its command line, which all users see: so those that hide something never are.

On a cluster the secret and the encryption are those of the cluster: what its master and workers were started with
must be given to sessions, and cannot be chosen here. A session that lacks them works, and a notice is logged.

Py4J listens on the loopback address for calls of Java, such as those of ``foreachBatch``. PySpark starts this server
without a secret, so every user of the machine could call the functions that are registered there, or remove them.
Here it asks for the secret that the two processes share already. Java's end knows the secret too, but forgets it when
it receives the port (``PythonClient.copyWith``): so it is given a client that has both.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import secrets
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark import SparkConf, SparkContext, java_gateway
from pyspark.sql import SparkSession

from everview.scratch import scratch_of_process

LOOPBACK = "127.0.0.1"
LOCAL_DIRECTORIES = "spark.local.dir"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
NO_SEARCH = "no search for data sources"
"""A new Java process searches for data sources by the Python that is named to it; there is no such Python."""
PATIENCE = 30.0
"""Seconds that a Java process may take to end."""
_LOGGER = logging.getLogger("everview")
_HIDDEN = re.compile(r"secret|password|token|access[.]?key|credential", re.IGNORECASE)
_SOCKET_NAME = len("/.00000000-0000-0000-0000-000000000000.sock")
_SOCKET_PATH = 107

CLOSED = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.saslFallback": "false",
    "spark.io.encryption.enabled": "true",
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
}
"""For a Spark whose processes are all on this machine."""


def is_remote(spark: SparkSession) -> bool:
    """Whether a session is one of Spark Connect, whose functions run in the server."""
    return not isinstance(spark, SparkSession)


def is_local(master: str) -> bool:
    """Whether all of Spark is on this machine, started by us."""
    return master.startswith("local")


def protection(master: str, given: Mapping[str, str]) -> dict[str, str]:
    """The settings of a new session that close it. Those that the caller has ``given`` hold instead, but files
    stay private wherever they are."""
    folders = _private_folders(given)
    found = dict(CLOSED) if is_local(master) else {}
    if is_local(master):
        found["spark.authenticate.secret"] = secrets.token_hex(32)
        found["spark.python.unix.domain.socket.dir"] = str(_socket_folder(folders[0]))
        found["spark.sql.warehouse.dir"] = (folders[0] / "warehouse").as_uri()
    found |= given
    found[LOCAL_DIRECTORIES] = ",".join(map(str, folders))
    return found


def java_options(given: Mapping[str, str], *ours: str) -> str:
    """The options of the driver's Java process: those of the caller come after ours."""
    options = [*ours, f"-Djava.io.tmpdir={_private_folders(given)[0]}", "-XX:-UsePerfData"]
    return " ".join([*map(_quoted, options), given.get(JAVA_OPTIONS, "")]).strip()


def _quoted(option: str) -> str:
    escaped = option.replace("\\", r"\\").replace('"', r"\"")
    return f'"{escaped}"' if escaped != option or " " in option else option


def _private_folders(given: Mapping[str, str]) -> list[Path]:
    """A private directory in each of those that Spark would write to."""
    named = given.get(LOCAL_DIRECTORIES) or os.environ.get("SPARK_LOCAL_DIRS") or tempfile.gettempdir()
    return [scratch_of_process(parent.strip()) for parent in named.split(",") if parent.strip()]


def _socket_folder(folder: Path) -> Path:
    """A private directory for sockets, whose paths must be short."""
    return folder if len(os.fsencode(folder)) + _SOCKET_NAME <= _SOCKET_PATH else scratch_of_process("/tmp")


# ------------------------------------------------------------------ the Java process


def start_java(settings: Mapping[str, str]) -> None:
    """Start the Java process that this process talks to, unless it runs already."""
    if SparkContext._gateway is not None:
        return
    shown = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        if not _HIDDEN.search(name):
            shown.set(name, value)
    folder = settings[LOCAL_DIRECTORIES].split(",")[0]
    environment = {
        "PYSPARK_DRIVER_PYTHON": os.environ.get("PYSPARK_DRIVER_PYTHON", NO_SEARCH),
        "SPARK_LAUNCHER_OPTS": f"{os.environ.get('SPARK_LAUNCHER_OPTS', '')} -XX:-UsePerfData".strip(),
        "SPARK_LOCAL_DIRS": settings[LOCAL_DIRECTORIES],
        "TMPDIR": folder,
    }
    if is_local(settings["spark.master"]):
        environment["SPARK_LOCAL_IP"] = LOOPBACK
    with _environment(environment), _gateway_files_in(folder):
        SparkContext._ensure_initialized(conf=shown)
    gateway: Any = SparkContext._gateway
    process: subprocess.Popen[bytes] | None = gateway.proc
    if process is not None:
        atexit.register(_end_java, process, os.getpid())


def _end_java(process: subprocess.Popen[bytes], parent: int) -> None:
    """Java ends when its input does, and removes its files; those that it has not removed by then are removed
    after this by the owner of the directory, or by the next process."""
    if os.getpid() == parent and process.stdin is not None:
        with suppress(OSError, subprocess.TimeoutExpired):
            process.stdin.close()
            process.wait(PATIENCE)


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """The environment of processes that are started in a block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _gateway_files_in(folder: str) -> Iterator[None]:
    """PySpark and Java exchange port and secret through a file in a directory that PySpark makes: a process that
    is killed meanwhile would leave it in the temporary directory, and its name does not show whose it is."""
    module: Any = java_gateway
    before = module.tempfile
    module.tempfile = SimpleNamespace(mkdtemp=partial(tempfile.mkdtemp, dir=folder), mkstemp=tempfile.mkstemp)
    try:
        yield
    finally:
        module.tempfile = before


# ------------------------------------------------------------------ sessions that others have started


_noticed: set[str] = set()


def notice_if_open(spark: SparkSession) -> None:
    """Log once what a session leaves open."""
    found = openings(spark)
    application = str(spark.conf.get("spark.app.id", ""))
    if found and application not in _noticed:
        _noticed.add(application)
        _LOGGER.warning("the Spark session is open to others: %s; see Safety in docs/zones.md", ", ".join(found))


def openings(spark: SparkSession) -> list[str]:
    """What a session leaves open, as far as its settings show it."""
    found = [
        f"{name} is not true"
        for name in ("spark.authenticate", "spark.io.encryption.enabled")
        if spark.conf.get(name, "false") != "true"
    ]
    addresses = []
    if is_local(str(spark.conf.get("spark.master", ""))):
        addresses.append(("spark.driver.bindAddress", spark.conf.get("spark.driver.host", "")))
    if is_remote(spark):
        addresses.append(("spark.connect.grpc.binding.address", ""))
    for name, default in addresses:
        address = spark.conf.get(name, default) or ""
        if not _is_loopback(address):
            found.append(f"{name} is {address or 'not set'}, not {LOOPBACK}")
    return found


def _is_loopback(address: str) -> bool:
    try:
        return address == "localhost" or ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return False


def require_secret() -> None:
    """Start the server for calls of Java, which asks for the secret, unless there is a server already."""
    gateway: Any = SparkContext._gateway
    secret = gateway.gateway_parameters.auth_token
    if secret is None or gateway.__dict__.get("_callback_server") is not None:
        return
    gateway.callback_server_parameters.auth_token = secret
    java_gateway.ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    _pass_to_java(gateway, secret)


def _pass_to_java(gateway: Any, secret: str) -> None:
    java = gateway.jvm
    server = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
    unit = java.java.util.concurrent.TimeUnit.SECONDS
    sockets = java.javax.net.SocketFactory.getDefault()
    address = server.getCallbackClient().getAddress()
    port = gateway._callback_server.port
    end = server.getGateway()
    client = java.py4j.PythonClient(end, None, port, address, 1, unit, sockets, server, True, 0, secret)
    field = end.getClass().getDeclaredField("cbClient")
    field.setAccessible(True)
    field.set(end, client)
