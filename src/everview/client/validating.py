"""A new view is compared with DuckDB before it can be read.

The plan of a new view is run over a sample of rows, through several rounds of changes, and what it
shows after each is compared with DuckDB's answer to the user's own query text over the same rows.

If they differ the plan is wrong, which is a defect of Everview: the view is then maintained by evaluating the
text itself, and the difference is recorded with it. Some answers cannot be compared:

| over the rows that are tried | then |
|---|---|
| the query has no answer (a cast that fails, a sum that overflows, too much memory) | milder rows are tried |
| the order of rows is nondeterministic | what the row key decides is compared, or the number of rows |

Views that differ in constants have one plan and are tried once.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from everview.change.schema import ROW_ID, Column
from everview.check.sample import Round, Sample
from everview.check.sample_values import LEVELS
from everview.check.settled import settled
from everview.check.trial_queries import Asking, asking, whole
from everview.errors import DefinitionError, EverviewError
from everview.maintain.trial import Trial
from everview.plan.compile import CompiledView, plan_views
from everview.sql.dialects import DEFAULT, reader, to_sql
from everview.sql.namespace import NamedRelation, Namespace, fold
from everview.sql.nondeterministic_orders import nondeterministic_orders
from everview.sql.own_parse import shape
from everview.sql.statements import CreateMaterializedView
from everview.sql.ties import worded_rank
from everview.sql.words import INPUT, worded
from everview.store.encoding.fitting import Unfit, fit

PATIENCE = 1.0
"""Seconds after which no further round begins, of wall-clock time and of processor time: on a busy machine a long trial
may have done little."""
_LONGEST = 400
"""Characters of a failure's text that are recorded."""
_ORDERS = 16
"""Orders of the rows in which DuckDB is asked whether its answer depends on them: of two rows that tie it may return
the same one several times."""
_KNOWN = 1000
"""Families whose verdict is cached; after that the cache is cleared."""


@dataclass(frozen=True)
class ViewTrial:
    """The verdict on a view."""

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

    _known: dict[object, ViewTrial] = field(default_factory=dict)

    def of(
        self,
        view: CreateMaterializedView,
        compiled: CompiledView,
        names: Namespace,
        real: Callable[[], Mapping[str, pa.Table]],
    ) -> ViewTrial:
        """Try a view that has a plan. ``real`` returns some rows of a table that it reads, by name."""
        text = view.words.text if view.words is not None else compiled.meaning
        family = (compiled.input.template[0], shape(text), compiled.sources)
        if family not in self._known:
            if len(self._known) >= _KNOWN:
                self._known.clear()
            plan_views([compiled])  # raises if it cannot be planned together with others
            self._known[family] = _tried(_Question.of(view, compiled, names), compiled, real())
        return self._known[family]


@dataclass(frozen=True)
class _Question:
    """The query that DuckDB answers, over inputs in0, in1, …"""

    sql: str
    text: str
    sources: tuple[NamedRelation, ...]

    @staticmethod
    def of(view: CreateMaterializedView, compiled: CompiledView, names: Namespace) -> _Question:
        """The user's own text, or its meaning in DuckDB's SQL if the text is not DuckDB's."""
        for words in _readings(view):
            try:
                query = worded(words, names, view.source, 0)
            except EverviewError:
                continue
            return _Question(query.over(_named(query.uses)), words, query.uses)
        scope = ", ".join(f"{_quoted(name)} AS ({text})" for name, text in _named(compiled.sources).items())
        around = f"WITH {scope} " if scope else ""
        return _Question(f"{around}SELECT * FROM ({compiled.meaning})", compiled.meaning, compiled.sources)

    def answer(self, rows: Mapping[str, pa.Table]) -> pa.Table:
        """DuckDB's answer over rows by table; raises a :class:`duckdb.Error` if there is none."""
        given = {
            f"{INPUT}{number}": rows[source.name].select([column.name for column in source.columns])
            for number, source in enumerate(self.sources)
        }
        return asking().answer(self.sql, given)

    def answer_to(self, sql: str, rows: Mapping[str, pa.Table]) -> pa.Table:
        """DuckDB's answer to another query over the same, hidden keys included."""
        scope = ", ".join(f"{_quoted(name)} AS ({text})" for name, text in _named(self.sources).items())
        given = {f"{INPUT}{number}": rows[source.name] for number, source in enumerate(self.sources)}
        return asking().answer(f"{f'WITH {scope} ' if scope else ''}SELECT * FROM ({sql})", given)


def _readings(view: CreateMaterializedView) -> list[str]:
    """The text of a view, and texts with the same meaning in DuckDB's SQL."""
    if view.words is None:
        return []
    ranked = worded_rank(view.words.text)
    return [view.words.text, *([ranked] if ranked is not None else [])]


def _named(sources: Sequence[NamedRelation]) -> dict[str, str]:
    return {source.name: f"SELECT * FROM {INPUT}{number}" for number, source in enumerate(sources)}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _tried(question: _Question, compiled: CompiledView, real: Mapping[str, pa.Table]) -> ViewTrial:
    found = ViewTrial()
    patience = _Patience()
    for level in LEVELS:
        # The query may have no answer over the table's own rows: the last level does without them.
        sample = Sample(question.sources, question.text, {} if level == LEVELS[-1] else real, level)
        try:
            found = _History(question, compiled, sample, patience).played()
        except DefinitionError:
            return found  # a view whose row key no table can have
        if found.rounds > 1 or found.difference:
            break
    return found


class _Patience:
    """How long a trial has taken."""

    def __init__(self) -> None:
        self._clock, self._own = time.monotonic(), time.process_time()

    @property
    def is_over(self) -> bool:
        return min(time.monotonic() - self._clock, time.process_time() - self._own) > PATIENCE


@dataclass
class _History:
    """One sample, played."""

    question: _Question
    compiled: CompiledView
    sample: Sample
    patience: _Patience
    rounds: int = 0

    def played(self) -> ViewTrial:
        """Round by round, as far as the query has an answer: DuckDB answers first, within bounds, so that no
        plan runs over rows that cannot be evaluated."""
        trial = Trial(self.compiled.input)
        for number, one in enumerate(self.sample.rounds()):
            if number and self.patience.is_over:
                break
            try:
                expected = self.question.answer(one.rows)
            except duckdb.Error:
                break
            difference = self._compared(trial, one, expected)
            if trial.gave_up:
                break
            if difference:
                return ViewTrial(self.sample.rows, self.rounds, difference)
        return ViewTrial(self.sample.rows, self.rounds)

    def _compared(self, trial: Trial, one: Round, expected: pa.Table) -> str:
        try:
            trial.epoch(one.comes, one.goes)
            found = trial.rows()
        except DefinitionError:
            raise
        except Exception as error:  # a plan that fails in any way is not used
            return f"the plan fails: {' '.join(f'{type(error).__name__}: {error}'.split())}"[:_LONGEST]
        self.rounds += not trial.gave_up
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
        columns = [Column(name, field.type) for name, field in zip(names, self.compiled.columns, strict=True)]
        expected, found = _typed(expected, columns), found.rename_columns(names)
        if not duck.differ(names, expected, found):
            return ""
        if duck.agree(columns, expected, found):
            return ""
        others = self._in_other_orders(one, columns, expected)
        if any(duck.differ(names, expected, other) for other in others):
            if self._is_settled(duck, columns, one, expected, found):
                return ""
            counts = {len(expected), *map(len, others)}
            return "" if len(found) in counts or len(counts) > 1 else _words(expected, found)
        return _words(expected, found)

    def _is_settled(
        self, duck: Asking, columns: Sequence[Column], one: Round, expected: pa.Table, found: pa.Table
    ) -> bool:
        """Whether the rows are those of the query with nondeterministic orderings settled by the row key; if
        they cannot be settled, whether there are as many rows."""
        tree = reader(DEFAULT).read(self.compiled.meaning)
        if not nondeterministic_orders(tree, ""):
            return False
        keys = {fold(one.name): (ROW_ID,) if one.bag else one.key for one in self.question.sources}
        made = settled(tree, lambda name: keys.get(fold(name)))
        names = [column.name for column in columns]
        try:
            plain = self.question.answer_to(self.compiled.meaning, one.rows)
            if plain.num_columns != len(names) or duck.differ(names, _typed(plain, columns), expected):
                return False  # the checked tree does not mean the same as the text
            answer = self.question.answer_to(to_sql(made.tree), one.rows)
        except (duckdb.Error, EverviewError):
            return False
        if answer.num_columns == len(names) and not duck.differ(names, _typed(answer, columns), found):
            return True
        return bool(made.doubts) and len(found) == len(expected)

    def _in_other_orders(self, one: Round, columns: Sequence[Column], expected: pa.Table) -> list[pa.Table]:
        """DuckDB's answers for other orders of the rows, up to the first answer that differs."""
        found: list[pa.Table] = []
        names = [column.name for column in columns]
        for seed in range(_ORDERS):
            rows = {}
            for name, table in one.rows.items():
                order = list(range(len(table)))
                # Each table in an order of its own: a join may be by position.
                order.reverse() if not seed else random.Random(f"{seed} {name}").shuffle(order)
                rows[name] = table.take(pa.array(order, pa.int64()))
            try:
                found.append(_typed(self.question.answer(rows), columns))
            except duckdb.Error:
                continue
            if asking().differ(names, expected, found[-1]):
                break
        return found


def _typed(answer: pa.Table, columns: Sequence[Column]) -> pa.Table:
    """An answer of DuckDB as columns of these names, in the Arrow types of stored rows."""
    arrays = []
    for column, values in zip(columns, answer.columns, strict=True):
        try:
            arrays.append(values if values.type == column.type.arrow else fit(whole(values), column.type))
        except (Unfit, pa.ArrowException, ValueError):
            arrays.append(values)
    return pa.table(arrays, names=[column.name for column in columns])


def _words(expected: pa.Table, found: pa.Table) -> str:
    return f"of {len(expected)} rows of DuckDB's answer and {len(found)} of the plan some differ"
