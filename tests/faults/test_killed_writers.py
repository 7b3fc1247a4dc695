"""Writers killed at random moments, hundreds of times, in every durability mode.

Whatever instruction a writer dies at, rows and logs agree, batches are whole, sequence
numbers have neither gap nor duplicate, and what was acknowledged is there.

A killed process loses nothing that the kernel has, so acknowledged writes must survive in
every mode, not only under ``fsync``.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from everview.store.contract import Store, Table
from tests.adapters import workload
from tests.faults.processes import Nursery, Victim
from tests.faults.victims import open_store

SEED = int(os.environ.get("EVERVIEW_FAULT_SEED", "1"))
WRITERS = 3
ROUNDS = 5
KILLS = 12
"""Per round, besides the ones that end it."""


@dataclass
class Writer:
    """One writer over all its lives."""

    number: int
    acknowledged: set[int] = field(default_factory=set)
    attempted: int = 0

    def learn(self, reports: list[str]) -> None:
        numbers = {int(report.split()[1]) for report in reports if report.startswith("ack")}
        self.acknowledged |= numbers
        self.attempted = max({self.attempted, *numbers}) + 1


def _start(nursery: Nursery, writer: Writer | None, arguments: dict[str, object], rng: random.Random) -> Victim:
    if writer is None:
        return nursery.start("move", seed=rng.getrandbits(30), **{k: v for k, v in arguments.items() if k != "seed"})
    return nursery.start("write", writer=writer.number, first=writer.attempted + 1, **arguments)


@pytest.mark.parametrize("durability", ["fsync", "group", "none"])
def test_what_killed_writers_leave_behind_is_whole(nursery: Nursery, tmp_path: Path, durability: str) -> None:
    rng = random.Random(f"{SEED}/{durability}")
    arguments: dict[str, object] = {
        "directory": str(tmp_path / "store"),
        "durability": durability,
        "before_images": durability != "none",
        "seed": SEED,
    }
    store = open_store(arguments)
    tables = workload.create(store)
    store.close()
    tail: workload.Tail | None = None
    writers = [Writer(number) for number in range(WRITERS)]
    kills = 0
    for _ in range(ROUNDS):
        living = [(writer, _start(nursery, writer, arguments, rng)) for writer in (*writers, None)]
        for _ in range(KILLS):
            place = rng.randrange(len(living))
            writer, victim = living[place]
            victim.listen(rng.choice([0, 1, 2, 10, 25]))
            _bury(writer, victim, rng)
            living[place] = writer, _start(nursery, writer, arguments, rng)
        for writer, victim in living:
            _bury(writer, victim, rng)
        kills += KILLS + len(living)
        store = open_store(arguments)
        tail = _check(store, tables, tail, writers)
        store.close()
    assert kills >= 80
    assert all(len(writer.acknowledged) > 20 for writer in writers)


def _bury(writer: Writer | None, victim: Victim, rng: random.Random) -> None:
    reports = victim.kill(rng)
    if writer is not None:
        writer.learn(reports)


def _check(store: Store, tables: dict[str, Table], tail: workload.Tail | None, writers: list[Writer]) -> workload.Tail:
    if tail is None:
        tail = workload.Tail(store, tables)
    tail.store = store
    while tail.follow(500):
        pass
    tail.check_tables()
    for writer in writers:
        workload.check_steps(tail, SEED, writer.number, writer.acknowledged, writer.attempted)
    return tail


def test_a_killed_waiter_takes_nobody_with_it(nursery: Nursery, tmp_path: Path) -> None:
    """Of three that wait for each other one is killed: the other two both go on. The kernel
    wakes one waiter at a time, and a dead one wakes no other."""
    rng = random.Random(SEED)
    arguments: dict[str, object] = {"directory": str(tmp_path / "store"), "durability": "none"}
    store = open_store(arguments)
    workload.create(store)
    store.close()
    for _ in range(30):
        victims = [nursery.start("contend", **arguments) for _ in range(3)]
        for victim in victims:
            victim.listen(2)
        victims.pop().kill(rng)
        for victim in victims:
            victim.listen(len(victim.reports) + 20)
        for victim in victims:
            victim.kill(rng)


def test_a_store_whose_creator_was_killed_is_created_or_whole(nursery: Nursery, tmp_path: Path) -> None:
    rng = random.Random(SEED)
    for number in range(25):
        arguments: dict[str, object] = {"directory": str(tmp_path / f"store{number}"), "durability": "group"}
        first, second = nursery.start("create", **arguments), nursery.start("create", **arguments)
        first.kill(rng)
        second.listen(2)
        assert second.reports == ["created", "done"]
        second.kill(rng)
        store = open_store(arguments)
        tables = workload.create(store)
        for step in range(1, 10):
            workload.perform(store, tables, workload.step(SEED, 0, step))
        tail = workload.check_all(store, tables)
        workload.check_steps(tail, SEED, 0, set(range(1, 10)), 9)
        store.close()
