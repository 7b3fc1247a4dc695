"""Partitions that changes touch: their rows before and after an epoch.

What is evaluated again is evaluated for the touched partitions as they were and as
they are, each by itself, and the difference of the two answers is what the step emits.

    ΔQ(R)  =  Σ over touched partitions p of  Q(R(p) + ΔR(p)) − Q(R(p))

A partition before and a partition after are two *units* of one table, so one query answers for
all of them::

    unit   customer  amount
    0      7         10          customer 7 before
    1      7         10          customer 7 after
    1      7         25
    3      9         8           customer 9 after; it was not there before

Where the query has no answer for some unit, the units are halved until that one stands alone: it
then has no rows in the answer, whatever the others have.

The answer for a partition must not depend on how its rows came to be there: what was emitted when
they came must be taken away exactly when they change. So rows are given to DuckDB in the order of
their bytes, and equal rows next to each other.

Only touched partitions are in memory, a few thousand at a time: an epoch needs room for the
largest ones among them, not for the table.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.entries import KEY, WEIGHT
from everview.operators.evaluation import Unevaluable, one_array
from everview.operators.members import MEMBER
from everview.operators.rows_by_key import Bags
from everview.operators.stored import Keys
from everview.operators.work import Changes, Work
from everview.plan.maintenance import Step
from everview.store.encoding.ragged import Bytes, column_of, concat, glue

UNIT = "__unit"
"""The number of the unit: twice the number of the partition, and one more after the epoch."""

TOGETHER = 8192
"""Partitions that are evaluated together."""

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Merged:
    """The entries of bags and the changes of them, each entry of a bag once, in their order."""

    bag: Numbers
    entries: Bytes
    before: Numbers
    after: Numbers


def merged(bag: Numbers, entries: Bytes, counts: Numbers, changed: Numbers, changes: Bytes, weights: Numbers) -> Merged:
    """Entries with their counts, and changes of entries with their weights; both with the number
    of their bag."""
    bags = np.concatenate([bag, changed])
    everything = concat(entries, changes)
    named = pc.dictionary_encode(
        glue(column_of(bags.astype(">u4").tobytes(), 4 * np.arange(len(bags) + 1)), everything)
    )
    place = named.indices.to_numpy()
    before = np.zeros(len(named.dictionary), np.int64)
    change = before.copy()
    first = before.copy()
    before[place[: len(bag)]] = counts
    np.add.at(change, place[len(bag) :], weights)
    first[place[::-1]] = np.arange(len(place))[::-1]
    chosen = first[pc.sort_indices(named.dictionary).to_numpy()]
    at = place[chosen]
    return Merged(bags[chosen], everything.take(pa.array(chosen)), before[at], before[at] + change[at])


@dataclass(frozen=True)
class TouchedPartitions:
    """Partitions with their rows before and after."""

    groups: pa.Table
    """Each partition once: KEY, the columns of its key, its member."""
    rows: pa.Table
    """Each different row of a partition once, with the columns that are wanted."""
    bag: Numbers
    """The partition of each row."""
    before: Numbers
    after: Numbers
    """How often each row is there."""

    def side(self, after: bool) -> tuple[pa.Table, Numbers]:
        """The rows of one side, as often as they are there, and the partition of each."""
        chosen = np.repeat(np.arange(len(self.bag)), self.after if after else self.before)
        return self.rows.take(pa.array(chosen)), self.bag[chosen]

    def units(self, sides: Sequence[bool] = (False, True)) -> pa.Table:
        """The rows of all units, in their order."""
        counts = np.stack([self.after if after else self.before for after in sides], axis=1)
        numbers = np.stack([2 * self.bag + after for after in sides], axis=1).ravel()
        chosen = np.repeat(np.repeat(np.arange(len(self.bag)), len(sides)), counts.ravel())
        unit = np.repeat(numbers, counts.ravel())
        order = np.argsort(unit, kind="stable")
        return self.rows.take(pa.array(chosen[order])).append_column(UNIT, pa.array(unit[order]))


class Partitions:
    """The partitions that an input's bags are."""

    def __init__(self, bags: Bags, wanted: Sequence[str]) -> None:
        self.bags = bags
        self.wanted = list(wanted)
        held = {field.name for field in bags.stored.state.fields}
        self._held = [name for name in wanted if name in held]
        self._keys = Keys(bags.stored.state.key, bags.stored.state.name)

    def touched(self, work: Work, changes: Changes) -> Iterator[TouchedPartitions]:
        """The partitions that changes touch, some at a time."""
        keyed = self.bags.with_keys(changes)
        groups = self.bags.touched(keyed)
        number = pc.index_in(one_array(keyed[KEY]), value_set=one_array(groups[KEY])).to_numpy()
        for start in range(0, len(groups), TOGETHER):
            some = groups[start : start + TOGETHER]
            chosen = np.flatnonzero((number >= start) & (number < start + TOGETHER))
            theirs = changes if len(chosen) == len(changes) else changes.take(pa.array(chosen))
            yield self.read(work, some, theirs, number[chosen] - start)

    def read(
        self, work: Work, groups: pa.Table, changes: Changes | None = None, number: Numbers | None = None
    ) -> TouchedPartitions:
        """Partitions as of the last epoch, and with changes; ``number`` is the partition of each."""
        members = groups[MEMBER] if self.bags.members is not None else None
        key = [groups[name] for name in self.bags.key_columns]
        found, bag = self.bags.read(work, key, len(groups), members)
        if changes is None or number is None:
            counts = one_array(found.counts).to_numpy()
            order = np.argsort(bag, kind="stable")
            bag, entries = bag[order], found.entries.take(pa.array(order))
            return TouchedPartitions(groups, self.decoded(groups, bag, entries), bag, counts[order], counts[order])
        made = self.bags.stored.entries(changes)
        weights = one_array(changes[WEIGHT]).to_numpy()
        both = merged(bag, found.entries, one_array(found.counts).to_numpy(), number, made, weights)
        return TouchedPartitions(
            groups, self.decoded(groups, both.bag, both.entries), both.bag, both.before, both.after
        )

    def decoded(self, groups: pa.Table, bag: Numbers, entries: Bytes) -> pa.Table:
        """The wanted columns of entries, given the partition of each."""
        held = dict(zip(self._held, self.bags.stored.columns(entries, self._held), strict=True))
        place = pa.array(bag)
        found = {name: held[name] if name in held else groups[name].take(place) for name in self.wanted}
        return pa.table(found) if found else pa.table({"__n": place})

    def keys(self, groups: pa.Table) -> list[pa.Array]:
        """The values of partitions' keys: the same for a partition whichever row they come from,
        though equal values may look different (0.0 and -0.0)."""
        return self._keys.decode(self._keys.encode([groups[name] for name in self.bags.key_columns], len(groups)))

    def quarantine(self, work: Work, step: Step, what: str, groups: pa.Table, failed: Mapping[int, str]) -> None:
        """Units without an answer."""
        if not failed:
            return
        units = np.array(sorted(failed), np.int64)
        place = pa.array(units // 2)
        names = dict.fromkeys(self.bags.key_columns)
        key = dict(zip(self.bags.key_columns, self.keys(groups), strict=True))
        columns = {name: key[name].take(place) for name in names}
        if self.bags.members is not None:
            columns[MEMBER] = one_array(groups[MEMBER]).take(place)
        rows = pa.table(columns | {WEIGHT: pa.array(units % 2 * 2 - 1)})
        work.quarantine.add(step, what, rows, {row: failed[unit] for row, unit in enumerate(units.tolist())})


def answered(
    evaluate: Callable[[pa.Table], pa.Table], rows: pa.Table, *, alone: bool = False
) -> tuple[list[pa.Table], dict[int, str]]:
    """The answer for rows of units, in parts; and the units that have none, with the reasons. Each
    unit ``alone`` where its answer may depend on what is evaluated with it."""
    failed: dict[int, str] = {}
    units = one_array(rows[UNIT]).to_numpy()
    if not alone:
        return _answered(evaluate, rows, units, failed), failed
    edges = np.flatnonzero(np.diff(units, prepend=-1, append=-1)).tolist() if len(units) else []
    return [
        answer
        for start, end in itertools.pairwise(edges)
        for answer in _answered(evaluate, rows[start:end], units[start:end], failed)
    ], failed


def _answered(
    evaluate: Callable[[pa.Table], pa.Table], rows: pa.Table, units: Numbers, failed: dict[int, str]
) -> list[pa.Table]:
    if not len(rows):
        return []
    try:
        return [evaluate(rows)]
    except Unevaluable as error:
        different = np.unique(units)
        if len(different) == 1:
            failed[int(different[0])] = str(error)
            return []
    middle = int(np.searchsorted(units, different[len(different) // 2]))
    return [
        *_answered(evaluate, rows[:middle], units[:middle], failed),
        *_answered(evaluate, rows[middle:], units[middle:], failed),
    ]


def emitted(step: Step, found: pa.Table, units: Numbers, groups: pa.Table) -> Changes:
    """Answers as changes: the answers of units before go, those of units after come."""
    if step.constants:
        found = found.append_column(MEMBER, groups[MEMBER].take(pa.array(units // 2)))
    return found.append_column(WEIGHT, pa.array(units % 2 * 2 - 1))
