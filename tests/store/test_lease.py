"""Leases: one holder at a time, named by its process, and free when that is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from everview.errors import LeaseTakenError
from everview.store.embedded import lease
from everview.store.embedded.store import EmbeddedStore

HOLDER = """
import sys
from everview.store.embedded.store import EmbeddedStore
store = EmbeddedStore.open(sys.argv[1], create=False)
with store.lease("maintenance"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_lease_is_held_once_and_given_back(tmp_path: Path) -> None:
    store = EmbeddedStore.open(tmp_path / "store", create=True, durability="none")
    with store.lease("one"):
        with pytest.raises(LeaseTakenError, match=f"one of .* is done by process {os.getpid()}"), store.lease("one"):
            pass
        with store.lease("other"):
            pass
    with store.lease("one"):
        pass
    store.close()


def test_the_lease_of_a_killed_process_is_free(tmp_path: Path) -> None:
    store = EmbeddedStore.open(tmp_path / "store", create=True, durability="none")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(store.directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    ) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        with pytest.raises(LeaseTakenError, match=f"process {holder.pid}") as taken, store.lease("maintenance"):
            pass
        assert taken.value.hint == "stop it first, or wait until it is gone"
        holder.send_signal(signal.SIGKILL)
        with store.lease("maintenance", wait=60):
            pass
    store.close()


def test_a_lock_that_a_look_at_all_of_them_missed_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = EmbeddedStore.open(tmp_path / "store", create=True, durability="none")
    seen = lease._is_locked
    missed = iter([True, True])
    monkeypatch.setattr(lease, "_is_locked", lambda inode: not next(missed, False) and seen(inode))
    with store.lease("one"):
        assert store.holder("one") == f"process {os.getpid()}"
    assert store.holder("one") is None and store.holder("other") is None
    store.close()
