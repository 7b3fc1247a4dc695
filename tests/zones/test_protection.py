"""Settings that close a session, those that a caller gives, and the notice about sessions that are open."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from everview.zones.protection import CLOSED, JAVA_OPTIONS, LOCAL_DIRECTORIES, java_options, protection
from everview.zones.session import FOR_SERVERS, for_servers

GIVEN = """
import logging
from pyspark.sql import SparkSession
from everview.zones.session import prepared
logging.basicConfig(format="%(name)s: %(message)s")
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
for _ in range(2):
    prepared(spark)
spark.stop()
"""

OWN = """
import json, logging, os, sys
from pathlib import Path
from bench.processes import family
from everview.zones.session import new_session
logging.basicConfig(format="%(name)s: %(message)s")
spark = new_session("local[1]", **json.loads(sys.argv[1]))
lines = [Path(f"/proc/{one}/cmdline").read_bytes().decode() for one in family(os.getpid())[1:]]
java = spark._jvm.java.lang.System
names = ["spark.store.password", "spark.authenticate", "spark.driver.bindAddress", "spark.local.dir"]
found = {name: spark.conf.get(name) for name in names}
found |= {name: java.getProperty(name) for name in ("java.io.tmpdir", "given")}
spark.stop()
print(json.dumps({"lines": lines, "found": found}))
"""


def run(script: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, sys.path))
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )


def test_a_session_that_is_open_is_noticed_once(tmp_path: Path) -> None:
    said = [line for line in run(GIVEN, folder=tmp_path).stderr.splitlines() if line.startswith("everview: ")]
    assert len(said) == 1
    for what in (
        "spark.authenticate is not true",
        "spark.io.encryption.enabled is not true",
        "spark.driver.bindAddress",
    ):
        assert what in said[0]
    assert "docs/zones.md" in said[0]


def test_settings_of_the_caller_reach_a_closed_session_and_hidden_ones_are_not_shown(tmp_path: Path) -> None:
    folder = tmp_path / "with a space"
    folder.mkdir()
    settings = {
        "spark.store.password": "nobody may see this",
        JAVA_OPTIONS: "-Dgiven=yes",
        LOCAL_DIRECTORIES: str(tmp_path),
    }
    done = run(OWN, json.dumps(settings), folder=folder)
    said = json.loads(done.stdout.splitlines()[-1])
    found = said["found"]
    assert not any("nobody may see this" in line or "spark.authenticate.secret" in line for line in said["lines"])
    assert found["spark.store.password"] == "nobody may see this" and found["given"] == "yes"
    assert found["spark.authenticate"] == "true" and found["spark.driver.bindAddress"] == "127.0.0.1"
    assert Path(found["spark.local.dir"]).parent == tmp_path
    assert found["java.io.tmpdir"] == found["spark.local.dir"]
    assert "is open to others" not in done.stderr
    assert list(tmp_path.iterdir()) == [folder] and list(folder.iterdir()) == []


def test_every_session_has_a_secret_of_its_own() -> None:
    one, other = (protection("local[2]", {})["spark.authenticate.secret"] for _ in range(2))
    assert one != other and len(one) == 64


def test_what_the_caller_sets_holds_but_files_stay_private(tmp_path: Path) -> None:
    disks = [tmp_path / "a", tmp_path / "b"]
    for disk in disks:
        disk.mkdir()
    given = {"spark.driver.host": "::1", LOCAL_DIRECTORIES: ", ".join(map(str, disks))}
    found = protection("local[2]", given)
    assert found["spark.driver.host"] == "::1"
    folders = [Path(one) for one in found[LOCAL_DIRECTORIES].split(",")]
    assert [one.parent for one in folders] == disks
    assert {stat.S_IMODE(one.stat().st_mode) for one in folders} == {0o700}


def test_sockets_have_short_paths_wherever_files_are(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    folder = Path(protection("local[2]", {LOCAL_DIRECTORIES: str(deep)})["spark.python.unix.domain.socket.dir"])
    assert len(str(folder)) < 60 and stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("master", ["spark://127.0.0.1:7077", "yarn"])
def test_a_cluster_keeps_its_own_secret(master: str) -> None:
    found = protection(master, {})
    assert not set(CLOSED) & set(found) and "spark.authenticate.secret" not in found


def test_options_of_java_with_spaces_and_quotes_stay_whole(tmp_path: Path) -> None:
    folder = tmp_path / 'a "b'
    folder.mkdir()
    found = java_options({LOCAL_DIRECTORIES: str(folder), JAVA_OPTIONS: "-Xss1m"}, "-Da=b")
    assert found.startswith("-Da=b ") and found.endswith(" -XX:-UsePerfData -Xss1m")
    assert r"a \"b" in found


def test_servers_of_a_local_master_are_closed() -> None:
    assert for_servers("local[2]").items() >= (FOR_SERVERS | CLOSED).items()
    assert not set(CLOSED) & set(for_servers("spark://127.0.0.1:7077"))
    assert for_servers("local[2]")["spark.connect.grpc.binding.address"] == "127.0.0.1"
