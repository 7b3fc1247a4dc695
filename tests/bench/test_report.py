"""The report: what is run, kept, shown and drawn."""

from __future__ import annotations

import itertools
import re
import time
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.report import page, registry
from bench.report.__main__ import QUICK_LIMIT, batches, main
from bench.report.axes import along, label, upright
from bench.report.experiment import Plot, Row, Value
from bench.report.results import stored
from bench.report.runner import Job, Runner
from bench.report.svg import draw, wide

FAKES = registry.known(["tests/bench/fakes"])


def some(*names: str) -> dict[str, str]:
    return {name: FAKES[name] for name in names}


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Path]:
    """A quick run of what ends well and what does not, and where its results are."""
    out = tmp_path_factory.mktemp("quick")
    return main(["--quick", "--seed", "7", "--out", str(out)], some("wrong", "dying", "raising", "right")), out


# ------------------------------------------------------------------ running


def test_what_fails_keeps_its_rows_and_the_rest_goes_on(quick: tuple[int, Path]) -> None:
    code, out = quick
    results = stored(out / "results")
    assert code == 1 and set(results) == {"wrong", "dying", "raising", "right"}
    assert [found.row for found in results["raising"].found] == [{"n": 4711}]
    assert results["raising"].failed == "ValueError: there is no more"
    assert [found.row for found in results["dying"].found] == [{"n": 4712}]
    assert results["dying"].failed.endswith("with -9")
    assert results["right"].sound and len(results["right"].right) == 4
    assert (results["wrong"].failed, results["wrong"].wrong, results["wrong"].sound) == ("", 1, False)


def test_what_another_system_has_wrong_is_shown_and_fails_nothing(quick: tuple[int, Path]) -> None:
    wrong = stored(quick[1] / "results")["wrong"]
    theirs = replace(wrong, found=tuple(replace(found, ours=False) for found in wrong.found))
    assert theirs.sound and theirs.wrong == 1 and len(theirs.right) == 1


def test_a_result_says_what_it_is_of(quick: tuple[int, Path]) -> None:
    found = stored(quick[1] / "results")["right"]
    assert (found.seed, found.quick) == (7, True)
    assert {"processor", "cores", "memory, GB", "system"} == set(found.machine)
    assert {"everview", "python", "java", "pyspark", "pyarrow", "duckdb", "lmdb", "sqlglot"} <= set(found.versions)
    assert found.right[0] == {"view": "a | b", "servers": 1, "rate": 1007, "share": None, "text": "<1 & 2>"}
    assert found.found[0].profile == {"read": 0.25, "write": 0.75}


def test_what_hangs_is_given_up_with_all_that_it_started() -> None:
    lines: list[str] = []
    runner = Runner(1, True, False, {}, {}, lines.append)
    (result,) = runner.run([Job("hanging", FAKES["hanging"], registry.load(FAKES["hanging"]).limit)])
    assert result.failed == "given up after 2 seconds" and any("failed" in line for line in lines)
    process, ends = Path(f"/proc/{result.found[0].row['process']}/stat"), time.monotonic() + 30
    while _runs(process):  # a process that was killed is gone a moment later
        assert time.monotonic() < ends, "what it started is still there"


def _runs(process: Path) -> bool:
    try:
        return process.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_what_is_run_in_which_process() -> None:
    chosen = {name: registry.load(module) for name, module in some("right", "wrong", "hanging").items()}

    def names(quick: bool) -> list[list[str]]:
        return [[job.name for job in batch] for batch in batches(chosen, FAKES, quick)]

    assert names(quick=False) == [["right"], ["wrong"], ["hanging"]]
    chosen["wrong"] = replace(chosen["wrong"], alone=True)
    assert names(quick=True) == [["right", "hanging"], ["wrong"]]
    assert {job.limit for batch in batches(chosen, FAKES, True) for job in batch} == {QUICK_LIMIT}
    assert batches({}, FAKES, True) == []


def test_a_sound_run_and_what_is_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--out", str(tmp_path)]
    assert main([*out, "right"], FAKES) == 0
    assert [found.row["servers"] for found in stored(tmp_path / "results")["right"].found] == [1, 2, 4] * 2
    capsys.readouterr()
    assert main([*out, "--again"], some("right")) == 0
    assert "0 experiments" in capsys.readouterr().out
    assert main([*out, "--again"], some("right", "wrong")) == 1
    assert "right: begins" not in capsys.readouterr().out
    assert "123,456,789" in (tmp_path / "README.md").read_text("utf-8")
    assert main([*out, "--list"], some("right", "dying")) == 0
    listed = capsys.readouterr().out.splitlines()
    assert re.match(r"right +What is right \(\d+ s on ", listed[0]) and "not measured" in listed[1]


@pytest.mark.parametrize("words", [["nothing"], ["--quick", "--out", str(registry.ROOT / "docs" / "benchmarks")]])
def test_what_is_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(words, FAKES)
    assert refused.value.code == 2


def test_experiments_that_cannot_be_loaded_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--out", str(tmp_path), "--render"], {"gone": "tests.bench.fakes.gone"}) == 1
    assert "gone: tests.bench.fakes.gone cannot be loaded" in capsys.readouterr().out


# ------------------------------------------------------------------ the page


def test_the_page_is_made_of_stored_results(quick: tuple[int, Path], tmp_path: Path) -> None:
    _, out = quick
    before = (out / "README.md").read_text("utf-8")
    for file in stored(out / "results").values():
        file.save(tmp_path / "results")
    assert stored(tmp_path / "results") == stored(out / "results")
    (tmp_path / "plots").mkdir()
    (tmp_path / "plots" / "old.svg").write_text("<svg/>")
    assert main(["--render", "--out", str(tmp_path)], some("wrong", "dying", "raising", "right")) == 1
    assert (tmp_path / "README.md").read_text("utf-8") == before
    pictures = {file.name for file in (tmp_path / "plots").iterdir()}
    assert pictures == {"right-lines.svg", "right-bars.svg", "wrong-rates.svg"}
    assert set(re.findall(r"\(plots/([^)]+)\)", before)) == pictures


def test_what_is_wrong_has_no_figures(quick: tuple[int, Path]) -> None:
    text = (quick[1] / "README.md").read_text("utf-8")
    assert "| good | 123,456,789 | 5 ms | right |" in text
    assert "| bad |  |  | **wrong**: 2 rows are missing |" in text
    assert "**1 of 2 results wrong**" in text
    everything = text + (quick[1] / "plots" / "wrong-rates.svg").read_text("utf-8")
    for figure in ("987,654,321", "987654321", "988M", "7 ms", "98.8"):
        assert figure not in everything


def test_sections(quick: tuple[int, Path]) -> None:
    text = (quick[1] / "README.md").read_text("utf-8")
    assert "these are no figures" in text
    assert "| [What is right](#what-is-right) | from 1007 on |" in text
    assert "| 004, Figure 9 | they grew | from 1007 on | two cores |" in text
    assert "| a \\| b | 1 | 1,007 | <1 & 2> |" in text and "share" not in text
    assert "- 4 rows." in text and "write 0.75 s (75 %)" in text
    assert "ValueError: there is no more" in text and "4,711" in text and "IndexError" in text
    assert len(re.findall(r"<sub>Measured .* UTC in .* s, seed 7; the load average before was ", text)) == 4


def test_results_of_other_days_and_machines_say_so(quick: tuple[int, Path]) -> None:
    old = stored(quick[1] / "results")["right"]
    new = replace(old, experiment="wrong", began="2999-01-01 00:00", machine={"cores": 64}, versions={"everview": "9"})
    made = page.render([registry.load(FAKES[name]) for name in ("right", "wrong")], {"right": old, "wrong": new})
    assert "on another machine: processor" in made.text and made.text.count("everview 9") == 1
    made = page.render([], {"right": old})
    assert made.problems == ["right: there are results, and no such experiment"]


def test_quick_runs_need_not_have_rows_for_every_picture(quick: tuple[int, Path]) -> None:
    found = stored(quick[1] / "results")["right"]
    experiment = replace(registry.load(FAKES["right"]), plots=(Plot("p", "A picture", "x", "y"),))
    made = page.render([experiment], {"right": found})
    assert not made.problems and not made.pictures
    made = page.render([experiment], {"right": replace(found, quick=False)})
    assert made.problems == ["right: plot p: no row has both x and y"] and "A picture" in made.text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (True, "yes"),
        (12_345, "12,345"),
        (1234.5, "1,234"),
        (0.012345, "0.0123"),
        (99.96, "100"),
        (0.0, "0"),
    ],
)
def test_cells(value: Value, shown: str) -> None:
    assert page.cell(value) == shown


# ------------------------------------------------------------------ pictures

SVG = "{http://www.w3.org/2000/svg}"


def rows_of(series: int, points: int) -> list[Row]:
    return [
        {"x": 10 * 2**at, "y": 7.0 * (one + 1) * 3**at, "by": f"series <{one}> & more", "text": f"a longer text {at}"}
        for one in range(series)
        for at in range(points)
    ]


@pytest.mark.parametrize("kind", ["lines", "bars"])
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("series", [1, 3, 23])
def test_pictures_are_well_formed_and_have_every_series(kind: str, log: bool, series: int) -> None:
    rows = rows_of(series, 5)
    for x in ("x", "text"):
        plot = Plot("p", "A <title>", x, "y", "by", kind=kind, log_x=log and x == "x", log_y=log)
        root = ElementTree.fromstring(draw(plot, rows, {"x": "size", "y": "ms", "by": "who"}))
        texts = [one.text for one in root.iter(f"{SVG}text")]
        assert {f"series <{one}> & more" for one in range(series)} | {"A <title>", "who"} <= set(texts)
        if kind == "lines":
            assert len(list(root.iter(f"{SVG}polyline"))) == series
        else:
            assert sum(
                "y" in one.attrib and one.find(f"{SVG}title") is not None for one in root.iter(f"{SVG}rect")
            ) == (series * 5)
        inside(root)


def inside(root: ElementTree.Element) -> None:
    """No text leaves the picture, and none that stands upright meets another one."""
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    boxes = []
    for one in root.iter(f"{SVG}text"):
        kind = one.attrib.get("class", "")
        size = 15.5 if "title" in kind else 10 if "small" in kind else 12
        long, x, y = wide(one.text or "", size), float(one.attrib["x"]), float(one.attrib["y"])
        left = x - long * {"start": 0, "middle": 0.5, "end": 1}[one.attrib["text-anchor"]]
        if "transform" not in one.attrib:
            assert left >= 0 and left + long <= width and size <= y <= height, one.text
            boxes.append((left, left + long, y - size * 0.8, y, one.text))
    for (a, b, c, d, one_text), (e, f, g, h, other) in itertools.combinations(boxes, 2):
        assert b <= e or f <= a or d <= g or h <= c, (one_text, other)


def test_a_picture_is_as_wide_as_its_labels_need() -> None:
    rows: list[Row] = [{"x": f"category {at}", "y": at} for at in range(100)]
    for kind in ("bars", "lines"):
        root = ElementTree.fromstring(draw(Plot("p", "t", "x", "y", kind=kind), rows, {}))
        turned = sorted(float(one.attrib["x"]) for one in root.iter(f"{SVG}text") if "transform" in one.attrib)
        assert len(turned) == 100 and all(later - earlier > 15 for earlier, later in itertools.pairwise(turned))
        inside(root)


def test_pictures_that_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match="no row has both x and z"):
        draw(Plot("p", "t", "x", "z"), rows_of(1, 2), {})
    with pytest.raises(ValueError, match="no row has who"):
        draw(Plot("p", "t", "x", "y", "who"), rows_of(1, 2), {})
    with pytest.raises(ValueError, match="two rows have x = 10"):
        draw(Plot("p", "t", "x", "y", kind="bars"), rows_of(2, 1), {})
    one = ElementTree.fromstring(draw(Plot("p", "t", "x", "y", log_y=True), [{"x": 1, "y": 0}, {"x": 2, "y": 5}], {}))
    (line,) = one.iter(f"{SVG}polyline")
    assert len(line.attrib["points"].split()) == 1  # zero has no logarithm


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("values", [[5], [0.003, 0.9], [1, 12_800], [999, 1001], [3e-7, 4e9], [10_000, 10_000_000]])
def test_axes_hold_their_values_and_have_ticks_that_differ(values: list[float], log: bool) -> None:
    for axis in (upright(values, 300, 0, log), along(values, 0, 600, log, 40)):
        assert axis.low <= min(values) and max(values) <= axis.high
        labels = [label(tick) for tick in axis.ticks]
        assert 1 <= len(labels) <= 14 and len(set(labels)) == len(labels)
        low, high = sorted((axis.start, axis.stop))
        assert all(low - 0.01 <= axis.at(tick) <= high + 0.01 for tick in axis.ticks)


def test_labels() -> None:
    values: list[Value] = [10_000, 12_800, 1_500_000, 2e9, 0.05, 0, "text", None, True]
    assert [label(value) for value in values] == ["10k", "12.8k", "1.5M", "2G", "0.05", "0", "text", "", "yes"]


# ------------------------------------------------------------------ the experiments that there are


def test_experiments_are_found_by_their_constant_and_in_order() -> None:
    assert set(FAKES) == {"right", "wrong", "raising", "dying", "hanging"}
    known = list(registry.known())
    ordered = [name for name in registry.ORDER if name in known]
    assert known[: len(ordered)] == ordered and known[len(ordered) :] == sorted(known[len(ordered) :])


@pytest.mark.parametrize(
    ("text", "message"),
    [("EXPERIMENT = make()", "with the name as a text"), ('EXPERIMENT = Experiment(name="a")', "both")],
)
def test_experiments_without_a_name_of_their_own(tmp_path: Path, text: str, message: str) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(text)
    with pytest.raises(ValueError, match=message):
        registry.known(["."], tmp_path)


@pytest.mark.parametrize(("name", "module"), registry.known().items())
def test_every_experiment_can_be_shown(name: str, module: str) -> None:
    experiment = registry.load(module)
    assert experiment.name == name and re.fullmatch(r"[a-z][a-z0-9_]*", name)
    assert experiment.title.strip() and experiment.text.strip() and experiment.columns
    assert len({plot.name for plot in experiment.plots}) == len(experiment.plots)
    for plot in experiment.plots:
        assert {plot.x, plot.y} <= set(experiment.columns), plot.name
        assert plot.kind in ("lines", "bars") and re.fullmatch(r"[a-z0-9_-]+", plot.name)


def test_titles_are_addresses_of_their_own() -> None:
    titles = [registry.load(module).title for module in registry.known().values()]
    assert len({title.lower() for title in titles}) == len(titles)


EVALUATIONS = {
    "000": range(3, 9),
    "001": range(5, 10),
    "002": range(2, 9),
    "003": range(6, 15),
    "004": range(7, 16),
}
"""The figures of the papers that show measurements."""


def test_the_report_has_a_sentence_for_every_figure_that_the_papers_measured() -> None:
    report = (registry.ROOT / "docs" / "benchmarks" / "README.md").read_text("utf-8")
    shown: dict[str, set[int]] = {paper: set() for paper in EVALUATIONS}
    for row in re.findall(r"^\| (00\d.*?) \| .+ \| .+ \| .+ \|$", report, re.MULTILINE):
        for paper, numbers in re.findall(r"(00\d), Figures? (\d+(?: and \d+)*)", row):
            shown[paper].update(map(int, numbers.split(" and ")))
    missing = {paper: set(figures) - shown[paper] for paper, figures in EVALUATIONS.items()}
    assert not any(missing.values()), missing
