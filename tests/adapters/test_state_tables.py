"""Records, bags and epochs in step with the model.

Whatever is half-written, retried, written by a zombie, swept, or held open
by a snapshot, a read as of an epoch shows exactly that epoch or is refused.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from everview.change.frontier import Frontier
from everview.errors import EpochError, EpochOrderError, SnapshotExpiredError, StaleEpochError
from everview.store.contract import BagEnds, BagRows, Deletes, Puts, StateReader, StateTable, TableSnapshot
from tests.adapters.effort import HISTORIES
from tests.adapters.histories import ITEMS
from tests.adapters.state_model import Contents, Group, Open, StateModel, Versions
from tests.adapters.under_test import ADAPTERS, define, defined

GROUPS = ["main", "lazy"]
ODD_KEYS = [b"\x00", b"\x00\x00", b"a", b"a\x00", b"a\x00\xff", b"ab", b"ab" * 50, b"b", b"\xff", b"\xff\xff"]
KEYS = [*ODD_KEYS, *(b"many/%02d" % number for number in range(60))]
PREFIXES = [b"", b"many/", b"many/3", b"a", b"a\x00", b"ab", b"\xff", b"\x00", b"zz"]
ENTRIES = [bytes([i]) * 8 for i in range(12)] + [b"", b"\x00", b"x" * 300, b"x" * 301]

keys = st.sampled_from(ODD_KEYS)
subsets = st.integers(0, 2 ** len(KEYS) - 1)
"""Which of all keys, one bit each."""
values = st.binary(max_size=12) | st.just(b"v" * 5000)
groups = st.sampled_from(GROUPS)


FIRST = [1, 0, 2, None, 5, 150, 1000]
"""How many rows of a bag are asked for."""


def column(items: Sequence[bytes | None]) -> pa.LargeBinaryArray:
    return pa.array(items, pa.large_binary())


def bag_rows(work: dict[bytes, dict[bytes, int]]) -> BagRows:
    changes = [(key, entry, count) for key, entries in work.items() for entry, count in entries.items()]
    return BagRows(
        column([key for key, _, _ in changes]),
        column([entry for _, entry, _ in changes]),
        pa.array([count for _, _, count in changes], pa.int64()),
    )


@dataclass
class Held:
    """A snapshot and what the tables held when it was taken."""

    snapshot: TableSnapshot
    epochs: dict[str, int]
    contents: dict[int, Contents]


class StateTables(RuleBasedStateMachine):
    adapter: str

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="everview-"))
        self.under_test = ADAPTERS[self.adapter](self.directory / "store")
        self.store = self.under_test.open()
        self.model = StateModel(groups={name: Group() for name in GROUPS})
        self.held: list[Held] = []
        self.next_id = 1
        self.rows = 0

    @initialize(data=st.data(), epochs=st.sampled_from([0, 1, 3]))
    def create(self, data: st.DataObject, epochs: int) -> None:
        """Tables of records and of bags in two groups, with some epochs behind them."""
        self.items = define(self.store, "items", ITEMS)
        for group, bags in [("main", False), ("main", False), ("main", True), ("lazy", False), ("lazy", True)]:
            self._create(group, bags)
        for number in range(epochs):
            self._begin(data, GROUPS[number % 2], b"")
            self._commit(GROUPS[number % 2])

    def _create(self, group: str, bags: bool) -> None:
        table = StateTable(self.next_id, f"state{self.next_id}", group)
        self.model.tables[table.id] = Versions(table, bags, {self.model.groups[group].epoch: {}})
        self.next_id += 1

    def teardown(self) -> None:
        try:
            for held in self.held:
                self._check_held(held)
            self._check_committed()
        finally:
            for held in self.held:
                held.snapshot.close()
            self.store.close()
            shutil.rmtree(self.directory)

    # ------------------------------------------------------------------ checks

    def _check_table(self, reader: StateReader, table: StateTable, bags: bool, as_of: int, contents: Contents) -> None:
        asked = column([*KEYS, b"nobody"])
        if bags:
            bag = reader.read_bags(table, asked, as_of)
            listed = list(zip(bag.keys.to_pylist(), bag.entries.to_pylist(), bag.counts.to_pylist(), strict=True))
            assert listed == [(k, e, n) for k in sorted(contents) for e, n in sorted(contents[k].items())]
            self._check_beginnings(reader, table, as_of, contents)
        else:
            assert reader.read(table, asked, as_of).to_pylist() == [contents.get(key) for key in asked.to_pylist()]
            found = reader.scan(table, b"", as_of)
            assert list(zip(found.keys.to_pylist(), found.values.to_pylist(), strict=True)) == sorted(contents.items())

    def _check_beginnings(self, reader: StateReader, table: StateTable, as_of: int, contents: Contents) -> None:
        """The first rows of bags, as many as each is asked for, and their first and last entries."""
        asked = [b"nobody", *reversed(ODD_KEYS)]
        firsts, lasts = reader.bag_ends(table, column([*asked, asked[-1]]), as_of)
        bags = [contents.get(key) for key in [*asked, asked[-1]]]
        assert firsts.to_pylist() == [min(bag) if bag else None for bag in bags]
        assert lasts.to_pylist() == [max(bag) if bag else None for bag in bags]
        wanted = {key: FIRST[(number + as_of) % len(FIRST)] for number, key in enumerate(asked)}
        found = reader.read_bags(table, column(asked), as_of, pa.array(wanted.values(), pa.int64()))
        listed = list(zip(found.keys.to_pylist(), found.entries.to_pylist(), found.counts.to_pylist(), strict=True))
        assert listed == [
            (key, entry, bag[entry])
            for key, bag in sorted(contents.items())
            if key in wanted
            for entry, before in zip(sorted(bag), accumulate((bag[e] for e in sorted(bag)), initial=0), strict=False)
            if wanted[key] is None or before < wanted[key]
        ]

    def _check_committed(self) -> None:
        for versions in self.model.tables.values():
            group = self.model.groups[versions.table.group]
            as_of = group.epoch
            self._check_table(
                self.store.views, versions.table, versions.bags, as_of, self.model.at(versions.table.id, as_of)
            )
        for name, group in self.model.groups.items():
            commit = self.store.views.committed(name)
            assert (commit.group, commit.epoch, commit.frontier) == (name, group.epoch, group.frontier)

    def _check_held(self, held: Held) -> None:
        for id, contents in held.contents.items():
            if id not in self.model.tables:
                continue
            versions = self.model.tables[id]
            as_of = held.epochs[versions.table.group]
            self._check_table(held.snapshot, versions.table, versions.bags, as_of, contents)
            if versions.bags:
                keys = sorted(contents, key=lambda key: (len(key), key))
                assert held.snapshot.bag_keys(versions.table, as_of).to_pylist() == keys
                for after, rest in zip(keys[:3], (keys[1:], keys[2:], keys[3:]), strict=False):
                    assert held.snapshot.bag_keys(versions.table, as_of, 2, after).to_pylist() == rest[:2]
        for name, epoch in held.epochs.items():
            assert held.snapshot.committed(name).epoch == epoch

    # ------------------------------------------------------------------ the life of an epoch

    def _grow_log(self) -> Frontier:
        self.rows += 1
        self.store.table(self.items).put({"id": self.rows, "name": "x"})
        return self.store.log.latest()

    @rule(data=st.data(), group=groups)
    def go_on(self, data: st.DataObject, group: str) -> None:
        """What comes next in the life of the group's epoch."""
        if self.model.groups[group].open is None:
            self._begin(data, group, data.draw(st.binary(max_size=8)))
        else:
            step = data.draw(st.sampled_from(["begin again", "write", "write", "commit"]))
            if step == "begin again":
                self._begin(data, group, data.draw(st.binary(max_size=8)))
            elif step == "write":
                self._attempt(data, group)
            else:
                self._commit(group)

    @rule(data=st.data(), group=groups)
    def whole_epoch(self, data: st.DataObject, group: str) -> None:
        self._begin(data, group, b"")
        self._attempt(data, group)
        self._commit(group)

    def _begin(self, data: st.DataObject, group: str, plan: bytes) -> None:
        """Begin the next epoch, or find the one that was begun, with its frontier and plan."""
        state = self.model.groups[group]
        frontier = self._grow_log()
        if state.open is None:
            assert self.store.views.begun(group) is None
        begun = self.store.views.begin(group, frontier, plan)
        if state.open is None:
            assert not begun.resumed
            assert begun.epoch > self.model.counter
            assert (begun.base, begun.start) == (state.epoch, state.frontier)
            assert (begun.frontier, begun.plan) == (frontier, plan)
            work = {v.table.id: self._draw_work(data, v) for v in self.model.tables.values() if v.table.group == group}
            self.model.begin(group, Open(begun.epoch, begun.base, begun.start, frontier, plan, work))
        else:
            assert begun.resumed
            self._check_begun(group)
            with pytest.raises(EpochOrderError):
                self.store.views.begin(group, frontier, plan, epoch=begun.epoch + 1)

    def _check_begun(self, group: str) -> None:
        opened = self.model.groups[group].open
        begun = self.store.views.begun(group)
        if opened is None:
            assert begun is None
        else:
            assert begun is not None
            assert (begun.group, begun.epoch, begun.base) == (group, opened.epoch, opened.base)
            assert (begun.start, begun.frontier, begun.plan) == (opened.start, opened.frontier, opened.plan)

    def _draw_work(self, data: st.DataObject, versions: Versions) -> dict[bytes, object]:
        drawn = self._draw_any_work(data, versions)
        return {key: work for key, work in drawn.items() if not key.startswith(tuple(versions.dropped))}

    def _draw_any_work(self, data: st.DataObject, versions: Versions) -> dict[bytes, object]:
        if not versions.bags:
            if data.draw(st.booleans()):
                return dict(data.draw(st.dictionaries(keys, st.none() | values, max_size=8)))
            chosen, gone, value = data.draw(subsets), data.draw(subsets), data.draw(values)
            return {
                key: None if gone >> number & 1 else key + value
                for number, key in enumerate(KEYS)
                if chosen >> number & 1
            }
        contents = versions.newest(self.model.counter)
        work: dict[bytes, object] = {}
        for key in data.draw(st.sets(keys, max_size=4).map(sorted)):
            bag = contents.get(key, Counter())
            if data.draw(st.booleans()):
                added = data.draw(st.dictionaries(st.sampled_from(ENTRIES), st.integers(1, 3), max_size=5))
            else:
                width = data.draw(st.sampled_from([2, 8]))
                first = data.draw(st.integers(0, 300))
                added = {i.to_bytes(width, "big"): 1 for i in range(first, first + data.draw(st.integers(0, 400)))}
            if bag and data.draw(st.booleans()):
                everything = data.draw(st.booleans())
                taken = sorted(bag) if everything else data.draw(st.lists(st.sampled_from(sorted(bag)), unique=True))
                added = {} if everything else added
                work[key] = {**added, **{entry: -bag[entry] for entry in taken}}
            else:
                work[key] = added
        return {key: changes for key, changes in work.items() if changes}

    def _attempt(self, data: st.DataObject, group: str) -> None:
        """An attempt writes some of the epoch's work, perhaps again."""
        with_previous, everything = data.draw(st.booleans()), data.draw(st.booleans())
        opened = self.model.groups[group].open
        assert opened is not None
        id = data.draw(st.sampled_from(sorted(opened.work)))
        if not opened.work[id]:
            return
        chosen = sorted(opened.work[id])
        if not everything:
            some = data.draw(st.integers(0, 2 ** len(chosen) - 1))
            chosen = [key for number, key in enumerate(chosen) if some >> number & 1]
        self._write(opened, id, chosen, with_previous)
        if data.draw(st.booleans()):
            self.sweep(group)
        versions = self.model.tables[id]
        self._check_table(
            self.store.views, versions.table, versions.bags, opened.epoch, self.model.at(id, opened.epoch)
        )
        self._check_table(self.store.views, versions.table, versions.bags, opened.base, self.model.at(id, opened.base))

    def _write(self, opened: Open, id: int, chosen: list[bytes], with_previous: bool) -> None:
        versions = self.model.tables[id]
        work, base = opened.work[id], self.model.at(id, opened.base)
        if versions.bags:
            self._write_bags(versions, opened.epoch, {key: work[key] for key in chosen}, base)
        else:
            puts = [key for key in chosen if work[key] is not None]
            gone = [key for key in chosen if work[key] is None]
            self.store.views.write(
                versions.table,
                opened.epoch,
                Puts(
                    column(puts),
                    column([work[key] for key in puts]),
                    column([base.get(key) for key in puts]) if with_previous else None,
                ),
                Deletes(column(gone), column([base.get(key) for key in gone]) if with_previous else None),
            )
        opened.written.setdefault(id, set()).update(chosen)

    def _write_bags(self, versions: Versions, epoch: int, work: dict[bytes, dict[bytes, int]], base: Contents) -> None:
        ends = self.store.views.write_bags(versions.table, epoch, bag_rows(work))
        self._check_ends(ends, versions, work, base)

    def _check_ends(
        self, ends: BagEnds, versions: Versions, work: dict[bytes, dict[bytes, int]], base: Contents
    ) -> None:
        touched = sorted(work)
        before = [base.get(key) for key in touched]
        after = [self.model.after(versions, base.get(key), work[key]) for key in touched]
        assert ends.keys.to_pylist() == touched
        assert ends.first_before.to_pylist() == [min(bag) if bag else None for bag in before]
        assert ends.last_before.to_pylist() == [max(bag) if bag else None for bag in before]
        assert ends.first_after.to_pylist() == [min(bag) if bag else None for bag in after]
        assert ends.last_after.to_pylist() == [max(bag) if bag else None for bag in after]

    def _commit(self, group: str) -> None:
        """The last attempt finishes what is missing and commits."""
        opened = self.model.groups[group].open
        assert opened is not None
        for id, work in opened.work.items():
            missing = sorted(work.keys() - opened.written.get(id, set()))
            if missing:
                self._write(opened, id, missing, with_previous=False)
        commit = self.store.views.commit(group, opened.epoch)
        self.model.commit(group)
        assert (commit.group, commit.epoch, commit.frontier) == (group, opened.epoch, opened.frontier)
        assert self.store.views.commit(group, opened.epoch).epoch == opened.epoch
        assert self.store.views.begun(group) is None
        self._check_committed()

    @rule(group=groups)
    def sweep(self, group: str) -> None:
        assert self.store.views.sweep(group) >= 0
        assert self.store.views.sweep(group) == 0
        self._check_committed()

    # ------------------------------------------------------------------ what must not happen

    @rule(data=st.data(), group=groups)
    def break_a_rule(self, data: st.DataObject, group: str) -> None:
        offences = [self._zombie_write, self._zombie_read, self._commit_out_of_order, self._begin_behind]
        data.draw(st.sampled_from(offences))(data, group)

    def _zombie_write(self, data: st.DataObject, group: str) -> None:
        """A write of an epoch that is committed, or was never begun, is refused and leaves nothing."""
        back, key = data.draw(st.integers(0, 3)), data.draw(keys)
        state = self.model.groups[group]
        epochs = {state.epoch - back, self.model.counter + 1 + back}
        for versions in self.model.tables.values():
            if versions.table.group != group:
                continue
            for epoch in epochs:
                if epoch < 0:
                    continue
                with pytest.raises(EpochError):
                    self._write_as_zombie(versions, epoch, key)
        self._check_committed()

    def _write_as_zombie(self, versions: Versions, epoch: int, key: bytes) -> None:
        if versions.bags:
            changes = BagRows(column([key]), column([b"z"]), pa.array([1], pa.int64()))
            self.store.views.write_bags(versions.table, epoch, changes)
        else:
            self.store.views.write(versions.table, epoch, Puts(column([key]), column([b"zombie"])))

    def _commit_out_of_order(self, _: st.DataObject, group: str) -> None:
        state = self.model.groups[group]
        opened = state.open.epoch if state.open else 0
        for epoch in {state.epoch - 1, self.model.counter + 1} - {opened, state.epoch}:
            with pytest.raises(EpochError):
                self.store.views.commit(group, epoch)
        self._check_begun(group)

    def _begin_behind(self, _: st.DataObject, group: str) -> None:
        state = self.model.groups[group]
        if state.open is None and state.frontier:
            with pytest.raises(EpochOrderError):
                self.store.views.begin(group, Frontier(), b"")
            assert self.store.views.begun(group) is None

    def _zombie_read(self, data: st.DataObject, group: str) -> None:
        """A read as of an epoch that is gone is refused, or right, and never a mixture."""
        state = self.model.groups[group]
        as_of = data.draw(st.integers(0, max(state.epoch - 1, 0)))
        if as_of >= state.epoch:
            return
        for versions in self.model.tables.values():
            if versions.table.group == group and min(versions.copies) <= as_of:
                with contextlib.suppress(StaleEpochError, SnapshotExpiredError):
                    self._check_table(self.store.views, versions.table, versions.bags, as_of, versions.newest(as_of))

    # ------------------------------------------------------------------ reads

    @rule(
        data=st.data(),
        prefix=st.sampled_from(PREFIXES),
        limit=st.none() | st.integers(0, 4) | st.integers(30, 50),
        after=st.none() | keys,
        of_open=st.booleans(),
    )
    def scan(self, data: st.DataObject, prefix: bytes, limit: int | None, after: bytes | None, of_open: bool) -> None:
        tables = [versions.table for versions in self.model.tables.values() if not versions.bags]
        table = data.draw(st.sampled_from(tables))
        group = self.model.groups[table.group]
        as_of = group.open.epoch if of_open and group.open else group.epoch
        contents = self.model.at(table.id, as_of)
        expected = [
            (key, contents[key])
            for key in sorted(contents)
            if key.startswith(prefix) and (after is None or key > after)
        ]
        found = self.store.views.scan(table, prefix, as_of, limit, after)
        assert list(zip(found.keys.to_pylist(), found.values.to_pylist(), strict=True)) == expected[:limit]

    @rule(data=st.data())
    def preview(self, data: st.DataObject) -> None:
        """What a write would say, of the living store, whatever an epoch has half-written, and
        of a snapshot; nothing changes by it."""
        versions = data.draw(st.sampled_from([v for v in self.model.tables.values() if v.bags]))
        as_of = self.model.groups[versions.table.group].epoch
        work: dict[bytes, dict[bytes, int]] = self._draw_work(data, versions)  # type: ignore[assignment]
        base = self.model.at(versions.table.id, as_of)
        self._check_ends(self.store.views.preview_bags(versions.table, bag_rows(work), as_of), versions, work, base)
        with self.store.snapshot() as snapshot:
            self._check_ends(snapshot.preview_bags(versions.table, bag_rows(work), as_of), versions, work, base)
        self._check_committed()

    @rule(data=st.data(), asked=st.lists(keys, max_size=20) | st.permutations(KEYS))
    def read_in_the_order_asked(self, data: st.DataObject, asked: list[bytes]) -> None:
        versions = data.draw(st.sampled_from([v for v in self.model.tables.values() if not v.bags]))
        as_of = self.model.groups[versions.table.group].epoch
        contents = self.model.at(versions.table.id, as_of)
        found = self.store.views.read(versions.table, column(asked), as_of)
        assert found.to_pylist() == [contents.get(key) for key in asked]

    @rule()
    def snapshot(self) -> None:
        """Take one; with the fourth, the oldest is read and let go: however many epochs have
        been committed and swept since, it shows its own."""
        epochs = {name: group.epoch for name, group in self.model.groups.items()}
        contents = {id: self.model.at(id, epochs[versions.table.group]) for id, versions in self.model.tables.items()}
        self.held.append(Held(self.store.snapshot(), epochs, contents))
        if len(self.held) > 3:
            held = self.held.pop(0)
            self._check_held(held)
            held.snapshot.close()

    # ------------------------------------------------------------------ the rest of life

    @rule()
    def reopen(self) -> None:
        for held in self.held:
            held.snapshot.close()
        self.held.clear()
        self.store.close()
        self.store = self.under_test.open()
        self.items = defined(self.store, "items")
        for group in GROUPS:
            self._check_begun(group)
        self._check_committed()

    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        """A dropped table is empty for a later table with another id."""
        free = [v for v in self.model.tables.values() if self.model.groups[v.table.group].open is None]
        if not free:
            return
        versions = data.draw(st.sampled_from(free))
        (self.store.views.drop_bags if versions.bags else self.store.views.drop)(versions.table)
        del self.model.tables[versions.table.id]
        as_of = self.model.groups[versions.table.group].epoch
        self._check_table(self.store.views, versions.table, versions.bags, as_of, {})
        self._create(versions.table.group, versions.bags)
        self._check_committed()

    @rule(data=st.data(), prefix=st.sampled_from(PREFIXES[1:]))
    def drop_one_of_several(self, data: st.DataObject, prefix: bytes) -> None:
        """What begins with a prefix goes, also while an epoch writes elsewhere in the table."""
        versions = data.draw(st.sampled_from(list(self.model.tables.values())))
        id, group = versions.table.id, self.model.groups[versions.table.group]
        if group.open is not None and any(key.startswith(prefix) for key in group.open.work.get(id, {})):
            return
        (self.store.views.drop_bags if versions.bags else self.store.views.drop)(versions.table, prefix)
        self.model.drop(id, prefix)
        for as_of in {group.epoch, group.open.epoch if group.open else group.epoch}:
            self._check_table(self.store.views, versions.table, versions.bags, as_of, self.model.at(id, as_of))
        self._check_committed()


@pytest.mark.parametrize("adapter", sorted(ADAPTERS))
def test_state_tables_agree_with_the_model(adapter: str) -> None:
    run_state_machine_as_test(type("StateTables", (StateTables,), {"adapter": adapter}), settings=HISTORIES)
