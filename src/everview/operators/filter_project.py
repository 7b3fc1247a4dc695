"""Filters and projections: applied to each change by itself.

    Δσ(R)  =  σ(ΔR)          Δπ(R)  =  π(ΔR)

Thousands of views that differ in constants are one filter: their constants are a table, and the
condition joins changes with it, so a change costs what its matches cost::

    changes             constants           amount > $1
    amount  weight      $1   member         amount  member  weight
    15      +1      ⋈   10   0         →    15      0       +1
                        20   1
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from everview.change.types import BIGINT, INTEGER, INTEGERS, Kind, Type
from everview.operators.bound import BoundPlan
from everview.operators.evaluation import Unevaluable, in_turn
from everview.operators.members import MEMBER, own_constants
from everview.operators.work import Changes, StepWorker, Work
from everview.plan.maintenance import Step
from everview.plan.maintenance.column_names import filled
from everview.plan.maintenance.operator_definitions import FilterProjectOperator

_ROW = "__n"


class FilterProjectWorker(StepWorker):
    def __init__(self, step: Step, bound: BoundPlan) -> None:
        super().__init__(step, bound)
        self.condition = step.operator_as(FilterProjectOperator).condition
        own = own_constants(step, bound.plan)
        self._constants = _Constants(step, own, self) if own and own[0] else None

    def reads(self, number: int) -> Iterable[str]:
        return [*super().reads(number), *([self.condition] if self.condition else [])]

    def gathered(self, number: int, parts: Sequence[pa.Table]) -> Changes:
        if self._constants is None:
            return super().gathered(number, parts)
        kept, self.members = self.members, None  # members come from the constants below
        try:
            return super().gathered(number, parts)
        finally:
            self.members = kept

    def run(self, work: Work, inputs: Sequence[Sequence[pa.Table]]) -> Changes:
        rows = self.gathered(0, inputs[0])
        if self._constants is not None:
            rows = self._constants.matched(work, rows)
        elif self.condition is not None:
            mask, failed = work.evaluator.mask(self.condition, rows)
            work.quarantine.add(self.step, "row", rows, failed)
            rows = rows.filter(mask)
        return self.computed(work, rows)[0]


class _Constants:
    """The constants of a family as a table to join with."""

    def __init__(self, step: Step, own: Sequence[tuple[str, ...]], worker: FilterProjectWorker) -> None:
        assert step.constants is not None and worker.members is not None and worker.condition is not None
        self.step = step
        width = len(own[0])
        types = step.constants.types[-width:]
        inherited = len(step.constants.types) - width
        columns = [f'"${inherited + number + 1}"' for number in range(width)]
        self._input = worker.members.from_inputs[0]
        self._own = own
        self._types = [
            ("__m", INTEGER),
            ("__input", INTEGER),
            *((c[1:-1], t) for c, t in zip(columns, types, strict=True)),
        ]
        columns_of_constants = [f'c."${number + 1}"' for number in range(len(step.constants.types))]
        on = filled(worker.condition, columns_of_constants)
        if self._input is not None:
            on = f"r.{MEMBER} = c.__input AND ({on})"
        self._query = f"SELECT r.{_ROW}, c.__m FROM input AS r JOIN constants AS c ON {on}"
        self._query_in_turn = f"SELECT r.{_ROW}, c.__m FROM input AS r JOIN constants AS c ON {in_turn(on)}"
        self._table: pa.Table | None = None
        self._only: str | None = None
        """The condition of the only member, as in a build of one view: then no table is needed."""
        if len(own) == 1 and self._input is None:
            literals = [f"CAST({c} AS {t})" for c, t in zip(own[0], types, strict=True)]
            self._only = filled(worker.condition, literals)

    def matched(self, work: Work, rows: pa.Table) -> pa.Table:
        """Each row for each member whose condition it fulfils."""
        if self._only is not None:
            mask, failed = work.evaluator.mask(self._only, rows)
            work.quarantine.add(self.step, "row", rows, failed, source=0)
            kept = rows.filter(mask)
            return kept.append_column(MEMBER, pa.array(np.zeros(len(kept), np.int32)))
        if self._table is None:
            self._table = self._made(work)
        numbered = rows.append_column(_ROW, pa.array(np.arange(len(rows))))
        unvalued: dict[int, str] = {}
        found = self._pairs(work, numbered, 0, unvalued)
        work.quarantine.add(self.step, "row", rows, unvalued, source=0)
        if MEMBER in rows.column_names:
            rows = rows.drop_columns([MEMBER])
        pairs = pa.concat_tables(found)
        return rows.take(pairs[_ROW]).append_column(MEMBER, pairs["__m"])

    def _made(self, work: Work) -> pa.Table:
        """The table. There may be many thousands of constants: they are no part of a text where they need not be."""
        count, columns = len(self._own), list(zip(*self._own, strict=True))
        inputs = np.zeros(count, np.int32) if self._input is None else self._input.astype(np.int32)
        types = [kind for _, kind in self._types[2:]]
        named = [f'"{name}"' for name, _ in self._types[2:]]
        if not all(map(_is_said, columns, types)):
            rows = zip(inputs.tolist(), self._own, strict=True)
            values = ", ".join(
                f"({number}, {source}, {', '.join(f'CAST({c} AS {t})' for c, t in zip(row, types, strict=True))})"
                for number, (source, row) in enumerate(rows)
            )
            query = f"SELECT * FROM (VALUES {values}) AS c(__m, __input, {', '.join(named)})"
            return work.evaluator.query(query, self._types, {})
        said = {f"c{number}": pa.array(map(_said, column), pa.string()) for number, column in enumerate(columns)}
        given = pa.table({"__m": np.arange(count, dtype=np.int32), "__input": inputs, **said})
        casts = [f"CAST(c{number} AS {kind}) AS {named[number]}" for number, kind in enumerate(types)]
        query = f"SELECT __m, __input, {', '.join(casts)} FROM said"
        return work.evaluator.query(query, self._types, {"said": given})

    def _pairs(self, work: Work, numbered: pa.Table, at: int, failed: dict[int, str]) -> list[pa.Table]:
        assert self._table is not None
        types = [(_ROW, BIGINT), ("__m", INTEGER)]
        if not len(numbered):
            return [_no_pairs(types)]
        alone = len(numbered) == 1
        try:
            query = self._query_in_turn if alone else self._query
            return [work.evaluator.query(query, types, {"input": numbered, "constants": self._table})]
        except Unevaluable as error:
            if alone:
                failed[at] = str(error)
                return [_no_pairs(types)]
        middle = len(numbered) // 2
        return [
            *self._pairs(work, numbered[:middle], at, failed),
            *self._pairs(work, numbered[middle:], at + middle, failed),
        ]


def _said(literal: str) -> str:
    """What a literal of a text says, without its quotes; a number as it is."""
    return literal[1:-1].replace("''", "'") if literal[0] == "'" else literal


def _is_said(literals: Sequence[str], kind: Type) -> bool:
    """Whether what they say, as text, has the values that the literals have. A number is another way to a float, and
    to an integer if it has a fraction."""
    numbers = [literal for literal in literals if literal[0] != "'"]
    if kind.kind in INTEGERS:
        return not any("." in number for number in numbers)
    return not numbers or kind.kind is Kind.DECIMAL


def _no_pairs(types: Sequence[tuple[str, Type]]) -> pa.Table:
    return pa.table([pa.array([], kind.arrow) for _, kind in types], names=[name for name, _ in types])
