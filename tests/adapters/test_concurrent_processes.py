"""Several processes at once: writers, a mover of regions, a follower of the logs, readers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.adapters import workload
from tests.adapters.guarantees import needs
from tests.adapters.under_test import ADAPTERS, CROWDED, StoreUnderTest

ROOT = Path(__file__).parents[2]
DEADLINE = 120
SEED = 20
STEPS = 200
EPOCHS = 100


class Worker:
    """A process that runs one role of ``worker.py``."""

    def __init__(self, under_test: StoreUnderTest, role: str, *arguments: int) -> None:
        command = [sys.executable, "-m", "tests.adapters.worker", role, under_test.name, str(under_test.path)]
        self.process = subprocess.Popen(
            [*command, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            text=True,
        )

    def ready(self) -> None:
        """Wait until it has opened the store."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n", self.process.communicate()[1]

    def finish(self) -> dict[str, Any]:
        """What it reports once it is done."""
        out, err = self.process.communicate(timeout=DEADLINE)
        assert self.process.returncode == 0, err
        return json.loads(out.splitlines()[-1])

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


@pytest.mark.parametrize(
    ("adapter", "trim"),
    [
        ("embedded", False),
        ("embedded-without-before-images", False),
        ("embedded-that-must-grow", False),
        ("embedded", True),
    ],
)
def test_writers_movers_and_followers(adapter: str, trim: bool, tmp_path: Path) -> None:
    """The logs give the tables, without gap or duplicate, and no batch is ever seen in part."""
    under_test = CROWDED[adapter](tmp_path / "store")
    store = under_test.open()
    needs(store, "atomic_batches")
    needs(store, "per_key_order")
    tables = workload.create(store)
    others = [
        Worker(under_test, "move", SEED),
        Worker(under_test, "tail", int(trim)),
        Worker(under_test, "read", SEED),
    ]
    writers: list[Worker] = []
    try:
        for worker in others:
            worker.ready()
        writers += [Worker(under_test, "write", SEED, number, STEPS) for number in range(3)]
        for writer in writers:
            writer.finish()
        moved, followed, read = [worker.finish() for worker in others]
    finally:
        for worker in (*writers, *others):
            worker.kill()
    assert moved["changes"] > 0
    assert read["versions"] > 0
    steps = [workload.step(SEED, writer, number) for writer in range(3) for number in range(1, STEPS + 1)]
    tokens = {step.token for step in steps if any("token" in row for _, row in step.puts)}
    assert set(followed["tokens"]) == tokens
    if not trim:
        tail = workload.check_all(store, tables)
        assert tail.tokens == tokens
        assert tail.entries == followed["entries"]
        for number in range(3):
            workload.check_steps(tail, SEED, number, set(range(1, STEPS + 1)), STEPS)
    store.close()


@pytest.mark.parametrize("adapter", sorted(ADAPTERS))
def test_epochs_pass_while_others_read(adapter: str, tmp_path: Path) -> None:
    """A snapshot is one epoch over all tables, whatever is begun, written, committed and swept."""
    under_test = CROWDED[adapter](tmp_path / "store")
    store = under_test.open()
    driver = Worker(under_test, "advance_epochs", EPOCHS)
    readers = [Worker(under_test, "read_epochs", EPOCHS // 3) for _ in range(2)]
    try:
        reports = [reader.finish() for reader in readers]
        report = driver.finish()
    finally:
        for worker in (driver, *readers):
            worker.kill()
    assert store.views.committed("main").epoch == report["epoch"] >= EPOCHS
    assert all(report["epochs"] == EPOCHS // 3 for report in reports)
    store.close()
