"""Base tables, batches, logs, regions and reopening, in step with the model.

After every step the rows, the counts and the new log entries are what the
model says, whatever was done to nodes and regions in between.
"""

from __future__ import annotations

import copy
import random
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from everview.change.frontier import Frontier, Slice
from everview.errors import EverviewError, LogTrimmedError, MissingColumnError, TopologyError
from everview.store.contract import BaseTable, Batch, HeldTable, Row, Table, TableSnapshot, TableWriter
from everview.store.encoding.keys import KeyCodec
from tests.adapters import histories
from tests.adapters.effort import HISTORIES
from tests.adapters.guarantees import needs
from tests.adapters.model import (
    LAST_TOKEN,
    Delete,
    Entry,
    Key,
    Model,
    Operation,
    Put,
    Refused,
    Touched,
    entries_of,
    plain,
    replay,
    sort_key,
)
from tests.adapters.under_test import ADAPTERS, define, defined, evolve

tokens = st.integers(0, LAST_TOKEN)


class Interruption(Exception):
    """What a client's own code raises in the middle of a batch."""


@dataclass
class Held:
    """A snapshot, and what the tables held when it was taken."""

    snapshot: TableSnapshot
    tables: dict[str, Table]
    model: Model


class BaseTables(RuleBasedStateMachine):
    adapter: str

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="everview-"))
        self.under_test = ADAPTERS[self.adapter](self.directory / "store")
        self.store = self.under_test.open()
        self.model = Model(self.under_test.token)
        self.held: list[Held] = []
        needs(self.store, "per_key_order")

    @initialize(seed=st.integers(0, 2**32), count=st.sampled_from([0, 5, 30]))
    def create(self, seed: int, count: int) -> None:
        """Two tables, with some rows to begin with."""
        self.tables: dict[str, Table] = {}
        for name, schema in histories.SCHEMAS.items():
            self.tables[name] = define(self.store, name, schema)
            self.model.create(name, schema)
        self.retired: set[int] = set()
        self._check_topology()
        rng = random.Random(seed)
        for _ in range(count):
            row: Row = {"id": rng.choice(histories.ITEM_IDS), "name": str(rng.random())}
            self._write([Put("items", row)], lambda row=row: self._base("items").put(row))  # type: ignore[misc]

    def teardown(self) -> None:
        try:
            if hasattr(self, "tables"):
                self._check_everything()
            for held in self.held:
                self._check_held(held)
        finally:
            self._let_go()
            self.store.close()
            shutil.rmtree(self.directory)

    # ------------------------------------------------------------------ checks

    def _base(self, name: str) -> BaseTable:
        return self.store.table(self.tables[name])

    def _new_entries(self, end: Frontier) -> list[Entry]:
        pieces = self.model.end.slices_to(end)
        return [e for piece in pieces for e in entries_of(self.store.log.read(piece, self.tables.values()))]

    def _settle(self, touched: dict[tuple[str, Key], Touched]) -> None:
        end = self.store.log.latest()
        self.model.absorb(end, self._new_entries(end), touched)
        for name, key in touched:
            assert plain(self._base(name).get(*key)) == self.model.full(name, key)
        for name in self.tables:
            assert self._base(name).count() == len(self.model.rows[name])

    def _write(self, operations: Sequence[Operation], call: Callable[[], object]) -> None:
        try:
            touched = self.model.write(operations)
        except Refused:
            with pytest.raises(MissingColumnError):
                call()
            touched = {}
        else:
            call()
        self._settle(touched)

    def _check_topology(self) -> None:
        nodes = self.store.topology.nodes()
        assert len(set(nodes)) == len(nodes)
        assert not self.retired & set(nodes)
        self.model.check_regions(self.store.topology.regions(), nodes)

    def _check_everything(self) -> None:
        for name in self.tables:
            assert self._scan(name) == self.model.scan(name)
        assert self.store.log.latest() == self.model.end
        if not self.model.trimmed:
            found = replay(self.model.entries())
            assert {name: found.get(name, {}) for name in self.tables} == self.model.rows

    def _check_held(self, held: Held) -> None:
        """A snapshot shows the rows of its own moment."""
        assert held.snapshot.frontier == held.model.end
        for name, table in held.tables.items():
            reader = held.snapshot.table(table)
            assert reader.count() == len(held.model.rows[name])
            found = [plain(row) for batch in reader.scan() for row in batch.to_pylist()]
            assert found == held.model.scan(name)
            self._check_keys(reader, table)
            for key in sorted(held.model.rows[name], key=sort_key)[:3]:
                row = held.model.full(name, key)
                assert plain(reader.get(*key)) == row
                assert plain(reader.get_many([key if len(key) > 1 else key[0]]).to_pylist()) == [row]

    def _check_keys(self, reader: HeldTable, table: Table) -> None:
        """Keys alone are those of the rows, whichever way they are asked for."""
        rows = pa.Table.from_batches(reader.scan(), schema=table.schema.arrow)
        codec = KeyCodec(table.schema.key_parts)
        expected = codec.encode_columns([rows[name] for name in table.schema.key]).to_pylist()
        everything, more = reader.keys(None, len(expected) + 1, 1 << 30)
        assert (everything.to_pylist(), more) == (expected, False)
        for at, key in enumerate(expected[:3]):
            some, more = reader.keys(key, 2, 1 << 30)
            assert (some.to_pylist(), more) == (expected[at + 1 : at + 3], len(expected) > at + 2)

    def _let_go(self) -> None:
        for held in self.held:
            held.snapshot.close()
        self.held.clear()

    def _scan(self, name: str, *args: Any, **bounds: Any) -> list[object]:
        return [plain(row) for batch in self._base(name).scan(*args, **bounds) for row in batch.to_pylist()]

    # ------------------------------------------------------------------ writes

    @rule(data=st.data(), name=histories.names)
    def put(self, data: st.DataObject, name: str) -> None:
        """Some columns of one row."""
        row = data.draw(histories.rows(name, self.model.schemas[name]))
        self._write([Put(name, row)], lambda: self._base(name).put(row))

    @rule(data=st.data(), name=histories.names, arrow=st.booleans())
    def put_many(self, data: st.DataObject, name: str, arrow: bool) -> None:
        schema = self.model.schemas[name]
        rows = data.draw(st.lists(histories.rows(name, schema), max_size=12))
        if arrow:
            columns = [n for n in schema.names if n in schema.key or not schema.column(n).nullable]
            columns += data.draw(st.sets(st.sampled_from([n for n in schema.names if n not in columns])).map(sorted))
            rows = [{n: row.get(n) for n in columns} for row in rows]
            handed = histories.as_arrow(schema, columns, rows)
        else:
            handed = rows

        def call() -> None:
            assert self._base(name).put_many(handed) == len(rows)

        self._write([Put(name, row) for row in rows], call)

    @rule(data=st.data(), name=histories.names, how=st.sampled_from(["one", "list", "arrow"]))
    def delete(self, data: st.DataObject, name: str, how: str) -> None:
        """Rows that are there, and some that are not."""
        if how == "one":
            key = data.draw(histories.keys(name))
            self._write([Delete(name, key)], lambda: self._base(name).delete(*key))
            return
        schema = self.model.schemas[name]
        keys = data.draw(st.lists(histories.keys(name), max_size=8))
        plain_keys = [key if len(key) > 1 else key[0] for key in keys]
        rows = [dict(zip(schema.key, key, strict=True)) for key in keys]
        handed = histories.as_arrow(schema, list(schema.key), rows) if how == "arrow" else plain_keys

        def call() -> None:
            assert self._base(name).delete_many(handed) == len(keys)

        self._write([Delete(name, key) for key in keys], call)

    @precondition(lambda self: self.store.log.guarantees.atomic_batches)
    @rule(data=st.data(), how=st.sampled_from(["whole", "whole", "interrupted"]))
    def batch(self, data: st.DataObject, how: str) -> None:
        operations = data.draw(st.lists(histories.operations(self.model.schemas), max_size=12))

        def call() -> None:
            with self.store.batch() as batch:
                for operation in operations:
                    self._stage(batch, operation)
                if how == "interrupted":
                    raise Interruption

        if how == "whole":
            self._write(operations, call)
        else:
            with pytest.raises((Interruption, MissingColumnError)):
                call()
            self._settle({})

    def _stage(self, batch: Batch, operation: Operation) -> None:
        writer: TableWriter = batch.table(self.tables[operation.table])
        if isinstance(operation, Put):
            writer.put(operation.row)
        else:
            writer.delete(*operation.key)

    @precondition(lambda self: self.store.log.guarantees.atomic_batches)
    @rule(data=st.data(), name=histories.names)
    def batch_of_many(self, data: st.DataObject, name: str) -> None:
        """put_many and delete_many as parts of one batch."""
        rows = data.draw(st.lists(histories.rows(name, self.model.schemas[name]), max_size=6))
        keys = data.draw(st.lists(histories.keys(name), max_size=3))

        def call() -> None:
            with self.store.batch() as batch:
                writer = batch.table(self.tables[name])
                writer.put_many(rows)
                writer.delete_many([key if len(key) > 1 else key[0] for key in keys])

        self._write([*(Put(name, row) for row in rows), *(Delete(name, key) for key in keys)], call)

    # ------------------------------------------------------------------ reads

    @rule(data=st.data(), name=histories.names)
    def read(self, data: st.DataObject, name: str) -> None:
        """Rows by their keys and in their order, the logs by slices and by cuts."""
        data.draw(st.sampled_from([self._get_many, self._scan_part, self._read_slice, self._advance]))(data, name)

    def _get_many(self, data: st.DataObject, name: str) -> None:
        keys = data.draw(st.lists(histories.keys(name), max_size=12))
        found = self._base(name).get_many([key if len(key) > 1 else key[0] for key in keys])
        assert found.schema.equals(self.model.schemas[name].arrow)
        expected = [self.model.full(name, key) for key in keys]
        assert plain(found.to_pylist()) == [row for row in expected if row is not None]

    def _scan_part(self, data: st.DataObject, name: str) -> None:
        limit = data.draw(st.none() | st.integers(0, 5))
        full = histories.keys(name)
        parts = full.flatmap(lambda key: st.integers(0, len(key)).map(lambda n: key[:n]))
        if data.draw(st.booleans()):
            prefix = data.draw(parts)
            assert self._scan(name, prefix, limit=limit) == self.model.scan(name, prefix, limit=limit)
        else:
            start, stop = data.draw(st.none() | full), data.draw(st.none() | full)
            assert self._scan(name, start=start, stop=stop, limit=limit) == self.model.scan(
                name, (), start, stop, limit
            )

    def _read_slice(self, data: st.DataObject, _: str) -> None:
        """Any slice reads as it did when it was new; of a table nobody asks for, nothing is read."""
        nodes = [node for node, upto in self.model.end.items() if upto > self.model.trimmed[node]]
        if not nodes:
            return
        node = data.draw(st.sampled_from(nodes))
        after = data.draw(st.integers(self.model.trimmed[node], self.model.end[node]))
        upto = data.draw(st.integers(after, self.model.end[node]))
        wanted = data.draw(st.sets(histories.names, min_size=1))
        content = self.store.log.read(Slice(node, after, upto), [self.tables[name] for name in wanted])
        expected = [e for e in self.model.logs[node] if after < e.sequence <= upto and e.table in wanted]
        assert entries_of(content) == expected
        for batch in content.batches:
            assert batch.before_images == self.store.log.guarantees.before_images

    def _advance(self, data: st.DataObject, __: str) -> None:
        """Walking the log by cuts takes every entry once and never a part of a batch."""
        limit = data.draw(st.integers(1, 20))
        cut = data.draw(st.sampled_from(self.model.cuts()))
        for _ in range(len(self.model.writes) + 1):
            following = self.store.log.advance(cut, limit)
            self.model.check_advance(cut, limit, following)
            if following == cut:
                break
            cut = following
        assert cut == self.store.log.latest()

    @rule(data=st.data())
    def trim(self, data: st.DataObject) -> None:
        cut = data.draw(st.sampled_from(self.model.cuts()))
        trimmed = self.model.trimmed | cut
        assert self.store.log.trim(cut) == self.model.trimmed.operations_to(trimmed)
        self.model.trimmed = trimmed
        assert self.store.log.oldest() == trimmed
        assert self.store.log.trim(cut) == 0
        for node, upto in trimmed.items():
            with pytest.raises(LogTrimmedError):
                self.store.log.read(Slice(node, upto - 1, upto), self.tables.values())

    # ------------------------------------------------------------------ topology

    @rule(data=st.data(), token=tokens)
    def change_topology(self, data: st.DataObject, token: int) -> None:
        changes = [self._add_node, self._remove_node, self._split, self._move, self._move, self._change_nonsense]
        data.draw(st.sampled_from(changes))(data, token)

    def _add_node(self, _: st.DataObject, __: int) -> None:
        before = self.store.topology.nodes()
        added = self.store.topology.add_node()
        assert set(self.store.topology.nodes()) == {*before, added}
        assert added not in before
        self._check_topology()

    def _remove_node(self, data: st.DataObject, _: int) -> None:
        nodes = self.store.topology.nodes()
        node = data.draw(st.sampled_from(nodes))
        if len(nodes) == 1:
            with pytest.raises(TopologyError):
                self.store.topology.remove_node(node)
        else:
            self.store.topology.remove_node(node)
            self.retired.add(node)
        self._check_topology()

    def _split(self, _: st.DataObject, token: int) -> None:
        before = {region.first for region in self.store.topology.regions()}
        if token in before:
            with pytest.raises(TopologyError):
                self.store.topology.split(token)
        else:
            self.store.topology.split(token)
        self._check_topology()
        assert {region.first for region in self.model.regions} == before | {token}

    def _move(self, data: st.DataObject, token: int) -> None:
        node = data.draw(st.sampled_from(self.store.topology.nodes()))
        before = self.model.regions
        self.store.topology.move(token, node)
        self._check_topology()
        for old, new in zip(before, self.model.regions, strict=True):
            if old.first <= token <= old.last:
                assert new.node == node
            else:
                assert new == old

    def _change_nonsense(self, _: st.DataObject, token: int) -> None:
        stranger = max({*self.store.topology.nodes(), *self.retired}) + 100
        with pytest.raises(TopologyError):
            self.store.topology.move(token, stranger)
        with pytest.raises(TopologyError):
            self.store.topology.remove_node(stranger)
        with pytest.raises(TopologyError):
            self.store.topology.split(LAST_TOKEN + 1 + token)
        assert tuple(self.store.topology.regions()) == self.model.regions

    # ------------------------------------------------------------------ the rest of life

    @rule()
    def snapshot(self) -> None:
        """Take one; with the fourth, the oldest is read and let go."""
        self.held.append(Held(self.store.snapshot(), dict(self.tables), copy.deepcopy(self.model)))
        if len(self.held) > 3:
            held = self.held.pop(0)
            self._check_held(held)
            held.snapshot.close()

    @rule()
    def reopen(self) -> None:
        self._let_go()
        self.store.close()
        self.store = self.under_test.open()
        self.tables = {name: defined(self.store, name) for name in self.tables}
        assert tuple(self.store.topology.regions()) == self.model.regions
        assert self.store.log.oldest() == self.model.trimmed
        self._check_everything()

    @precondition(
        lambda self: any(len(s.columns) == len(histories.SCHEMAS[n].columns) for n, s in self.model.schemas.items())
    )
    @rule(name=histories.names)
    def add_column(self, name: str) -> None:
        column = histories.ADDED[name]
        if column.name in self.model.schemas[name].names:
            return
        retired = self.tables[name]
        self.tables[name] = evolve(self.store, name, column)
        self.model.add_column(name, column)
        with pytest.raises(EverviewError):
            self.store.table(retired).delete(*([0] if name == "items" else ["", 0]))
        self._settle({})
        self._check_everything()


@pytest.mark.parametrize("adapter", sorted(ADAPTERS))
def test_base_tables_and_logs_agree_with_the_model(adapter: str) -> None:
    run_state_machine_as_test(type("BaseTables", (BaseTables,), {"adapter": adapter}), settings=HISTORIES)
