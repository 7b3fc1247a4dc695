"""Rows that meet: numbers for join keys, and pairs of rows with the same number.

Every key that an epoch's changes touch gets a number, and from there on a join is
arithmetic on arrays of numbers.

    left   key  a b a        right  key  b a b
           row  0 1 2               row  0 1 2

    numbers     0 1 0               1 0 1
    pairs       left 0 1 1 2,  right 1 0 2 1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.schema import KeyPart
from everview.change.types import FLOATS
from everview.operators.evaluation import one_array
from everview.operators.members import MEMBER, Numbers
from everview.operators.stored import Keys
from everview.operators.work import Mask

NEVER = -1
"""The number of a key that nothing can equal: it holds a null."""


@dataclass(frozen=True)
class TouchedKeys:
    """The different join keys of two tables of changes, numbered from 0."""

    numbers: tuple[Numbers, ...]
    """For each table, the number of the key of each of its rows."""
    columns: tuple[pa.Array, ...]
    """The values of each part of the key, by number."""
    members: pa.Array | None
    count: int

    def of(self, table: int) -> Mask:
        """Which keys a table has."""
        found = np.zeros(self.count, np.bool_)
        numbers = self.numbers[table]
        found[numbers[numbers >= 0]] = True
        return found


class KeyNumbers:
    """Numbers keys of these parts, which take null for a value where they are nullable."""

    def __init__(self, parts: Sequence[KeyPart], where: str) -> None:
        self.parts = tuple(parts)
        self._keys = Keys(self.parts, where)
        only = self.parts[0].type if len(self.parts) == 1 else None
        self._as_it_is = (
            only is not None and only.kind not in FLOATS and only.is_scalar and _can_be_numbered(only.arrow)
        )
        """Whether equal keys are equal values of one column, as Arrow compares them."""

    def touched(self, tables: Sequence[tuple[pa.Table, Sequence[str]]]) -> TouchedKeys:
        """The keys of tables, each with the columns that hold its key."""
        numbers, held, members = [], [], []
        for table, names in tables:
            columns = [one_array(table[name]) for name in names]
            live = self._live(columns)
            numbers.append(np.full(len(table), NEVER, np.int64) if live is not None else None)
            if live is not None:
                chosen = pa.array(live)
                columns = [column.take(chosen) for column in columns]
                table = table.take(chosen)
            held.append((columns, live, len(table)))
            if MEMBER in table.column_names:
                members.append(one_array(table[MEMBER]))
        columns = [pa.concat_arrays(parts) for parts in zip(*(columns for columns, _, _ in held), strict=True)]
        sizes = [size for _, _, size in held]
        member = pa.concat_arrays(members) if members else None
        codes, first = self._codes(columns, member, sum(sizes))
        found = []
        at = 0
        for own, (_, live, size) in zip(numbers, held, strict=True):
            part = codes[at : at + size]
            at += size
            if own is None:
                found.append(part)
            else:
                own[live] = part
                found.append(own)
        chosen = pa.array(first)
        return TouchedKeys(
            tuple(found),
            tuple(column.take(chosen) for column in columns),
            member.take(chosen) if member is not None else None,
            len(first),
        )

    def _live(self, columns: Sequence[pa.Array]) -> Numbers | None:
        """The rows whose key can equal another; None: all."""
        dead: Mask | None = None
        for part, column in zip(self.parts, columns, strict=True):
            if not part.nullable and column.null_count:
                null = column.is_null().to_numpy(zero_copy_only=False)
                dead = null if dead is None else dead | null
        return None if dead is None else np.flatnonzero(~dead)

    def _codes(self, columns: Sequence[pa.Array], members: pa.Array | None, count: int) -> tuple[Numbers, Numbers]:
        """A number for each row, and for each number a row."""
        keys = columns[0] if self._as_it_is else self._keys.encode(columns, count)
        encoded = pc.dictionary_encode(keys, null_encoding="encode")
        if members is not None:
            both = encoded.indices.to_numpy().astype(np.int64) << 32 | members.to_numpy()
            encoded = pc.dictionary_encode(pa.array(both))
        codes = encoded.indices.to_numpy().astype(np.int64)
        first = np.empty(len(encoded.dictionary), np.int64)
        first[codes[::-1]] = np.arange(count)[::-1]
        return codes, first


def _can_be_numbered(kind: pa.DataType) -> bool:
    return not isinstance(kind, pa.BaseExtensionType) and not pa.types.is_interval(kind)


@dataclass(frozen=True)
class SideRows:
    """Rows of one side: the columns that the step reads, the numbers of their keys, and how often
    they are there (or come, or go)."""

    columns: Mapping[str, pa.Array]
    keys: Numbers
    weights: Numbers

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, chosen: Numbers) -> SideRows:
        taken = pa.array(chosen)
        columns = {name: column.take(taken) for name, column in self.columns.items()}
        return SideRows(columns, self.keys[chosen], self.weights[chosen])

    def __add__(self, other: SideRows) -> SideRows:
        if not len(other) or not len(self):
            return self if len(self) else other
        columns = {name: pa.concat_arrays([column, other.columns[name]]) for name, column in self.columns.items()}
        return SideRows(columns, np.concatenate([self.keys, other.keys]), np.concatenate([self.weights, other.weights]))


def pairs(left: Numbers, right: Numbers, count: int) -> tuple[Numbers, Numbers]:
    """The rows of two sides that have one number, out of ``count``: all of the first row, then all
    of the second, …"""
    live = np.flatnonzero(right >= 0)
    met = right[live]
    order = live[np.argsort(met, kind="stable")]
    size = np.bincount(met, minlength=count)
    start = np.cumsum(size) - size
    rows = np.flatnonzero(left >= 0)
    each = size[left[rows]]
    total = int(each.sum())
    chosen = np.repeat(rows, each)
    ends = np.cumsum(each)
    within = np.arange(total) - np.repeat(ends - each, each)
    return chosen, order[np.repeat(start[left[rows]], each) + within]


def summed(numbers: Numbers, weights: Numbers, count: int) -> Numbers:
    """The sum of the weights of each number, those that are NEVER left out."""
    live = numbers >= 0
    if not live.all():
        numbers, weights = numbers[live], weights[live]
    return np.bincount(numbers, weights, count).astype(np.int64)
