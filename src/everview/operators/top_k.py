"""Top-k: the first rows of ordered bags, before and after.

    first(n) of R(p)  =  the rows of p that bring the sum of counts to n, in the bag's order
    τ(R)              =  first(offset + limit) − first(offset)          Δτ  =  τ(R + ΔR) − τ(R)

Bags stand in the order of the query, so only their beginnings are read: as many rows as are asked
for, and one more for each that is taken away. With a limit of 2::

    before   10  20 | 30  40 …        read: 10 20 30
    change   −10  +15
    after    15  20 | 30  40 …        emitted: −10 +15

What stands behind the last row that was read is not known and cannot be among the first. With
ties all rows that tie with the last one belong to the answer: then more is read, twice as much
each time, until a row is seen that does not tie with it.

Without a limit everything but the first ``offset`` rows is shown, so the changes themselves are
emitted, less the difference of the first rows: Δτ = ΔR − Δfirst(offset).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.entries import KEY, WEIGHT
from everview.operators.bound import BoundPlan
from everview.operators.evaluation import one_array
from everview.operators.flow import condensed, empty_changes, together
from everview.operators.members import MEMBER
from everview.operators.partitions import Merged, Numbers, Partitions, merged
from everview.operators.rows_by_key import Bags
from everview.operators.stored import Keys, ordered_by, ordering
from everview.operators.work import Changes, StepWorker, Work
from everview.plan.expressions import fields_of, quoted
from everview.plan.maintenance import Step
from everview.plan.maintenance.operator_definitions import KeyedRowsOperator, TopKOperator
from everview.store.encoding.ragged import Bytes

Mask = npt.NDArray[np.bool_]


class TopKWorker(StepWorker):
    def __init__(self, step: Step, bound: BoundPlan) -> None:
        super().__init__(step, bound)
        self._bags = Bags(self, 0)
        self._shown = Partitions(self._bags, self._bags.columns)
        operator = step.operator_as(TopKOperator)
        self._offset = operator.offset
        self._last = None if operator.limit is None else operator.offset + operator.limit
        order = self._bags.stored.state.order
        asked = self.sources[0].operator_as(KeyedRowsOperator).order or ()
        self._order = [(one.sql, part.type) for one, part in zip(asked, order, strict=True)]
        self._ties = operator.ties
        tied = order[: self._ties]
        self._tied = tied, Keys(ordering(tied), step.title, delimited=True)
        read = {name for sql, _ in self._order[: self._ties] for name in fields_of(sql)}
        self._compared = Partitions(self._bags, [name for name in self._bags.columns if name in read])

    def reads(self, number: int) -> Iterable[str]:
        return [quoted(field.name) for field in self.sources[number].fields]

    def run(self, work: Work, inputs: Sequence[Sequence[pa.Table]]) -> Changes:
        changes = self.gathered(0, inputs[0])
        if not len(changes):
            return empty_changes(self.step)
        keyed = self._bags.with_keys(changes)
        groups = self._bags.touched(keyed)
        bag = pc.index_in(one_array(keyed[KEY]), value_set=one_array(groups[KEY])).to_numpy().astype(np.int64)
        order = work.evaluator.columns(self._order, changes).columns
        made = _Changes(bag, self._bags.stored.entries(changes, order), one_array(changes[WEIGHT]).to_numpy())
        both, difference = self._difference(work, groups, made)
        chosen = np.flatnonzero(difference)
        rows = self._shown.decoded(groups, both.bag[chosen], both.entries.take(pa.array(chosen)))
        found, _ = self.computed(work, rows.append_column(WEIGHT, pa.array(difference[chosen])))
        if self.members is not None:
            found = found.append_column(MEMBER, groups[MEMBER].take(pa.array(both.bag[chosen])))
        return condensed(together(self.step, [found]))

    # -------------------------------------------------------------- the first rows

    def _difference(self, work: Work, groups: pa.Table, changes: _Changes) -> tuple[Merged, Numbers]:
        """The entries that are known, and by how much the answer holds more of each."""
        most = self._offset if self._last is None else self._last
        wanted = np.full(len(groups), most, np.int64) + changes.taken(len(groups))
        while True:
            both, known, ended = self._known(work, groups, changes, wanted)
            if self._ties is None:
                break
            compared = self._compared.decoded(groups, both.bag, both.entries)
            runs = self._runs(work, compared, both)
            unsure = ~ended & ~_past(both, known, runs, most)
            if not unsure.any():
                break
            wanted[unsure] *= 2
        before, after = np.where(known, both.before, 0), np.where(known, both.after, 0)
        skipped = _first(both.bag, after, self._offset) - _first(both.bag, before, self._offset)
        if self._last is None:
            return both, both.after - both.before - skipped
        if self._ties is None:
            return both, _first(both.bag, after, most) - _first(both.bag, before, most) - skipped
        return both, _tied(both.bag, after, runs, most) - _tied(both.bag, before, runs, most) - skipped

    def _known(self, work: Work, groups: pa.Table, changes: _Changes, wanted: Numbers) -> tuple[Merged, Mask, Mask]:
        """Entries that were read or changed, in order; which of them are not behind the last that
        was read; and which bags were read to their end."""
        members = groups[MEMBER] if self.members is not None else None
        key = [groups[name] for name in self._bags.key_columns]
        found, bag = self._bags.read(work, key, len(groups), members, pa.array(wanted))
        counts = one_array(found.counts).to_numpy()
        both = merged(bag, found.entries, counts, changes.bag, changes.entries, changes.weights)
        read = np.zeros(len(groups), np.int64)
        np.add.at(read, bag, counts)
        ended = read < wanted
        end = np.full(len(groups), -1, np.int64)
        there = np.flatnonzero(both.before)
        np.maximum.at(end, both.bag[there], there)
        return both, ended[both.bag] | (np.arange(len(both.bag)) <= end[both.bag]), ended

    def _runs(self, work: Work, rows: pa.Table, both: Merged) -> Numbers:
        """A number for each run of entries that tie."""
        tied, keys = self._tied
        columns = work.evaluator.columns(self._order[: self._ties], rows).columns
        values = keys.encode(ordered_by(tied, columns), len(both.bag))
        if len(values) < 2:
            return np.zeros(len(values), np.int64)
        other = pc.not_equal(values[1:], values[:-1]).to_numpy(zero_copy_only=False)
        found: Numbers = np.concatenate([[0], np.cumsum(other | (both.bag[1:] != both.bag[:-1]))])
        return found


@dataclass(frozen=True)
class _Changes:
    """Changes of entries."""

    bag: Numbers
    entries: Bytes
    weights: Numbers

    def taken(self, bags: int) -> Numbers:
        """At most how many rows each bag loses."""
        found = np.zeros(bags, np.int64)
        np.add.at(found, self.bag, np.maximum(-self.weights, 0))
        return found


def _before(bag: Numbers, counts: Numbers) -> Numbers:
    """How many rows of its bag stand before each entry."""
    ahead = np.cumsum(counts) - counts
    begins = np.concatenate([[True], bag[1:] != bag[:-1]])
    found: Numbers = ahead - ahead[np.flatnonzero(begins)][np.cumsum(begins) - 1]
    return found


def _first(bag: Numbers, counts: Numbers, number: int) -> Numbers:
    """How many of each entry are among the first so many rows of its bag."""
    if not len(bag):
        return counts
    found: Numbers = np.clip(number - _before(bag, counts), 0, counts)
    return found


def _tied(bag: Numbers, counts: Numbers, runs: Numbers, number: int) -> Numbers:
    """The same, with all that tie with the last of them."""
    if not len(bag):
        return counts
    ahead = _before(bag, counts)
    begins = np.concatenate([[True], runs[1:] != runs[:-1]])
    found: Numbers = np.where(ahead[np.flatnonzero(begins)][runs] < number, counts, 0)
    return found


def _past(both: Merged, known: Mask, runs: Numbers, number: int) -> Mask:
    """Of each bag, whether the last known entry is neither before nor after among the first."""
    bags = int(both.bag.max(initial=-1)) + 1
    past = np.zeros(bags, np.bool_)
    last = np.full(bags, -1, np.int64)
    there = np.flatnonzero(known)
    np.maximum.at(last, both.bag[there], there)
    seen = last >= 0
    outside = np.ones(len(both.bag), np.bool_)
    for counts in (both.before, both.after):
        held = np.where(known, counts, 0)
        ahead = _before(both.bag, held)
        begins = np.concatenate([[True], runs[1:] != runs[:-1]])
        outside &= ahead[np.flatnonzero(begins)][runs] >= number
    past[seen] = outside[last[seen]]
    return past
