"""The 22 queries of TPC-H as views: built, refreshed, and compared with asking them again.

Every query is a view in a group of its own, so that its cost is separate from the others, and
then all of them are views of one group, which share what they remember.

::

    recomputed      all pairs are applied to a copy in DuckDB; answers and times are kept
    each            a view for each query, by itself: built, refreshed after every pair, then after single orders
    together        all 22 in one group: in this process, and on Spark

Every view is compared with the recomputation after every pair and after the last single order.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pyarrow as pa

import everview
from bench.epochs import state_megabytes
from bench.measure import seconds
from bench.report.experiment import Found, Row, Setting
from bench.workloads.tpch import QUERIES, SCHEMA, Refresh, Refreshes, batches, files
from bench.workloads.tpch_copy import Copy
from everview.change.frontier import Frontier
from everview.maintain import Maintainer
from everview.maintain.executor import LocalExecutor
from everview.maintain.plans import Plans
from everview.maintain.tasks import EpochTask
from everview.operators.runner import Outcome
from everview.store.contract import Begun, Store, TableSnapshot

ALL = "all 22"
OURS, SHARED, SPARK = "Everview", "Everview, sharing", "Everview on Spark"
THEIRS, THEIRS_TWO = "recomputed", "recomputed, two threads"
SINGLES = 5
"""Single orders after the pairs."""
SHOWN = 8
"""Parts of a profile."""


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    scale: float
    pairs: int
    together: tuple[str, ...]
    """How all 22 are maintained together, one after another."""
    each: tuple[str, ...] = tuple(QUERIES)
    """The queries that are measured by themselves."""


# ------------------------------------------------------------------ recomputed


@dataclass
class Recomputed:
    """What the queries say after every pair, and how long it takes to ask them."""

    answers: list[Mapping[str, pa.Table]] = field(default_factory=list)
    """After each pair, and after the last single order."""
    seconds: dict[int, dict[str, list[float]]] = field(default_factory=dict)
    """By threads and query, after each pair."""

    def median(self, query: str, threads: int) -> float:
        names = QUERIES if query == ALL else [query]
        return sum(statistics.median(self.seconds[threads][name]) for name in names)


def recomputed(scale: float, pairs: Sequence[Refresh], singles: Sequence[Refresh]) -> Recomputed:
    found = Recomputed(seconds={threads: {name: [] for name in QUERIES} for threads in (1, 2)})
    copy = Copy(files(scale))
    for pair in pairs:
        copy.apply(pair)
        found.answers.append({name: copy.answer(query) for name, query in QUERIES.items()})
        for threads, times_of in found.seconds.items():
            for name, query in QUERIES.items():
                times_of[name].append(copy.seconds(query, threads))
    for single in singles:
        copy.apply(single)
    found.answers.append({name: copy.answer(query) for name, query in QUERIES.items()})
    copy.close()
    return found


# ------------------------------------------------------------------ a store


def opened(path: Path, scale: float) -> everview.Database:
    """A database with the tables of TPC-H, filled."""
    db = everview.open(path)
    db.sql(SCHEMA)
    for name, file in files(scale).items():
        table = db.table(name)
        for rows in batches(file):
            table.put_many(rows)
    return db


def write(db: everview.Database, refresh: Refresh) -> None:
    """RF1 and RF2, each in one batch; updates go with RF1."""
    with db.batch() as batch:
        for name, rows in refresh.puts.items():
            batch.table(name).put_many(rows)
    with db.batch() as batch:
        for name, keys in refresh.deletes.items():
            batch.table(name).delete_many(keys)


def tables_of(db: everview.Database, view: str) -> set[str]:
    definitions = db.catalog.definitions()
    return {definitions.by_id(id).name for id in definitions.view(view).depends_on}


def rows_of(db: everview.Database, view: str) -> pa.Table:
    """What a view shows."""
    return db.view(view).scan().arrow()


def wrong(db: everview.Database, view: str, expected: pa.Table) -> str:
    """How a view differs from a recomputation. Rows that a LIMIT may choose among are settled by the view's key;
    the copy does not know it, so what differs there is looked at once more."""
    from tests.oracle.maintained import difference

    differs = difference(expected, rows_of(db, view))
    if not differs:
        return ""
    report = db.verify(view)
    return "" if report.right and not report.undecided else f"{view}: {report}"


class TimedExecutor(LocalExecutor):
    """Does the work of epochs, and remembers where their time went."""

    def __init__(self, store: Store, plans: Plans) -> None:
        super().__init__(store, plans)
        self.spent: dict[str, float] = {}

    def work(self, begun: Begun, task: EpochTask, snapshot: TableSnapshot | None = None) -> Outcome:
        outcome = super().work(begun, task, snapshot)
        for name, took in outcome.tally.seconds.items():
            part = name.rpartition(": ")[2]
            self.spent[part] = self.spent.get(part, 0.0) + took
        return outcome


# ------------------------------------------------------------------ each by itself


@dataclass
class Single:
    """One query as a view in a group of its own."""

    name: str
    maintainer: Maintainer
    executor: TimedExecutor
    group: str = ""
    rows: int = 0
    built: float = 0.0
    megabytes: float = 0.0
    building: dict[str, float] = field(default_factory=dict)
    refreshed: list[float] = field(default_factory=list)
    ordered: list[float] = field(default_factory=list)
    changes: list[int] = field(default_factory=list)
    wrong: str = ""

    @staticmethod
    def built_in(db: everview.Database, name: str, query: str) -> Single:
        maintainer = Maintainer(db.store, db.catalog, executor=TimedExecutor)
        executor = maintainer.executor.here
        assert isinstance(executor, TimedExecutor)
        before = state_megabytes(db.store)

        def build() -> None:
            db.sql(f"CREATE MATERIALIZED VIEW {name} WITH (refresh = 'lazy') AS {query}")
            maintainer.build()

        with maintainer.lease():  # so that nobody but this maintainer builds it
            built = seconds(build)
        found = Single(name, maintainer, executor, built=built, megabytes=state_megabytes(db.store) - before)
        found.group = db.catalog.definitions().view(name).group
        found.rows = sum(db.table(table).count() for table in tables_of(db, name))
        found.building = shares(executor.spent, built)
        executor.spent = {}
        return found

    def refresh(self, goal: Frontier) -> float:
        with self.maintainer.lease():
            return seconds(partial(self.maintainer.advance, self.group, goal))


def shares(spent: Mapping[str, float], total: float) -> dict[str, float]:
    """Where time went, the most first; the rest, which no step measures, is reading the next slices, begin, commit
    and plan."""
    listed = dict(sorted(spent.items(), key=lambda part: -part[1])[:SHOWN])
    return {name: round(took, 3) for name, took in listed.items()} | {
        "the rest": round(total - sum(listed.values()), 3)
    }


def each(
    size: Size, pairs: Sequence[Refresh], singles: Sequence[Refresh], asked: Recomputed, path: Path
) -> Iterator[Found]:
    """Each query as a view in a group of its own."""
    with opened(path, size.scale) as db:
        views = [Single.built_in(db, name, QUERIES[name]) for name in size.each]
        for number_of, pair in enumerate(pairs):
            write(db, pair)
            for view in views:
                view.refreshed.append(view.refresh(db.store.log.latest()))
                view.changes.append(pair.operations_of(tables_of(db, view.name)))
                view.wrong = view.wrong or wrong(db, view.name, asked.answers[number_of][view.name])
        refreshing = {view.name: shares(view.executor.spent, sum(view.refreshed)) for view in views}
        for single in singles:
            write(db, single)
            for view in views:
                view.ordered.append(view.refresh(db.store.log.latest()))
        for view in views:
            view.wrong = view.wrong or wrong(db, view.name, asked.answers[-1][view.name])
            again = asked.median(view.name, 1)
            count = db.view(view.name).count()
            row = figures(view.rows, view.built, view.refreshed, view.ordered, view.changes, again)
            profile = {f"build: {name}": took for name, took in view.building.items()}
            profile |= {f"refresh: {name}": took for name, took in refreshing[view.name].items()}
            read = seconds(partial(rows_of, db, view.name))
            line: Row = {"query": view.name, "system": OURS, "view_rows": count, "state_mb": round(view.megabytes, 1)}
            yield Found(line | row | {"read_ms": round(1000 * read, 2)}, view.wrong, profile)
            yield Found({"query": view.name, "system": THEIRS, "view_rows": count, **repeated(again)})


def figures(
    rows: int,
    built: float,
    refreshed: Sequence[float],
    ordered: Sequence[float],
    changes: Sequence[int],
    again: float,
) -> Row:
    """The figures of a view, or of all together. The first pair and the first order are there to warm up."""
    pair, order = statistics.median(refreshed[1:] or refreshed), statistics.median(ordered[1:] or ordered)
    count = statistics.mean(changes)
    return {
        "base_rows": rows,
        "build_s": round(built, 2),
        "rows_s": round(rows / built),
        "changes": round(count),
        "refresh_ms": round(1000 * pair, 1),
        "changes_s": round(count / pair) if count else None,
        "ratio": three_digits(again / pair),
        "order_ms": round(1000 * order, 1),
        "order_ratio": three_digits(again / order),
    }


def three_digits(value: float) -> float:
    return float(f"{value:.3g}")


def repeated(again: float) -> Row:
    """A query that is asked again takes as long after one order as after many, and for every reader."""
    return dict.fromkeys(("refresh_ms", "order_ms", "read_ms"), round(1000 * again, 1))


# ------------------------------------------------------------------ all together


def together(
    size: Size, how: str, pairs: Sequence[Refresh], singles: Sequence[Refresh], asked: Recomputed, path: Path
) -> Iterator[Found]:
    """All queries as views of one group."""
    with opened(path, size.scale) as db:
        rows = sum(db.table(name).count() for name in db.tables())
        if how == SPARK:
            from bench.epochs import profile
            from bench.report.sessions import session
            from everview.zones.pipeline import Pipeline

            with Pipeline(path, spark=session()) as pipeline:
                group = Group.followed(db, pipeline.drain, pairs, singles, asked)
                spent = profile(list(pipeline.reports)[-len(singles) :])
        else:
            group, spent = Group.followed(db, db.flush, pairs, singles, asked), {}
        threads, theirs = (2, THEIRS_TWO) if how == SPARK else (1, THEIRS)
        again = asked.median(ALL, threads)
        count = sum(db.view(name).count() for name in QUERIES)
        line: Row = {"query": ALL, "system": how, "view_rows": count, "state_mb": round(state_megabytes(db.store), 1)}
        changes = [pair.operations for pair in pairs]
        timed = figures(rows, group.built, group.refreshed, group.ordered, changes, again)
        yield Found(line | timed, group.wrong, {f"one order: {name}": took for name, took in spent.items()})
        yield Found({"query": ALL, "system": theirs, "view_rows": count, **repeated(again)})


@dataclass
class Group:
    """All queries as views, from their building to the last single order."""

    built: float
    refreshed: list[float] = field(default_factory=list)
    ordered: list[float] = field(default_factory=list)
    wrong: str = ""

    @staticmethod
    def followed(
        db: everview.Database,
        flush: Callable[[], object],
        pairs: Sequence[Refresh],
        singles: Sequence[Refresh],
        asked: Recomputed,
    ) -> Group:
        """``flush`` returns when the views reflect everything that was written."""

        def build() -> None:
            db.sql("; ".join(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in QUERIES.items()))
            flush()

        found = Group(seconds(build))
        for answers, pair in zip(asked.answers, pairs, strict=False):
            write(db, pair)
            found.refreshed.append(seconds(flush))
            found.wrong = found.wrong or all_wrong(db, answers)
        for single in singles:
            write(db, single)
            found.ordered.append(seconds(flush))
        found.wrong = found.wrong or all_wrong(db, asked.answers[-1])
        return found


def all_wrong(db: everview.Database, answers: Mapping[str, pa.Table]) -> str:
    return "; ".join(filter(None, (wrong(db, name, expected) for name, expected in answers.items())))


# ------------------------------------------------------------------ the experiment


def measure(size: Size, setting: Setting) -> Iterator[Found]:
    refreshes = Refreshes(size.scale, setting.seed)
    pairs = list(refreshes.pairs(size.pairs))
    singles = [refreshes.single(number_of) for number_of in range(setting.pick(SINGLES, 1))]
    asked = recomputed(size.scale, pairs, singles)
    ways: list[Callable[[Path], Iterator[Found]]] = [partial(each, size, pairs, singles, asked)] if size.each else []
    ways += [partial(together, size, how, pairs, singles, asked) for how in size.together]
    for number_of, way in enumerate(ways):
        path = setting.folder / f"store-{number_of}"
        yield from way(path)
        shutil.rmtree(path)  # at scale 1 there is not room for all of them
