"""Rows without a value: kept beside the views until they are mended.

One sentence: where an expression has no value for a row, a group or a partition, that one is
left out of the view and recorded here, in a state table that moves with the epoch.

Whether something has a value depends on it alone, so what fails when a row comes fails again
when it goes: the row that was left out is left out of the deletion too, and its record goes.
Records are written like all state, stamped with the epoch, so they come and go exactly once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from everview.change.entries import WEIGHT
from everview.plan.maintenance import Step
from everview.store.contract import Deletes, Puts, StateTable
from everview.store.ragged import BINARY

if TYPE_CHECKING:
    from everview.operators.work import States


@dataclass(frozen=True)
class Unvalued:
    """Something without a value."""

    views: tuple[str, ...]
    """That lack it."""
    what: str
    """Such as ``row`` or ``group``."""
    values: Mapping[str, Any]
    """The columns that say which one, as texts."""
    reason: str
    construct: str
    """The step that could not evaluate it."""

    def to_bytes(self) -> bytes:
        said = [self.views, self.what, dict(self.values), self.reason, self.construct]
        return json.dumps(said, ensure_ascii=False, sort_keys=True).encode()

    @staticmethod
    def from_bytes(recorded: bytes) -> Unvalued:
        views, what, values, reason, construct = json.loads(recorded)
        return Unvalued(tuple(views), what, values, reason, construct)


@dataclass
class Quarantine:
    """What an attempt of an epoch found without a value, and what no longer is."""

    users: Mapping[str, Sequence[str]]
    """For each step the views that need it."""
    _net: dict[bytes, tuple[int, Unvalued]] = field(default_factory=dict)

    def add(self, step: Step, what: str, rows: pa.Table, reasons: Mapping[int, str]) -> None:
        """The rows with these numbers have no value. Their weights say whether they come or go."""
        if not reasons:
            return
        numbers = sorted(reasons)
        chosen = rows.take(pa.array(numbers))
        weights = chosen[WEIGHT].to_pylist()
        names = [name for name in chosen.column_names if name != WEIGHT]
        columns = [[_text(value) for value in chosen[name].to_pylist()] for name in names]
        for row, (number, weight) in enumerate(zip(numbers, weights, strict=True)):
            values = {name: column[row] for name, column in zip(names, columns, strict=True)}
            said = Unvalued(tuple(self.users[step.fingerprint]), what, values, reasons[number], step.title)
            name = json.dumps([what, values], ensure_ascii=False).encode()
            key = bytes.fromhex(step.fingerprint)[:8] + hashlib.blake2b(name, digest_size=16).digest()
            self._net[key] = (self._net.get(key, (0, said))[0] + weight, said)

    def write(self, states: States, table: StateTable) -> int:
        """Bring the table to this epoch; returns how many came."""
        keys = sorted(self._net)
        before = states.read(table, pa.array(keys, BINARY)) if keys else pa.array([], BINARY)
        puts, values, deletes = [], [], []
        for key, old in zip(keys, before.to_pylist(), strict=True):
            change, said = self._net[key]
            count = (json.loads(old)[0] if old else 0) + change
            if count > 0:
                puts.append(key)
                values.append(json.dumps([count, said.to_bytes().decode()]).encode())
            elif old:
                deletes.append(key)
        states.write(table, Puts(pa.array(puts, BINARY), pa.array(values, BINARY)), Deletes(pa.array(deletes, BINARY)))
        return len(puts)


def recorded(value: bytes) -> tuple[int, Unvalued]:
    """What a record of the table says: how often such a row stands there, and why it has no value."""
    count, said = json.loads(value)
    return count, Unvalued.from_bytes(said.encode())


def _text(value: object) -> str | None:
    return None if value is None else str(value)
