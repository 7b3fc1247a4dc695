"""The processes of the concurrency tests: ``python -m tests.adapters.worker <role> <adapter> <directory> …``.

A worker opens the store by itself, works until it is done or its standard input is
closed, asserts what it sees, and prints "ready" and then what it did as one line of JSON.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import random
import select
import sys
from pathlib import Path

import pyarrow as pa

from everview.errors import StaleEpochError
from everview.store.contract import BagRows, Puts, StateReader, StateTable, Store
from tests.adapters import workload
from tests.adapters.under_test import CROWDED

STUCK = 90
"""Seconds after which a worker says where it hangs, and ends."""
RECORDS = StateTable(1, "records", "main"), StateTable(2, "more_records", "main")
BAGS = StateTable(3, "bags", "main")
STATE_KEYS = pa.array([b"key %d" % number for number in range(20)], pa.large_binary())


def asked_to_stop(wait: float = 0.0) -> bool:
    """Whether the parent closed our standard input; waits that long for it."""
    readable, _, _ = select.select([sys.stdin], [], [], wait)
    return bool(readable)


def write(store: Store, seed: int, writer: int, steps: int) -> dict[str, object]:
    tables = workload.tables_of(store)
    for number in range(1, steps + 1):
        workload.perform(store, tables, workload.step(seed, writer, number))
    return {"steps": steps}


def move(store: Store, seed: int) -> dict[str, object]:
    """Add, remove, split and move, as long as the writers write."""
    rng = random.Random(seed)
    topology = store.topology
    changes = 0
    while not asked_to_stop(0.003):
        nodes = topology.nodes()
        choice = rng.randrange(10)
        if choice == 0 and len(nodes) < 8:
            topology.add_node()
        elif choice == 1 and len(nodes) > 2:
            topology.remove_node(rng.choice(nodes))
        elif choice == 2 and len(topology.regions()) < 64:
            topology.split(rng.randrange(2**32))
        else:
            topology.move(rng.randrange(2**32), rng.choice(nodes))
        changes += 1
    return {"changes": changes}


def tail(store: Store, trim: int) -> dict[str, object]:
    """Follow the logs; with ``trim``, forget what has been taken."""
    follower = workload.Tail(store, workload.tables_of(store))
    stopping = False
    while True:
        if follower.follow(limit=37):
            if trim:
                store.log.trim(follower.cut)
        elif stopping:
            break
        else:
            stopping = asked_to_stop(0.002)
    follower.check_tables()
    return {"entries": follower.entries, "tokens": sorted(follower.tokens)}


def read(store: Store, seed: int) -> dict[str, object]:
    """Batches are whole for other clients, too."""
    rng = random.Random(seed)
    groups = store.table(workload.tables_of(store)["groups"])
    seen: set[object] = set()
    while not asked_to_stop(0.001):
        group = rng.randrange(workload.GROUPS)
        if rng.random() < 0.5:
            rows = groups.get_many([(group, member) for member in range(workload.GROUP_SIZE)]).to_pylist()
        else:
            rows = [row for batch in groups.scan((group,)) for row in batch.to_pylist()]
        workload.check_groups(rows)
        seen.update(row["token"] for row in rows)
    return {"versions": len(seen)}


def advance_epochs(store: Store, epochs: int) -> dict[str, object]:
    """Every epoch writes its own number into every record, and it alone into every bag; at
    least so many, and until the parent asks it to stop."""
    views = store.views
    while views.committed("main").epoch < epochs or not asked_to_stop(0):
        begun = views.begin("main", store.log.latest(), b"plan")
        value = b"%d" % begun.epoch
        for table in RECORDS:
            views.write(table, begun.epoch, Puts(STATE_KEYS, pa.array([value] * len(STATE_KEYS), pa.large_binary())))
        keys = STATE_KEYS.to_pylist() * (2 if begun.base else 1)
        entries = [value] * len(STATE_KEYS) + ([b"%d" % begun.base] * len(STATE_KEYS) if begun.base else [])
        counts = [1] * len(STATE_KEYS) + ([-1] * len(STATE_KEYS) if begun.base else [])
        views.write_bags(
            BAGS,
            begun.epoch,
            BagRows(
                pa.array(keys, pa.large_binary()), pa.array(entries, pa.large_binary()), pa.array(counts, pa.int64())
            ),
        )
        views.commit("main", begun.epoch)
        views.sweep("main")
    return {"epoch": views.committed("main").epoch}


def read_epochs(store: Store, epochs: int) -> dict[str, object]:
    """A snapshot shows one epoch in all tables, and the same again after others have passed;
    a read without one shows its epoch or is refused. Ends when so many were seen."""
    seen: set[int] = set()
    refused = 0
    while len(seen) < epochs:
        with store.snapshot() as snapshot:
            epoch = snapshot.committed("main").epoch
            _check_epoch(snapshot, epoch)
            seen.add(epoch)
            latest = store.views.committed("main").epoch
            try:
                _check_epoch(store.views, latest)
            except StaleEpochError:
                refused += 1
            _check_epoch(snapshot, epoch)
            assert snapshot.committed("main").epoch == epoch
    return {"epochs": len(seen), "refused": refused}


def _check_epoch(reader: StateReader, epoch: int) -> None:
    expected = b"%d" % epoch if epoch else None
    for table in RECORDS:
        assert set(reader.read(table, STATE_KEYS, epoch).to_pylist()) == {expected}
        assert set(reader.scan(table, b"key", epoch).values.to_pylist()) <= {expected}
    bags = reader.read_bags(BAGS, STATE_KEYS, epoch)
    assert bags.entries.to_pylist() == ([expected] * len(STATE_KEYS) if epoch else [])


ROLES = {
    "write": write,
    "move": move,
    "tail": tail,
    "read": read,
    "advance_epochs": advance_epochs,
    "read_epochs": read_epochs,
}


def main(role: str, adapter: str, directory: str, *arguments: str) -> None:
    faulthandler.dump_traceback_later(STUCK, exit=True)
    store = CROWDED[adapter](Path(directory)).open()
    print("ready", flush=True)
    with contextlib.closing(store):
        report = ROLES[role](store, *map(int, arguments))  # type: ignore[operator]
    print(json.dumps(report))


if __name__ == "__main__":
    main(*sys.argv[1:])
