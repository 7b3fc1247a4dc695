"""Measure, and write the report: ``python -m bench`` (``make bench``).

Runs experiments, all of them unless some are named, and writes what they find as JSON, and a page with tables
and plots of it. Results that are stored already are shown beside those of this run, with when they were
measured. Ends with 1 if a result of ours is wrong, or if an experiment failed.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.report import page, registry
from bench.report.experiment import Experiment
from bench.report.results import Result, machine, stored, versions
from bench.report.runner import Job, Runner

DOCS = registry.ROOT / "docs"
FULL, QUICK = DOCS / "benchmarks", registry.ROOT / "build" / "bench" / "quick"
QUICK_LIMIT = 300.0
"""Seconds of a quick experiment. It should take ten; a machine may be busy."""


def main(arguments: Sequence[str] | None = None, known: Mapping[str, str] | None = None) -> int:
    known = registry.known() if known is None else known
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="experiments (default: all that are always run)")
    parser.add_argument("--quick", action="store_true", help="small sizes: are the results right?")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--out", type=Path, help="where results and report go (default: docs/benchmarks, or build/bench/quick)"
    )
    parser.add_argument("--again", action="store_true", help="only those that failed, were wrong or have no results")
    parser.add_argument("--others", action="store_true", help="install systems that are not there, in quick runs too")
    parser.add_argument("--render", action="store_true", help="measure nothing: the report from stored results")
    parser.add_argument("--list", action="store_true", help="measure nothing: which experiments there are")
    asked = parser.parse_args(arguments)
    for name in asked.names:
        if name not in known:
            parser.error(f"there is no experiment {name}; there are {', '.join(known)}")
    out = (asked.out or (QUICK if asked.quick else FULL)).resolve()
    if asked.quick and out.is_relative_to(DOCS):
        parser.error("quick results are no figures, and docs shows figures: choose another place with --out")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    before = stored(out / "results")
    experiments, broken = _loaded(known)
    if asked.list:
        return _list(experiments, broken, before)
    now: dict[str, Result] = {}
    if not asked.render:
        chosen = {one.name: one for one in experiments if one.name in asked.names or (one.always and not asked.names)}
        if asked.again:
            chosen = {name: one for name, one in chosen.items() if name not in before or not before[name].sound}
        runner = Runner(asked.seed, asked.quick, asked.others or not asked.quick, machine(), versions(), _reporter())
        for batch in batches(chosen, known, asked.quick):
            for result in runner.run(batch):
                result.save(out / "results")
                now[result.experiment] = result
    made = page.render(experiments, before | now)
    made.problems += broken
    made.write(out)
    return _verdict(before if asked.render else now, made, out)


def batches(chosen: Mapping[str, Experiment], known: Mapping[str, str], quick: bool) -> list[list[Job]]:
    """What is run in which process: each in one of its own, but quick ones together where they can be."""
    together: list[Job] = []
    found = [together]
    for name, experiment in chosen.items():
        job = Job(name, known[name], QUICK_LIMIT if quick else experiment.limit, experiment.listed)
        if quick and not experiment.alone:
            together.append(job)
        else:
            found.append([job])
    return [batch for batch in found if batch]


def _reporter() -> Callable[[str], None]:
    """Lines with the minutes and seconds since now."""
    started = time.monotonic()

    def report(line: str) -> None:
        spent = time.monotonic() - started
        print(f"{spent // 60:3.0f}:{spent % 60:02.0f}  {line}", flush=True)

    return report


def _loaded(known: Mapping[str, str]) -> tuple[list[Experiment], list[str]]:
    """Experiments, and what is wrong with those that cannot be loaded: the others can be run all the same."""
    found, broken = [], []
    for name, module in known.items():
        try:
            found.append(registry.load(module))
        except Exception as error:
            broken.append(f"{name}: {module} cannot be loaded: {type(error).__name__}: {error}")
    return found, broken


def _list(experiments: Sequence[Experiment], broken: Sequence[str], results: Mapping[str, Result]) -> int:
    for one in experiments:
        last = results.get(one.name)
        when = f"{last.seconds:,.0f} s on {last.began}" if last is not None else "not measured"
        print(f"{one.name:12}  {one.title} ({when}{'' if one.always else '; only when it is named'})")
    for line in broken:
        print(line)
    return 1 if broken else 0


def _verdict(results: Mapping[str, Result], made: page.Page, out: Path) -> int:
    bad = [f"{name}: failed: {result.failed}" for name, result in results.items() if result.failed]
    for name, result in results.items():
        bad += [f"{name}: wrong: {found.wrong}" for found in result.found if found.wrong and found.ours]
    bad += made.problems
    took = sum(result.seconds for result in results.values())
    print(f"{len(results)} experiments, {took:,.0f} s, {len(bad)} problems: {out / 'README.md'}")
    for line in bad:
        print(f"  {' '.join(line.split())}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
