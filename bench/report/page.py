"""The report: results as Markdown, with their pictures.

The page is made of stored results alone, and says of each when, where and of what it was measured.

A row that is wrong is shown by what distinguishes it from other rows (texts, and what plots have as x and by), and by
how it is wrong: no figure of it reaches the page. Sentences and pictures are made of rows that are right. What
cannot be made of them, because rows are missing, is named instead and returned as a problem.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from bench.report.experiment import Experiment, Found, Row, Value
from bench.report.results import Result
from bench.report.svg import NothingToDraw, draw

T = TypeVar("T")
LONG = 16
"""Rows of a table that is shown; a longer one is folded."""
SHOWN = 8
"""Parts of a profile."""
JOB = "spark job"
"""The part that the others are parts of."""

HEAD = """\
# Benchmarks

{how}
Every view is compared with a recomputation in the run that measures it, outside the time; where one is wrong
the row says so and has no figures. Where we are slower than others, or than the papers, it stands here too.

    make bench                            # all of it, again
    make bench-quick                      # small sizes: are all results right?
    python -m bench --list                # the experiments
    python -m bench skew --out build/mine # one of them, and where its results and pictures go
    python -m bench --render              # this page from the stored results
"""
FIGURES = "`make bench` measures what stands here and writes this page, with the figures as JSON in [results](results)."
QUICK = "**Small sizes, to see whether results are right: these are no figures.** `make bench-quick` writes this page."


@dataclass
class Page:
    """A page in the making: text, pictures by file name, and what could not be made."""

    text: str = ""
    pictures: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def write(self, folder: Path) -> None:
        """The page and its pictures; pictures that it no longer has are removed."""
        plots = folder / "plots"
        plots.mkdir(parents=True, exist_ok=True)
        for file in plots.glob("*.svg"):
            if file.name not in self.pictures:
                file.unlink()
        for name, picture in self.pictures.items():
            (plots / name).write_text(picture, "utf-8")
        (folder / "README.md").write_text(self.text, "utf-8")


def render(experiments: Sequence[Experiment], results: Mapping[str, Result]) -> Page:
    """The page of all experiments that have results, in the order of the experiments."""
    page = Page()
    shown = [(one, results[one.name]) for one in experiments if one.name in results]
    names = {one.name for one in experiments}
    page.problems += [f"{name}: there are results, and no such experiment" for name in results if name not in names]
    parts = [HEAD.format(how=QUICK if any(result.quick for _, result in shown) else FIGURES)]
    if not shown:
        parts.append("Nothing has been measured yet.\n")
    else:
        latest = max((result for _, result in shown), key=lambda result: result.began)
        parts += filter(None, [_machine(latest), _summary(shown), _index(shown)])
        missing = [one.name for one in experiments if one.name not in results]
        if missing:
            parts.append(f"Not measured here: {', '.join(f'`{name}`' for name in missing)}.\n")
        parts += [_section(experiment, result, latest, page) for experiment, result in shown]
    page.text = "\n".join(parts)
    return page


# ------------------------------------------------------------------ the first part


def _machine(result: Result) -> str:
    rows = [(name, cell(value)) for name, value in result.machine.items() if value is not None]
    rows.append(("versions", _versions(result)))
    return table(("", ""), rows)


def _versions(result: Result) -> str:
    return ", ".join(f"{name} {value}" for name, value in result.versions.items())


def _summary(shown: Sequence[tuple[Experiment, Result]]) -> str:
    rows = []
    for experiment, result in shown:
        rows.append(
            (f"[{experiment.title}](#{_anchor(experiment.title)})", _headline(experiment, result), _took(result))
        )
    return table(("experiment", "what was seen", "took"), rows) + _times(shown)


def _times(shown: Sequence[tuple[Experiment, Result]]) -> str:
    """How long all of it took: what belongs to one run, and what is run when it is named."""
    minutes = sum(result.seconds for one, result in shown if one.always) / 60
    said = [f"A run of all took {minutes:.1f} minutes, one experiment after another."] if minutes >= 1 else []
    for one, result in shown:
        if not one.always:
            said.append(
                f"`{one.name}` belongs to it only where it is named, and took {result.seconds / 60:.0f} minutes."
            )
    return f"\n{' '.join(said)}\n" if said else ""


def _index(shown: Sequence[tuple[Experiment, Result]]) -> str:
    """Which section has which figure of the papers."""
    rows = []
    for experiment, result in shown:
        problems: list[str] = []  # the section shows them
        for said in _made(experiment.comparisons, result.right, problems) or []:
            rows.append((said.figure, f"[{experiment.title}](#{_anchor(experiment.title)})"))
    return (
        folded("Figures of the papers, and where they are", table(("figure", "section"), sorted(rows))) if rows else ""
    )


def _headline(experiment: Experiment, result: Result) -> str:
    marks = []
    if result.failed:
        marks.append("**failed**")
    if result.wrong:
        marks.append(f"**{result.wrong} of {len(result.found)} results wrong**")
    problems: list[str] = []  # the section shows them
    said = _made(experiment.headline, result.right, problems)
    compared = [] if said else _made(experiment.comparisons, result.right, problems) or []
    return "; ".join([*marks, *filter(None, [said, *(one.we for one in compared[:1])])])


def _took(result: Result) -> str:
    return f"{result.seconds:,.0f} s"


# ------------------------------------------------------------------ a section


def _section(experiment: Experiment, result: Result, latest: Result, page: Page) -> str:
    parts = [f"## {experiment.title}\n", inspect.cleandoc(experiment.text) + "\n"]
    if result.failed:
        parts.append(f"**It failed, and what was found before is shown:** {_one_line(result.failed)}\n")
    if result.wrong:
        parts.append(f"**{result.wrong} of {len(result.found)} results are wrong**, and have no figures here.\n")
    for plot in experiment.plots:
        file = f"{experiment.name}-{plot.name}.svg"
        try:
            page.pictures[file] = draw(plot, result.right, experiment.columns)
        except ValueError as error:
            if not (result.quick and isinstance(error, NothingToDraw)):  # few sizes make few pictures
                parts.append(f'*The picture "{plot.title}" is missing: {_one_line(str(error))}.*\n')
                page.problems.append(f"{experiment.name}: {error}")
        else:
            parts.append(f"![{plot.title}](plots/{file})\n")
    parts.append(_figures(experiment, result))
    problems: list[str] = []
    said = _made(experiment.comparisons, result.right, problems)
    if said:
        rows = [(one.figure, one.they, one.we, one.why) for one in said]
        parts.append(table(("figure of a paper", "they saw", "we see", "why"), rows))
    notes = _made(experiment.notes, result.right, problems)
    if notes:
        parts.append("\n".join(f"- {_one_line(note)}" for note in notes) + "\n")
    _made(experiment.headline, result.right, problems)
    for problem in problems:
        page.problems.append(f"{experiment.name}: {problem}")
        parts.append(f"*There is more to say, and rows for it are missing: {problem}.*\n")
    parts += [_profiles(experiment, result), _when(result, latest)]
    return "\n".join(filter(None, parts))


def _made(make: Callable[[Sequence[Row]], T], rows: Sequence[Row], problems: list[str]) -> T | None:
    """What an experiment makes of its rows. It expects all of them, and some may be missing."""
    try:
        return make(rows)
    except Exception as error:
        problems.append(f"{type(error).__name__}: {_one_line(str(error))}")
        return None


def _figures(experiment: Experiment, result: Result) -> str:
    """The table. Columns that no row has are left out."""
    listed = [found for found in result.found if found.wrong or experiment.listed(found.row)]
    columns = {
        name: heading
        for name, heading in experiment.columns.items()
        if any(found.row.get(name) is not None for found in listed)
    }
    if not listed:
        return ""
    marked = result.wrong > 0
    rows = []
    for found in listed:
        cells = [cell(found.row.get(name)) if shows(experiment, found, name) else "" for name in columns]
        verdict = [f"**wrong**: {_one_line(found.wrong)}" if found.wrong else "right"] if marked else []
        rows.append((*cells, *verdict))
    text = table((*columns.values(), *(["result"] if marked else [])), rows, numeric(columns, result.right))
    return folded(f"All {len(rows)} rows", text) if len(rows) > LONG else text


def shows(experiment: Experiment, found: Found, name: str) -> bool:
    """Whether the report has a row's value: all of a row that is right, and of one that is wrong only what
    identifies it."""
    value = found.row.get(name)
    if not found.wrong or any(name in (plot.x, plot.by) for plot in experiment.plots):
        return True
    return isinstance(value, str) and not re.match(r"[~<>≤≥+−-]?\s*\d", value)


def numeric(columns: Mapping[str, str], rows: Sequence[Row]) -> set[int]:
    """The places of columns with numbers, which stand at the right."""
    found = set()
    for at, name in enumerate(columns):
        values = [row.get(name) for row in rows if row.get(name) is not None]
        if values and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
            found.add(at)
    return found


def _profiles(experiment: Experiment, result: Result) -> str:
    rows = []
    for found in result.found:
        if found.profile and not found.wrong:
            parts = _profile(found.profile)
            which = [
                f"{cell(found.row.get(name))}"
                for name in experiment.columns
                if isinstance(found.row.get(name), str) or any(name in (one.x, one.by) for one in experiment.plots)
            ]
            rows.append((", ".join(filter(None, which)), parts))
    if not rows:
        return ""
    return folded("Where the time goes", table(("", "seconds, added up over tasks that run side by side"), rows))


def _profile(spent: Mapping[str, float]) -> str:
    """The largest parts. A job of Spark's has its tasks in it, so it is shown by itself; parts of less than a
    hundredth are left out."""
    inside = {name: seconds for name, seconds in spent.items() if name != JOB}
    total = sum(inside.values()) or 1.0
    most = sorted(inside.items(), key=lambda item: -item[1])[:SHOWN]
    parts = [
        f"{name} {seconds:.3g} s ({100 * seconds / total:.0f} %)" for name, seconds in most if seconds >= total / 100
    ]
    first = f"{JOB} {spent[JOB]:.3g} s by the clock; in its tasks " if JOB in spent else ""
    return first + ", ".join(parts)


def _when(result: Result, latest: Result) -> str:
    parts = [f"Measured {result.began} UTC in {_took(result)}, seed {result.seed}"]
    parts.append(f"the load average before was {result.load:.2f}")
    if result.versions != latest.versions:
        parts.append(f"with {_versions(result)}")
    if result.machine != latest.machine:
        parts.append("on another machine: " + ", ".join(f"{name} {cell(it)}" for name, it in result.machine.items()))
    return f"<sub>{_one_line('; '.join(parts))}.</sub>\n"


# ------------------------------------------------------------------ Markdown


def cell(value: Value) -> str:
    """A value as the tables have it: three digits that count, thousands apart."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if value == 0 or abs(value) >= 100:
            return f"{value:,.0f}"
        return f"{value:.3g}"
    return value


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(_one_line(one).replace("|", "\\|") for one in cells) + " |"

    ruler = "|" + "|".join("---:" if at in right else "---" for at in range(len(headings))) + "|"
    return "\n".join([line(headings), ruler, *map(line, rows), ""])


def folded(summary: str, text: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{text}\n</details>\n"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _anchor(title: str) -> str:
    """The address that a heading has on GitHub."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
