"""Reading one's own write in a view, by how long after the write one asks.

A client puts a row, lets some time pass, and reads the view record that the row belongs to; the time
of both calls, without the pause, is what the guarantee costs.

Four ways to read are taken in turns. Two of them promise the write: a session, and ``fresh=True``. A plain read
promises nothing, and how many of them showed the write is counted. The fourth waits until an epoch has committed
the write, as the paper's coordinator does, and is there to compare with.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

import everview
from bench.beside import await_shown, maintained
from bench.epochs import wrong
from bench.report.experiment import Comparison, Experiment, Found, Plot, Row, Setting
from bench.rows import Missing, number, row_of, seconds
from bench.workloads.filled import filled
from bench.workloads.paced import PacedWriter

KEYS = 100_000
OWN_KEY, OWN_GROUP = 10_000_000, 1_000_000
"""A row and a group that nobody else writes."""
PLAIN, SESSION, FRESH, WAITING = "plain", "session", "fresh", "waits for the epoch"
PROMISED = (SESSION, FRESH, WAITING)
IDLE = "one client"


@dataclass
class Pairs:
    """Puts, each with the read after it."""

    spent: list[float] = field(default_factory=list)
    """Seconds of both calls, without the pause."""
    seen: int = 0
    broken: str = ""
    """What was shown where the write was promised, or where something was shown that is not yet written."""

    def add(self, how: str, spent: float, wanted: int, shown: object) -> None:
        self.spent.append(spent)
        self.seen += shown == wanted
        future = isinstance(shown, int) and shown > wanted
        if future or (how in PROMISED and shown != wanted):
            self.broken = f"{how}: {wanted} was written, and {shown} shown"


class Client:
    """One client that puts and reads, in one of four ways."""

    def __init__(self, db: everview.Database) -> None:
        self._db = db
        self._session = db.session()
        self._table, self._view = db.table("bt1"), db.view("q2")
        self._session_table, self._session_view = self._session.table("bt1"), self._session.view("q2")
        self._number = 0

    def pair(self, how: str, pause: float, found: Pairs) -> None:
        self._number += 1
        row: dict[str, object] = {"k": OWN_KEY, "c1": OWN_GROUP, "c2": self._number, "c3": 0.0}
        begun = time.perf_counter()
        if how == SESSION:
            self._session_table.put(row)
        else:
            self._table.put(row)
        frontier = self._db.store.log.latest() if how == WAITING else None
        written = time.perf_counter()
        time.sleep(pause)
        asked = time.perf_counter()
        if how == SESSION:
            shown = self._session_view.get(OWN_GROUP)
        elif how == FRESH:
            shown = self._view.get(OWN_GROUP, fresh=True)
        else:
            if frontier is not None:
                await_shown(self._db, frontier)
            shown = self._view.get(OWN_GROUP)
        spent = time.perf_counter() - asked + written - begun
        found.add(how, spent, self._number, None if shown is None else shown["s"])


def measure(setting: Setting) -> Iterator[Found]:
    keys = setting.pick(KEYS, 5_000)
    path = setting.folder / "store"
    db, (stream,) = filled(path, "q2", keys, setting.seed)
    with db, maintained(db, path, local=setting.quick):
        client = Client(db)
        for _ in range(setting.pick(10, 1)):  # warm-up
            for how in (PLAIN, SESSION, FRESH, WAITING):
                client.pair(how, 0.0, Pairs())
        pauses = setting.pick((0, 10, 40, 160, 320, 640), (0, 20))
        yield from _verified(db, _by_delay(setting, client, IDLE, pauses))
        for rate in setting.pick((1_000, 20_000), ()):
            writer = PacedWriter(rate, path, stream)
            try:
                writer.begun()
                time.sleep(2.0)
                found = _by_delay(setting, client, f"beside {rate:,} operations/s", (0, 160, 640))
                writer.finish()
            except BaseException:
                writer.kill()
                raise
            yield from _verified(db, found)


def _verified(db: everview.Database, rows: Sequence[tuple[Row, str]]) -> Iterator[Found]:
    """Rows with what was shown wrongly, or is wrong in the view after all of it."""
    await_shown(db)
    mistaken = wrong(db, "q2")
    for row, broken in rows:
        yield Found(row, wrong=broken or mistaken)


def _by_delay(setting: Setting, client: Client, load: str, delays: Sequence[int]) -> list[tuple[Row, str]]:
    rows: list[tuple[Row, str]] = []
    for delay in delays:
        found = {how: Pairs() for how in (PLAIN, SESSION, FRESH, WAITING)}
        for _ in range(setting.pick(_often(delay, load), 4)):
            for how, pairs in found.items():
                client.pair(how, delay / 1000, pairs)
        for how, pairs in found.items():
            spent = 1000 * np.array(pairs.spent)
            row: Row = {
                "load": load,
                "read": how,
                "delay": delay,
                "mean": round(float(spent.mean()), 3),
                "median": round(float(np.median(spent)), 3),
                "most": round(float(spent.max()), 3),
                "seen": round(100 * pairs.seen / len(spent)),
            }
            rows.append((row, pairs.broken))
    return rows


def _often(delay: int, load: str) -> int:
    """Pairs of each kind: the longer the pause, the fewer."""
    if load != IDLE:
        return 6
    return 12 if delay <= 80 else 8 if delay <= 320 else 5


# ------------------------------------------------------------------ what to say


def comparisons(rows: Sequence[Row]) -> list[Comparison]:
    with suppress(Missing, IndexError):
        alone = [row for row in rows if row["load"] == IDLE]
        waits, mine = ([row for row in alone if row["read"] == how] for how in (WAITING, SESSION))
        level = _level(waits)
        return [
            Comparison(
                "000, Figure 7",
                "a put and a get of the view in one session take the less time the later the get comes, and level "
                "off at 640 ms, when nearly all updates have been propagated; through a native index they take the "
                "same time always",
                f"a session takes {_ms(mine[0])} without a pause and {_ms(mine[-1])} after {mine[-1]['delay']} ms "
                f"(means); waiting for the epoch would take {_ms(waits[0])} and {_ms(waits[-1])}, and levels off "
                + (f"at {level['delay']} ms" if level is not None else "later than that"),
                "a session does not wait for the epoch: it runs the view's steps over the few log entries that are "
                "missing, in the client's process. Where the epoch is there already, it is a plain read",
            )
        ]
    return []


def _ms(row: Row) -> str:
    return seconds(number(row, "mean") / 1000)


def _level(waits: Sequence[Row]) -> Row | None:
    """The first pause after which waiting takes hardly longer than after the longest one."""
    last = number(waits[-1], "median")
    return next((row for row in waits if number(row, "median") < last + 2.0), None)


def notes(rows: Sequence[Row]) -> list[str]:
    found = []
    plain = [row for row in rows if row["load"] == IDLE and row["read"] == PLAIN]
    if plain:
        stale = ", ".join(f"{row['seen']} % after {row['delay']} ms" for row in plain)
        found.append(f"A plain read promises nothing; alone it showed the write in: {stale}.")
    for load in dict.fromkeys(row["load"] for row in rows if row["load"] != IDLE):
        with suppress(Missing, IndexError):
            first = {row["read"]: row for row in rows if row["load"] == load and row["delay"] == 0}
            found.append(
                f"{str(load).capitalize()}, without a pause (means): a session takes {_ms(first[SESSION])}, a fresh "
                f"read {_ms(first[FRESH])}, and waiting for the epoch {_ms(first[WAITING])}. The more is missing, "
                "the more a reader has to compute by itself; past 10,000 entries it waits for the epoch."
            )
    return found


def headline(rows: Sequence[Row]) -> str:
    with suppress(Missing, IndexError):
        alone = [row for row in rows if row["load"] == IDLE and row["delay"] == 0]
        mine, waits = row_of(alone, read=SESSION), row_of(alone, read=WAITING)
        return f"a put and a session's read right after it take {_ms(mine)}; waiting for the epoch takes {_ms(waits)}"
    return ""


EXPERIMENT = Experiment(
    name="sessions",
    title="Reading one's own writes",
    text=(
        "A client puts a row, pauses, and reads the record of its group from a view (count and sum by group, 100,000 "
        "rows) that a service on Spark maintains; the times of both calls are added, without the pause. Plain reads, "
        "reads of a session, fresh reads, and reads that wait until an epoch has committed the write take turns: 12 "
        "pairs of each up to 80 ms, 8 up to 320, 5 above, after ten that do not count; and 6 pairs beside a writer "
        "in another process. A session or a fresh read that does not show the write is wrong. Seen is how many reads "
        "showed it."
    ),
    measure=measure,
    columns={
        "load": "load",
        "read": "read",
        "delay": "pause, ms",
        "mean": "put and get, mean, ms",
        "median": "median, ms",
        "most": "most, ms",
        "seen": "seen, %",
    },
    plots=(
        Plot(
            "delay",
            "Put and get of the view in ms, mean, by the pause between them",
            x="delay",
            y="mean",
            by="read",
            log_y=True,
            where=lambda row: row["load"] == IDLE,
        ),
        Plot(
            "load",
            "Put and get without a pause in ms, mean, by load",
            x="load",
            y="mean",
            by="read",
            kind="bars",
            log_y=True,
            where=lambda row: row["delay"] == 0,
        ),
    ),
    comparisons=comparisons,
    notes=notes,
    headline=headline,
)
