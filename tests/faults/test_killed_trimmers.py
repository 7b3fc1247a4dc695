"""Processes killed while they trim logs that others write and read.

What a log says it has is there, entry after entry, whichever process was killed while trimming it.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from everview.change.frontier import Frontier
from everview.errors import LogTrimmedError
from everview.store.contract import Store
from everview.store.embedded.layout import LOG
from everview.store.embedded.store import EmbeddedStore
from tests.adapters import workload
from tests.faults.processes import Nursery
from tests.faults.victims import open_store

SEED = int(os.environ.get("EVERVIEW_FAULT_SEED", "1"))
KILLS = 25


def read_all(store: Store) -> Frontier:
    """Read the logs from where they begin: there is no gap. Returns how far that is."""
    tables = list(workload.tables_of(store).values())
    while True:
        oldest, latest = store.log.oldest(), store.log.latest()
        try:
            for piece in oldest.slices_to(latest):
                content = store.log.read(piece, tables)
                assert not content.damaged
                numbers = sorted(n for batch in content.batches for n in batch.entries["__seq"].to_pylist())
                assert numbers == list(range(piece.after + 1, piece.upto + 1)), f"a gap in {piece}"
            return latest
        except LogTrimmedError:
            continue  # trimmed since we looked


def test_trimmers_are_killed_while_others_write_and_read(nursery: Nursery, tmp_path: Path) -> None:
    rng = random.Random(SEED)
    arguments: dict[str, object] = {"directory": str(tmp_path / "store"), "durability": "none"}
    store = open_store(arguments)
    workload.create(store)
    writer = nursery.start("write", writer=0, first=1, seed=SEED, **arguments)
    reached = Frontier()
    for kill in range(KILLS):
        trimmer = nursery.start("trim", seed=SEED + kill, **arguments)
        trimmer.listen(rng.choice([1, 1, 2, 5]))
        writer.listen(len(writer.reports) + 3)
        trimmed = [Frontier.parse(report.split()[1]) for report in trimmer.kill(rng) if report.startswith("trimmed")]
        oldest = store.log.oldest()
        assert all(frontier <= oldest for frontier in trimmed), "what was acknowledged as trimmed came back"
        now = read_all(store)
        assert reached <= now
        reached = now
    writer.kill(rng)
    end = store.log.latest()
    store.log.trim(end)
    assert read_all(store) == store.log.oldest() == end and left(store) == 0
    with pytest.raises(LogTrimmedError):
        store.log.advance(Frontier(), 1)
    store.close()


def left(store: EmbeddedStore) -> int:
    with store._handle.base.read() as transaction:
        return sum(key.startswith(LOG) for key in transaction.cursor().iternext(values=False))
