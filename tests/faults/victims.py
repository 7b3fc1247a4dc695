"""What the killed processes were doing.

A victim reports every step after the store acknowledged it, in lines of one
length, and waits when its parent does not listen, so that it never runs far ahead.
"""

from __future__ import annotations

import itertools
import os
import random
import select
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from everview.store.contract import BagRows, Deletes, Puts, StateTable, Store
from everview.store.embedded import logs
from everview.store.embedded.store import EmbeddedStore
from tests.adapters import workload
from tests.maintain.victim import maintain

LINE = 512
PIPE = 8192
"""So many bytes of reports may wait to be read."""

Arguments = dict[str, Any]


class Reports:
    """The victim's end of its pipe."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def send(self, line: str) -> None:
        assert len(line) < LINE
        os.write(self._descriptor, line.encode().ljust(LINE - 1) + b"\n")

    def try_send(self, line: str) -> None:
        """Report unless nobody listens."""
        _, writable, _ = select.select([], [self._descriptor], [], 0)
        if writable:
            self.send(line)

    def send_long(self, text: str) -> None:
        os.write(self._descriptor, text.encode())


def open_store(arguments: Arguments) -> EmbeddedStore:
    return EmbeddedStore.open(
        Path(arguments["directory"]),
        create=True,
        durability=arguments["durability"],
        before_images=arguments.get("before_images", True),
        nodes=4,
        map_size=arguments.get("map_size", 1 << 30),
    )


def create(reports: Reports, arguments: Arguments) -> None:
    store = open_store(arguments)
    reports.send("created")
    store.close()


def write(reports: Reports, arguments: Arguments) -> None:
    """One step after another, from the given number on."""
    store = open_store(arguments)
    tables = workload.tables_of(store)
    reports.send("open")
    for number in itertools.count(arguments["first"]):
        workload.perform(store, tables, workload.step(arguments["seed"], arguments["writer"], number))
        reports.send(f"ack {number}")


def contend(reports: Reports, arguments: Arguments) -> None:
    """Write as fast as possible, waiting for nobody but other writers."""
    store = open_store(arguments)
    slots = store.table(workload.tables_of(store)["slots"])
    reports.send("open")
    for number in itertools.count():
        slots.put({"slot": number % 10, "token": number})
        if number % 50 == 0:
            reports.try_send(f"ack {number}")


def move(reports: Reports, arguments: Arguments) -> None:
    """Nodes come and go, regions are split and move."""
    rng = random.Random(arguments["seed"])
    topology = open_store(arguments).topology
    reports.send("open")
    for number in itertools.count():
        nodes = topology.nodes()
        choice = rng.randrange(6)
        if choice == 0 and len(nodes) < 8 and max(nodes) < 24:
            topology.add_node()
        elif choice == 1 and len(nodes) > 2:
            topology.remove_node(rng.choice(nodes))
        elif choice == 2 and len(topology.regions()) < 64:
            topology.split(rng.randrange(2**32))
        else:
            topology.move(rng.randrange(2**32), rng.choice(nodes))
        reports.send(f"ack {number}")


def trim(reports: Reports, arguments: Arguments) -> None:
    """Trim some, and some more, a few blocks at a time."""
    logs.TRIM_BLOCKS = 3
    rng = random.Random(arguments["seed"])
    store = open_store(arguments)
    reports.send("open")
    while True:
        cut = store.log.advance(store.log.oldest(), rng.choice([1, 10, 100]))
        store.log.trim(cut)
        reports.try_send(f"trimmed {cut}")


# ------------------------------------------------------------------ epochs

KEYS = [b"key/%02d" % number for number in range(60)]
BAG_KEYS = [b"bag/%d" % number for number in range(6)]

Work = tuple[dict[int, dict[bytes, bytes | None]], dict[bytes, dict[bytes, int]]]


def state_tables(group: str) -> tuple[StateTable, StateTable, StateTable]:
    """Two tables of records and one of bags."""
    first = 1 if group == "main" else 11
    return tuple(StateTable(first + n, f"{group}{n}", group) for n in range(3))  # type: ignore[return-value]


def work_of(group: str, epoch: int, base: int) -> Work:
    """What an epoch must write: by record table what keys become, and the changes of bags."""
    rng = random.Random(f"{group}/{epoch}")
    records = {
        table.id: {
            key: None if rng.random() < 0.4 else b"%s of %d" % (key, epoch) * rng.choice([1, 1, 100])
            for key in sorted(rng.sample(KEYS, 25))
        }
        for table in state_tables(group)[:2]
    }
    bags: dict[bytes, dict[bytes, int]] = {}
    for key in BAG_KEYS:
        changes = dict.fromkeys(_added(group, epoch, key), 1)
        if base:
            changes |= dict.fromkeys(_added(group, base, key)[::2], -1)
        if changes:
            bags[key] = changes
    return records, bags


def _added(group: str, epoch: int, key: bytes) -> list[bytes]:
    rng = random.Random(f"{group}/{epoch}/{key!r}")
    return [struct.pack(">IQ", rng.getrandbits(32), epoch) for _ in range(rng.choice([0, 3, 40]))]


def epochs(reports: Reports, arguments: Arguments) -> None:
    """Epoch after epoch of one group. Each attempt cuts the work in its own way."""
    store = open_store(arguments)
    reports.send("open")
    while True:
        run_epoch(store, arguments["group"], reports.send)


def run_epoch(store: Store, group: str, report: Callable[[str], None]) -> int:
    rng = random.Random()
    views = store.views
    wanted = store.log.latest()
    begun = views.begin(group, wanted, rng.randbytes(4))
    report(f"begun {begun.epoch} {begun.base} {begun.frontier} {begun.plan.hex()}")
    records, bags = work_of(group, begun.epoch, begun.base)
    *record_tables, bag_table = state_tables(group)
    calls: list[Callable[[], object]] = []
    for table in record_tables:
        for part in _parts(rng, sorted(records[table.id])):
            calls.append(lambda t=table, p=part: _write_records(store, t, begun.epoch, p, records[t.id]))  # type: ignore[misc]
    for part in _parts(rng, sorted(bags)):
        calls.append(lambda p=part: _write_bags(store, bag_table, begun.epoch, p, bags))  # type: ignore[misc]
    rng.shuffle(calls)
    for call in calls:
        call()
    views.commit(group, begun.epoch)
    report(f"committed {begun.epoch}")
    if begun.epoch % 3 == 0:
        views.sweep(group)
    return begun.epoch


def _parts(rng: random.Random, keys: list[bytes]) -> list[list[bytes]]:
    rng.shuffle(keys)
    cut = rng.randrange(len(keys) + 1)
    return [part for part in (keys[:cut], keys[cut:]) if part]


def _write_records(
    store: Store, table: StateTable, epoch: int, keys: list[bytes], work: dict[bytes, bytes | None]
) -> None:
    puts = [key for key in keys if work[key] is not None]
    gone = [key for key in keys if work[key] is None]
    store.views.write(table, epoch, Puts(_column(puts), _column([work[key] for key in puts])), Deletes(_column(gone)))


def _write_bags(
    store: Store, table: StateTable, epoch: int, keys: list[bytes], work: dict[bytes, dict[bytes, int]]
) -> None:
    rows = [(key, entry, count) for key in keys for entry, count in work[key].items()]
    changes = BagRows(
        _column([key for key, _, _ in rows]),
        _column([entry for _, entry, _ in rows]),
        pa.array([count for _, _, count in rows], pa.int64()),
    )
    store.views.write_bags(table, epoch, changes)


def _column(items: list[bytes] | list[bytes | None]) -> pa.LargeBinaryArray:
    return pa.array(items, pa.large_binary())


ROLES: dict[str, Callable[[Reports, Arguments], None]] = {
    "create": create,
    "write": write,
    "contend": contend,
    "move": move,
    "trim": trim,
    "epochs": epochs,
    "maintain": maintain,
}
