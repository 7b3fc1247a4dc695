"""The states of a group rebuilt in a store of their own, and compared with those that are kept.

A state is a function of the base rows, whatever the order they came in, so the same plan
over the rows of one frontier, in an empty store, leaves the states that the group should have.

What maintenance remembers (PRE-AGGREGATION, REVERSE-JOIN, …) is the answer to no query, so only the steps that keep
it define what it should be. That makes this another kind of check than
recomputing a view by its query: it finds what was lost, torn or damaged, not a step that is wrong.

Records are compared by their bytes, bags by their entries and counts: how a bag is cut into chunks
depends on its history, and what it holds does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.frontier import Frontier
from everview.errors import EverviewError
from everview.operators.bound import QUARANTINE, BoundPlan
from everview.operators.evaluation import readable
from everview.operators.members import TAG, members_of
from everview.operators.quarantine_records import recorded
from everview.operators.runner import Runner
from everview.operators.stored import LONGEST_KEY, Keys, StoredBags, StoredRecords
from everview.plan.maintenance import Role, Shape, State, Step
from everview.store.contract import BagRows, StateTable, Table, TableSnapshot
from everview.store.embedded import EmbeddedStore
from everview.store.encoding.ragged import BINARY, Bytes, column_of, glue, lengths

CHUNK = 100_000
"""Rows that are taken in at a time."""
_PAGE = 16_384
_BAGS = 1_024
"""Records and bags that are compared at a time."""


@dataclass(frozen=True)
class Oddity:
    """A record, or a row of a bag, that is not what it should be."""

    kind: str
    """``missing``, ``extra``, ``differing``."""
    key: Mapping[str, Any]
    shown: Mapping[str, Any] | None = None
    expected: Mapping[str, Any] | None = None


@dataclass
class StateFound:
    """What was found of one state."""

    name: str
    views: tuple[str, ...]
    """That need it."""
    rows: int = 0
    missing: int = 0
    extra: int = 0
    differing: int = 0
    first: list[Oddity] = field(default_factory=list)


class Shadow:
    """The states of a bound plan, built from base rows in a directory of their own."""

    def __init__(self, bound: BoundPlan, folder: Path, before_images: bool = True) -> None:
        self._bound = bound
        self._group = bound.states[QUARANTINE].group
        self._store = EmbeddedStore.open(folder, create=True, durability="none", before_images=before_images)
        self._epochs = 0

    def build(self, rows: Callable[[Table], Iterator[pa.RecordBatch]], chunk: int = CHUNK) -> None:
        """Take in the rows of every table that the plan reads."""
        for name, table in self._bound.tables.items():
            held: list[pa.RecordBatch] = []
            for batch in rows(table):
                held.append(batch)
                if sum(map(len, held)) >= chunk:
                    self._take({name: pa.Table.from_batches(held)})
                    held = []
            if held:
                self._take({name: pa.Table.from_batches(held)})
        if not self._epochs:
            self._take({})

    def _take(self, rows: Mapping[str, pa.Table]) -> None:
        plan = self._bound.plan
        bound = self._bound if self._epochs else replace(self._bound, first=frozenset(plan.by_fingerprint))
        self._epochs += 1
        views = self._store.views
        begun = views.begin(self._group, Frontier({1: self._epochs}), b"")
        Runner(bound).take(self._store, begun, [], rows)
        views.commit(self._group, begun.epoch)
        views.sweep(self._group)

    def close(self) -> None:
        self._store.close()

    def __enter__(self) -> Shadow:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -------------------------------------------------------------- comparing

    def compared(self, snapshot: TableSnapshot, samples: int) -> Iterator[StateFound]:
        """How the states that a snapshot holds differ from these, state by state; views' own tables and
        what is quarantined among them."""
        epoch = snapshot.committed(self._group).epoch
        with self._store.snapshot() as own:
            sides = _Sides(snapshot, epoch, own, own.committed(self._group).epoch, samples)
            for step in self._bound.plan.steps:
                for state in step.states:
                    found = StateFound(_title(step, state), self._bound.plan.users[step.fingerprint])
                    table = self._bound.states[state.fingerprint]
                    listed = _StateRows(self._bound, step, state, table)
                    if state.shape is Shape.RECORD:
                        sides.records(table, found, listed)
                    else:
                        sides.bags(table, found, listed)
                    yield found
            found = StateFound("QUARANTINED", tuple(sorted(self._bound.plan.by_name)))
            sides.records(self._bound.states[QUARANTINE], found, _Quarantine())
            yield found


def _title(step: Step, state: State) -> str:
    return state.name if state.role in (Role.VIEW, Role.INDEX) else f"{state.name} ({step.operator.name})"


@dataclass(frozen=True)
class _Sides:
    """A snapshot and the states beside it."""

    kept: TableSnapshot
    kept_epoch: int
    own: TableSnapshot
    own_epoch: int
    samples: int

    def records(self, table: StateTable, found: StateFound, listed: _StateRows | _Quarantine) -> None:
        for keys, values in _pages(self.kept, table, self.kept_epoch):
            found.rows += len(keys)
            should = self.own.read(table, keys, self.own_epoch)
            absent = should.is_null()
            other = pc.fill_null(pc.not_equal(listed.essence(values), listed.essence(should)), False)
            found.extra += self._list(found, listed, "extra", absent, keys, values, None)
            found.differing += self._list(found, listed, "differing", other, keys, values, should)
        for keys, values in _pages(self.own, table, self.own_epoch):
            absent = self.kept.read(table, keys, self.kept_epoch).is_null()
            found.missing += self._list(found, listed, "missing", absent, keys, None, values)

    def _list(
        self,
        found: StateFound,
        listed: _StateRows | _Quarantine,
        kind: str,
        mask: pa.Array,
        keys: Bytes,
        shown: Bytes | None,
        expected: Bytes | None,
    ) -> int:
        count = pc.sum(mask).as_py() or 0
        room = self.samples - sum(one.kind == kind for one in found.first)
        if count and room > 0:
            chosen = pa.array(np.flatnonzero(mask.to_numpy(zero_copy_only=False))[:room])
            parts = [None if values is None else values.take(chosen) for values in (shown, expected)]
            found.first += listed.records(kind, keys.take(chosen), *parts)
        return int(count)

    def bags(self, table: StateTable, found: StateFound, listed: _StateRows) -> None:
        after: bytes | None = None
        while len(keys := self.kept.bag_keys(table, self.kept_epoch, _BAGS, after)):
            after = keys[-1].as_py()
            shown = self.kept.read_bags(table, keys, self.kept_epoch)
            found.rows += len(shown.keys)
            self._bags(found, listed, shown, self.own.read_bags(table, keys, self.own_epoch))
        after = None
        while len(keys := self.own.bag_keys(table, self.own_epoch, _BAGS, after)):
            after = keys[-1].as_py()
            lost = keys.filter(self.kept.bag_ends(table, keys, self.kept_epoch)[0].is_null())
            if len(lost):
                nothing = BagRows(lost[:0], lost[:0], pa.array([], pa.int64()))
                self._bags(found, listed, nothing, self.own.read_bags(table, lost, self.own_epoch))

    def _bags(self, found: StateFound, listed: _StateRows, shown: BagRows, should: BagRows) -> None:
        mine, theirs = _names(shown), _names(should)
        at = pc.index_in(mine, value_set=theirs)
        counts = should.counts.take(at)
        lost = pc.invert(pc.is_in(theirs, value_set=mine))
        for kind, mask, rows, other in (
            ("extra", at.is_null(), shown, None),
            ("differing", pc.fill_null(pc.not_equal(shown.counts, counts), False), shown, counts),
            ("missing", lost, should, None),
        ):
            count = pc.sum(mask).as_py() or 0
            setattr(found, kind, getattr(found, kind) + count)
            room = self.samples - sum(one.kind == kind for one in found.first)
            if count and room > 0:
                chosen = pa.array(np.flatnonzero(mask.to_numpy(zero_copy_only=False))[:room])
                found.first += listed.rows(kind, rows, chosen, other)


def _pages(reader: TableSnapshot, table: StateTable, epoch: int) -> Iterator[tuple[Bytes, Bytes]]:
    after: bytes | None = None
    while len((page := reader.scan(table, b"", epoch, _PAGE, after)).keys):
        yield page.keys, page.values
        after = page.keys[-1].as_py()


def _names(rows: BagRows) -> Bytes:
    """What distinguishes rows of bags: length of the key, key, entry."""
    sizes = column_of(lengths(rows.keys).astype(">u4").tobytes(), 4 * np.arange(len(rows.keys) + 1))
    return glue(sizes, rows.keys, rows.entries)


# ---------------------------------------------------------------- in words


class _StateRows:
    """Records and rows of bags of one state as columns that people read, as far as they decode."""

    def __init__(self, bound: BoundPlan, step: Step, state: State, table: StateTable) -> None:
        members = members_of(step, bound.plan)
        self._state = state
        self._constants = {}
        if members is not None and step.constants is not None:
            self._constants = dict(zip(members.tags.to_pylist(), step.constants.members, strict=True))
        self._keys = Keys(state.key, state.name)
        kind = StoredRecords if state.shape is Shape.RECORD else StoredBags
        self._stored = kind(table, state, members)

    @staticmethod
    def essence(values: Bytes) -> Bytes:
        """What two records are compared by."""
        return values

    def records(self, kind: str, keys: Bytes, shown: Bytes | None, expected: Bytes | None) -> Iterator[Oddity]:
        for number, key in enumerate(keys.to_pylist()):
            parts = [
                None if values is None else self._record(key, values[number].as_py()) for values in (shown, expected)
            ]
            yield Oddity(kind, self._key(key), *parts)

    def _record(self, key: bytes, value: bytes) -> dict[str, Any]:
        assert isinstance(self._stored, StoredRecords)
        try:
            row = self._stored.table_of(pa.array([key], BINARY), pa.array([value], BINARY))
            found = {name: readable(row[name])[0] for name in row.column_names}
        except (EverviewError, pa.ArrowException, ValueError, IndexError) as error:
            return {"record": value.hex(), "unreadable": str(error)}
        names = self._stored.key_names
        return {name: value for name, value in found.items() if name not in names}

    def rows(self, kind: str, rows: BagRows, chosen: pa.Array, counts: pa.Array | None) -> Iterator[Oddity]:
        assert isinstance(self._stored, StoredBags)
        for number in chosen.to_pylist():
            key = self._key(rows.keys[number].as_py())
            entry, count = rows.entries[number : number + 1], rows.counts[number].as_py()
            try:
                columns = self._stored.columns(entry)
                names = (found.name for found in self._state.fields)
                row = {name: readable(column)[0] for name, column in zip(names, columns, strict=True)}
            except (EverviewError, pa.ArrowException, ValueError, IndexError):
                row = {"entry": entry[0].as_py().hex()}
            held = {"count": count}
            if kind == "missing":
                yield Oddity(kind, key | row, expected=held)
            elif kind == "extra":
                yield Oddity(kind, key | row, shown=held)
            else:
                assert counts is not None
                yield Oddity(kind, key | row, held, {"count": counts[number].as_py()})

    def _key(self, key: bytes) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self._constants:
            constants = self._constants.get(key[:TAG])
            found["constants"] = key[:TAG].hex() if constants is None else ", ".join(constants)
            key = key[TAG:]
        try:
            columns = self._keys.decode(pa.array([key], BINARY)) if len(key) < LONGEST_KEY else []
            names = (part.name for part in self._state.key)
            return found | {name: readable(column)[0] for name, column in zip(names, columns, strict=True)}
        except (EverviewError, pa.ArrowException, ValueError, IndexError):
            return found | {"key": key.hex()}


class _Quarantine:
    """Records of what is quarantined: when it came is not compared."""

    @staticmethod
    def essence(values: Bytes) -> Bytes:
        return pa.array([None if value is None else _without_time(value) for value in values.to_pylist()], BINARY)

    def records(self, kind: str, keys: Bytes, shown: Bytes | None, expected: Bytes | None) -> Iterator[Oddity]:
        for number, key in enumerate(keys.to_pylist()):
            parts = [
                None if values is None else _quarantine_record(values[number].as_py()) for values in (shown, expected)
            ]
            yield Oddity(kind, {"key": key.hex()}, *parts)


def _quarantine_record(value: bytes) -> dict[str, Any]:
    try:
        count, row = recorded(value)
    except (ValueError, TypeError, EverviewError):
        return {"record": value.hex()}
    return {"count": count, "what": row.what, **row.values, "reason": row.reason}


def _without_time(value: bytes) -> bytes:
    return repr(_quarantine_record(value)).encode()
