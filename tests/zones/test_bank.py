"""The bank: no reader ever sees money come or go, however often the pipeline is killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.zones.bank import ACCOUNTS, TOTAL, open_bank, seen, transfer
from tests.zones.writer import ROOT

KILLS = 2
PAUSE = 0.01


def test_every_snapshot_shows_the_same_total_while_the_pipeline_is_killed(tmp_path: Path) -> None:
    rng = random.Random(1)
    path = tmp_path / "store"
    over = threading.Event()
    with open_bank(path) as db:
        watched: list[tuple[int, list[tuple[int, int]]]] = []

        def watch() -> None:
            with open_bank(path) as mine:
                while not over.wait(PAUSE):
                    watched.append(seen(mine))

        reader = threading.Thread(target=watch)
        reader.start()
        try:
            for _ in range(KILLS):
                pipeline = subprocess.Popen(
                    [sys.executable, "-m", "tests.zones.bank", str(path)],
                    cwd=ROOT,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
                assert pipeline.stdin is not None and pipeline.stdout is not None
                assert pipeline.stdout.readline() == b"running\n"
                before = db.store.views.committed("main").epoch
                until = None
                while until is None or time.monotonic() < until:
                    transfer(db, rng)
                    over.wait(PAUSE)
                    if until is None and db.store.views.committed("main").epoch > before + 1:
                        until = time.monotonic() + rng.random()  # somewhere in a later epoch
                os.kill(pipeline.pid, signal.SIGKILL)
                pipeline.wait()
                pipeline.stdin.close()
                pipeline.stdout.close()
        finally:
            over.set()
            reader.join()
        db.flush()
        assert seen(db)[1] == [(TOTAL, ACCOUNTS)] * 4
    assert {total for _, totals in watched for total in totals} == {(TOTAL, ACCOUNTS)}
    assert len({epoch for epoch, _ in watched}) > KILLS
