"""The comparison with other systems: one stream in many forms, views that are judged, rates that are computed."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.others import child, measured, structured, systems
from bench.others.child import Take, Taken
from bench.others.judge import judge
from bench.others.measured import pace
from bench.others.stream import QUICK, Files, left, operations, rounds, save
from bench.others.views import CENTS, COLUMNS, EVERY, PIECE, RESULTS, ROUND, query, shape, tables
from bench.report.experiment import Found, Setting

COUNT = 2 * ROUND


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("streams"), QUICK, 1)


def replayed(stream: Path, view: str) -> dict[str, dict[int, tuple]]:
    """Rows by key after all operations, one after another; each must have found what was there."""
    kept: dict[str, dict[int, tuple]] = {name: {} for name in tables(view)}
    for parts in rounds(stream, view):
        for name, rows in parts:
            others = COLUMNS[name][1:]
            for row in rows.to_pylist():
                before = kept[name].pop(row["k"], None)
                assert row["found"] is (before is not None)
                assert before is None or before == tuple(row[f"old_{one}"] for one in others)
                if row["put"]:
                    kept[name][row["k"]] = tuple(row[one] for one in others)
    return kept


@pytest.mark.parametrize("view", ["q1", "q4", CENTS])
def test_operations_in_turn_leave_the_rows_that_views_are_judged_by(streams: Files, view: str) -> None:
    kept = replayed(streams.files(view, COUNT, "arrow"), view)
    for name, rows in streams.rows(view, COUNT).items():
        assert {row["k"]: tuple(row.values())[1:] for row in rows.to_pylist()} == kept[name]


@pytest.mark.parametrize("view", ["q1", "q4"])
def test_all_forms_of_a_stream_say_the_same(streams: Files, view: str) -> None:
    wanted = {
        name: {row["k"]: tuple(row.values())[1:] for row in rows.to_pylist()}
        for name, rows in streams.rows(view, COUNT).items()
    }
    for name in tables(view):
        others = COLUMNS[name][1:]
        pieces = streams.files(view, COUNT, "signed") / "signed" / name
        with duckdb.connect() as connection:
            signed = connection.sql(
                f"SELECT {', '.join(COLUMNS[name])} FROM read_parquet('{pieces}/*') GROUP BY ALL HAVING sum(w) = 1"
            ).fetchall()
        assert {row[0]: row[1:] for row in signed} == wanted[name]

        found: dict[int, tuple] = {}
        for file in sorted((streams.files(view, COUNT, "changes") / "changes" / name).glob("*.json")):
            for message in map(json.loads, file.read_text().splitlines()):
                if message["before"] is not None:
                    assert found.pop(message["before"]["k"]) == tuple(message["before"][one] for one in others)
                if message["after"] is not None:
                    found[message["after"]["k"]] = tuple(message["after"][one] for one in others)
        assert found == wanted[name]

        found = {}
        for file in sorted((streams.files(view, COUNT, "rounds") / "rounds").glob(f"{name}-*.csv")):
            for _, put, key, *values in csv.reader(file.read_text().splitlines()):
                found.pop(int(key), None)
                if put == "true":
                    found[int(key)] = tuple(float(value) for value in values)
        assert found == {key: tuple(map(float, values)) for key, values in wanted[name].items()}


def test_a_longer_stream_begins_like_a_shorter_one() -> None:
    short, long = (operations("q1", count, QUICK, 1)["bt1"] for count in (ROUND, COUNT))
    assert long.slice(0, ROUND).equals(short)
    assert left({"bt1": long}, ROUND)["bt1"].num_rows == left({"bt1": short}, ROUND)["bt1"].num_rows


# ------------------------------------------------------------------ views that are judged


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path


def answer(rows: dict[str, pa.Table], view: str) -> pa.Table:
    with duckdb.connect() as connection:
        for name, one in rows.items():
            connection.register(name, one)
        columns = ", ".join(f"{name}::{type_} AS {name}" for name, type_ in RESULTS[shape(view)].items())
        return connection.sql(f"SELECT {columns} FROM ({query(view)}) ORDER BY ALL").to_arrow_table()


@pytest.mark.parametrize("view", ["q1", "q2", "q4"])
def test_a_row_too_few_or_too_many_is_wrong(streams: Files, view: str, out: Path) -> None:
    rows = streams.rows(view, COUNT)
    right = answer(rows, view)
    for given, wrong in (
        (right, ""),
        (right.slice(1), "1 rows are missing and 0 should not be there"),
        (pa.concat_tables([right, right.slice(0, 1)]), "0 rows are missing and 1 should not be there"),
    ):
        pq.write_table(given, out / "rows.parquet")
        assert judge(view, rows, "parquet", out).wrong == wrong


def groups(values: list[float], total: float) -> tuple[dict[str, pa.Table], pa.Table]:
    """Rows of one group, and a view with this sum of it."""
    ones = [1] * len(values)
    base = pa.table({"k": range(len(values)), "c1": pa.array(ones, pa.int32()), "c2": ones, "c3": values})
    mean = total / len(values)
    shown = {"c1": [1], "n": [len(values)], "s": [total], "a": [mean], "lo": [min(values)], "hi": [max(values)]}
    return {"bt1": base}, pa.table(shown)


@pytest.mark.parametrize(
    ("total", "sums", "wrong"),
    [
        (math.fsum([0.1] * 10), "exact", ""),
        (0.9999999999999999, "rounded in 1 of 1 groups", ""),
        (1.0 + 1e-10, "", "sums of 1 of 1 groups are off by more than rounding, by up to 1e-10"),
    ],
    ids=["exact", "rounded", "drifted"],
)
def test_rounding_is_distinguished_from_drift(total: float, sums: str, wrong: str, out: Path) -> None:
    rows, view = groups([0.1] * 10, total)
    pq.write_table(view, out / "rows.parquet")
    verdict = judge(CENTS, rows, "parquet", out)
    assert (verdict.sums, verdict.wrong) == (sums, wrong)


def test_what_streams_of_changes_leave_is_folded(out: Path) -> None:
    rows = {"bt1": pa.table({"k": [1, 2], "c1": [1, 1], "c2": [5, 900], "c3": [1.0, 2.0]})}
    (out / "changes").mkdir()
    (out / "changes" / "part-0").write_text("INSERT,1,1,4\nUPDATE_BEFORE,1,1,4\nUPDATE_AFTER,1,1,5\nINSERT,2,1,7\n")
    assert judge("q1", rows, "flink", out).wrong == "0 rows are missing and 1 should not be there"
    (out / "changes" / "part-1").write_text("DELETE,2,1,7\n")
    assert judge("q1", rows, "flink", out).wrong == ""
    written = '"k","c1","c2","time","diff"\n1,1,4,2,1\n1,1,4,4,-1\n1,1,5,4,1\n'
    (out / "changes" / "changes.csv").write_text(written)
    assert judge("q1", rows, "pathway", out).wrong == ""


# ------------------------------------------------------------------ what is measured


def test_a_rate_is_of_what_two_runs_differ_by() -> None:
    apart = [Taken(9.0, 1.0), Taken(2.0, 0.5), Taken(3.0, 0.5)]
    assert pace(100, 10, apart, Taken(11.0, 5.5)) == {"rate": 10, "whole": 6, "start": 1.0, "first": 9.0}
    together = [Taken(9.0, 1.0, together=True), Taken(2.0, 1.0, together=True)]
    long = Taken(20.0, 10.0, together=True)
    assert pace(100, 10, together, long) == {"rate": 10, "whole": 5, "start": 0.0, "first": 9.0}


def test_a_run_that_seems_to_take_no_time_has_no_rate() -> None:
    parts = [Taken(2.0, 2.5, together=True)]
    found = pace(100, 10, parts, Taken(10.0, 10.0, together=True))
    assert found == {"rate": None, "whole": 11, "start": None, "first": 2.0}


def test_the_rate_of_a_run_that_is_mostly_start_is_that_of_all_of_it() -> None:
    assert pace(100, 10, [Taken(4.0), Taken(3.9)], Taken(4.0)) == {
        "rate": 25,
        "whole": None,
        "start": None,
        "first": 4.0,
    }


def test_short_runs_are_of_whole_batches_and_shorter_than_long_ones() -> None:
    batches = {one.module: one.batch for one in systems.SYSTEMS}
    assert batches["everview_process"] == ROUND
    assert batches["everview_spark"] == ROUND
    assert batches["structured"] == structured.FILES * PIECE
    for system in systems.SYSTEMS:
        for count in system.operations.values():
            assert system.short(count) % system.batch == 0
            assert count % system.batch == 0
            assert count // 10 <= system.short(count) <= count // 2 or system.short(count) == system.batch < count


def test_systems_that_need_nothing_leave_right_views(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    chosen = [one for one in systems.SYSTEMS if one.module in ("everview_process", "duckdb_again")]
    monkeypatch.setattr(measured, "EVERY", ("q4", CENTS))
    found = list(measured.measured(chosen, Setting(True, 1, tmp_path)))
    assert [(one.row["system"], one.row["view"], one.wrong) for one in found] == [
        (system.name, view, "") for system in chosen for view in ("q4", CENTS)
    ]
    assert found[1].row["sums"] == "exact"


def test_what_is_not_installed_is_said_in_its_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(measured, "installed", lambda name: False)
    flink = [one for one in systems.SYSTEMS if one.module == "flink"]
    for quick, said in (
        (False, "not installed: python -m bench.others.setup flink"),
        (True, "not in a quick run without --others"),
    ):
        found = list(measured.measured(flink, Setting(quick, 1, tmp_path)))
        assert [one.row["view"] for one in found] == list(EVERY)
        assert {one.row["said"] for one in found} == {said}
        assert systems.notes([one.row for one in found]) == [f"Not measured: Flink SQL ({said})."]


def test_a_view_that_fails_is_reported_and_the_next_one_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Broken:
        @staticmethod
        @contextmanager
        def system() -> Iterator[Take]:
            def take(view: str, stream: Path, out: Path) -> Taken:
                if view == "q1":
                    raise ValueError("no such thing\nand more of it")
                return Taken(1.0)

            yield take

    monkeypatch.setattr("bench.others.child.importlib.import_module", lambda name: Broken)
    asked = [{"view": view, "streams": ["s"], "out": str(tmp_path / view)} for view in ("q1", "q2")]
    first, second = child.outcomes({"systems": [{"system": "it", "module": "it", "views": asked}]})
    assert first == {"system": "it", "view": "q1", "failed": "ValueError: no such thing"}
    assert second["taken"][0]["seconds"] == 1.0


def test_where_others_are_faster_it_is_said_with_where_our_time_goes() -> None:
    rows = [
        {"system": systems.SPARK, "view": "q1", "rate": 100, "most": "spark job 1.00 s"},
        {"system": systems.PROCESS, "view": "q1", "rate": 200},
        {"system": "DuckDB", "view": "q1", "rate": 300},
        {"system": "Flink SQL", "view": "q1", "rate": 150},
    ]
    found = [Found(row).row for row in rows]  # type: ignore[arg-type]
    (note,) = systems.notes(found)
    assert "DuckDB 1.5 ×" in note
    assert "Flink" not in note
    assert "spark job 1.00 s" in note
    assert systems.headline(found) == "our best beside the fastest of the others: q1 0.7 × DuckDB"


def test_save_writes_no_more_than_asked(tmp_path: Path) -> None:
    save(operations("q1", COUNT, QUICK, 1), ROUND, "arrow", tmp_path)
    assert sum(rows.num_rows for parts in rounds(tmp_path, "q1") for _, rows in parts) == ROUND
