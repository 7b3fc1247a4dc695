"""Joins: pairs of rows whose keys are equal, and the lines of rows without a partner.

    Δ(A ⋈ B)  =  ΔA ⋈ (B + ΔB)  +  A ⋈ ΔB                A, B as of the last epoch

A left or full join also shows rows that match nothing, a semi join those that match something
and an anti join those that match nothing. With m(a) the number of rows that a row a matches, before
(m) and after (m′), and *shown* the rows with m = 0 (semi: m > 0)::

    Δ lines  =  ΔA · shown(m′)  +  A · (shown(m′) − shown(m))

The second part concerns only rows that changes of the other side match. Where keys are all that
is compared, m is the size of the other side's bag and only whether it is empty matters: so of a
bag from which d rows go, the first d + 1 are read, however large it is.

A condition beyond the keys is evaluated for pairs. A pair for which it has no value is no match,
and is quarantined.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

from everview.change.entries import WEIGHT
from everview.change.schema import KeyPart
from everview.errors import DefinitionError
from everview.operators.bound import BoundPlan
from everview.operators.evaluation import one_array
from everview.operators.flow import columns_of, condensed, empty_changes
from everview.operators.members import MEMBER, Numbers
from everview.operators.pairing import KeyNumbers, SideRows, TouchedKeys, pairs, summed
from everview.operators.rows_by_key import Bags
from everview.operators.work import Changes, Mask, StepWorker, Work
from everview.plan.expressions import fields_of, quoted
from everview.plan.maintenance import Step
from everview.plan.maintenance.operator_definitions import JoinOperator
from everview.plan.relations import JoinKind
from everview.store.contract import BagRows

_AT_ONCE = 1 << 20
"""Pairs whose condition is evaluated at once."""


class JoinWorker(StepWorker):
    def __init__(self, step: Step, bound: BoundPlan) -> None:
        super().__init__(step, bound)
        operator = step.operator_as(JoinOperator)
        self.prefix = operator.right_prefix
        self.rest = operator.rest
        self.bags = (Bags(self, 0), Bags(self, 1))
        kind = operator.kind
        self.pairs = kind in (JoinKind.INNER, JoinKind.LEFT, JoinKind.FULL)
        self.lines: tuple[int, ...] = {JoinKind.INNER: (), JoinKind.FULL: (0, 1)}.get(kind, (0,))
        """The sides whose rows have lines of their own."""
        self.shows_matched = kind is JoinKind.SEMI
        keys = [bags.stored.state.key for bags in self.bags]
        if any(one.type != other.type for one, other in zip(*keys, strict=True)):
            raise DefinitionError(f"join {step.title} compares keys of different types")
        parts = [KeyPart(part.name, part.type, e.nulls_match) for part, e in zip(keys[0], operator.on, strict=True)]
        self.keys = KeyNumbers(parts, f"join {step.title}")
        self.shown = [self._of_side(n, [field.name for field in step.fields]) for n in (0, 1)]
        """For each side, its columns that the step emits, under their own names and the step's."""
        self.compared = [self._of_side(n, fields_of(self.rest) if self.rest else ()) for n in (0, 1)]
        """For each side, its columns that the condition reads."""
        self.condenses = any(len(self.needed(n)) < len(source.fields) for n, source in enumerate(self.sources))

    def _of_side(self, number: int, names: Iterable[str]) -> dict[str, str]:
        there = [{field.name for field in source.fields} for source in self.sources]
        prefix = self.prefix if number else ""
        return {
            name[len(prefix) :]: name
            for name in names
            if (name in there[0]) != bool(number) and name.startswith(prefix) and name[len(prefix) :] in there[number]
        }

    def reads(self, number: int) -> Iterable[str]:
        names = [*self.bags[number].key_columns, *self.shown[number], *self.compared[number]]
        return [quoted(name) for name in names]

    def run(self, work: Work, inputs: Sequence[Sequence[pa.Table]]) -> Changes:
        changes = [self.gathered(number, parts) for number, parts in enumerate(inputs)]
        keys = self.keys.touched([(c, bags.key_columns) for c, bags in zip(changes, self.bags, strict=True)])
        moved = [
            SideRows({n: one_array(table[n]) for n in table.column_names}, numbers, one_array(table[WEIGHT]).to_numpy())
            for table, numbers in zip(changes, keys.numbers, strict=True)
        ]
        joining = (_Keyed if self.rest is None else _Compared)(self, work, keys, moved)
        return joining.changes()


class _Joining:
    """One epoch's work of a join."""

    def __init__(self, join: JoinWorker, work: Work, keys: TouchedKeys, moved: Sequence[SideRows]) -> None:
        self.join, self.work, self.keys, self.moved = join, work, keys, moved
        self.touched = [keys.of(number) for number in (0, 1)]
        """For each side, which keys its changes have."""
        self._made: list[tuple[pa.Table, Numbers]] = []

    @cached_property
    def before(self) -> list[SideRows]:
        """For each side, the rows that the other side's changes meet."""
        return [self.rows(number, self.touched[1 - number]) for number in (0, 1)]

    def rows(self, side: int, wanted: Mask) -> SideRows:
        """The rows of a side as of the last epoch, for some of the keys."""
        bags = self.join.bags[side]
        asked, found, group = self._read(side, wanted, None)
        keys = asked[group]
        names = self.join.needed(side)
        stored = {field.name for field in bags.stored.state.fields}
        held = [name for name in names if name in stored]
        columns = dict(zip(held, bags.stored.columns(found.entries, held), strict=True))
        chosen = pa.array(keys)
        for name, column in zip(bags.key_columns, self.keys.columns, strict=True):
            if name in names and name not in columns:
                columns[name] = column.take(chosen)
        if self.keys.members is not None:
            columns[MEMBER] = self.keys.members.take(chosen)
        return SideRows(columns, keys, found.counts.to_numpy())

    def sizes(self, side: int, wanted: Mask, enough: Numbers) -> Numbers:
        """By key, the size of a side's bags as of the last epoch, or at least ``enough``."""
        asked, found, group = self._read(side, wanted, enough)
        return summed(asked[group], found.counts.to_numpy(), self.keys.count)

    def _read(self, side: int, wanted: Mask, enough: Numbers | None) -> tuple[Numbers, BagRows, Numbers]:
        bags, keys = self.join.bags[side], self.keys
        for part, column in zip(bags.stored.state.key, keys.columns, strict=True):
            if column.null_count and not part.nullable:
                wanted = wanted & column.is_valid().to_numpy(zero_copy_only=False)
        asked = np.flatnonzero(wanted)
        chosen = pa.array(asked)
        key = [column.take(chosen) for column in keys.columns]
        members = keys.members.take(chosen) if keys.members is not None else None
        first = None if enough is None else pa.array(enough[asked])
        found, group = bags.read(self.work, key, len(asked), members, first)
        return asked, found, group

    # -------------------------------------------------------------- what is emitted

    def emit_pairs(self, left: SideRows, right: SideRows, one: Numbers, other: Numbers) -> None:
        if not (self.join.pairs and len(one)):
            return
        columns = {}
        for side, (rows, chosen) in enumerate(((left, pa.array(one)), (right, pa.array(other)))):
            for name, shown in self.join.shown[side].items():
                columns[shown] = rows.columns[name].take(chosen)
        self._emit(columns, left, one, left.weights[one] * right.weights[other])

    def emit_lines(self, side: int, rows: SideRows, weights: Numbers) -> None:
        """Rows as often as their weights, without a partner."""
        chosen = np.flatnonzero(weights)
        if len(chosen):
            taken = pa.array(chosen)
            columns = {shown: rows.columns[name].take(taken) for name, shown in self.join.shown[side].items()}
            self._emit(columns, rows, chosen, weights[chosen])

    def _emit(self, columns: Mapping[str, pa.Array], rows: SideRows, chosen: Numbers, weights: Numbers) -> None:
        step = self.join.step
        made = [columns.get(field.name, pa.nulls(len(chosen), field.type.arrow)) for field in step.fields]
        if step.constants:
            made.append(rows.columns[MEMBER].take(pa.array(chosen)))
        self._made.append((pa.table([*made, pa.array(weights)], names=columns_of(step)), rows.keys[chosen]))

    def emitted(self) -> Changes:
        """All that was made. What both sides' changes have a part in may cancel out."""
        if not self._made:
            return empty_changes(self.join.step)
        found = pa.concat_tables([table for table, _ in self._made])
        keys = np.concatenate([numbers for _, numbers in self._made])
        both = np.append(self.touched[0] & self.touched[1], False)[keys]
        if not both.any():
            return found
        if both.all():
            return condensed(found)
        return pa.concat_tables([found.filter(pa.array(~both)), condensed(found.filter(pa.array(both)))])

    def shown(self, matches: Numbers) -> Numbers:
        """1 where a row that has so many matches has a line, 0 where not."""
        return ((matches > 0) if self.join.shows_matched else (matches <= 0)).astype(np.int64)


class _Keyed(_Joining):
    """Where rows match if their keys are equal."""

    def changes(self) -> Changes:
        if self.join.pairs:
            after = self.before[1] + self.moved[1]
            self.emit_pairs(self.moved[0], after, *pairs(self.moved[0].keys, after.keys, self.keys.count))
            old = self.before[0]
            self.emit_pairs(old, self.moved[1], *pairs(old.keys, self.moved[1].keys, self.keys.count))
        for side in self.join.lines:
            self._lines(side)
        return self.emitted()

    def _lines(self, side: int) -> None:
        count, own, other = self.keys.count, self.moved[side], self.moved[1 - side]
        gone = summed(other.keys, -np.minimum(other.weights, 0), count)
        if self.join.pairs:
            known = self.before[1 - side]
            before = summed(known.keys, known.weights, count)
            before += self.sizes(1 - side, self.touched[1 - side] & ~self.touched[side], gone + 1)
        else:
            before = self.sizes(1 - side, np.ones(count, np.bool_), gone + 1)
        after = before + summed(other.keys, other.weights, count)
        shown = np.append(self.shown(after), self.shown(np.zeros(1, np.int64)))
        self.emit_lines(side, own, own.weights * shown[own.keys])
        crossing = self.shown(after) - self.shown(before)
        if crossing.any():
            old = self.before[side] if self.join.pairs else self.rows(side, crossing != 0)
            self.emit_lines(side, old, old.weights * crossing[old.keys])


class _Compared(_Joining):
    """Where a condition is evaluated for rows whose keys are equal."""

    def changes(self) -> Changes:
        after = self.before[1] + self.moved[1]
        old = self.before[0]
        come = self._matching(self.moved[0], after, recorded=True)
        met = self._matching(old, self.moved[1], recorded=True)
        self.emit_pairs(self.moved[0], after, *come)
        self.emit_pairs(old, self.moved[1], *met)
        if self.join.lines:
            matches = _sum(come[0], after.weights[come[1]], len(self.moved[0]))
            self._lines(0, matches, _sum(met[0], self.moved[1].weights[met[1]], len(old)))
        if 1 in self.join.lines:
            ahead = len(self.before[1])
            late = come[1] >= ahead
            weights = self.moved[0].weights[come[0]]
            matches = _sum(met[1], old.weights[met[0]], len(self.moved[1]))
            matches += _sum(come[1][late] - ahead, weights[late], len(self.moved[1]))
            self._lines(1, matches, _sum(come[1][~late], weights[~late], ahead))
        return self.emitted()

    def _lines(self, side: int, after: Numbers, differences: Numbers) -> None:
        """``after``: how many rows each changed row of the side matches after the epoch.
        ``differences``: how many more each of its rows from before does."""
        own, old = self.moved[side], self.before[side]
        self.emit_lines(side, own, own.weights * self.shown(after))
        chosen = np.flatnonzero(differences)
        if not len(chosen):
            return
        old = old.take(chosen)
        asked = np.zeros(self.keys.count, np.bool_)
        asked[old.keys] = True
        others = self.before[1 - side] + self.rows(1 - side, asked & ~self.touched[side])
        if side == 0:
            one, other = self._matching(old, others, recorded=False)
        else:
            other, one = self._matching(others, old, recorded=False)
        before = _sum(one, others.weights[other], len(old))
        crossing = self.shown(before + differences[chosen]) - self.shown(before)
        self.emit_lines(side, old, old.weights * crossing)

    def _matching(self, left: SideRows, right: SideRows, *, recorded: bool) -> tuple[Numbers, Numbers]:
        """The pairs for which the condition holds; those for which it fails are quarantined if
        ``recorded`` is set."""
        one, other = pairs(left.keys, right.keys, self.keys.count)
        masks = [
            self._holds(left, right, one[at : at + _AT_ONCE], other[at : at + _AT_ONCE], recorded)
            for at in range(0, len(one), _AT_ONCE)
        ]
        if not masks:
            return one, other
        mask = np.concatenate(masks)
        return one[mask], other[mask]

    def _holds(self, left: SideRows, right: SideRows, one: Numbers, other: Numbers, recorded: bool) -> Mask:
        assert self.join.rest is not None
        sides = ((left, pa.array(one)), (right, pa.array(other)))
        read = {
            as_read: rows.columns[name].take(chosen)
            for (rows, chosen), names in zip(sides, self.join.compared, strict=True)
            for name, as_read in names.items()
        }
        rows = pa.table(read) if read else pa.table({WEIGHT: pa.array(np.ones(len(one), np.int64))})
        mask, failed = self.work.evaluator.mask(self.join.rest, rows)
        if failed and recorded:
            for name in self.join.bags[0].key_columns:
                if name not in read:
                    read[name] = left.columns[name].take(sides[0][1])
            if self.keys.members is not None:
                read[MEMBER] = left.columns[MEMBER].take(sides[0][1])
            named = pa.table(read | {WEIGHT: pa.array(left.weights[one] * right.weights[other])})
            self.work.quarantine.add(self.join.step, "pair", named, failed)
        found: Mask = mask.to_numpy(zero_copy_only=False)
        return found


def _sum(numbers: Numbers, weights: Numbers, count: int) -> Numbers:
    return np.bincount(numbers, weights, count).astype(np.int64)
