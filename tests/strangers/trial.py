"""Queries as views of one store, under one history of writes, compared with DuckDB after every flush.

A :class:`Trial` has the same tables in Everview and in DuckDB, does every write in both, and judges each
view by DuckDB's answer to the query's own words.

Outcomes of a query:

| | |
|---|---|
| ``right`` | equal to DuckDB's answer after every flush |
| ``reevaluated`` | right, with a notice at CREATE that changes re-evaluate it |
| ``open`` | DuckDB itself has several answers to it, by the order of the rows or without its optimizer |
| ``no answer`` | DuckDB raised an error for the rows of every round |
| ``refused`` | CREATE raised an error of Everview's, and left nothing |
| ``wrong`` | another answer than DuckDB's |
| ``crashed`` | a foreign error, any error in a flush or a read, or something left by a CREATE that failed |
| ``too large`` | DuckDB takes long for it, or answers with very many rows |
| ``timed out`` | the process was ended after its time (:mod:`tests.strangers.campaign`) |
"""

from __future__ import annotations

import tempfile
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import duckdb
import pyarrow as pa

import everview
from everview.errors import EverviewError
from tests.strangers.extraction import Extract, quoted
from tests.strangers.histories import History
from tests.strangers.oracle import Answer, Foretold, NoAnswerError, Oracle, Row, same

FEW = 12
"""How many differing rows a report shows."""


@dataclass(frozen=True)
class Outcome:
    kind: str
    detail: str = ""
    """Reason of a refusal, error of a crash, or the rows that differ."""
    round: int = -1
    """The round in which it was seen; 0 is before the first."""
    notices: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    """Where names or types of columns are not DuckDB's."""
    validated: str = ""
    """What came of trying the plan at CREATE."""

    def to_json(self) -> dict[str, Any]:
        held: dict[str, Any] = {
            "outcome": self.kind,
            "detail": self.detail,
            "round": self.round,
            "notices": list(self.notices),
        }
        held |= {"remarks": list(self.remarks)} if self.remarks else {}
        return held | {"validated": self.validated}


class BrokenError(Exception):
    """The store cannot go on: a flush or a write failed."""

    def __init__(self, at: int, stage: str, error: BaseException) -> None:
        super().__init__(f"{stage}: {described(error)}")
        self.round = at
        self.stage = stage


def described(error: BaseException) -> str:
    """An error in some lines; of a foreign one also where it was raised."""
    first = f"{type(error).__name__}: {str(error)[:600]}"
    if isinstance(error, EverviewError):
        return first
    frames = [
        f"{frame.filename.rpartition('/src/')[2]}:{frame.lineno} {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
        if "everview" in frame.filename
    ]
    return "\n".join([first, *frames[-3:]])


@dataclass
class _View:
    name: str
    query: str
    outcome: Outcome
    compared: int = 0
    live: bool = True


@dataclass
class Trial:
    """One store. Ends with :meth:`close`."""

    extract: Extract
    history: History
    foretold: Foretold = field(default_factory=dict)
    """Answers that are known already."""
    patience: float | None = None
    """Seconds that a flush may take."""
    rounds_done: int = 0
    views: dict[str, _View] = field(default_factory=dict)
    refused_writes: dict[str, str] = field(default_factory=dict)
    """Statements that Everview does not take, with the reason; they are not done in DuckDB either."""
    refused_tables: dict[str, str] = field(default_factory=dict)
    """Tables and named queries that Everview does not take, with the reason."""

    def __post_init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="strangers-")
        self.db = everview.open(self.folder.name, durability="none", shards=1, nodes=2, map_size=1 << 32)
        self.oracle = Oracle(self.extract)
        self._define()
        self._write(self.history.before)

    def _define(self) -> None:
        for table in self.extract.tables:
            try:
                try:
                    self.db.sql(table.definition(key=True))
                except EverviewError:
                    if not table.key:
                        raise
                    self.db.sql(table.definition(key=False))
            except Exception as error:
                self.refused_tables[table.name.lower()] = described(error)
        waiting = [named for named in self.extract.named if not self._without(named.query)]
        reasons: dict[str, str] = {}
        while waiting:
            left = []
            for named in waiting:
                try:
                    self.db.sql(named.definition)
                except Exception as error:
                    reasons[named.name.lower()] = described(error)
                    left.append(named)
            if len(left) == len(waiting):
                self.refused_tables |= {named.name.lower(): reasons[named.name.lower()] for named in left}
                return
            waiting = left

    def _without(self, query: str) -> str:
        """Why something that a query reads is not there."""
        missing = self.oracle.reads(query) & self.refused_tables.keys()
        return next((f"{name}: {self.refused_tables[name]}" for name in sorted(missing)), "")

    def create(self, number: str, query: str) -> Outcome:
        """Make a query a view, in its own words."""
        name = f"strangers_{number}"
        view = self.views[number] = _View(name, query, Outcome("right"))
        if reason := self._without(query):
            view.live = False
            view.outcome = Outcome("refused", reason)
            return view.outcome
        try:
            made = self.db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}\n")
            validated = self.db.catalog.view(name).validated
            view.outcome = replace(view.outcome, notices=made.notices, validated=validated)
        except EverviewError as error:
            view.live = False
            view.outcome = Outcome("refused", described(error))
            if any(one.name == name for one in self.db.catalog.views()):
                view.outcome = Outcome("crashed", f"CREATE left a view behind: {described(error)}")
        except Exception as error:
            view.live = False
            view.outcome = Outcome("crashed", described(error))
        return view.outcome

    def _names(self, query: str) -> Sequence[str]:
        """The names that DuckDB gives the columns of a table of the query."""
        try:
            described = self.oracle.connection.execute(f"DESCRIBE SELECT * FROM ({query}\n)")
            return [str(row[0]) for row in described.fetchall()]
        except duckdb.Error:
            return ()

    def play(self, maintained: AbstractContextManager[object] | None = None) -> None:
        """Compare now, and after each round of the history, which something else may keep the views up to date
        through."""
        self._flush()
        self._compare()
        with maintained or nullcontext():
            for texts in self.history.rounds:
                self.rounds_done += 1
                self._write(texts)
                self._flush()
                self._compare()

    def _write(self, texts: Sequence[str]) -> None:
        for text in texts:
            if any(text.split('"', 2)[1] == name for name in self.refused_tables):
                continue
            try:
                self.db.sql(text)
            except EverviewError as error:
                self.refused_writes[text] = described(error)
                continue
            except Exception as error:
                raise BrokenError(self.rounds_done, f"write {text[:200]}", error) from error
            self.oracle.connection.execute(text)

    def _flush(self) -> None:
        try:
            self.db.flush(self.patience)
        except Exception as error:
            raise BrokenError(self.rounds_done, "flush", error) from error

    def _compare(self) -> None:
        for view in self.views.values():
            if view.live:
                self._judge(view)

    def _judge(self, view: _View) -> None:
        try:
            scanned = self._scanned(view)
            rows = self._written(view, scanned)
        except Exception as error:
            view.live = False
            view.outcome = replace(
                view.outcome, kind="crashed", detail=f"read: {described(error)}", round=self.rounds_done
            )
            return
        try:
            expected = self._expected(view)
        except NoAnswerError:
            return
        if not view.compared:
            view.outcome = replace(view.outcome, remarks=self._remarks(view, expected))
        view.compared += 1
        if same(expected, rows):
            return
        if self.oracle.equal(view.query, scanned):
            remark = "form: values that compare equal are shown otherwise"
            view.outcome = replace(view.outcome, remarks=tuple(dict.fromkeys((*view.outcome.remarks, remark))))
            return
        view.live = False
        kind, why = self._weighed(view.query, expected, rows)
        view.outcome = replace(
            view.outcome, kind=kind, detail=f"{why}{difference(expected, rows)}", round=self.rounds_done
        )

    def _expected(self, view: _View) -> Answer:
        known = self.foretold.get(view.name.rpartition("_")[2])
        if known is None or self.refused_writes or self.refused_tables:
            return self.oracle.answer(view.query)
        if (answer := known[self.rounds_done]) is None:
            raise NoAnswerError("DuckDB raised an error")
        return answer

    def _scanned(self, view: _View) -> pa.Table:
        found = self.db.view(view.name).scan()
        rows = pa.Table.from_batches(found.stored_batches(), found._schema)
        return rows.rename_columns([f"c{at}" for at in range(rows.num_columns)])

    def _written(self, view: _View, scanned: pa.Table) -> tuple[Row, ...]:
        """The rows with their values as DuckDB writes them, also where it cannot read the Arrow columns."""
        try:
            return self.oracle.written(scanned)
        except duckdb.Error:
            names = [quoted(column.name) for column in self.db.view(view.name).columns]
            casts = ", ".join(f"CAST({name} AS VARCHAR)" for name in names)
            return tuple(self.db.sql(f"SELECT {casts} FROM {view.name}").rows())

    def _remarks(self, view: _View, expected: Answer) -> tuple[str, ...]:
        columns = self.db.view(view.name).columns
        remarks = []
        for column, name, kind in zip(columns, self._names(view.query), expected.types, strict=False):
            if str(column.type) != _in_our_words(kind):
                remarks.append(f"type of {column.name}: {column.type}, DuckDB's is {kind}")
            if column.name != name:
                remarks.append(f"name {column.name}, DuckDB's is {name}")
        return tuple(remarks)

    def _weighed(self, query: str, expected: Answer, rows: tuple[Row, ...]) -> tuple[str, str]:
        """Whether rows that are not DuckDB's answer are wrong, or the question has several answers."""
        if (ties := self._ties(query, expected, rows)) is not None:
            return (
                ("open", "other rows that a LIMIT may take\n") if ties else ("wrong", "no rows that a LIMIT may take\n")
            )
        others: list[Answer] = []
        for other in self.oracle.alternatives(query, seed=self.rounds_done):
            if other is None:
                return "open", "DuckDB answers or fails, by its optimizer or the order of the rows\n"
            if same(other, rows):
                return "open", "DuckDB gives this answer too\n"
            others.append(other)
        if all(same(expected, other.rows) for other in others):
            return "wrong", ""
        counts = {len(other.rows) for other in (expected, *others)}
        if len(counts) == 1 and len(rows) not in counts:
            return "wrong", "the answer is open, the number of rows is not\n"
        return "open", "DuckDB has several answers\n"

    def _ties(self, query: str, expected: Answer, rows: tuple[Row, ...]) -> bool | None:
        """Whether a LIMIT may take these rows instead: as many, all among those without it, and equal in what they are
        ordered by to those that they stand for. None where that is not known."""
        whole = self.oracle.unlimited(query)
        places = self.oracle.order(query, expected)
        if whole is None or places is None:
            return None
        if len(rows) != len(expected.rows) or Counter(rows) - Counter(whole.rows):
            return False
        extra, missing = Counter(rows) - Counter(expected.rows), Counter(expected.rows) - Counter(rows)
        by_order = [Counter(tuple(row[at] for at in places) for row in some.elements()) for some in (extra, missing)]
        return by_order[0] == by_order[1]

    def finished(self) -> dict[str, Outcome]:
        """The outcome of every query, after the history."""
        found = {}
        for number, view in self.views.items():
            outcome = view.outcome
            if outcome.kind == "right" and not view.compared:
                outcome = replace(outcome, kind="no answer")
            elif outcome.kind == "right" and outcome.notices:
                outcome = replace(outcome, kind="reevaluated")
            found[number] = outcome
        return found

    def close(self) -> None:
        self.oracle.close()
        try:
            self.db.close()
        finally:
            self.folder.cleanup()


def _in_our_words(kind: str) -> str:
    """A type of DuckDB's as Everview writes it. What is always null is stored as an INTEGER."""
    for theirs, ours in _SYNONYMS.items():
        kind = kind.replace(theirs, ours)
    return kind


_SYNONYMS = {
    "FLOAT": "REAL",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMPTZ",
    "TIME WITH TIME ZONE": "TIMETZ",
    '"NULL"': "INTEGER",
}


def difference(expected: Answer, rows: tuple[Row, ...]) -> str:
    """Rows that are missing, and rows that are too many."""
    extra = list(rows)
    missing = []
    for row in expected.rows:
        if row in extra:
            extra.remove(row)
        else:
            missing.append(row)
    lines = [f"- {row}" for row in missing[:FEW]] + [f"+ {row}" for row in extra[:FEW]]
    return "\n".join([f"{len(missing)} missing, {len(extra)} extra of {len(expected.rows)} rows", *lines])


def attempt(
    extract: Extract, history: History, queries: Mapping[str, str], foretold: Foretold | None = None
) -> dict[str, Outcome]:
    """The outcomes of queries as views of one store, or of several where one of them breaks it."""
    trial = Trial(extract, history, foretold or {})
    broken: BrokenError | None = None
    crashed: str | None = None
    try:
        for number, query in queries.items():
            if trial.create(number, query).kind == "crashed":
                crashed = number
                break
        if crashed is None:
            trial.play()
    except BrokenError as error:
        broken = error
    finally:
        found = trial.finished()
        try:
            trial.close()
        except Exception as error:
            broken = broken or BrokenError(trial.rounds_done, "close", error)
    if crashed is not None:
        rest = {number: query for number, query in queries.items() if number != crashed}
        return {crashed: found[crashed]} | (attempt(extract, history, rest, foretold) if rest else {})
    if broken is None:
        return found
    if len(queries) == 1:
        ((number, _),) = queries.items()
        return {number: Outcome("crashed", str(broken), broken.round, found[number].notices)}
    numbers = list(queries)
    halves = numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]
    return {
        number: outcome
        for half in halves
        for number, outcome in attempt(extract, history, {one: queries[one] for one in half}, foretold).items()
    }
