"""What maintenance costs clients: puts, batches and reads, with views and without, and beside a pipeline.

A client keeps to one core and all of maintenance to the other, so what the client loses is what
the two take from each other in the store and in the machine, and not a share of its processor time.
"""

from __future__ import annotations

import itertools
import os
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import everview
from bench.beside import POLL, await_shown, maintained, on_core, spinning, two_cores
from bench.calls import Calls, timed
from bench.epochs import wrong
from bench.report.experiment import Comparison, Experiment, Found, Plot, Row, Setting
from bench.rows import Missing, number, row_of, times
from bench.workloads.paced import prepared
from bench.workloads.queries import QUERIES
from bench.workloads.synthetic import BT1, Stream
from everview.catalog import MAIN
from everview.change.frontier import Frontier
from everview.maintain import Plans

KEYS = 100_000
GROUPS = 10_000
MANY = 1_000
"""Rows of a batch."""
READS = 2_000
"""Reads between two batches."""

PUT, PUT_MANY, GET, VIEW_GET = "put", "put_many of 1,000", "get of the table", "get of the view"
NONE = "no view"
UNMAINTAINED = "a view, not maintained"
SPINNING = "a view, beside a core that spins"
LOCAL = "maintained, without Spark"
SPARK = "maintained on Spark"
SPARK_MANY = "maintained on Spark, 8 view servers"
KEPT = (LOCAL, SPARK, SPARK_MANY)
SERVICES: dict[str, dict[str, Any]] = {
    LOCAL: {"local": True},
    SPARK: {"master": "local[1]", "servers": 1},
    SPARK_MANY: {"master": "local[1]", "servers": 8},
}
"""How the service of each is started."""


@dataclass
class Measured:
    """The calls of one kind in one setting, by turn."""

    calls: dict[int, Calls] = field(default_factory=dict)
    taken_in: list[float] = field(default_factory=list)
    """Operations per second that views took in during all calls of the setting."""

    @property
    def rate(self) -> float:
        """That of the median turn."""
        return statistics.median(calls.rate for calls in self.calls.values())

    def lost(self, base: Measured) -> float:
        """The share of a rate that is lost, in the median turn."""
        both = self.calls.keys() & base.calls.keys()
        return 1 - statistics.median(self.calls[turn].rate / base.calls[turn].rate for turn in both)

    def microseconds(self, percentile: float) -> float:
        """What so many percent of all calls took at most."""
        return Calls(np.concatenate([calls.seconds for calls in self.calls.values()])).microseconds(percentile)


class Client:
    """A client of one store: the calls that it makes."""

    def __init__(self, db: everview.Database, seed: int, keys: int) -> None:
        self._db = db
        stream = Stream("bt1", keys, GROUPS, seed)
        self._batches = prepared(stream, MANY, 20)
        self._singles = [row for rows in self._batches for row in rows.slice(0, 250).to_pylist()]
        rng = random.Random(seed)
        self._keys = [rng.randrange(keys) for _ in range(10_000)]
        self._groups = [rng.randrange(GROUPS) for _ in range(10_000)]
        self._turn = 0
        self._table = db.table("bt1")
        for rows in stream.loaded():
            self._table.put_many(rows)

    def _write(self) -> None:
        """A batch between reads, so that there is something to maintain."""
        self._turn += 1
        self._table.put_many(self._batches[self._turn % len(self._batches)])

    def call(self, what: str, seconds: float) -> Calls:
        if what == PUT:
            return timed(self._table.put, self._singles, seconds, block=100)
        if what == PUT_MANY:
            return timed(self._table.put_many, self._batches, seconds, rows=MANY)
        if what == GET:
            return timed(self._table.get, self._keys, seconds, block=READS, between=self._write)
        return timed(self._db.view("q2").get, self._groups, seconds, block=READS, between=self._write)

    def warm(self, rounds: int) -> None:
        """Some epochs that do not count."""
        for _ in range(rounds):
            self._write()
            await_shown(self._db)

    def taken_in(self) -> tuple[Frontier, float]:
        """What views show, and when."""
        return self._db.store.views.committed(MAIN).frontier, time.perf_counter()


def measure(setting: Setting) -> Iterator[Found]:
    seconds, turns = setting.pick(0.5, 0.15), setting.pick(3, 1)
    keys = setting.pick(KEYS, 10_000)
    mine, other = two_cores()
    bare, path = setting.folder / "bare", setting.folder / "store"
    found: dict[tuple[str, str], Measured] = {}
    with everview.open(bare) as without, everview.open(path) as db, on_core(mine):
        without.create_table("bt1", BT1)
        db.create_table("bt1", BT1)
        db.sql(f"CREATE MATERIALIZED VIEW q2 AS {QUERIES['q2']}")
        clients = {NONE: Client(without, setting.seed, keys)}
        clients[UNMAINTAINED] = Client(db, setting.seed, keys)
        db.flush()
        numbers = itertools.count()

        def turn(number_of: int, how: str, *whats: str) -> None:
            client = clients.get(how, clients[UNMAINTAINED])
            os.sync()  # what was written before is not this setting's to wait for
            before, began = client.taken_in()
            measured = [found.setdefault((what, how), Measured()) for what in whats]
            for what, one in zip(whats, measured, strict=True):
                one.calls[number_of] = client.call(what, seconds)
            after, ended = client.taken_in()
            for one in measured:
                one.taken_in.append(before.operations_to(after) / (ended - began))

        for how in setting.pick(KEPT, (LOCAL,)):
            with maintained(db, path, core=other, **SERVICES[how]):
                clients[UNMAINTAINED].warm(setting.pick(10, 1))
                for one in itertools.islice(numbers, turns):
                    with paused(db):
                        turn(one, NONE, PUT, PUT_MANY, GET)
                        turn(one, UNMAINTAINED, PUT, PUT_MANY, GET, VIEW_GET)
                        with spinning(other):
                            turn(one, SPINNING, PUT, PUT_MANY, GET, VIEW_GET)
                    turn(one, how, PUT, PUT_MANY, GET, VIEW_GET)
                await_shown(db)
        mistaken = wrong(db, "q2")
    for what, how in found:
        yield Found(_row(what, how, found), wrong="" if how == NONE else mistaken)


@contextmanager
def paused(db: everview.Database) -> Iterator[None]:
    """While the maintainer of the store begins no epoch, and none is under way."""
    plans = Plans(db.store, db.catalog)
    plans.pause(MAIN)
    try:
        while db.store.views.begun(MAIN) is not None:
            time.sleep(POLL)
        yield
    finally:
        plans.resume(MAIN)


def _row(what: str, how: str, found: dict[tuple[str, str], Measured]) -> Row:
    one = found[what, how]
    base = found.get((what, NONE)) or found[what, UNMAINTAINED]
    return {
        "call": what,
        "setting": how,
        "rows/s": round(one.rate),
        "median": round(one.microseconds(50), 2),
        "p99": round(one.microseconds(99), 2),
        "lost": round(100 * one.lost(base), 1),
        "taken in": round(statistics.median(one.taken_in)),
    }


def comparisons(rows: Sequence[Row]) -> list[Comparison]:
    """Reads first, then writes."""
    said = []
    for sentence in (_reads, _read_rates, _writes, _write_rates, _creation, _servers):
        with suppress(Missing):
            said.append(sentence(rows))
    return said


def _best_kept(rows: Sequence[Row], call: str) -> Row:
    """While views are maintained: on Spark, or without it where that was not measured."""
    try:
        return row_of(rows, call=call, setting=SPARK)
    except Missing:
        return row_of(rows, call=call, setting=LOCAL)


def _reads(rows: Sequence[Row]) -> Comparison:
    table, view = (row_of(rows, call=call, setting=UNMAINTAINED) for call in (GET, VIEW_GET))
    ratio = number(view, "median") / number(table, "median")
    return Comparison(
        "000, Figure 3",
        "reading a record of a view by its key took as long as reading one of the base table; through Cassandra's "
        "own index it took 3.5 times as long",
        f"a get of the view takes {view['median']} µs (median), one of the table {table['median']} µs: {times(ratio)}",
        "a view is a table of the same store there and here; ours is read in two transactions, since a reader first "
        "asks which epoch is committed. There is no network in between, so that this is what one sees",
    )


def _read_rates(rows: Sequence[Row]) -> Comparison:
    view, kept = row_of(rows, call=VIEW_GET, setting=UNMAINTAINED), _best_kept(rows, VIEW_GET)
    table = row_of(rows, call=GET, setting=UNMAINTAINED)
    return Comparison(
        "000, Figure 4",
        "reads of the view per second were slightly below those of the base table, with any number of clients",
        f"one client reads {number(table, 'rows/s'):,.0f} rows of the table per second and "
        f"{number(view, 'rows/s'):,.0f} of the view; {number(kept, 'rows/s'):,.0f} of it while it is "
        f"{kept['setting']} and takes in {number(kept, 'taken in'):,.0f} operations/s",
        "their readers skip stale rows, of which ours have none; readers of an embedded store take no locks, and "
        "lose what the two cores take from each other",
    )


def _writes(rows: Sequence[Row]) -> Comparison:
    bare, logged, kept = row_of(rows, call=PUT, setting=NONE), _logged(rows, PUT), _best_kept(rows, PUT)
    return Comparison(
        "000, Figure 5",
        "a put took 2.5 times as long with a view as without, since it reads the old view key first; with a native "
        "index it took as long as without",
        f"a put takes {bare['median']} µs without a view, {logged['median']} µs with one, and {kept['median']} µs "
        f"while it is {kept['setting']}: {times(number(kept, 'median') / number(bare, 'median'))}",
        "a put does the same whether there are views or not: it logs the old row with the new one, which it has to "
        "look up to merge columns anyway. All else is done from the log",
    )


def _logged(rows: Sequence[Row], call: str) -> Row:
    return row_of(rows, call=call, setting=UNMAINTAINED)


def _write_rates(rows: Sequence[Row]) -> Comparison:
    bare, kept, spun = (
        row_of(rows, call=PUT, setting=NONE),
        _best_kept(rows, PUT),
        row_of(rows, call=PUT, setting=SPINNING),
    )
    return Comparison(
        "000, Figure 6",
        "fewer puts per second with a view or an index than without, whatever the number of clients",
        f"{number(bare, 'rows/s'):,.0f} puts/s without a view, {number(kept, 'rows/s'):,.0f} {kept['setting']} "
        f"({number(kept, 'lost'):.0f} % fewer); beside a core that only spins {number(spun, 'lost'):.0f} % are lost "
        "too",
        "their servers propagate updates on the processors that serve puts; here maintenance has a core of its own, "
        "and what is lost is memory bandwidth, cache and clock, and the write lock of the base file while a commit "
        "is written",
    )


def _creation(rows: Sequence[Row]) -> Comparison:
    bare, kept = row_of(rows, call=PUT_MANY, setting=NONE), _best_kept(rows, PUT_MANY)
    more = 100 * (number(bare, "rows/s") / number(kept, "rows/s") - 1)
    return Comparison(
        "003, Figure 12",
        "filling a base table took about 40 % longer while a view was maintained, and 2 % more for ten more view "
        "managers",
        f"in batches of 1,000 rows it takes {more:.0f} % longer ({kept['setting']}); {number(bare, 'rows/s'):,.0f} "
        f"rows/s without a view, {number(kept, 'rows/s'):,.0f} with one",
        "their view managers write into the region servers that clients write to; ours write into files of their "
        "own, and share only the machine with the client",
    )


def _servers(rows: Sequence[Row]) -> Comparison:
    one, many = (row_of(rows, call=PUT_MANY, setting=setting) for setting in (SPARK, SPARK_MANY))
    return Comparison(
        "004, Figure 14",
        "clients lost nothing up to 25 view servers, and about 7 % with 50",
        f"with one view server clients lose {number(one, 'lost'):.0f} % of their batches, with eight "
        f"{number(many, 'lost'):.0f} %; of single puts {number(row_of(rows, call=PUT, setting=SPARK), 'lost'):.0f} "
        f"and {number(row_of(rows, call=PUT, setting=SPARK_MANY), 'lost'):.0f} %",
        "view servers are tasks that take turns on the one core that maintenance has here: more of them neither do "
        "more nor take more. Their 32 region servers had room for 25 view servers",
    )


def notes(rows: Sequence[Row]) -> list[str]:
    found = []
    with suppress(Missing):
        spun, kept = row_of(rows, call=PUT_MANY, setting=SPINNING), _best_kept(rows, PUT_MANY)
        found.append(
            f"Where clients lose: batches are {number(kept, 'lost'):.0f} % slower while views are maintained, of "
            f"which a core that does nothing but spin takes {number(spun, 'lost'):.0f} % as well. The slowest put in "
            f"a hundred takes {_best_kept(rows, PUT)['p99']} µs instead of "
            f"{row_of(rows, call=PUT, setting=NONE)['p99']}."
        )
    with suppress(Missing):
        local, spark = (row_of(rows, call=PUT_MANY, setting=setting) for setting in (LOCAL, SPARK))
        found.append(
            f"Meanwhile the other core took in {number(spark, 'taken in'):,.0f} operations/s on Spark and "
            f"{number(local, 'taken in'):,.0f} without; the client wrote {number(spark, 'rows/s'):,.0f} and "
            f"{number(local, 'rows/s'):,.0f}. What one core cannot follow waits in the log, and the client does not."
        )
    return found


def headline(rows: Sequence[Row]) -> str:
    try:
        put, many = (number(_best_kept(rows, call), "lost") for call in (PUT, PUT_MANY))
        spun = [number(row_of(rows, call=call, setting=SPINNING), "lost") for call in (PUT, PUT_MANY)]
    except Missing:
        return ""
    return (
        f"maintenance on the other core takes {put:.0f} % of single puts and {many:.0f} % of batches from a client; "
        f"a core that only spins takes {spun[0]:.0f} and {spun[1]:.0f} %"
    )


EXPERIMENT = Experiment(
    name="clients",
    title="What maintenance costs clients",
    text=(
        "A client on one core puts single rows, puts batches of 1,000 rows, and reads by key, over 100,000 rows in "
        "10,000 groups: without any view, with a view (count and sum by group) that no process maintains, while it is "
        "maintained on the other core, by a process without Spark and by a pipeline on Spark with one view server "
        "and with eight, and, for reference, beside a core that only spins. Between blocks of 2,000 reads the client "
        "writes a batch, so that there is something to maintain. Every call is timed by itself, and rates are those of "
        "the time spent in calls. The service that maintains the view runs all the time, and is paused "
        "where the view is not to be maintained, so that all settings take turns: three for each way of maintaining "
        "it, half a second of each call, after the disk has all that was written before. Rates are those of the median "
        "turn; lost is the share of the rate without a view (for reads of the view, without maintenance) in the same "
        "turn, in the median of all turns. Taken in are operations that epochs took in per second meanwhile: at first "
        "those that waited in the log."
    ),
    measure=measure,
    columns={
        "call": "call",
        "setting": "setting",
        "rows/s": "rows/s",
        "median": "median, µs",
        "p99": "99 in 100 within, µs",
        "lost": "lost, %",
        "taken in": "taken in, operations/s",
    },
    plots=(
        Plot(
            "lost",
            "What clients lose, in % of their rate",
            x="call",
            y="lost",
            by="setting",
            kind="bars",
            where=lambda row: row["setting"] != NONE,
        ),
        Plot("median", "Median time of a call, in µs", x="call", y="median", by="setting", kind="bars", log_y=True),
    ),
    comparisons=comparisons,
    notes=notes,
    headline=headline,
)
