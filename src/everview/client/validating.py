"""A view tried against DuckDB before it can be read.

One sentence: the plan of a new view is run over a sample of rows, through several rounds of changes, and what it
shows after each is compared with DuckDB's answer to the user's own words over the same rows.

Where they differ the plan is wrong, which is a defect of Everview: the view is then maintained by evaluating the
words themselves, and what differed is recorded with it. Some answers are no one's to compare:

| over the rows that are tried | then |
|---|---|
| the words have no answer (a cast that fails, a sum that overflows, too much memory) | milder rows are tried |
| DuckDB itself answers otherwise when rows come in another order | the number of rows is compared |

Views that differ in constants have one plan and are tried once.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from everview.change.schema import Column
from everview.check.asking import Asking, asking
from everview.check.sample import LEVELS, Round, Sample
from everview.errors import DefinitionError, EverviewError
from everview.maintain.trial import Trial
from everview.plan.compile import CompiledView
from everview.sql.namespace import Namespace, Relation
from everview.sql.statements import CreateMaterializedView
from everview.sql.ties import worded_rank
from everview.sql.trust import shape
from everview.sql.words import INPUT, worded

PATIENCE = 1.0
"""Seconds after which no further round is begun."""
_ORDERS = 16
"""Orders of the rows in which DuckDB is asked whether its answer depends on them: of two rows that tie it may well
show the same one several times."""
_KNOWN = 1000
"""Families whose verdict is remembered; past it all are forgotten."""


@dataclass(frozen=True)
class Verdict:
    """What came of trying a view."""

    rows: int = 0
    rounds: int = 0
    difference: str = ""
    """How the plan's rows differ from DuckDB's answer; empty: they do not."""

    def __str__(self) -> str:
        if self.difference:
            return f"not validated: {self.difference}"
        if not self.rounds:
            return "not validated: the query has no answer over the rows that were tried"
        return f"validated on {self.rows} rows, {self.rounds} rounds"


@dataclass
class Validation:
    """Tries views, each family once."""

    _known: dict[object, Verdict] = field(default_factory=dict)

    def of(
        self,
        view: CreateMaterializedView,
        compiled: CompiledView,
        names: Namespace,
        real: Callable[[], Mapping[str, pa.Table]],
    ) -> Verdict:
        """Try a view that has a plan. ``real`` gives some rows of what it reads, by name."""
        text = view.words.text if view.words is not None else compiled.meaning
        family = (compiled.input.template[0], shape(text), compiled.sources)
        if family not in self._known:
            if len(self._known) >= _KNOWN:
                self._known.clear()
            self._known[family] = _tried(_Question.of(view, compiled, names), compiled, real())
        return self._known[family]


@dataclass(frozen=True)
class _Question:
    """What DuckDB is asked, over inputs in0, in1, …"""

    sql: str
    text: str
    sources: tuple[Relation, ...]

    @staticmethod
    def of(view: CreateMaterializedView, compiled: CompiledView, names: Namespace) -> _Question:
        """The user's own words, or, where they say what is not DuckDB's, what they mean."""
        for words in _readings(view):
            try:
                query = worded(words, names, view.source, 0, allow_duplicates=True)
            except EverviewError:
                continue
            return _Question(query.over(_named(query.uses)), words, query.uses)
        given = ", ".join(f"{_quoted(name)} AS ({text})" for name, text in _named(compiled.sources).items())
        around = f"WITH {given} " if given else ""
        return _Question(f"{around}SELECT * FROM ({compiled.meaning})", compiled.meaning, compiled.sources)

    def answer(self, rows: Mapping[str, pa.Table]) -> pa.Table:
        """DuckDB's answer over rows by table; raises a :class:`duckdb.Error` where there is none."""
        given = {
            f"{INPUT}{number}": rows[source.name].select([column.name for column in source.columns])
            for number, source in enumerate(self.sources)
        }
        return asking().answer(self.sql, given)


def _readings(view: CreateMaterializedView) -> list[str]:
    """The words of a view, and those that say the same in DuckDB's SQL."""
    if view.words is None:
        return []
    ranked = worded_rank(view.words.text)
    return [view.words.text, *([ranked] if ranked is not None else [])]


def _named(sources: Sequence[Relation]) -> dict[str, str]:
    return {source.name: f"SELECT * FROM {INPUT}{number}" for number, source in enumerate(sources)}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _tried(question: _Question, compiled: CompiledView, real: Mapping[str, pa.Table]) -> Verdict:
    found = Verdict()
    deadline = time.monotonic() + PATIENCE
    for level in LEVELS:
        sample = Sample(question.sources, question.text, real, level)
        try:
            found = _History(question, compiled, sample, deadline).played()
        except DefinitionError:
            return found  # a view whose rows are told apart in a way that no table's are
        if found.rounds > 1 or found.difference:
            break
    return found


@dataclass
class _History:
    """One sample, played."""

    question: _Question
    compiled: CompiledView
    sample: Sample
    deadline: float
    rounds: int = 0

    def played(self) -> Verdict:
        """Round by round, as far as the words have an answer: DuckDB is asked first, within bounds, so that no
        plan is run over rows that no one could evaluate."""
        trial = Trial(self.compiled.input)
        for number, one in enumerate(self.sample.rounds()):
            if number and time.monotonic() > self.deadline:
                break
            try:
                expected = self.question.answer(one.rows)
            except duckdb.Error:
                break
            difference = self._compared(trial, one, expected)
            if difference:
                return Verdict(self.sample.rows, self.rounds, difference)
        return Verdict(self.sample.rows, self.rounds)

    def _compared(self, trial: Trial, one: Round, expected: pa.Table) -> str:
        try:
            trial.epoch(one.comes, one.goes)
            found = trial.rows()
        except DefinitionError:
            raise
        except Exception as error:  # whatever fails in a plan that is tried, the plan is not to be used
            return f"the plan fails: {type(error).__name__}: {error}".partition("\n")[0]
        self.rounds += 1
        difference = self._difference(asking(), one, expected, found)
        return (
            f"the plan quarantines what DuckDB evaluates; {difference}"
            if difference and trial.quarantined
            else difference
        )

    def _difference(self, duck: Asking, one: Round, expected: pa.Table, found: pa.Table) -> str:
        names = [f"c{number}" for number in range(found.num_columns)]
        if expected.num_columns != found.num_columns:
            return f"it has {found.num_columns} columns, and the answer has {expected.num_columns}"
        expected, shown = expected.rename_columns(names), found.rename_columns(names)
        if not duck.differ(names, expected, shown):
            return ""
        columns = [Column(name, field.type) for name, field in zip(names, self.compiled.columns, strict=True)]
        if duck.agree(columns, expected, shown):
            return ""
        others = self._in_other_orders(one, names, expected)
        if any(duck.differ(names, expected, other.rename_columns(names)) for other in others):
            counts = {len(expected), *map(len, others)}
            return "" if len(found) in counts or len(counts) > 1 else _words(expected, found)
        return _words(expected, found)

    def _in_other_orders(self, one: Round, names: list[str], expected: pa.Table) -> list[pa.Table]:
        """DuckDB's answers when the rows come in other orders, up to the first that is another."""
        found: list[pa.Table] = []
        for seed in range(_ORDERS):
            rows = {}
            for name, table in one.rows.items():
                order = list(range(len(table)))
                # Each table in an order of its own: rows may be joined by their places.
                order.reverse() if not seed else random.Random(f"{seed} {name}").shuffle(order)
                rows[name] = table.take(pa.array(order, pa.int64()))
            try:
                answer = self.question.answer(rows)
            except duckdb.Error:
                continue
            found.append(answer)
            if asking().differ(names, expected, answer.rename_columns(names)):
                break
        return found


def _words(expected: pa.Table, found: pa.Table) -> str:
    return f"of {len(expected)} rows of DuckDB's answer and {len(found)} of the plan some differ"
