"""Rows whose expressions failed: recorded beside the views until they are mended.

Where an expression has no value for a row, a group or a partition, that one is
left out of the view and recorded here, in a state table that moves with the epoch.

Whether something has a value depends on it alone, so what fails when a row comes fails again
when it goes: the row that was left out is left out of the deletion too, and its record goes.
Records are written like all state, stamped with the epoch, so they come and go exactly once. A record
counts equal rows, which several places may meet in one epoch, so it is written once, by the process that
collects all of them.

A record's key begins with the step and, where the step stands for several views, with the member
(:data:`NO_MEMBER`: all of them), so the records of views that are dropped go by their prefix::

    step (8 bytes) | member (8 bytes) | digest of what it is (16 bytes)

Which views lack the row is not recorded: it follows from the step and the member, and changes as
views come and go (:class:`Lacking`).
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from everview.change.entries import WEIGHT
from everview.change.frontier import Frontier
from everview.operators.evaluation import readable
from everview.operators.members import MEMBER, TAG, tags_gone, tags_of
from everview.plan.maintenance import MaintenancePlan, Step, restricted
from everview.store.contract import Deletes, Puts, Records, StateTable
from everview.store.encoding.ragged import BINARY

if TYPE_CHECKING:
    from everview.operators.work import Written

RecordedChanges: TypeAlias = dict[str, list[Any]]
"""What an attempt found in one place, as plain values for :mod:`json`: by the key of the record in
hexadecimal, by how much its count changes, and the record."""

NO_MEMBER = bytes(TAG)
"""In the place of a member's tag: the record is of no member alone."""


@dataclass(frozen=True)
class Unvalued:
    """A row, group or partition whose expression failed."""

    what: str
    """Such as ``row`` or ``group``."""
    values: Mapping[str, Any]
    """The columns that identify it, as texts."""
    reason: str
    construct: str
    """The step that could not evaluate it."""
    epoch: int = 0
    """In which it came."""
    frontier: Frontier | None = None
    """Of that epoch: the row was written before it."""
    views: tuple[str, ...] = ()
    """That lack it, as the plan is now; not recorded."""

    def to_json(self) -> list[Any]:
        frontier = None if self.frontier is None else str(self.frontier)
        return [self.what, dict(self.values), self.reason, self.construct, self.epoch, frontier]

    @staticmethod
    def from_json(fields: list[Any]) -> Unvalued:
        what, values, reason, construct, epoch, frontier = fields
        reached = None if frontier is None else Frontier.parse(frontier)
        return Unvalued(what, values, reason, construct, epoch, reached)


@dataclass
class QuarantineChanges:
    """What failed in an attempt of an epoch, and what no longer does."""

    plan: MaintenancePlan
    net: dict[bytes, tuple[int, Unvalued]] = field(default_factory=dict)

    def add(self, step: Step, what: str, rows: pa.Table, reasons: Mapping[int, str], source: int | None = None) -> None:
        """The rows with these numbers have no value. Their weights decide whether they come or go.
        Members are the step's own, or with ``source`` those of that input."""
        if not reasons:
            return
        numbers = sorted(reasons)
        chosen = rows.take(pa.array(numbers))
        weights = chosen[WEIGHT].to_pylist()
        names = [name for name in chosen.column_names if name not in (WEIGHT, MEMBER)]
        columns = [[_text(value) for value in readable(chosen[name])] for name in names]
        tags = self._tags(step, chosen, source)
        for row, (number, weight) in enumerate(zip(numbers, weights, strict=True)):
            values = {name: column[row] for name, column in zip(names, columns, strict=True)}
            failed = Unvalued(what, values, reasons[number], step.title)
            name = json.dumps([what, values], ensure_ascii=False).encode()
            key = prefix_of(step, tags[row]) + hashlib.blake2b(name, digest_size=16).digest()
            self.net[key] = (self.net.get(key, (0, failed))[0] + weight, failed)

    def _tags(self, step: Step, rows: pa.Table, source: int | None) -> list[bytes]:
        if MEMBER not in rows.column_names:
            return [NO_MEMBER] * len(rows)
        tags = tags_of(step if source is None else self.plan.step(step.inputs[source].step))
        return [tags[number] for number in rows[MEMBER].to_pylist()]

    def to_json(self) -> RecordedChanges:
        """What was found, for the process that writes it together with what other places found: equal
        rows that fail may occur in several places of one epoch."""
        return {key.hex(): [change, failed.to_json()] for key, (change, failed) in sorted(self.net.items())}

    def merge(self, others: RecordedChanges) -> None:
        """What was found in another place."""
        for name, (change, fields) in others.items():
            key = bytes.fromhex(name)
            known = self.net.get(key)
            self.net[key] = (change, Unvalued.from_json(fields)) if known is None else (known[0] + change, known[1])

    def write(self, states: Written, table: StateTable, frontier: Frontier | None = None) -> int:
        """Bring the table to this epoch; returns how many records came or changed."""
        keys = sorted(self.net)
        before = states.read(table, pa.array(keys, BINARY)) if keys else pa.array([], BINARY)
        puts, values, deletes = [], [], []
        for key, old in zip(keys, before.to_pylist(), strict=True):
            change, failed = self.net[key]
            known, first = recorded(old) if old else (0, failed)
            since = (first.epoch, first.frontier) if old else (states.epoch, frontier)
            if known + change > 0:
                puts.append(key)
                failed = replace(failed, epoch=since[0], frontier=since[1])
                values.append(json.dumps([known + change, *failed.to_json()], ensure_ascii=False).encode())
            elif old:
                deletes.append(key)
        states.write(table, Puts(pa.array(puts, BINARY), pa.array(values, BINARY)), Deletes(pa.array(deletes, BINARY)))
        return len(puts)


def recorded(value: bytes) -> tuple[int, Unvalued]:
    """A record of the table: how often such a row stands there, and why it has no value."""
    count, *fields = json.loads(value)
    return count, Unvalued.from_json(fields)


def listed(plan: MaintenancePlan, records: Records) -> list[tuple[int, Unvalued]]:
    """The records of the table, with the views that lack each."""
    lacking = Lacking(plan)
    found = [recorded(value) for value in records.values.to_pylist()]
    keys = records.keys.to_pylist()
    return [(count, replace(failed, views=lacking(key))) for key, (count, failed) in zip(keys, found, strict=True)]


def prefix_of(step: Step, tag: bytes) -> bytes:
    """What the keys of a step's records begin with, or with a tag those of one member."""
    return bytes.fromhex(step.fingerprint)[:8] + tag


def gone_prefixes(last: MaintenancePlan, now: MaintenancePlan) -> list[bytes]:
    """What the keys of records begin with that concern no view of a plan that takes the last one's place."""
    found: list[bytes] = []
    known = now.by_fingerprint
    gone: dict[str, set[bytes]] = {}
    for step in last.steps:
        after = known.get(step.fingerprint)
        if after is None:
            found.append(prefix_of(step, b""))
            continue
        gone[step.fingerprint] = tags_gone(step, after)
        lost = gone[step.fingerprint].union(*(gone[one.step] for one in step.inputs))
        found += [prefix_of(step, tag) for tag in sorted(lost)]
    return found


class Lacking:
    """Which views lack the row of a record."""

    def __init__(self, plan: MaintenancePlan) -> None:
        self._plan = plan
        self._steps = {prefix_of(step, b""): step for step in plan.steps}

    def __call__(self, key: bytes) -> tuple[str, ...]:
        """The views, given the key of a record; none where its step is not in the plan."""
        step = self._steps.get(key[:8])
        if step is None:
            return ()
        tag = key[8 : 8 + TAG]
        return self._plan.users[step.fingerprint] if tag == NO_MEMBER else self._of(step.fingerprint).get(tag, ())

    @functools.cache  # noqa: B019 (as short-lived as what is cached)
    def _of(self, fingerprint: str) -> dict[bytes, tuple[str, ...]]:
        """The views of each member of a step, and of each member of its inputs."""
        found: dict[bytes, list[str]] = {}
        for view in self._plan.users[fingerprint]:
            part = restricted(self._plan, [view])
            step = part.step(fingerprint)
            for one in (step, *(part.step(source.step) for source in step.inputs)):
                for tag in tags_of(one):
                    found.setdefault(tag, []).append(view)
        return {tag: tuple(views) for tag, views in found.items()}


def _text(value: object) -> str | None:
    return None if value is None else str(value)
