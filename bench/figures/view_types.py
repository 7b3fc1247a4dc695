"""Operations per second by type of view and number of view servers, on Spark.

The logs are filled while the pipeline waits, then it takes them in epochs, and the rate is that
of the median epoch, from commit to commit.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.report.experiment import Comparison, Experiment, Found, Plot, Row, Setting
from bench.workloads.synthetic import RIGHT, VALUES, Stream, Writer

KEYS = 100_000
GROUPS = 10_000
JOINED = 20_000
"""Row keys of each of two tables that are joined."""
SERVERS = (1, 2, 4, 8)
FEW, BOTH = (1, 2, 8), (1, 2)
EPOCH = 100_000
"""Operations of an epoch."""
WARM = 2
"""Epochs that are done before a view is measured; before the first one eight times as many, for the Java machine."""

PAIRS = "FROM bt1 JOIN bt2 ON bt1.c1 = bt2.c1"
FIVE = "count(*) AS n, sum(c2) AS s, avg(c2) AS a, min(c2) AS lo, max(c2) AS hi"


@dataclass(frozen=True)
class Kind:
    """A type of view, and over what."""

    name: str
    query: str
    """Of the view v, unless it is a whole statement."""
    variant: str = ""
    keys: int = KEYS
    groups: int = GROUPS
    before_images: bool = True
    nodes: int = 4
    servers: tuple[int, ...] = SERVERS
    quick: bool = False

    @property
    def statements(self) -> str:
        return self.query if self.query.startswith("CREATE") else f"CREATE MATERIALIZED VIEW v AS {self.query}"

    def streams(self, quick: bool, seed: int) -> list[Stream]:
        keys, groups = (self.keys // 100, self.groups // 100) if quick else (self.keys, self.groups)
        tables = ("bt1", RIGHT) if RIGHT in self.query else ("bt1",)
        return [Stream(table, keys, max(groups, 10), seed + number) for number, table in enumerate(tables)]


def _grouped(calls: str) -> str:
    return f"SELECT c1, {calls} FROM bt1 GROUP BY c1"


def _selected(percent: int) -> str:
    return f"{PROJECTION} WHERE c2 < {VALUES * percent // 100}"


PROJECTION = "SELECT k, c1 FROM bt1"
JOIN = f"SELECT bt1.k, bt1.c2, bt2.k AS l, bt2.c4 {PAIRS}"
TWO = (2,)

KINDS = (
    Kind("projection", PROJECTION, "100k row keys"),
    Kind("projection", PROJECTION, "10k row keys", keys=10_000, servers=TWO),
    Kind("projection", PROJECTION, "1k row keys", keys=1_000, servers=TWO),
    Kind("selection", _selected(50), "50 % of rows"),
    Kind("selection", _selected(20), "20 % of rows", servers=TWO),
    Kind("selection", _selected(80), "80 % of rows", servers=TWO),
    Kind("delta", PROJECTION, "logs without old rows", before_images=False, servers=BOTH, quick=True),
    Kind("count", _grouped("count(*) AS n"), "100k:10k"),
    Kind("sum", _grouped("sum(c2) AS s"), "100k:10k", servers=FEW),
    Kind("sum", _grouped("sum(c2) AS s"), "100k:1k", groups=1_000, servers=TWO),
    Kind("sum", _grouped("sum(c2) AS s"), "100k:10", groups=10, servers=TWO),
    Kind("avg", _grouped("avg(c2) AS a"), "100k:10k", servers=TWO),
    Kind("min", _grouped("min(c2) AS lo"), "100k:10k", servers=FEW),
    Kind("max", _grouped("max(c2) AS hi"), "100k:10k", servers=TWO),
    Kind("five functions", _grouped(FIVE), "100k:10k"),
    Kind("five functions", _grouped(FIVE), "100k:1k", groups=1_000, servers=TWO),
    Kind("five functions", _grouped(FIVE), "100k:100", groups=100, servers=TWO),
    Kind("index", "CREATE INDEX i ON bt1 (c1)", "100k:10k", servers=BOTH),
    Kind("join", JOIN, "10k join keys", keys=JOINED, quick=True),
    Kind("join", JOIN, "1k join keys", keys=JOINED, groups=1_000, servers=TWO),
    Kind("join", JOIN, "100k join keys", keys=JOINED, groups=100_000, servers=TWO),
    Kind("reverse join", f"SELECT count(*) AS n, sum(c2) AS s {PAIRS}", "10k join keys", keys=JOINED, servers=BOTH),
    Kind(
        "selection, then sum",
        f"SELECT c1, sum(c2) AS s FROM bt1 WHERE c2 < {VALUES // 2} GROUP BY c1",
        "100k:10k",
        servers=BOTH,
    ),
    Kind("join, then sum", f"SELECT c4, sum(c2) AS s {PAIRS} GROUP BY c4", "10k join keys", keys=JOINED, servers=BOTH),
    Kind(
        "view on a view",
        "CREATE MATERIALIZED VIEW w AS SELECT c1, count(*) AS n FROM bt1 GROUP BY c1; "
        "CREATE MATERIALIZED VIEW v AS SELECT n, count(*) AS times FROM w GROUP BY n",
        "100k:10k",
        servers=BOTH,
    ),
    Kind("selection", _selected(50), "one node", nodes=1, servers=TWO),
    Kind("count", _grouped("count(*) AS n"), "one node", nodes=1, servers=TWO),
    Kind("count", _grouped("count(*) AS n"), "eight nodes", nodes=8, servers=TWO),
)


def measure(setting: Setting) -> Iterator[Found]:
    for number, kind in enumerate(KINDS):
        if kind.quick or not setting.quick:
            yield from _measured(kind, setting, setting.folder / f"store{number}", WARM if number else 8 * WARM)


def _measured(kind: Kind, setting: Setting, path: Path, warm: int) -> Iterator[Found]:
    """In a store of its own, at a place of its own: Spark's workers keep stores open. ``warm`` epochs go before."""
    import everview
    from bench.epochs import Turns, wrong
    from bench.report.sessions import session

    streams = kind.streams(setting.quick, setting.seed)
    epochs, per_epoch = setting.pick((5, EPOCH), (3, 1_000))
    with everview.open(path, before_images=kind.before_images, nodes=kind.nodes) as db:
        for stream in streams:
            db.create_table(stream.table, stream.schema)
        db.sql(kind.statements)
        writer = Writer(db, streams, per_epoch // 2)
        writer.write(3 * sum(stream.keys for stream in streams))
        db.flush()
        with Turns(path, db, session(), per_epoch) as turns:
            if not setting.quick:
                turns.take(lambda: writer.write(warm * per_epoch), servers=2)
            for servers in setting.pick(kind.servers, (1, 4)):
                pace = turns.take(lambda: writer.write(epochs * per_epoch), servers)
                usual = statistics.median(pace.each)
                row: Row = {
                    "view": kind.name,
                    "variant": kind.variant,
                    "servers": servers,
                    "rate": round(pace.operations / len(pace.each) / usual),
                    "epoch": round(1000 * usual),
                }
                yield Found(row, wrong(db), pace.profile)
    shutil.rmtree(path)


# ------------------------------------------------------------------ telling


class Rates:
    """Operations per second by view, variant and number of servers."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self.views = list(dict.fromkeys(str(row["view"]) for row in rows))
        self.servers = sorted({int(str(row["servers"])) for row in rows})

    def of(self, view: str, variant: str | None = None, servers: int = 2) -> float | None:
        for row in self._rows:
            if row["view"] == view and row["servers"] == servers and variant in (None, row["variant"]):
                return float(str(row["rate"]))
        return None

    def scaled(self, *views: str) -> str:
        """The rates of views by number of servers, in words."""
        found = []
        for view in views:
            rates = {n: rate for n in self.servers if (rate := self.of(view, servers=n)) is not None}
            if rates:
                found.append(f"{view}: " + ", ".join(f"{rate:,.0f} with {n}" for n, rate in rates.items()))
        return f"operations/s by view servers: {'; '.join(found)}" if found else ""

    def beside(self, view: str, *variants: str) -> str:
        """The rates of a view in variants, with two servers, and how the last differs from the first, in words."""
        rates = [(variant, rate) for variant in variants if (rate := self.of(view, variant)) is not None]
        if len(rates) < len(variants):
            return ""
        listed = ", ".join(f"{rate:,.0f} ({variant})" for variant, rate in rates)
        differs = more(rates[-1][1], rates[0][1])
        return f"{view}: {listed} operations/s; {differs} with {variants[-1]} than with {variants[0]}"

    def grows(self, view: str, one: str, other: str) -> bool:
        """Whether a view is faster in another variant."""
        before, after = self.of(view, one), self.of(view, other)
        return before is not None and after is not None and after > before

    def gain(self, one: int, other: int) -> float | None:
        """How much faster all views together are with another number of servers."""
        pairs = [(self.of(view, servers=one), self.of(view, servers=other)) for view in self.views]
        both = [(first, second) for first, second in pairs if first and second]
        if not both:
            return None
        return sum(1 / first for first, _ in both) / sum(1 / second for _, second in both)


def more(one: float, other: float) -> str:
    """How much more one is than the other."""
    return f"{abs(one / other - 1):.0%} {'more' if one >= other else 'less'}".replace("%", " %")


def _sentence(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


TWO_CORES = (
    "They add machines, we have two cores: a second view server helps as far as Spark's driver and the Java machine "
    "leave the second core free, and a third one only adds tasks"
)


def comparisons(rows: Sequence[Row]) -> list[Comparison]:
    rates = Rates(rows)
    count, five = rates.of("count", "100k:10k"), rates.of("five functions", "100k:10k")
    said = [
        Comparison(
            "004, Figure 7 (projection)",
            "902 to 1,026 operations/s for each view server, linear up to 50 of them; 12 % less with 1k row keys "
            "than with 100k, which are spread unevenly over servers",
            _sentence(rates.scaled("projection"), rates.beside("projection", "100k row keys", "1k row keys")),
            f"{TWO_CORES}. "
            + (
                "With few row keys there is less to write: the writes of one key in an epoch become one change"
                if rates.grows("projection", "100k row keys", "1k row keys")
                else "Few row keys are no less to read from the log, which is most of the work of such an epoch"
            ),
        ),
        Comparison(
            "004, Figure 8 (selection)",
            "linear; 46 % more operations/s where 20 % of rows are selected than where 80 % are",
            rates.beside("selection", "80 % of rows", "50 % of rows", "20 % of rows"),
            "The same reason: a row that was and is outside the selection costs a comparison and no write. Reading "
            "the log and starting tasks cost the same for all, and decide how much that is"
            if rates.grows("selection", "80 % of rows", "20 % of rows")
            else "Writes that are saved do not show here: reading the log and starting tasks cost the same for all",
        ),
        Comparison(
            "003, Figure 6 (selection)",
            "the fastest type of view; with 10 % selected clients are the limit and more view managers slow it down",
            rates.scaled("selection"),
            "Logs are filled before we measure, so clients are no limit here; more view servers than cores are",
        ),
        Comparison(
            "004, Figure 9 (aggregation)",
            "linear, but the larger the groups the slower, since a PRE-AGGREGATION record holds all rows of its "
            "group; one function instead of five makes no difference (under 1 %)",
            _sentence(
                rates.scaled("five functions"),
                rates.beside("five functions", "100k:10k", "100k:1k", "100k:100"),
                f"{more(count, five)} for a count alone than for five functions" if count and five else "",
            ),
            "A group's record has sums, not rows, so large groups are not loaded. "
            + (
                "Fewer groups are fewer records to write. "
                if rates.grows("five functions", "100k:10k", "100k:100")
                else "But min and max keep the values of a group in order, and large groups are longer runs of them. "
            )
            + (
                "Min and max are also what five functions have to do more than a count"
                if count and five and count > five
                else "What a count has less to do does not show beside reading the log and Spark's part of an epoch"
            ),
        ),
        Comparison(
            "003, Figure 7 (count, sum, min, max, index)",
            "count and sum alike, index slower, min and max the slowest",
            rates.scaled("count", "sum", "avg", "min", "max", "index"),
            "What is kept decides: a number for each group, a key for each row, or a value for each row and the "
            "least or greatest of them",
        ),
        Comparison(
            "002, Figure 2 (cardinality of a SUM view)",
            "the fewer view records, the more view managers collide, and the lower the throughput",
            rates.beside("sum", "100k:10k", "100k:1k", "100k:10"),
            "A group has one owner in an epoch, so nobody collides"
            + (
                "; and sums are made before the shuffle, so fewer groups are less to send and to write"
                if rates.grows("sum", "100k:10k", "100k:10")
                else ". But groups are what is dealt out to servers: ten of them are not dealt out evenly"
            ),
        ),
        Comparison(
            "004, Figure 10 (join)",
            "comparable to aggregation, linear; 13 % less with 1k join keys than with 100k, which are spread unevenly",
            _sentence(rates.scaled("join"), rates.beside("join", "100k join keys", "10k join keys", "1k join keys")),
            f"With {JOINED:,} rows on each side a row has 0.2, 2 or 20 partners, and so many rows of the join come "
            "and go with it: it is work that the join keys decide here, not how evenly they are spread",
        ),
        Comparison(
            "003, Figure 8 (join)",
            "lower than all other types, and gains from more view managers",
            rates.scaled("join", "reverse join"),
            "As in the paper it has the most to do: two tables of rows by join key, and the view. *reverse join* are "
            "these tables alone, with a total on top",
        ),
        Comparison(
            "004, Figure 6 (composed views and zones)",
            "a change runs through all zones of a view, one after another; no figure of speed",
            rates.scaled("selection, then sum", "join, then sum", "view on a view"),
            "A zone more is a shuffle more for each epoch, not for each operation",
        ),
        Comparison(
            "003, Figure 10 (region servers)",
            "throughput grows almost linearly from 4 to 10 region servers, each with a disk of its own",
            _sentence(
                rates.beside("count", "one node", "100k:10k", "eight nodes"),
                rates.beside("selection", "one node", "50 % of rows"),
            ),
            "A store has four nodes unless the variant says otherwise. Nodes of the embedded store are logs in one "
            "file on one disk: the log of one node is read by one task, those of several by two at a time, and more "
            "nodes are more pieces to read, not more disks",
        ),
    ]
    return [one for one in said if one.we]


def notes(rows: Sequence[Row]) -> list[str]:
    rates = Rates(rows)
    found = []
    for one, other in ((1, 2), (2, 4), (2, 8)):
        gain = rates.gain(one, other)
        if gain is not None:
            found.append(
                f"From {one} to {other} view servers all types together become {100 * abs(gain - 1):.0f} % "
                f"{'faster' if gain > 1 else 'slower'}."
            )
    if found:
        found.append(
            "This machine has two cores, and Spark runs two tasks at a time: more than two view servers have nothing "
            "to run on. What they change, as listed above, comes from more tasks and smaller blocks for the same work."
        )
    return found


def headline(rows: Sequence[Row]) -> str:
    rates = Rates(rows)
    found = {view: rate for view in rates.views if (rate := rates.of(view)) is not None}
    if not found:
        return ""
    fast, slow = max(found, key=found.__getitem__), min(found, key=found.__getitem__)
    return f"{found[slow]:,.0f} ({slow}) to {found[fast]:,.0f} ({fast}) operations/s with two view servers"


def _main(row: Row) -> bool:
    return any(k.name == row["view"] and k.variant == row["variant"] and k.servers == SERVERS for k in KINDS)


def _varied(row: Row) -> bool:
    return row["servers"] == 2 and not str(row["variant"]).endswith(("node", "nodes"))


EXPERIMENT = Experiment(
    name="view_types",
    title="Throughput by type of view and number of view servers",
    text=(
        "Operations of base tables per second that a view is brought up to date with, on Spark. As in the papers the "
        "logs are filled first, with inserts, updates and 15 % deletes at uniform keys; then the pipeline takes them "
        f"in epochs of {EPOCH:,} operations; the figure is the median of four. A table has {KEYS:,} row keys and "
        f"{GROUPS:,} aggregation keys, each of two joined tables {JOINED:,} row keys, unless the variant says "
        "otherwise; it was written three times over, and the pipeline has done two epochs (sixteen before the first "
        "view), before anything is timed. "
        "*delta* is a projection in a store without before-images in its logs, so that a DELTA table is kept; *reverse "
        "join* is a total over a join that is not stored, so that only the REVERSE-JOIN tables are kept. What is "
        "written to one key within an epoch becomes one change, so the fewer row keys there are, the fewer changes "
        "an epoch has: at most 1,000 with 1k row keys. The view is verified after every run."
    ),
    measure=measure,
    columns={
        "view": "view",
        "variant": "variant",
        "servers": "view servers",
        "rate": "operations/s",
        "epoch": "ms of an epoch",
    },
    plots=(
        Plot("servers", "Operations/s by view servers", "servers", "rate", "view", log_x=True, where=_main),
        Plot(
            "types",
            "Operations/s by type of view, two view servers",
            "view",
            "rate",
            kind="bars",
            where=lambda row: row["servers"] == 2 and _main(row),
        ),
        *(
            Plot(
                name,
                f"Operations/s of a {view}, two view servers",
                "variant",
                "rate",
                kind="bars",
                where=lambda row, view=view: row["view"] == view and _varied(row),  # type: ignore[misc]
            )
            for name, view in (("rowkeys", "projection"), ("selectivity", "selection"), ("joinkeys", "join"))
        ),
        Plot(
            "ratios",
            "Operations/s of five functions by aggregation ratio, two view servers",
            "variant",
            "rate",
            kind="bars",
            where=lambda row: row["view"] == "five functions" and row["servers"] == 2,
        ),
    ),
    comparisons=comparisons,
    notes=notes,
    headline=headline,
)
