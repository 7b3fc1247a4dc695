"""The same on Spark: tables read in parts, views recomputed side by side.

The driver holds the snapshot and writes down what the views show, tasks read the base
tables at that frontier part by part, and then every view is recomputed and compared in a task of its own.

::

    driver        what views show at one snapshot          ──▶  views/<id>.arrow
    stage 1       a part of a table, as it was then        ──▶  tables/<group>/<table>/<part>.arrow
    stage 2       a view: DuckDB over the files of its tables, compared with its own file   ──▶  report

A task cannot share the driver's snapshot. For base rows it needs none: it takes one of its own and undoes
what was written since (:mod:`everview.check.base_rows`). What a view showed at an epoch cannot be had
later without running its steps backwards, which would be asking the suspect; so the driver writes it down.
Files are Arrow's, mapped into memory when they are read; the directory must be one that all of Spark's
processes see, as they see the store itself. A join or a sort larger than memory spills beside them.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from everview.catalog import Definitions, Maintained
from everview.change.frontier import Frontier
from everview.check.base_rows import WHOLE, BaseRows, KeyRange, edges
from everview.check.judging import Case, judged, unreadable
from everview.check.recompute import Workspace
from everview.check.report import Report, ViewReport
from everview.check.verify import ATTEMPTS, SAMPLES, ShownViews, cases_of, chosen
from everview.errors import EverviewError, SnapshotExpiredError
from everview.scratch import scratch
from everview.store.contract import Table, TableSnapshot
from everview.store.opened import opened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

ROWS = 500_000
"""Rows of a part of a table, about."""
_RESULT = "done binary"


def verify_on(
    spark: SparkSession,
    place: str,
    kept: ShownViews,
    names: Sequence[str] = (),
    samples: int = SAMPLES,
    folder: str | Path | None = None,
    rows: int = ROWS,
) -> Report:
    """Verify views and indexes on Spark. ``place`` is where tasks find the store, ``folder`` where files
    are put meanwhile (by default a temporary directory), ``rows`` how many a task reads."""
    for attempt in range(ATTEMPTS):
        with scratch(folder) as spool:
            snapshot, definitions = kept.opened()
            try:
                with snapshot:
                    written = _Written.down(kept, snapshot, definitions, names, spool)
                    reads = list(_reads(place, snapshot, written, rows))
                _on_spark(spark, reads, _PartRead.done)
                judges = [_Judge(written, case, samples) for case in written.cases]
                return Report((*written.broken, *_on_spark(spark, judges, _Judge.done)))
            except SnapshotExpiredError:
                if attempt == ATTEMPTS - 1:
                    raise
    raise AssertionError("the last attempt has returned or raised")


@dataclass(frozen=True)
class _Written:
    """What the driver found, and where the rest is."""

    spool: Path
    definitions: Definitions
    cases: tuple[Case, ...]
    broken: tuple[ViewReport, ...] = ()
    """Of views whose rows cannot be read."""

    @staticmethod
    def down(
        kept: ShownViews, snapshot: TableSnapshot, definitions: Definitions, names: Sequence[str], spool: Path
    ) -> _Written:
        """Write down what views show in a snapshot."""
        asked = chosen(definitions, names)
        cases: list[Case] = []
        for group in dict.fromkeys(one.group for one in asked):
            cases += cases_of(kept, snapshot, group, [one for one in asked if one.group == group])
        (spool / "views").mkdir()
        broken: dict[int, ViewReport] = {}
        for case in cases:
            rows = kept.rows(case.one, snapshot)
            try:
                write_rows(spool / "views" / f"{case.one.id}.arrow", rows.schema, rows.scan())
            except (EverviewError, pa.ArrowException) as error:
                broken[case.one.id] = unreadable(case, error)
        readable = tuple(case for case in cases if case.one.id not in broken)
        return _Written(spool, definitions, readable, tuple(broken.values()))

    def view(self, one: Maintained) -> Path:
        return self.spool / "views" / f"{one.id}.arrow"

    def tables(self, group: str, table: Table) -> Path:
        return self.spool / "tables" / group / str(table.id)

    def needed(self) -> dict[tuple[str, int], tuple[Frontier, Table]]:
        """The tables of each group, and the frontier they are read at."""
        found: dict[tuple[str, int], tuple[Frontier, Table]] = {}
        for case in self.cases:
            for table in _tables_below(self.definitions, case.one.id):
                found.setdefault((case.one.group, table.id), (case.frontier, table))
        return found


def _tables_below(definitions: Definitions, id: int) -> Iterator[Table]:
    found = definitions.by_id(id)
    if isinstance(found, Table):
        yield found
        return
    for below in found.depends_on:
        yield from _tables_below(definitions, below)


@dataclass(frozen=True)
class _PartRead:
    """A part of a table, to be read at a frontier and written to a file."""

    place: str
    table: Table
    frontier: Frontier
    part: KeyRange
    file: Path

    def done(self) -> int:
        store = opened(self.place)
        with store.snapshot() as snapshot:
            rows = BaseRows(store, snapshot, self.frontier, self.table, self.part)
            return write_rows(self.file, rows.schema, rows.scan())


def _reads(place: str, snapshot: TableSnapshot, written: _Written, rows: int) -> Iterator[_PartRead]:
    for (group, _), (frontier, table) in written.needed().items():
        folder = written.tables(group, table)
        folder.mkdir(parents=True)
        cuts = edges(snapshot, table, rows)
        ends = zip([None, *cuts], [*cuts, None], strict=True)
        parts = [KeyRange(after, upto) for after, upto in ends] if cuts else [WHOLE]
        for number, part in enumerate(parts):
            yield _PartRead(place, table, frontier, part, folder / f"{number}.arrow")


@dataclass(frozen=True)
class _Judge:
    """A view, to be recomputed from the files of its tables."""

    written: _Written
    case: Case
    samples: int

    def done(self) -> ViewReport:
        written, case = self.written, self.case

        def base(table: Table) -> Files:
            folder = written.tables(case.one.group, table)
            return Files(table.schema.arrow, tuple(sorted(folder.iterdir(), key=lambda file: int(file.stem))))

        lacking = {one.one.name: one.quarantined for one in written.cases if one.one.group == case.one.group}
        with Workspace(written.definitions, base, written.spool, lacking) as workspace:
            file = written.view(case.one)
            with pa.memory_map(str(file)) as held:
                schema = pa.ipc.open_file(held).schema
            return judged(workspace, case, Files(schema, (file,)), self.samples)


# ---------------------------------------------------------------- files


@dataclass(frozen=True)
class Files:
    """Rows in files of Arrow's, one after the other, as a stream that may be read several times."""

    schema: pa.Schema
    files: tuple[Path, ...]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pa.RecordBatchReader.from_batches(self.schema, self.scan()).__arrow_c_stream__(requested_schema)

    def scan(self) -> Iterator[pa.RecordBatch]:
        for file in self.files:
            with pa.memory_map(str(file)) as held:
                content = pa.ipc.open_file(held)
                for number in range(content.num_record_batches):
                    yield content.get_batch(number)


def write_rows(file: Path, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> int:
    """Write rows to a file; returns how many."""
    count = 0
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            count += len(batch)
    return count


# ---------------------------------------------------------------- tasks


def _on_spark(spark: SparkSession, tasks: Sequence[T], do: Callable[[T], object]) -> list:  # type: ignore[type-arg]
    """Do each of some tasks in a Spark task of its own; their results, in order. An error of ours comes
    back as itself."""
    if not tasks:
        return []

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                done: object
                try:
                    done = do(tasks[number])
                except EverviewError as error:
                    done = error
                yield pa.RecordBatch.from_pydict({"done": pa.array([pickle.dumps((number, done))], pa.binary())})

    numbers = spark.range(0, len(tasks), 1, len(tasks))
    found = dict(pickle.loads(row.done) for row in numbers.mapInArrow(work, _RESULT).collect())
    failed = [one for one in found.values() if isinstance(one, EverviewError)]
    if failed:
        raise failed[0]
    return [found[number] for number in range(len(tasks))]
