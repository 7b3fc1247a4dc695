"""Processes with little address space: they open a store, keep views, and their maps grow."""

import subprocess
import sys
from pathlib import Path

import pytest

from everview.store.embedded.address_space import available, fitting_size

WORK = """
import resource, sys
limit = int(sys.argv[2]) << 30
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
import everview
with everview.open(sys.argv[1]) as db:
    handle = db.store._handle
    sizes = [file.lmdb.info()["map_size"] for file in (handle.base, *handle.shards)]
    assert len(set(sizes)) == 1 and 5 * sizes[0] < limit // 2 + (4 << 30), sizes
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, g BIGINT, v VARCHAR)")
    db.sql("CREATE MATERIALIZED VIEW n AS SELECT g, count(*) AS n, max(v) AS v FROM t GROUP BY g")
    for part in range(4):
        db.table("t").put_many([{"k": part * 500 + at, "g": at % 50, "v": "x" * 10000} for at in range(500)])
        db.flush()
    assert db.sql("SELECT sum(n) FROM n").rows() == [(2000,)]
    assert db.verify().right
    print(handle.base.lmdb.info()["map_size"] > sizes[0])
"""


@pytest.mark.parametrize("limit", [2, 4, 8, 16])
def test_a_limited_process_opens_a_store_and_keeps_views(tmp_path: Path, limit: int) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", WORK, str(tmp_path / "store"), str(limit)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip() == "True" or limit > 2, "the map of the base file has grown"


def test_a_small_process_reads_what_a_large_one_wrote(tmp_path: Path) -> None:
    """The other's map of 1 TiB is not adopted."""
    import everview

    with everview.open(tmp_path / "store") as db:
        table = db.create_table("t", {"k": "BIGINT", "v": "VARCHAR"}, key=["k"])
        code = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
from everview.store.embedded import EmbeddedStore
with EmbeddedStore.open(sys.argv[1], map_size=1 << 20) as store:
    print("open", flush=True)
    sys.stdin.readline()
    print(len(store.log.latest()) > 0)
    store.metadata.commit(store.metadata.version(), {"x": b""})
    assert store._handle.base.lmdb.info()["map_size"] < 1 << 30
"""
        child = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "store")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert child.stdin is not None and child.stdout is not None
        assert child.stdout.readline() == b"open\n"
        table.put_many([{"k": number, "v": "x" * 1000} for number in range(20_000)])
        output, _ = child.communicate(b"\n")
        assert (output, child.returncode) == (b"True\n", 0)


def test_all_maps_together_fit() -> None:
    assert fitting_size(5, 1 << 40, 1 << 20) == 1 << 40
    assert fitting_size(1 << 20, 1 << 40, 1 << 20) < 1 << 40
    assert available(1 << 40) and not available(1 << 50)
