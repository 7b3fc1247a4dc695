"""Rows of a view that are sought by values of its columns.

Values are encoded as keys are, each column by itself, so two values are the same here if SQL
finds them equal: 0.0 and -0.0, one null and another.

Conditions on columns of steps (:mod:`everview.operators.touching`) are checked against these values. A row for
which an expression of a condition has no value may matter.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.schema import KeyPart
from everview.change.types import Type
from everview.operators.evaluation import evaluator, one_array, plain
from everview.operators.stored import Keys
from everview.operators.touching import Alternatives, Part, Touching
from everview.operators.work import Changes
from everview.plan.maintenance import Step
from everview.store.encoding.ragged import BINARY, Bytes

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class SoughtRows:
    """The rows that hold, in each of these stored fields of a view, one of its values."""

    fields: tuple[str, ...]
    types: tuple[Type, ...]
    values: tuple[frozenset[bytes], ...]

    @staticmethod
    def of(fields: Sequence[tuple[str, Type]], rows: Sequence[Sequence[object]]) -> SoughtRows:
        """Rows that begin with one of these rows of values."""
        count = min(map(len, rows), default=0)
        chosen = fields[:count]
        values = (
            frozenset(_key(kind).encode_one([row[number]]) for row in rows) for number, (_, kind) in enumerate(chosen)
        )
        return SoughtRows(tuple(name for name, _ in chosen), tuple(kind for _, kind in chosen), tuple(values))

    def encoded(self, part: Part, rows: pa.Table) -> Bytes:
        """The value of a condition's expression of each row; null where it has none."""
        sql, number = part
        name = plain(sql)
        kind = self.types[number]
        if name is not None:
            return _key(kind).encode([one_array(rows[name])], len(rows))
        found = evaluator().columns([(sql, kind)], rows)
        keys = _key(kind).encode(found.columns, len(rows))
        if not found.failed:
            return keys
        failed = np.zeros(len(rows), np.bool_)
        failed[list(found.failed)] = True
        return pc.if_else(pa.array(failed), pa.scalar(None, BINARY), keys)

    def among(self, condition: Alternatives, encoded: Callable[[Part], Bytes], count: int) -> Mask:
        """Which of so many rows fulfil a condition."""
        found = np.zeros(count, np.bool_)
        for conjunction in condition:
            held = np.ones(count, np.bool_)
            for part in conjunction:
                held &= self._holds(part, encoded(part))
            found |= held
        return found

    def _holds(self, part: Part, keys: Bytes) -> Mask:
        wanted = self.values[part[1]]
        if len(wanted) == 1:
            same = pc.equal(keys, pa.scalar(next(iter(wanted)), BINARY))
            same = same.fill_null(True) if keys.null_count else same
        else:
            same = pc.or_(pc.is_in(keys, value_set=pa.array(sorted(wanted), BINARY)), keys.is_null())
        found: Mask = same.to_numpy(zero_copy_only=False)
        return found


@dataclass(frozen=True)
class Sieve:
    """Leaves of what steps emit what can matter to the rows sought."""

    sought: SoughtRows
    touching: Touching

    def __call__(self, step: Step, changes: Changes) -> Changes:
        if step.fingerprint not in self.touching.checked or not len(changes):
            return changes
        condition = self.touching.conditions[step.fingerprint]
        mask = self.sought.among(condition, lambda part: self.sought.encoded(part, changes), len(changes))
        return changes if mask.all() else changes.filter(pa.array(mask))


@functools.lru_cache
def _key(kind: Type) -> Keys:
    return Keys((KeyPart("value", kind, nullable=True),), "a sought value")
