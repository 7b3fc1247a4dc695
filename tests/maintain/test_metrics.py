"""Figures of epochs: what they say of histories that can be counted by hand, and how long they stay."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from everview.errors import StoreError
from everview.maintain.epoch_sizes import EpochSizes
from everview.maintain.epoch_sums import EpochSums, ViewSums
from everview.maintain.epochs import Done, Epochs
from everview.maintain.executor import Executor
from everview.maintain.figures import EpochFigures, Totals
from everview.maintain.maintainer import Maintainer
from everview.maintain.metrics import FIGURES, SLOTS, Timing
from everview.maintain.staleness import FADING, Pace, max_throughput, staleness
from everview.maintain.tasks import EpochTask
from everview.store.contract import Begun, TableSnapshot
from tests.maintain.kept import Kept, kept
from tests.maintain.test_building import create

TOTALS = create("totals", "SELECT k, sum(x) AS total FROM a GROUP BY k")
BIG = create("big", "SELECT * FROM a WHERE x > 15")


@pytest.fixture
def k(tmp_path: Path) -> Iterator[Kept]:
    with kept(tmp_path, chunk=3, operations=1000) as found:
        yield found


def last(k: Kept, limit: int = SLOTS, group: str = "main") -> list[EpochFigures]:
    return k.maintainer.epochs.metrics.last(k.store.views, group, limit)


def sums(k: Kept, group: str = "main") -> EpochSums:
    found = k.maintainer.epochs.metrics.sums(k.store.views, group)
    assert found is not None
    return found


def counted(one: EpochFigures) -> tuple[int, int, dict[str, tuple[int, int, int]]]:
    return one.operations, one.changes, dict(one.views)


# ------------------------------------------------------------------ what is counted


def test_a_history_that_is_counted_by_hand(k: Kept) -> None:
    k.sql(TOTALS + ";" + BIG)
    k.settle()
    k.sql(
        "INSERT INTO a VALUES (1, 1, 10, 's'); INSERT INTO a VALUES (2, 2, 20, 's'); UPDATE a SET x = 30 WHERE id = 1"
    )
    k.settle()
    # three writes of two keys; both rows come, in both views
    assert counted(last(k)[-1]) == (3, 2, {"totals": (2, 0, 0), "big": (2, 0, 0)})
    k.sql("UPDATE a SET k = 2 WHERE id = 1; DELETE FROM a WHERE id = 2")
    k.settle()
    # one row goes and comes with another k, one goes; the total of 1 goes, that of 2 changes
    assert counted(last(k)[-1]) == (2, 3, {"totals": (0, 1, 1), "big": (0, 1, 1)})
    k.sql("INSERT INTO a VALUES (1, 2, 30, 's'); INSERT INTO b VALUES (1, 1, 1)")
    k.settle()
    # nothing is another than before, and nobody reads b
    assert counted(last(k)[-1]) == (2, 0, {})
    totals = sums(k).totals
    assert (totals.operations, totals.changes, totals.updates) == (7, 5, (4, 2, 2))
    assert sums(k).views["totals"].updates == (2, 1, 1)
    assert sums(k).views["big"].updates == (2, 1, 1)
    assert sums(k).views["nobody's"].updates == (0, 0, 0)


def test_sums_over_epochs_are_what_was_written(k: Kept) -> None:
    k.maintainer.epochs.sizes = EpochSizes(2)
    k.sql(TOTALS)
    k.settle()
    k.sql(";".join(f"INSERT INTO a VALUES ({id % 4}, {id % 3}, {id}, 's')" for id in range(11)))
    k.settle()
    found = [one for one in last(k) if one.operations]
    assert [one.operations for one in found] == [2, 2, 2, 2, 2, 1]
    assert [one.lag for one in found] == [9, 7, 5, 3, 1, 0]
    assert [one.queue for one in found] == [11, 9, 7, 5, 3, 1]
    assert sums(k).totals.operations == sum(k.store.log.latest().values()) == 11
    assert all(one.written == 11 for one in found)


def test_members_of_a_family_are_counted_one_by_one(k: Kept) -> None:
    k.sql(";".join(create(f"v{limit}", f"SELECT id, x FROM a WHERE x > {limit}") for limit in (10, 20, 30)))
    k.settle()
    k.sql("INSERT INTO a VALUES (1, 1, 15, 's'), (2, 1, 25, 's'), (3, 1, 35, 's')")
    k.settle()
    assert last(k)[-1].views == {"v10": (3, 0, 0), "v20": (2, 0, 0), "v30": (1, 0, 0)}
    k.sql("UPDATE a SET x = 26 WHERE id = 2; UPDATE a SET x = 11 WHERE id = 3")
    k.settle()
    assert last(k)[-1].views == {"v10": (0, 2, 0), "v20": (0, 1, 1), "v30": (0, 0, 1)}


def test_quarantined_rows_are_counted(k: Kept) -> None:
    k.sql(create("v", "SELECT id, CAST(s AS INTEGER) AS n FROM a"))
    k.settle()
    k.sql("INSERT INTO a VALUES (1, 1, 1, 'five'), (2, 1, 1, '5')")
    while k.turn():
        pass
    one = last(k)[-1]
    assert (one.quarantined, one.views) == (1, {"v": (1, 0, 0)})
    assert sums(k).totals.quarantined == 1


def test_stages_say_where_the_time_went(k: Kept) -> None:
    k.sql(TOTALS)
    k.settle()
    k.sql("INSERT INTO a VALUES (1, 1, 1, 's')")
    k.settle()
    first, second = last(k)[-1].stages
    assert (first.stage, first.tasks, second.stage, second.tasks) == (1, 1, 2, 1)
    assert {"read log", "delta"} <= first.parts.keys()
    assert {"pre-aggregation", "aggregate", "view"} <= second.parts.keys()


# ------------------------------------------------------------------ builds


def test_a_build_has_figures_of_its_own_and_its_views_bring_them_along(k: Kept) -> None:
    k.sql("INSERT INTO a VALUES " + ", ".join(f"({id}, 1, 20, 's')" for id in range(8)))
    k.sql(TOTALS + ";" + BIG)
    while k.turn_of_build() and not (k.maintainer.builder.builds() and k.maintainer.builder.builds()[0].chunk is None):
        pass
    (build,) = k.maintainer.builder.builds()
    chunks = last(k, group=build.group)
    assert [one.rows for one in chunks] == [3, 3, 2]
    assert [one.operations for one in chunks] == [0, 0, 0], "nothing was written since they began"
    assert all(one.staleness is None for one in chunks)
    assert sums(k, build.group).views["big"].updates == (8, 0, 0)
    k.settle()
    assert last(k, group=build.group) == []
    assert sums(k).views["big"].updates == (8, 0, 0)
    assert sums(k).views["totals"].updates[0] == 1
    assert sums(k).totals.rows == 0
    k.sql("DELETE FROM a WHERE id = 3")
    k.settle()
    assert sums(k).views["big"].updates == (8, 0, 1)


def test_the_count_of_a_view_that_is_replaced_or_made_again_starts_at_zero(k: Kept) -> None:
    k.sql(BIG + ";" + TOTALS)
    k.settle()
    k.sql("INSERT INTO a VALUES (1, 1, 20, 's'), (2, 1, 40, 's')")
    k.settle()
    k.sql("CREATE OR REPLACE MATERIALIZED VIEW big AS SELECT * FROM a WHERE x > 30")
    k.settle()
    assert sums(k).views["big"].updates == (1, 0, 0)
    since = sums(k).views["big"].since
    k.sql("DROP MATERIALIZED VIEW big")
    k.settle()
    k.sql("INSERT INTO a VALUES (3, 1, 50, 's')")
    k.settle()
    assert sums(k).views["big"].since == 0, "the first epoch without it forgets it"
    k.sql(BIG)
    k.settle()
    assert sums(k).views["big"].updates == (3, 0, 0)
    assert sums(k).views["big"].since > since


# ------------------------------------------------------------------ exactly once


class _Failing(Epochs):
    """Does all of an epoch but its commit, the first time."""

    fail = True

    def run(self, begun: Begun, executor: Executor | None = None, snapshot: TableSnapshot | None = None) -> Done:
        if self.fail:
            self.fail = False
            task = EpochTask.from_bytes(begun.plan)
            self.metrics.record(begun, task, self.executor.work(begun, task), Timing(time.time()))
            raise StoreError("the disk is full")
        return super().run(begun, executor, snapshot)


def test_an_epoch_that_is_tried_again_is_counted_once(k: Kept) -> None:
    k.sql(TOTALS)
    k.settle()
    before = len(last(k))
    k.sql("INSERT INTO a VALUES (1, 1, 20, 's'), (2, 1, 40, 's')")
    unlucky = Maintainer(k.store, k.db.catalog)
    unlucky.epochs = _Failing(k.store, k.db.catalog, unlucky.plans, unlucky.epochs.executor)
    with pytest.raises(StoreError):
        unlucky.catch_up()
    assert len(last(k)) == before, "what is not committed is not shown"
    k.sql("INSERT INTO a VALUES (3, 1, 20, 's')")
    Maintainer(k.store, k.db.catalog).catch_up()
    first, second = last(k)[before:]
    assert (first.operations, second.operations) == (2, 1)
    assert first.waited is None and second.waited is not None, "only the first was begun by somebody else"
    assert sums(k).totals.operations == 3
    k.check()


def test_epochs_wake_nobody_who_watches_the_catalog(k: Kept) -> None:
    k.sql(TOTALS)
    k.settle()
    version = k.store.metadata.version()
    for id in range(3):
        k.store.table(k.db.catalog.table("a")).put({"id": id, "k": 1, "x": 1})
        assert k.maintainer.epochs.step("main", k.maintainer.plan_of("main"), k.store.log.latest()) is not None
    assert k.store.metadata.version() == version
    assert len(last(k)) == 4


# ------------------------------------------------------------------ bounds


def test_the_last_epochs_are_remembered_and_all_are_summed(k: Kept) -> None:
    k.maintainer.epochs.metrics.slots = 4
    k.sql(TOTALS)
    k.settle()
    for id in range(11):
        k.sql(f"INSERT INTO a VALUES ({id}, 1, 1, 's')")
        k.settle()
    found = last(k)
    assert [one.operations for one in found] == [1] * 4
    assert [one.epoch for one in found] == [commit.epoch for commit in k.store.views.history("main", 4)][::-1]
    assert last(k, 2) == found[-2:]
    assert (sums(k).totals.epochs, sums(k).totals.operations) == (12, 11)
    table = k.figures()["main"]
    assert len([key for key in k.state_keys() if int.from_bytes(key[:4], "big") == table]) == 5


def test_an_epoch_names_the_views_with_the_most_updates(k: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everview.maintain.metrics.NAMED", 2)
    k.sql(";".join(create(f"v{limit}", f"SELECT id, x FROM a WHERE x > {limit}") for limit in (10, 20, 30)))
    k.settle()
    k.sql("INSERT INTO a VALUES (1, 1, 15, 's'), (2, 1, 25, 's'), (3, 1, 35, 's')")
    k.settle()
    one = last(k)[-1]
    assert one.views == {"v10": (3, 0, 0), "v20": (2, 0, 0)}
    assert one.updates == (6, 0, 0)
    assert sums(k).views["v30"].updates == (1, 0, 0)


def test_figures_go_with_the_last_view_of_a_group(k: Kept) -> None:
    lazy = create("calm", "SELECT count(*) AS n FROM a").replace(" AS SELECT", " WITH (refresh = 'lazy') AS SELECT", 1)
    k.sql(TOTALS + ";" + lazy)
    k.settle()
    k.sql("INSERT INTO a VALUES (1, 1, 15, 's')")
    k.settle()
    assert len(k.figures()) == 2
    k.sql("DROP MATERIALIZED VIEW calm")
    k.settle()
    assert k.figures().keys() == {"main"}
    k.sql("DROP MATERIALIZED VIEW totals")
    k.settle()
    assert k.figures() == {} and k.state_keys() == []
    assert not [name for name in k.documents() if name.startswith(FIGURES)]


# ------------------------------------------------------------------ staleness


def test_staleness_and_lag_are_ages_of_operations(k: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    k.sql(TOTALS)
    k.settle()
    k.maintainer.epochs.sizes = EpochSizes(1)
    now = time.time() + 1000
    monkeypatch.setattr(time, "time", lambda: now)
    a = k.store.table(k.db.catalog.table("a"))
    a.put({"id": 1, "x": 1})
    now += 3
    a.put({"id": 2, "x": 1})
    now += 7
    while k.turn():
        pass
    first, second = last(k)[-2:]
    assert [first.staleness, first.lag, first.lag_seconds] == pytest.approx([10, 1, 7])
    assert [second.staleness, second.lag, second.lag_seconds] == pytest.approx([7, 0, 0])


def test_predictions_are_those_of_the_epochs_before(k: Kept) -> None:
    k.sql(TOTALS)
    k.settle()
    k.sql("INSERT INTO a VALUES (1, 1, 15, 's')")
    k.settle()
    assert last(k)[-1].predicted is None, "no earlier epoch to predict it from"
    pace = sums(k).totals.pace
    k.sql("INSERT INTO a VALUES (2, 1, 15, 's'), (3, 1, 15, 's')")
    k.settle()
    one = last(k)[-1]
    assert one.staleness is not None
    waited = max(0.0, one.staleness - one.seconds)
    assert one.predicted == pytest.approx(waited + staleness(2, 1, pace.latency, pace.rest), abs=1e-5)


def test_the_first_epoch_of_a_process_says_nothing_about_the_pace(k: Kept) -> None:
    k.sql(TOTALS)
    k.settle()
    for id in range(3):
        k.sql(f"INSERT INTO a VALUES ({id}, 1, 15, 's')")
        Maintainer(k.store, k.db.catalog).catch_up()
    assert not sums(k).totals.pace.known
    assert [one.predicted for one in last(k)] == [None] * 4


def test_the_equations_give_what_the_paper_says() -> None:
    assert max_throughput(50, 0.0012) == pytest.approx(41_666, abs=1)
    assert staleness(100_000, 25, 0.0012) == pytest.approx(4.8), "5 seconds, it says"
    assert staleness(100_000, 200, 0.0012) < 1
    assert staleness(0, 25, 0.0012, rest=0.2) == 0
    assert max_throughput(2, 0.0) is None


def test_a_pace_is_the_line_through_the_last_epochs() -> None:
    # 0.2 s and 4 µs for each operation of a server
    exact = Pace()
    for operations in (10, 100_000, 40_000, 250_000):
        exact = exact.after(operations, 2, 0.2 + operations / 2 * 4e-6)
    assert exact.rest == pytest.approx(0.2) and exact.latency == pytest.approx(4e-6)
    assert max_throughput(2, exact.latency) == pytest.approx(500_000)
    # equally large epochs: the paper's view servers, all time is that of operations
    even = Pace().after(100_000, 25, 4.8).after(100_000, 25, 4.8)
    assert [even.rest, even.latency] == pytest.approx([0, 0.0012])
    # but not if they have next to none
    few = Pace().after(1, 2, 0.3).after(1, 2, 0.2)
    assert few.rest == pytest.approx(0.25, rel=0.1) and few.latency == 0
    # nor if some have a few more, and happened to take longer
    noise = Pace().after(1, 2, 0.5).after(100, 2, 1.5)
    assert noise.rest == pytest.approx(1.0, rel=0.1) and noise.latency == 0
    # a large one among many that are small still counts
    once = Pace().after(100_000, 2, 0.4)
    for _ in range(40):
        once = once.after(2, 2, 0.2)
    assert [once.rest, once.latency] == pytest.approx([0.2, 4e-6], rel=0.01)
    # larger epochs that take no longer: all time is that of epochs
    flat = Pace().after(1, 2, 0.25).after(9, 2, 0.25)
    assert [flat.rest, flat.latency] == pytest.approx([0.25, 0])
    # what is long ago counts for little
    late = Pace().after(10_000, 1, 1000.0)
    for _ in range(200):
        late = late.after(10_000, 1, 10.0)
    assert late.latency == pytest.approx(0.001, rel=0.01) and FADING**200 < 1e-4
    assert not Pace().known


# ------------------------------------------------------------------ records


def test_records_come_back_as_they_were() -> None:
    views = ViewSums().after({"a": (1, 2, 3), "b": (0, 0, 1)}, 7).after({"b": (5, 0, 0), "c": (1, 0, 0)}, 9)
    totals = replace(Totals(), epochs=3, operations=1 << 60, pace=Pace().after(10, 2, 0.5))
    again = EpochSums.from_bytes(EpochSums(totals, views.of(["a", "b"], "f" * 32)).to_bytes())
    assert again.totals == totals
    assert again.views.plan == "f" * 32
    assert [again.views[name].updates for name in "abc"] == [(1, 2, 3), (5, 0, 1), (0, 0, 0)]
    assert [again.views[name].since for name in "abc"] == [7, 7, 0]
    adopted = again.views.adopted({"b": (2, 0, 0), "d": (0, 0, 0)}, 11)
    assert [adopted[name].updates for name in "abd"] == [(1, 2, 3), (2, 0, 0), (0, 0, 0)]
    assert [adopted[name].since for name in "abd"] == [7, 11, 11]


@pytest.mark.parametrize("seed", range(4))
def test_sums_of_views_that_come_and_go(seed: int) -> None:
    rng = random.Random(seed)
    found, model = ViewSums(), dict[str, tuple[int, list[int]]]()
    for epoch in range(1, 200):
        changed = {f"v{rng.randrange(100)}": (rng.randrange(5), rng.randrange(5), rng.randrange(5)) for _ in range(4)}
        comes = rng.random() < 0.3
        found = found.adopted(changed, epoch) if comes else found.after(changed, epoch)
        for name, three in changed.items():
            since, known = (epoch, [0, 0, 0]) if comes else model.get(name, (epoch, [0, 0, 0]))
            model[name] = since, [before + more for before, more in zip(known, three, strict=True)]
    for number in range(100):
        since, wanted = model.get(f"v{number}", (0, [0, 0, 0]))
        one = found[f"v{number}"]
        assert (one.since, list(one.updates)) == (since, wanted)
