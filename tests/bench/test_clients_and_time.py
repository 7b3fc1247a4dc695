"""Experiments about clients and time: what is computed from what was measured, with measurements made by hand."""

from __future__ import annotations

import itertools
import os

import numpy as np
import pytest

from bench.beside import on_core, spinning, two_cores
from bench.calls import timed
from bench.figures import clients, crash, sessions, skew, staleness
from bench.kills import Struck
from bench.report import page
from bench.report.experiment import Experiment, Found, Row
from bench.report.results import Result
from bench.rows import Missing, number, row_of, seconds
from bench.workloads.paced import Written, prepared
from bench.workloads.synthetic import Stream, Zipf
from everview.change.frontier import Frontier
from everview.store.contract import Commit


def commits(*shown: tuple[float, int]) -> list[Commit]:
    """Epochs from 1 on: when each was committed, and up to where."""
    return [Commit("main", epoch, Frontier({1: upto}), when) for epoch, (when, upto) in enumerate(shown, 1)]


def batches(*written: tuple[float, int], size: int = 10) -> Written:
    """When each batch was begun, and where the log ended then."""
    times, ends = zip(*written, strict=True)
    return Written(np.array(times), np.full(len(times), size, np.int64), tuple(Frontier({1: end}) for end in ends))


def test_a_batch_waits_for_the_first_commit_that_has_all_of_it() -> None:
    written = batches((1.0, 10), (2.0, 20), (3.0, 30), (4.0, 40))
    waits = written.waits(commits((1.5, 10), (2.5, 15), (5.0, 30)))
    assert waits.tolist() == [0.5, 3.0, 2.0]  # nothing shows the last one


def test_waits_do_not_depend_on_the_order_of_commits() -> None:
    written = batches((1.0, 10), (2.0, 20))
    shown = commits((1.5, 10), (2.5, 20))
    assert written.waits(shown[::-1]).tolist() == written.waits(shown).tolist() == [0.5, 0.5]


def test_what_a_writer_wrote_can_be_handed_on() -> None:
    written = batches((1.0, 10), (2.0, 20), (3.0, 30))
    assert written.rate == 10
    again = Written.from_json(written.to_json()).after(1.5)
    assert (again.times.tolist(), again.operations.tolist()) == ([2.0, 3.0], [10, 10])
    assert again.frontiers == (Frontier({1: 20}), Frontier({1: 30}))


def test_batches_that_are_written_in_turns_change_their_rows_each_time() -> None:
    first, second, third, fourth = prepared(Stream("bt1", 1000, 100, 1), 50, 2)
    assert first["k"] == third["k"] and second["k"] == fourth["k"]
    assert first["c3"] != third["c3"] and second["c3"] != fourth["c3"]


def test_what_is_done_between_blocks_is_no_call() -> None:
    done: list[str] = []
    found = timed(done.append, ["a", "b", "c"], 1e-9, block=2, rows=5, between=lambda: done.append("between"))
    assert done == ["between", "a", "b"]
    assert len(found.seconds) == 2
    assert found.rate == pytest.approx(10 / found.seconds.sum())
    assert found.microseconds(0) <= found.microseconds(50) <= found.microseconds(100)


def test_updates_fall_where_a_load_says() -> None:
    def keys(load: skew.Load, column: str = "k") -> list[int]:
        return [value for rows in load.batches(500, 1, 3000) for value in rows[column].to_pylist()]

    assert set(keys(skew.Load("", 1))) == {0}
    assert set(keys(skew.Load("", 10))) == set(range(10))
    assert set(keys(skew.Load("", groups=1), "c1")) == {0}
    zipf = keys(skew.Load("", skew=Zipf(1.5)))
    assert len(zipf) == 3000
    assert max(zipf.count(key) for key in set(zipf)) > 3000 / 4  # evenly it would be 6


def test_a_promised_write_that_is_not_shown_is_wrong() -> None:
    for how, shown, wrong in (
        (sessions.SESSION, 7, False),
        (sessions.SESSION, 6, True),
        (sessions.FRESH, None, True),
        (sessions.PLAIN, 6, False),
        (sessions.PLAIN, None, False),
        (sessions.PLAIN, 8, True),
    ):
        pairs = sessions.Pairs()
        pairs.add(how, 0.001, 7, shown)
        assert bool(pairs.broken) is wrong, (how, shown)
        assert pairs.seen == (shown == 7)


def test_what_a_kill_did_is_read_from_the_commits() -> None:
    """A commit each second that shows all; after the kill at 10.5 none until 14.2."""
    written = batches(*((at / 10, at) for at in range(1, 200)), size=1)
    calm = [(float(at), at * 10 - 1) for at in range(1, 11)]
    shown = commits(*calm, (14.2, 120), (15.0, 149), (16.0, 159), (30.0, 200))
    struck = [Struck(crash.NOTHING, 0.0, False), Struck(crash.DRIVER, 10.5, True, slowest=0.002, reads=3)]
    quiet, driver = crash._events(struck, written, shown)
    assert (quiet["longest"], quiet.get("still")) == (1.0, None)
    assert (driver["still"], driver["at"], driver["in epoch"], driver["slowest read"]) == (3.7, 10.5, True, 2.0)
    assert number(driver, "longest") > 4
    assert number(driver, "caught up") > 3.7


def test_kills_in_a_row_show_when_the_next_commit_came_and_how_far_views_moved() -> None:
    """Kills at 10, 15, 20 and 25; nothing is committed between the second and the third."""
    written = batches(*((at / 10, at) for at in range(1, 300)), size=1)
    calm = [(float(at), at * 10 - 1) for at in range(1, 11)]
    shown = commits(*calm, (11.5, 110), (14.0, 130), (21.0, 160), (22.0, 200), (26.0, 250), (29.0, 290), (40.0, 300))
    kills = crash._kills([10.0, 15.0, 20.0, 25.0], shown)
    assert [row["kill"] for row in kills] == [1, 2, 3, 4]
    assert [row["until a commit"] for row in kills] == [1.5, 6.0, 1.0, 1.0]
    assert [row.get("moved on") for row in kills] == [130 - 99, 0, 200 - 130, None]
    struck = [Struck(crash.NOTHING, 0.0, False), Struck(crash.REPEATED, 10.0, True)]
    _, repeated = crash._events(struck, written, shown, kills)
    assert (repeated["still"], repeated["in epoch"], repeated["at"]) == (6.0, None, 10.0)
    (note,) = crash.notes(kills)
    assert note.startswith("Where we lose") and "in 2 of the 3 times" in note
    assert "6 s after a kill" in note
    (note,) = crash.notes([kills[0], *kills[2:]])
    assert note.startswith("The view moved on, by 31 to 70 operations, in 2 of the 2 times")


def test_seconds_are_counted_for_what_is_written_and_for_what_is_shown() -> None:
    written = batches(*((at / 10 + 0.05, at) for at in range(60)), size=1)
    struck = [Struck(crash.NOTHING, 0.0, False)]
    rows = crash._series(struck, written, commits((0.05, 0), (1.5, 14), (3.5, 34), (5.5, 54)))
    shown = [row["operations/s"] for row in rows if row["series"] == crash.SHOWN]
    assert shown == [0, 14, 0, 20, 0]
    assert [row["operations/s"] for row in rows if row["series"] == crash.WRITTEN] == [10] * 5


def test_a_load_is_followed_if_late_writes_wait_no_longer() -> None:
    assert staleness._follows(np.full(100, 0.2))
    assert not staleness._follows(np.linspace(0.2, 5.0, 100))


@pytest.mark.parametrize("experiment", [one.EXPERIMENT for one in (clients, staleness, skew, sessions, crash)])
def test_without_rows_nothing_is_said(experiment: Experiment) -> None:
    assert experiment.comparisons([]) == []
    assert experiment.notes([]) == []
    assert experiment.headline([]) == ""


def test_all_sentences_are_said_of_full_rows() -> None:
    def one(**values: object) -> Row:
        return values  # type: ignore[return-value]

    kinds = (clients.PUT, clients.PUT_MANY, clients.GET, clients.VIEW_GET)
    settings = (clients.NONE, clients.UNMAINTAINED, clients.SPINNING, clients.LOCAL, clients.SPARK, clients.SPARK_MANY)
    figures = {"rows/s": 900, "median": 2.5, "p99": 9.5, "lost": 10.0, "taken in": 77}
    of_clients = [one(call=call, setting=how, **figures) for call, how in itertools.product(kinds, settings)]
    assert [said.figure for said in clients.comparisons(of_clients)] == [
        *(f"000, Figure {number}" for number in (3, 4, 5, 6)),
        "003, Figure 12",
        "004, Figure 14",
    ]

    times = {"median": 0.25, "p95": 0.5, "p99": 0.75}
    load = {"written": 90, "taken in": 80, "follows": True, "off": 12, "at most": 500}
    of_time = [
        one(view="q2", maintained=staleness.SPARK, offered=100, time=what, **times, **load)
        for what in (staleness.WAIT, staleness.MEASURED, staleness.PREDICTED)
    ]
    of_time += [
        one(view="q2", maintained=how, time=staleness.WAIT, latency=4.0, **times)
        for how in (staleness.SPARK, staleness.LOCAL)
    ]
    assert len(staleness.comparisons(of_time)) == 4
    assert "250 ms" in staleness.comparisons(of_time)[0].we and "4 µs" in staleness.comparisons(of_time)[0].we
    assert "100/s: 250 ms predicted, 250 ms measured" in staleness.comparisons(of_time)[2].we
    assert "no load was too much" in staleness.comparisons(of_time)[3].we
    for written, what in (
        (99_000, "at 99,500 the queue grows"),
        (50_000, "at 99,500 the writer itself comes to 50,000"),
    ):
        too_much = {**of_time[0], "offered": 99_500, "written": written, "follows": False}
        assert what in staleness.comparisons([*of_time, too_much])[-1].we

    rates = {"operations/s": 1000, "written": 2000, "changes": 1900.0, "view updates": 1500.0}
    of_skew = [
        one(view=view, updated=load.name, width=load.width, **rates)
        for view, load in itertools.product(skew.VIEWS, skew.LOADS)
    ]
    assert len(skew.comparisons(of_skew)) == 5

    ways = (sessions.PLAIN, sessions.SESSION, sessions.FRESH, sessions.WAITING)
    of_sessions = [
        one(load=where, read=how, delay=delay, mean=3.0, median=2.0, most=9.0, seen=100)
        for where, how, delay in itertools.product((sessions.IDLE, "beside others"), ways, (0, 640))
    ]
    assert "3 ms" in sessions.comparisons(of_sessions)[0].we and len(sessions.notes(of_sessions)) == 2

    event = {"still": 1.5, "caught up": 2.5, "longest": 3.0, "slowest read": 0.5, "reads": 10}
    whole = {"operations": 1000, "epoch": 200.0, "commit": 5.0}
    of_crash = [
        one(event=what, at=1.0, **event, **whole)
        for what in (crash.NOTHING, crash.ONE_WORKER, crash.ALL_WORKERS, crash.DRIVER, crash.STANDBY, crash.REPEATED)
    ]
    of_crash += [one(**{"kill": number, "until a commit": 1.5, "moved on": 4000}) for number in (1, 2)]
    assert [said.figure for said in crash.comparisons(of_crash)] == ["003, Figure 14", "002, Figures 5 and 6"]
    assert len(crash.notes(of_crash)) == 3 and "1.5 s" in crash.headline(of_crash)


def test_numbers_of_rows() -> None:
    rows: list[Row] = [{"a": 1, "b": 2.5}, {"a": 2, "b": None}]
    assert number(row_of(rows, a=1), "b") == 2.5
    with pytest.raises(Missing):
        row_of(rows, a=3)
    with pytest.raises(Missing):
        number(row_of(rows, a=2), "b")
    assert [seconds(value) for value in (12e-6, 0.19, 4.2, 250.0)] == ["12 µs", "190 ms", "4.2 s", "250 s"]


def test_seconds_of_a_series_are_drawn_and_not_listed() -> None:
    event: Row = {"event": "a kill", "at": 1.0, "longest": 4.25}
    second: Row = {"second": 3, "series": crash.SHOWN, "operations/s": 4712}
    for wrong, listed in (("", False), ("it differs", True)):
        found = (Found(event), Found(second, wrong=wrong))
        text = page._figures(crash.EXPERIMENT, Result("crash", {}, {}, 1, False, "", 1.0, 0.1, found))
        assert "a kill" in text and "4.25" in text
        assert (crash.SHOWN in text, "it differs" in text) == (listed, listed)


def test_a_core_spins_beside_this_process_and_not_below_it() -> None:
    before = os.sched_getaffinity(0)
    mine, other = two_cores()
    with on_core(mine), spinning(other) as process:
        assert (os.sched_getaffinity(0), os.sched_getaffinity(process)) == ({mine}, {other})
    assert os.sched_getaffinity(0) == before
