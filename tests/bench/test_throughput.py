"""The synthetic workload, and the comparisons for types of views, many views, sharing and scans."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import everview
from bench.epochs import in_process, wrong
from bench.figures import baseline, many_views, one_more_view, sharing, view_types
from bench.report.experiment import Experiment, Row, Setting
from bench.workloads.synthetic import BT1, VALUES, Skew, Stream, Uniform, Writer, Zipf

EXPERIMENTS = [one.EXPERIMENT for one in (baseline, many_views, sharing, view_types)]


def drawn(skew: Skew) -> np.ndarray:
    """How often each key is hit, the most first."""
    stream = Stream("bt1", 100, 10, 5, skew=skew)
    keys = stream.drawn(np.random.default_rng(3), 20_000)
    return np.sort(np.bincount(keys, minlength=100))[::-1]


class Kept:
    """Tables as sets of keys, which refuse to delete what is not there."""

    def __init__(self) -> None:
        self.keys: dict[str, set[int]] = {}
        self.deleted = 0

    def table(self, name: str) -> _Keys:
        return _Keys(self, self.keys.setdefault(name, set()))


class _Keys:
    def __init__(self, kept: Kept, keys: set[int]) -> None:
        self._kept, self._keys = kept, keys

    def put_many(self, rows: pa.Table) -> int:
        self._keys.update(rows["k"].to_pylist())
        return len(rows)

    def delete_many(self, keys: pa.Table) -> int:
        gone = keys["k"].to_pylist()
        assert set(gone) <= self._keys and len(set(gone)) == len(gone)
        self._keys.difference_update(gone)
        self._kept.deleted += len(gone)
        return len(gone)


# ------------------------------------------------------------------ streams


def test_a_stream_follows_from_its_seed() -> None:
    def first(seed: int) -> list[tuple[pa.Table, pa.Table]]:
        return list(itertools.islice(Stream("bt1", 50, 5, seed, skew=Zipf()).batches(size=20), 5))

    assert first(1) == first(1)
    assert first(1) != first(2)


@pytest.mark.parametrize("skew", [Uniform(), Zipf(), Zipf(2.0), Zipf(0.5)])
def test_only_rows_that_are_there_are_deleted(skew: Skew) -> None:
    kept = Kept()
    streams = [Stream(name, 60, 5, seed, skew=skew, deletes=0.3) for seed, name in enumerate(("bt1", "bt2"))]
    assert Writer(kept, streams, 100).write(2_000) == 2_000
    assert 200 < kept.deleted <= 600  # fewer where few keys are there
    assert set().union(*kept.keys.values()) <= set(range(60))


def test_a_stream_of_so_many_operations_ends() -> None:
    batches = list(Stream("bt2", 50, 5, 1).batches(100, 25))
    assert sum(len(rows) + len(dead) for rows, dead in batches) == 100
    assert batches[0][0].column_names == ["k", "c1", "c4"]


def test_keys_are_hit_as_unevenly_as_is_said() -> None:
    even, zipf = drawn(Uniform()), drawn(Zipf())
    assert even[0] < 2 * even[-1]
    assert zipf[0] == pytest.approx(20_000 / sum(1 / rank for rank in range(1, 101)), rel=0.1)
    assert zipf[0] == pytest.approx(2 * zipf[1], rel=0.2)


def test_a_condition_selects_as_many_rows_as_is_said() -> None:
    stream = Stream("bt1", 10_000, 10, 1)
    (rows,) = stream.loaded()
    assert rows["k"].to_pylist() == list(range(10_000))
    for percent in (20, 50, 80):
        share = np.mean(rows["c2"].to_numpy() < VALUES * percent / 100)
        assert share == pytest.approx(percent / 100, abs=0.02)


# ------------------------------------------------------------------ pace


def test_pace_counts_operations_and_updates_and_views_must_not_lag(tmp_path: Path) -> None:
    with everview.open(tmp_path / "store") as db:
        db.create_table("bt1", BT1)
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, c1 FROM bt1 WHERE c2 < 500")
        writer = Writer(db, [Stream("bt1", 100, 10, 1)], 200)
        writer.write(200)
        assert "main" in wrong(db)
        pace = in_process(db)
        assert pace.operations == 200
        assert pace.updates == db.view("v").count()
        assert wrong(db) == ""


# ------------------------------------------------------------------ comparisons with the papers


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda one: one.name)
def test_nothing_is_compared_without_rows(experiment: Experiment) -> None:
    assert experiment.comparisons([]) == []
    assert experiment.notes([]) == []
    assert experiment.headline([]) == ""


def rows_of_view_types() -> list[Row]:
    return [
        {"view": kind.name, "variant": kind.variant, "servers": servers, "rate": 1000 * servers, "epoch": 5}
        for kind in view_types.KINDS
        for servers in kind.servers
    ]


def rows_of_many_views() -> list[Row]:
    others = {"creating": 4.0, "first": 0.5, "rate": 100, "updates": 2000, "evaluated": 30_000}
    return [
        {"family": family.name, "views": count, "tables": family.tables, **others}
        for family in many_views.FAMILIES
        for count in family.counts
    ]


def rows_of_sharing() -> list[Row]:
    others = {"updates": 7, "tables": 3, "state": 1.5}
    return [
        {"setup": setup.name, "views": count, "sharing": how, "rate": rate, **others}
        for setup in sharing.SETUPS
        for count in setup.counts
        for how, rate in ((sharing.SHARED, 300), (sharing.APART, 100))
    ]


def rows_of_baseline() -> list[Row]:
    methods = {baseline.VIEW: 0.01, baseline.CLIENT: 40.0, baseline.SQL: 50.0, baseline.SPARK: 600.0}
    return [
        {
            "rows": rows,
            "question": question.name,
            "method": method,
            "milliseconds": milliseconds,
            "keeping": 20.0 if method == baseline.VIEW else None,
        }
        for rows in (10_000, 100_000)
        for question in baseline.QUESTIONS
        for method, milliseconds in methods.items()
    ]


@pytest.mark.parametrize(
    ("experiment", "rows", "figures"),
    [
        (view_types.EXPERIMENT, rows_of_view_types(), 10),
        (many_views.EXPERIMENT, rows_of_many_views(), 2),
        (sharing.EXPERIMENT, rows_of_sharing(), 4),
        (baseline.EXPERIMENT, rows_of_baseline(), 1),
    ],
    ids=lambda one: one.name if isinstance(one, Experiment) else "",
)
def test_every_figure_is_compared_by_the_rows(experiment: Experiment, rows: Sequence[Row], figures: int) -> None:
    said = experiment.comparisons(rows)
    assert len(said) == figures
    assert all(any(digit.isdigit() for digit in one.we) for one in said)
    assert experiment.notes(rows) and experiment.headline(rows)
    assert all(rows and set(row) == set(experiment.columns) for row in rows)
    for plot in experiment.plots:
        assert any(plot.where(row) for row in rows), plot.name


def test_what_a_scan_costs_beside_keeping_the_view() -> None:
    (first, *_) = baseline.notes(rows_of_baseline())
    assert "4,000 times as long" in first
    assert "keeping it for 2,000 operations" in first


def test_what_sharing_brings() -> None:
    assert "3.0 times as fast (300 to 100 operations/s)" in sharing.comparisons(rows_of_sharing())[0].we


def test_many_views_are_compared_row_by_row(tmp_path: Path) -> None:
    (family,) = [one for one in many_views.FAMILIES if one.name == many_views.SUMS]
    with everview.open(tmp_path / "store") as db:
        db.create_table("t0", BT1)
        for number in range(3):
            db.sql(f"CREATE MATERIALIZED VIEW v{number} AS {family.query(number, 't0')}")
        Writer(db, [Stream("t0", 50, 4, 1, values=many_views.VALUES)], 100).write(100)
        assert "missing" in many_views._wrong(db, family, 3, ["t0"])
        db.flush()
        assert many_views._wrong(db, family, 3, ["t0"]) == ""


def test_one_more_view_is_compared_with_its_query(tmp_path: Path) -> None:
    with everview.open(tmp_path / "store") as db:
        db.create_table("bt1", BT1)
        for view in range(3):
            db.sql(one_more_view._create(view))
        Writer(db, [Stream("bt1", 50, 4, 1, values=3)], 100).write(100)
        assert "rows, its query" in one_more_view._wrong(db, range(3))
        db.flush()
        assert one_more_view._wrong(db, range(3)) == ""
    rows: list[Row] = [
        {"views": views, "create": 5.0, "epoch": 6.5, "drop": 4.0, "after": 3.0} for views in one_more_view.SIZES
    ]
    assert "From 100 to 12,800 views" in one_more_view.notes(rows)[0]
    assert "12,800: 5.0 ms to create" in one_more_view.headline(rows)
    assert set(rows[0]) == set(one_more_view.EXPERIMENT.columns)
    assert one_more_view.notes([]) == [] and one_more_view.headline([]) == ""


def test_sharing_is_right_in_both_ways(tmp_path: Path) -> None:
    setup = sharing.SETUPS[-1]
    setting = Setting(quick=True, seed=1, folder=tmp_path)
    shared, apart = (sharing._measured(setup, 2, how, setting) for how in (sharing.SHARED, sharing.APART))
    assert not shared.wrong and not apart.wrong
    assert int(str(shared.row["tables"])) < int(str(apart.row["tables"]))
