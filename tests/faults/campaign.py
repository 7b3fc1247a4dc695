"""A campaign: a town whose views are maintained on Spark while its processes are killed one after another.

Kills come in small groups; after each group the dead are replaced, every view is compared
with its query over the base rows at the epoch it has reached, and what writers were promised is looked
for; and all the while a reader takes snapshots that must add up.

Four kinds of processes live in the town, and all but the reader die: a driver with its Java machine and
its Python workers, two writers, a reader. The next driver waits with its Java machine started.
Nobody sleeps: time passes in ticks, in which the driver is listened to, and the others are heard at
the pace that keeps them from running ahead.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from everview.catalog import MAIN, ViewStatus
from everview.change.frontier import Frontier
from everview.errors import EverviewError, LogTrimmedError, SnapshotExpiredError
from everview.maintain.coordination import ask
from tests.faults.plan import Kill, kills, points_of
from tests.faults.points import FOLDER, Tokens, split
from tests.faults.processes import Nursery, Victim
from tests.faults.roles import ATTEMPTS
from tests.faults.spotting import Spotted, kill_all, marked
from tests.faults.town import VISITORS, WRITERS, disagreement, found_town, numbers
from tests.zones.clusters import Cluster
from tests.zones.shop import assert_all_is_counted, wrong

TICK = 0.01
PACE = 2
"""Reports of a writer that are heard in a tick …"""
LAG = 500
"""… while the views are at most so many operations behind."""
PATIENCE = 300.0
IMPATIENT = "Python worker failed to connect back"
"""What Spark says where a process that it has started takes longer than ten seconds: on a busy machine."""
LOOKS = 8
"""Ticks between two snapshots of the reader."""
VISITS = 200
"""Ticks after which a view comes or goes, if the last one is there."""
GROUP = 6
"""Kills in a group, at most."""
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss2m"
"""Java machines that live for seconds are not worth compiling for."""
BUILDS = frozenset({"begin", "documents", "join", "publish"})
"""What drivers do only where views come."""
SHOWN = 3000


class Failed(AssertionError):
    """What went wrong, when, and how to see it again."""


@dataclass
class Driver:
    """A driver, or one that waits to become the driver."""

    victim: Victim
    mark: str
    commands: int
    printed: Path
    state: str = "starting"
    stops: list[str] = field(default_factory=list)
    """What made its pipelines fail."""
    sources_died: int = 0

    def hear(self, wait: float) -> None:
        before = len(self.victim.reports)
        self.victim.wait(wait)
        for report in self.victim.reports[before:]:
            self.state, _, rest = report.partition(" ")
            if self.state == "stopped" and IMPATIENT not in rest:
                self.stops.append(rest)

    def send(self, command: str) -> None:
        os.write(self.commands, f"{command}\n".encode())

    def restart(self) -> None:
        """Have it stop its pipeline and start another one."""
        self.send("restart")
        self.state = "restarting"

    def spotted(self) -> Spotted:
        return marked(self.mark)


class Campaign:
    """The town in a folder, and what has been done to it. Spark runs on the cluster, if there is one."""

    def __init__(
        self, folder: Path, seed: int, *, cluster: Cluster | None = None, say: Callable[[str], None] = lambda line: None
    ) -> None:
        self.folder = folder
        self.seed = seed
        self.section = "local" if cluster is None else "cluster"
        self.master = f"local[2,{ATTEMPTS}]" if cluster is None else cluster.url
        self.settings = {} if cluster is None else cluster.settings
        self.say = say
        self.rng = random.Random(f"{seed}/{self.section}/moments")
        self.died: Counter[str] = Counter()
        """How many were killed, by point, and by kind where at a random moment."""
        self.epochs: set[int] = set()
        """That the reader has seen."""
        self.checks = 0
        self._held = ExitStack()
        self._drivers = 0
        self._next: Driver | None = None
        self._drivers_to_come = 0
        self._ticks = 0
        self._acknowledged = dict.fromkeys(WRITERS, 0)
        self._promised: dict[int, Frontier] = {}
        """Epochs that were under way when a driver died, and where they go."""
        self._free = False
        """Whether writers go on although the views do not follow."""
        self._visitors = 0
        self._writers_ahead = 0
        """Writers that were replaced before it was seen which kill was theirs: two may die at the same time."""
        self._group: Sequence[Kill] = ()

    # -------------------------------------------------------------- the whole of it

    def run(self, count: int, minutes: float | None = None) -> None:
        """Kill so often, or until the time is over."""
        end = None if minutes is None else time.monotonic() + 60 * minutes
        planned = list(islice(kills(self.seed, self.section), count))
        sizes = random.Random(f"{self.seed}/{self.section}/groups")
        self._drivers_to_come = sum(kill.who == "driver" for kill in planned)
        with self._held:
            try:
                self._begin()
                while planned and (end is None or time.monotonic() < end):
                    size = sizes.randint(1, GROUP)
                    group, planned = planned[:size], planned[size:]
                    self._strike(group)
                    self._check()
                self._end()
            except (AssertionError, EverviewError, OSError) as error:
                raise Failed(self._description(error)) from error

    @property
    def missed(self) -> list[str]:
        """The points at which nobody has died."""
        return [point for point in points_of(self.section) if point not in self.died]

    def _description(self, error: Exception) -> str:
        lines = [f"seed {self.seed}, {self.section}, after {self.died.total()} kills, in the group"]
        lines += [f"    {kill}" for kill in self._group]
        lines.append(str(error)[:SHOWN])
        printed = self._driver.printed if hasattr(self, "_driver") else None
        if printed is not None and printed.exists():
            lines += ["the driver has printed:", printed.read_text(errors="replace")[-SHOWN:]]
        count = max((kill.number for kill in self._group), default=0)
        cluster = " --cluster" if self.section == "cluster" else ""
        lines.append(f"again: python -m tests.faults --seed {self.seed} --kills {count}{cluster}")
        return "\n".join(lines)

    def _begin(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self.path = self.folder / "store"
        self.checkpoint = self.folder / "checkpoint"
        self.tokens = Tokens(self.folder / "tokens")
        self.db = self._held.enter_context(found_town(self.path, self.seed))
        self._held.callback(lambda: kill_all(marked(str(self.folder)).everybody))
        environment = {FOLDER: str(self.tokens.folder), "JAVA_TOOL_OPTIONS": JAVA, "SPARK_LOCAL_IP": "127.0.0.1"}
        self.nursery = Nursery("tests.faults.roles", **environment)
        self._held.callback(self.nursery.close)
        self._driver = self._new_driver()
        self.writers = {writer: self._new_writer(writer) for writer in WRITERS}
        self.reader = self.nursery.start("watch", directory=str(self.path))
        self._wait_for(lambda: self._driver.state == "ready", "a driver is ready")
        self._let_it_run()
        self._next = self._new_driver() if self._drivers_to_come else None

    def _end(self) -> None:
        """No more writes: in the end every view, also the lazy one, reflects all of them."""
        for writer, victim in self.writers.items():
            self._learn(writer, victim.kill(self.rng))
        self.writers.clear()
        latest = self.db.store.log.latest()
        groups = {view.group for view in self.db.catalog.views()}
        self._wait_for(
            lambda: not self._building() and all(self._reached(group) == latest for group in groups),
            "all views reflect all writes",
        )
        self._check()
        assert not self._promised, f"epochs that were begun have not ended: {self._promised}"
        assert_all_is_counted(self.db)
        with self.db.snapshot() as snapshot:
            found = disagreement(snapshot)
            assert not found, found
        self.reader.kill(self.rng)
        self._driver.send("end")
        assert len(self.epochs) > 1, "the reader has seen nothing move"

    # -------------------------------------------------------------- who lives

    def _new_driver(self) -> Driver:
        self._drivers += 1
        mark = f"{self.folder}/driver-{self._drivers}."
        commands = self.folder / f"commands-{self._drivers}"
        os.mkfifo(commands)
        descriptor = os.open(commands, os.O_RDWR)
        self._held.callback(os.close, descriptor)
        printed = self.folder / f"printed-{self._drivers}"
        victim = self.nursery.start(
            "drive",
            directory=str(self.path),
            checkpoint=str(self.checkpoint),
            commands=str(commands),
            printed=str(printed),
            master=self.master,
            settings=self.settings,
            mark=mark,
        )
        return Driver(victim, mark, descriptor, printed)

    def _new_writer(self, writer: int) -> Victim:
        return self.nursery.start("trade", directory=str(self.path), seed=self.seed, writer=writer)

    def _let_it_run(self) -> None:
        """Until the driver runs, or has died of another kill of the same group."""
        driver = self._driver
        driver.send("begin")
        self._wait_for(lambda: driver.state == "running" or driver.victim.ended, "the pipeline runs", mortal=True)
        self.say(f"     driver {self._drivers} runs, {len(self.epochs)} epochs were seen")

    def _learn(self, writer: int, reports: Sequence[str]) -> None:
        for report in reports[-1:]:
            self._acknowledged[writer] = max(self._acknowledged[writer], int(report.split()[1]))

    # -------------------------------------------------------------- time

    def _tick(self) -> None:
        self._ticks += 1
        self._driver.hear(TICK)
        if self._next is not None:
            self._next.hear(0)
        behind = self._reached(MAIN).operations_to(self.db.store.log.latest())
        for writer, victim in self.writers.items():
            self._learn(writer, victim.hear(PACE if behind < LAG or self._free else 0))
        if self._ticks % VISITS == 0 and self.writers:
            self._provoke({"join"})
        if self._ticks % LOOKS == 0:
            for report in self.reader.hear(1):
                seen = int(report.split()[1])
                assert seen >= max(self.epochs, default=0), f"after epoch {max(self.epochs)} a reader saw {seen}"
                self.epochs.add(seen)
        failed = self._driver.stops[self._driver.sources_died :]
        assert not failed, f"the pipeline has failed: {failed[0]}"

    def _wait_for(self, state: Callable[[], bool], what: str, *, mortal: bool = False) -> None:
        """Let time pass until it is so. ``mortal``: the driver may die meanwhile."""
        deadline = time.monotonic() + PATIENCE
        while not state():
            self._tick()
            assert mortal or not self._driver.victim.ended, "the driver has died of itself"
            assert time.monotonic() < deadline, f"after {PATIENCE} s it is not so that {what}"

    # -------------------------------------------------------------- killing

    def _strike(self, group: Sequence[Kill]) -> None:
        """Kill a group, at once as far as that is possible, and replace the dead."""
        self._group = group
        started = self._ticks
        waiting = list(group)
        laid: set[str] = set()
        deadline = time.monotonic() + PATIENCE
        while waiting:
            for kill in list(waiting):
                if kill.point is None:
                    alone = kill.who != "writer" or not any(other.point for other in waiting if other.who == "writer")
                    happened = alone and self._ticks >= started + kill.count and self._kill_now(kill)
                else:
                    if kill.point not in laid:
                        self.tokens.lay(kill.point, kill.count)
                        laid.add(kill.point)
                    happened = self.tokens.taken(kill.point)
                if happened:
                    waiting.remove(kill)
                    laid.discard(kill.point or "")
                    self.died[kill.point or kill.who] += 1
                    self.say(str(kill))
                    self._replace(kill)
            self._provoke({split(kill.point)[2] for kill in waiting if kill.who == "driver" and kill.point})
            self._tick()
            if self._driver.victim.ended:
                assert any(kill.who == "driver" for kill in waiting), "the driver has died of itself"
            assert time.monotonic() < deadline, f"nobody died: {', '.join(map(str, waiting))}"
        if any(kill.who in ("driver", "source") for kill in group):
            reached = self.db.store.views.committed(MAIN).epoch
            self._wait_for(lambda: self.db.store.views.committed(MAIN).epoch > reached, "the pipeline goes on")

    def _kill_now(self, kill: Kill) -> bool:
        """Whether somebody of the kind was there to be killed."""
        if kill.who == "driver":
            kill_all([self._driver.victim.process])
            return True
        if kill.who == "writer":
            living = [victim for victim in self.writers.values() if not victim.is_dead()]
            if not living:
                return False
            kill_all([self.rng.choice(living).process])
            return True
        spotted = self._driver.spotted()
        found = {"worker": spotted.workers, "source": spotted.sources, "executor": spotted.executors}[kill.who]
        if not found or self._driver.state != "running":
            return False
        kill_all([self.rng.choice(found)])
        return True

    def _replace(self, kill: Kill) -> None:
        if kill.who == "driver":
            self._replace_driver(kill)
        elif kill.who == "source":
            self._driver.sources_died += 1
        elif kill.who == "writer":
            dead: list[int] = []
            while not dead and not self._writers_ahead:
                dead = [writer for writer, victim in self.writers.items() if victim.is_dead()]
            self._writers_ahead += len(dead) - 1
            for writer in dead:
                self._learn(writer, self.writers[writer].bury())
                self.writers[writer] = self._new_writer(writer)
        elif kill.number % 5 == 0:
            self._driver.send(f"servers {kill.servers}")

    def _replace_driver(self, kill: Kill) -> None:
        spotted = self._driver.spotted()
        kill_all([*spotted.machines, *([] if kill.workers_left else spotted.everybody)])
        self._driver.victim.bury()
        begun = self.db.store.views.begun(MAIN)
        if begun is not None:
            self._promised[begun.epoch] = begun.frontier
        if kill.checkpoint_lost:
            shutil.rmtree(self.checkpoint, ignore_errors=True)
        self._drivers_to_come -= 1
        assert self._next is not None
        self._driver, self._next = self._next, None
        self._wait_for(lambda: self._driver.state == "ready", "the next driver is ready")
        wanted = sum(self._acknowledged.values()) + kill.steps_before_retry
        self._free = True
        self._wait_for(lambda: sum(self._acknowledged.values()) >= wanted, "writers go on without views")
        self._free = False
        self._let_it_run()
        self._next = self._new_driver() if self._drivers_to_come else None

    def _provoke(self, what: set[str]) -> None:
        """Have views come or go, the late one follow, or the pipeline start: some points are passed only then."""
        if self._driver.state != "running":
            return
        if "hand-over" in what:
            self._driver.restart()
        if "trim" in what:
            late = self.db.catalog.view("late").group  # it holds the logs back
            ask(self.db.store, late, self._reached(MAIN))
        if what & (BUILDS | {"drop"}) and not self._building():
            there = [view.name for view in self.db.catalog.views() if view.name.startswith("visitor")]
            if len(there) > 2 or ("drop" in what and there):
                self.db.sql(f"DROP MATERIALIZED VIEW {self.rng.choice(there)}")
            else:
                self._visitors += 1
                query = VISITORS[self._visitors % len(VISITORS)].format(self.rng.randrange(10))
                self.db.sql(f"CREATE MATERIALIZED VIEW visitor{self._visitors} AS {query}")

    def _building(self) -> bool:
        return any(one.status is ViewStatus.BUILDING for one in self.db.catalog.definitions().maintained())

    # -------------------------------------------------------------- what must hold

    def _reached(self, group: str) -> Frontier:
        return self.db.store.views.committed(group).frontier

    def _check(self) -> None:
        """Every view is right at the epoch it has reached, nothing that was acknowledged is lost, and
        epochs that were under way went where they were begun to go."""
        self.checks += 1
        acknowledged = dict(self._acknowledged)
        for writer in WRITERS:
            done = numbers(self.db, writer)
            assert done == list(range(1, len(done) + 1)), f"the steps of writer {writer} have a gap: {done}"
            assert len(done) >= acknowledged[writer], f"step {acknowledged[writer]} of writer {writer} is lost"
        for commit in self.db.store.views.history(MAIN):
            frontier = self._promised.pop(commit.epoch, commit.frontier)
            assert frontier == commit.frontier, f"epoch {commit.epoch} began towards {frontier}, not {commit.frontier}"
        for _ in range(50):
            with suppress(SnapshotExpiredError, LogTrimmedError):  # the views have gone on, and the logs behind them
                found = wrong(self.db)
                assert not found, "\n".join(f"view {name}: {said}" for name, said in found.items())
                return
        raise AssertionError("no snapshot stayed readable long enough")
