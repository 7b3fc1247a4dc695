"""Processes killed inside begin, write, commit and sweep.

After a kill the epoch that was under way goes on with the frontier and the plan it
began with, and what the tables hold as of every commit is what the epochs' work adds up to.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from everview.change.frontier import Frontier
from everview.store.contract import Store
from tests.adapters import workload
from tests.faults.processes import Nursery, Victim
from tests.faults.victims import BAG_KEYS, KEYS, open_store, run_epoch, state_tables, work_of

SEED = int(os.environ.get("EVERVIEW_FAULT_SEED", "1"))
ROUNDS = 8
KILLS = 5


@dataclass
class Ledger:
    """What a group's processes reported, and the state that must follow from it."""

    group: str
    begun: dict[int, tuple[int, Frontier, str]] = field(default_factory=dict)
    committed: int = 0
    state: dict[int, tuple[dict[int, dict[bytes, bytes]], dict[bytes, Counter[bytes]]]] = field(
        default_factory=lambda: {0: ({}, {})}
    )

    def learn(self, reports: list[str]) -> None:
        for report in reports:
            what, *rest = report.split(" ")
            if what == "begun":
                epoch, base, frontier, plan = rest
                begun = int(base), Frontier.parse(frontier), plan
                assert self.begun.setdefault(int(epoch), begun) == begun, "an epoch began twice, and differently"
            elif what == "committed":
                self.committed = max(self.committed, int(rest[0]))

    def state_at(self, epoch: int) -> tuple[dict[int, dict[bytes, bytes]], dict[bytes, Counter[bytes]]]:
        """Both record tables and the bags, by the work of all epochs up to this one."""
        missing = []
        while epoch not in self.state:
            missing.append(epoch)
            epoch = self.begun[epoch][0]
        for following in reversed(missing):
            base = self.begun[following][0]
            records, bags = self.state[base]
            records = {table.id: dict(records.get(table.id, {})) for table in state_tables(self.group)[:2]}
            bags = {key: Counter(bag) for key, bag in bags.items()}
            wanted, changes = work_of(self.group, following, base)
            for id, part in wanted.items():
                for key, value in part.items():
                    records[id].pop(key, None)
                    if value is not None:
                        records[id][key] = value
            for key, entries in changes.items():
                bag = bags.setdefault(key, Counter())
                bag.update(entries)
                bags[key] = +bag
            self.state[following] = records, bags
            epoch = following
        return self.state[epoch]

    def check(self, store: Store) -> None:
        commit = store.views.committed(self.group)
        assert commit.epoch >= self.committed, "a commit that was acknowledged is lost"
        if commit.epoch:
            assert commit.frontier == self.begun[commit.epoch][1]
            assert commit.frontier <= store.log.latest()
        begun = store.views.begun(self.group)
        if begun is not None:
            assert begun.epoch > commit.epoch
            self.learn([f"begun {begun.epoch} {begun.base} {begun.frontier} {begun.plan.hex()}"])
        self.check_state(store, commit.epoch)

    def check_state(self, store: Store, epoch: int) -> None:
        records, bags = self.state_at(epoch)
        *record_tables, bag_table = state_tables(self.group)
        for table in record_tables:
            expected = records.get(table.id, {})
            found = store.views.scan(table, b"", epoch)
            assert dict(zip(found.keys.to_pylist(), found.values.to_pylist(), strict=True)) == expected
            read = store.views.read(table, pa.array(KEYS, pa.large_binary()), epoch)
            assert read.to_pylist() == [expected.get(key) for key in KEYS]
        rows = store.views.read_bags(bag_table, pa.array(BAG_KEYS, pa.large_binary()), epoch)
        found_bags = zip(rows.keys.to_pylist(), rows.entries.to_pylist(), rows.counts.to_pylist(), strict=True)
        assert list(found_bags) == [(key, e, n) for key in BAG_KEYS for e, n in sorted(bags.get(key, {}).items())]


@pytest.mark.parametrize("durability", ["group", "none"])
def test_a_killed_epoch_is_resumed_as_it_began(nursery: Nursery, tmp_path: Path, durability: str) -> None:
    rng = random.Random(f"{SEED}/{durability}")
    arguments: dict[str, object] = {"directory": str(tmp_path / "store"), "durability": durability}
    store = open_store(arguments)
    workload.create(store)
    store.close()
    ledgers = [Ledger("main"), Ledger("lazy")]
    first = 1
    for _ in range(ROUNDS):
        writer = nursery.start("write", writer=0, first=first, seed=SEED, **arguments)
        living = [(ledger, nursery.start("epochs", group=ledger.group, **arguments)) for ledger in ledgers]
        for _ in range(KILLS):
            place = rng.randrange(len(living))
            ledger, victim = living[place]
            victim.listen(rng.choice([0, 1, 2, 3, 4, 5, 12]))
            ledger.learn(victim.kill(rng))
            living[place] = ledger, nursery.start("epochs", group=ledger.group, **arguments)
        writer.listen(5)
        first = _last_acknowledged(writer, rng, first) + 2
        for ledger, victim in living:
            ledger.learn(victim.kill(rng))
        store = open_store(arguments)
        for ledger in ledgers:
            ledger.check(store)
        store.close()
    store = open_store(arguments)
    for ledger in ledgers:
        reports: list[str] = []
        for _ in range(3):
            run_epoch(store, ledger.group, reports.append)
        ledger.learn(reports)
        ledger.check(store)
        store.views.sweep(ledger.group)
        ledger.check(store)
        assert ledger.committed > ROUNDS
    store.close()


def _last_acknowledged(writer: Victim, rng: random.Random, first: int) -> int:
    numbers = [int(report.split()[1]) for report in writer.kill(rng) if report.startswith("ack")]
    return max(numbers, default=first - 1)
