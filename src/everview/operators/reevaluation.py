"""Re-evaluation: a query that has no operator, over the partitions that any input's changes touch.

    ΔQ(A, B, …)  =  Σ over touched partitions p of  Q(A′(p), B′(p), …) − Q(A(p), B(p), …)

The plan has found the smallest partitions of the inputs for which evaluating each alone and
putting the answers together is evaluating the whole. So one query over all touched partitions
gives the sum of their answers; it is asked once for the rows before and once for those after, and
what is in both is not emitted. Where there is no such partition, the whole inputs are one.

A partition is the same in all inputs: the values of the key's parts, position by position.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.condense import with_weight
from everview.change.entries import KEY
from everview.change.schema import KeyPart
from everview.errors import DefinitionError
from everview.operators.bound import BoundPlan
from everview.operators.evaluation import Unevaluable, one_array
from everview.operators.flow import condensed, member_bytes, together
from everview.operators.members import MEMBER
from everview.operators.partitions import TOGETHER, Numbers, Partitions, TouchedPartitions
from everview.operators.recursion import bounded_query
from everview.operators.rounding import rounds
from everview.operators.rows_by_key import Bags
from everview.operators.stored import Keys
from everview.operators.work import Changes, StepWorker, Work
from everview.plan.expressions import quoted
from everview.plan.maintenance import Step
from everview.plan.maintenance.operator_definitions import ReevaluationOperator
from everview.store.encoding.ragged import glue


class ReevaluationWorker(StepWorker):
    def __init__(self, step: Step, bound: BoundPlan) -> None:
        super().__init__(step, bound)
        kinds = {field.name: field.type for field in step.fields}
        self.operator = step.operator_as(ReevaluationOperator)
        self._types = [(name, kinds[name]) for name in self.operator.columns]
        self._inputs = [
            Partitions(Bags(self, number), [column.stored for column in one.columns])
            for number, one in enumerate(self.operator.inputs)
        ]
        self._key = self._common_key()
        self._alone = bool(self._key.parts) and rounds(self.operator.query)

    def _common_key(self) -> Keys:
        """The key of a partition, whichever input it comes from."""
        types = [[part.type for part in one.bags.stored.state.key] for one in self._inputs]
        if any(one != types[0] for one in types):
            raise DefinitionError(
                f"the inputs of {self.step.title} are split by values of different types",
                detail="; ".join(", ".join(map(str, one)) for one in types),
            )
        parts = tuple(KeyPart(f"k{number}", kind, nullable=True) for number, kind in enumerate(types[0]))
        return Keys(parts, self.step.title)

    def reads(self, number: int) -> Iterable[str]:
        return [quoted(field.name) for field in self.sources[number].fields]

    def run(self, work: Work, inputs: Sequence[Sequence[pa.Table]]) -> Changes:
        changes = [self.gathered(number, parts) for number, parts in enumerate(inputs)]
        named = [self._named(number, rows) for number, rows in enumerate(changes)]
        groups = self._groups(work, named)
        keys = one_array(groups[KEY])
        numbers = [
            pc.index_in(one_array(one[KEY]), value_set=keys).to_numpy(zero_copy_only=False).astype(np.int64)
            for one in named
        ]
        parts: list[pa.Table] = []
        for start in range(0, len(groups), TOGETHER):
            some = groups[start : start + TOGETHER]
            touched = []
            for number, (rows, theirs) in enumerate(zip(changes, numbers, strict=True)):
                chosen = np.flatnonzero((theirs >= start) & (theirs < start + TOGETHER))
                own = self._renamed(number, some)
                touched.append(
                    self._inputs[number].read(work, own, rows.take(pa.array(chosen)), theirs[chosen] - start)
                )
            parts += self._answers(work, some, touched)
        return condensed(together(self.step, parts))

    # -------------------------------------------------------------- partitions

    def _named(self, number: int, changes: Changes) -> pa.Table:
        """The partition of each change: its key as bytes, the values of the key, its member."""
        columns = [one_array(changes[name]) for name in self._inputs[number].bags.key_columns]
        keys = self._key.encode(columns, len(changes))
        found = {f"k{position}": column for position, column in enumerate(columns)}
        if self.members is not None:
            found[MEMBER] = one_array(changes[MEMBER])
            keys = glue(member_bytes(changes[MEMBER]), keys)
        return pa.table({KEY: keys} | found)

    def _groups(self, work: Work, named: Sequence[pa.Table]) -> pa.Table:
        """Each touched partition once. Where everything is one partition, it is touched at the
        very beginning, for a query may have an answer over nothing."""
        tables = list(named)
        if work.first(self.step) and not self._key.parts and work.owns(self.step, self._key.encode((), 1))[0]:
            tables.append(self._everything())
        found = pa.concat_tables(tables)
        keys = one_array(found[KEY])
        return found.take(pc.index_in(pc.unique(keys), value_set=keys))

    def _everything(self) -> pa.Table:
        if self.members is None:
            return pa.table({KEY: self._key.encode((), 1)})
        members = pa.chunked_array([np.arange(len(self.members), dtype=np.int32)])
        keys = glue(member_bytes(members), self._key.encode((), len(self.members)))
        return pa.table({KEY: keys, MEMBER: members})

    def _renamed(self, number: int, groups: pa.Table) -> pa.Table:
        """Partitions with the values of their keys under the names of an input."""
        columns = {KEY: groups[KEY]}
        for position, name in enumerate(self._inputs[number].bags.key_columns):
            columns.setdefault(name, groups[f"k{position}"])
        if self.members is not None:
            columns[MEMBER] = groups[MEMBER]
        return pa.table(columns)

    # -------------------------------------------------------------- answers

    def _answers(self, work: Work, groups: pa.Table, touched: Sequence[TouchedPartitions]) -> list[pa.Table]:
        """The rows that go and the rows that come."""
        found: list[pa.Table] = []
        members = np.zeros(len(groups), np.int32) if self.members is None else one_array(groups[MEMBER]).to_numpy()
        for after in (False, True):
            if not after and work.first(self.step):
                continue
            sides = [_Side(*one.side(after)) for one in touched]
            for member in np.unique(members).tolist():
                bags = np.flatnonzero(members == member).astype(np.int64)
                failed: dict[int, str] = {}
                answers = self._evaluated(work, [side.of(bags, len(groups)) for side in sides], bags, failed)
                units = {2 * bag + after: reason for bag, reason in failed.items()}
                self._inputs[0].quarantine(work, self.step, "partition", self._renamed(0, groups), units)
                for answer in answers:
                    if self.members is not None:
                        answer = answer.append_column(MEMBER, pa.array(np.full(len(answer), member, np.int32)))
                    found.append(with_weight(answer, 1 if after else -1))
        return found

    def _evaluated(self, work: Work, sides: Sequence[_Side], bags: Numbers, failed: dict[int, str]) -> list[pa.Table]:
        """The answer over some partitions, in parts; halved where it fails, or where the answer for
        a partition may depend on others (:mod:`everview.operators.rounding`)."""
        tables = {
            f"in{number}": side.rows.select([column.stored for column in one.columns]).rename_columns(
                [column.name for column in one.columns]
            )
            for number, (side, one) in enumerate(zip(sides, self.operator.inputs, strict=True))
        }
        try:
            if len(bags) == 1 or not self._alone:
                return [work.evaluator.query(bounded_query(self.operator), self._types, tables)]
        except Unevaluable as error:
            if len(bags) == 1:
                failed[int(bags[0])] = str(error)
                return []
        count, middle = int(bags.max()) + 1, len(bags) // 2
        return [
            answer
            for half in (bags[:middle], bags[middle:])
            for answer in self._evaluated(work, [side.of(half, count) for side in sides], half, failed)
        ]


@dataclass(frozen=True)
class _Side:
    """Rows of an input, and the partition of each."""

    rows: pa.Table
    bag: Numbers

    def of(self, bags: Numbers, count: int) -> _Side:
        """Those of some of ``count`` partitions."""
        if len(bags) == count:
            return self
        wanted = np.zeros(count, np.bool_)
        wanted[bags] = True
        chosen = wanted[self.bag] if len(self.bag) else np.zeros(0, np.bool_)
        return _Side(self.rows.filter(pa.array(chosen)), self.bag[chosen])
