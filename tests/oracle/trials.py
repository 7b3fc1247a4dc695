"""Trials: epochs that fail, are repeated, or come back from the dead change nothing.

A script is played in two stores at once, in one of them with every mishap that can befall
an epoch, and after each epoch both hold the same state, byte for byte.

| mishap | what is tried |
|---|---|
| twice | the epoch is run, and run again before it is committed |
| half | an attempt dies after some of its writes, and another one follows |
| zombie | an attempt goes on after its epoch is committed: it is refused |
| dry | the changes of every step are computed without writing, before and after the mishaps |
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from everview.change.entries import WEIGHT
from everview.errors import StaleEpochError
from everview.operators.members import MEMBER
from everview.store.contract import BagEnds, BagRows, Begun, Deletes, Log, Puts, StateTable
from tests.oracle.maintained import GROUP, EpochRunner, Maintained, bag
from tests.oracle.played import Played
from tests.oracle.script import Epoch, Script

State = list[tuple[bytes, bytes]]
Emitted = Mapping[str, pa.Table]


class Died(Exception):
    """Stands for the death of the process that ran the attempt."""


@dataclass
class Dying:
    """State tables that can be written so many times, and that count the rows written to them."""

    views: Any
    writes: int = sys.maxsize
    rows: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.views, name)

    def write(self, table: StateTable, epoch: int, puts: Puts, deletes: Deletes) -> None:
        self._count(len(puts.keys) + len(deletes.keys))
        self.views.write(table, epoch, puts, deletes)

    def write_bags(self, table: StateTable, epoch: int, changes: BagRows) -> BagEnds:
        self._count(len(changes.keys))
        found: BagEnds = self.views.write_bags(table, epoch, changes)
        return found

    def _count(self, rows: int) -> None:
        if not self.writes:
            raise Died
        self.writes -= 1
        self.rows += rows

    def beside(self, log: Log) -> Any:
        """As a store, to run an epoch on."""
        return SimpleNamespace(log=log, views=self)


def state(maintained: Maintained) -> State:
    """All that the state tables hold, epochs and previous values included."""
    found: State = []
    for shard in maintained.store._handle.core.shards:
        with shard.lmdb.begin() as transaction:
            found += list(transaction.cursor())
    return found


def emitted(maintained: Maintained, begun: Begun) -> Emitted:
    """What every step makes of an epoch's log, as of the epoch before."""
    batches = maintained.runner.read(maintained.store, begun).batches
    return maintained.runner.dry(maintained.store.views, begun.base, batches).changes


def written_out(changes: Emitted) -> str:
    return repr({step: table.to_pylist() for step, table in changes.items()})


@dataclass
class Trial:
    """A script in two stores."""

    plain: Played
    tried: Played
    rng: random.Random
    mishaps: Counter[str] = field(default_factory=Counter)

    def epoch(self, epoch: Epoch) -> None:
        """One epoch in both stores, compared."""
        self.plain.epoch(epoch)
        for write in epoch.writes:
            self.tried.write(write)
        maintained = self.tried.maintained
        log = maintained.store.log
        start = maintained.store.views.committed(GROUP).frontier
        begun = maintained.begin(log.latest() if epoch.most is None else log.advance(start, epoch.most))
        before = state(maintained)
        shown = self._shown()
        would = emitted(maintained, begun)
        assert state(maintained) == before, "a dry run wrote something"
        runner = maintained.runner
        for _ in range(self.rng.choice([0, 1, 1, 2])):
            self._mishap(begun)
            assert written_out(emitted(maintained, begun)) == written_out(would), "a step saw what its own epoch wrote"
        maintained.epoch(begun.frontier)
        assert state(maintained) == state(self.plain.maintained), "the state is not that of an undisturbed epoch"
        self._check_changes(shown, would)
        if self.rng.random() < 0.5:
            self._zombie(runner, begun)

    def _mishap(self, begun: Begun) -> None:
        maintained = self.tried.maintained
        if self.rng.random() < 0.4:
            self.mishaps["twice"] += 1
            maintained.runner.epoch(maintained.store, begun)
            return
        self.mishaps["half"] += 1
        store = Dying(maintained.store.views, self.rng.choice([0, 1, 2, 4, 8, 16])).beside(maintained.store.log)
        try:
            maintained.runner.epoch(store, begun)
        except Died:
            self.mishaps["died"] += 1

    def _zombie(self, runner: EpochRunner, begun: Begun) -> None:
        """A late attempt of an epoch. One that has nothing to write is not refused, and does nothing."""
        maintained = self.tried.maintained
        before = state(maintained)
        counted = Dying(maintained.store.views)
        try:
            runner.epoch(counted.beside(maintained.store.log), begun)
            assert not counted.rows, "a zombie was not refused"
        except StaleEpochError:
            self.mishaps["refused"] += 1
        assert state(maintained) == before, "a zombie wrote something"

    def _shown(self) -> dict[str, Counter[tuple[object, ...]]]:
        return {view.name: bag(self.tried.maintained.view(view.name)) for view in self.tried.script.views}

    def _check_changes(self, shown: dict[str, Counter[tuple[object, ...]]], would: Emitted) -> None:
        """The changes that a dry run returned, applied to what a view showed, are what it shows now."""
        maintained = self.tried.maintained
        for view in self.tried.script.views:
            planned = maintained.plan.view(view.name)
            step = maintained.plan.step(planned.step)
            changed = Counter(shown[view.name])
            changes = would.get(planned.step)
            if changes is not None and step.constants:
                member = step.constants.members.index(planned.constants)
                changes = changes.filter(pc.equal(changes[MEMBER], member))
            if changes is not None:
                columns = [changes[one.stored] for one in planned.columns]
                names = [str(number) for number in range(len(columns))]
                for row, count in bag(pa.table([*columns, changes[WEIGHT]], names=[*names, WEIGHT])).items():
                    changed[row[:-1]] += count * int(str(row[-1]))
            left = {row: count for row, count in changed.items() if count}
            assert left == dict(bag(maintained.view(view.name))), f"{view.name} is not what a dry run returned"


def play(script: Script, seed: int = 0) -> Counter[str]:
    """Play a script in two stores; returns which mishaps there were."""
    with tempfile.TemporaryDirectory() as path:
        plain = Played(Path(path) / "plain", script)
        try:
            tried = Played(Path(path) / "tried", script)
            try:
                trial = Trial(plain, tried, random.Random(seed))
                for epoch in script.epochs:
                    trial.epoch(epoch)
                return trial.mishaps
            finally:
                tried.close()
        finally:
            plain.close()
