"""Systems measured one after another, each in a process of its own, and their views judged.

A system takes in a part of the stream, three times, and all of it, each time from nothing; what a
run over the part and the run over all differ by is what operations cost, and what they have in common is the start.

A quick run is for correctness: all of the (short) stream, once, and in this process where the system can.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.others.child import Taken, outcomes
from bench.others.judge import judge
from bench.others.setup import NotInstalled, install, installed, python_of
from bench.others.stream import FULL, QUICK, Files, file_name
from bench.others.system import System
from bench.others.views import EVERY
from bench.others.watched import Watched
from bench.report.experiment import Found, Row, Setting

QUICK_OPERATIONS = 20_000
LIMIT = 300
"""Seconds a system may take for all its views."""
WARM = 3
"""Runs over a part of the stream before the one over all of it."""
RESOLVED = 0.3
"""The least share of a long run that must be operations and not start, or the two are not separated."""


def measured(systems: Sequence[System], setting: Setting) -> Iterator[Found]:
    """All views of all systems, as they are found."""
    streams = Files(setting.folder / "streams", setting.pick(FULL, QUICK), setting.seed)
    there = []
    for system in systems:
        missing = _missing(system, setting)
        if missing:
            yield from (
                Found({"system": system.name, "view": view, "leaves": system.leaves, "said": missing}) for view in EVERY
            )
        else:
            there.append(system)
    if setting.quick:
        batches = [[system for system in there if not system.foreign], *([one] for one in there if one.foreign)]
    else:
        batches = [[system] for system in there]
    for batch in filter(None, batches):
        yield from _together(batch, streams, setting)


def _missing(system: System, setting: Setting) -> str:
    """Why a system cannot be measured."""
    if setting.quick and system.foreign and not setting.install:
        return "not in a quick run without --others"
    if system.needs is None or installed(system.needs):
        return ""
    if not setting.install:
        return f"not installed: python -m bench.others.setup {system.needs}"
    try:
        install(system.needs)
    except NotInstalled as error:
        return f"not installed: {error}"
    return ""


# ------------------------------------------------------------------ a process


def _together(systems: Sequence[System], streams: Files, setting: Setting) -> Iterator[Found]:
    """The views of systems that share a process, as they are found."""
    by_name = {system.name: system for system in systems}
    out = setting.folder / "out"
    task = {"systems": [_asked(system, streams, out, setting.quick) for system in systems]}
    foreign = systems[0].foreign
    if setting.quick and not foreign:
        lines = outcomes(task)
    else:
        file = setting.folder / f"{systems[0].module}.json"
        file.write_text(json.dumps(task))
        python = python_of(systems[0].needs or "") if foreign else Path(sys.executable)
        lines = Watched(python, file, LIMIT * len(systems)).lines()
    for line in lines:
        system, view = by_name[line["system"]], line["view"]
        names: Row = {"system": system.name, "view": view, "leaves": system.leaves}
        if "failed" in line:
            yield Found(names, wrong=f"it failed: {line['failed']}", ours=system.ours)
            continue
        taken = [Taken(**one) for one in line["taken"]]
        count = _count(system, view, setting.quick)
        verdict = judge(view, streams.rows(view, count), system.left, _out(out, system, view) / str(len(taken) - 1))
        shutil.rmtree(_out(out, system, view))
        row: Row = {**names, "operations": count, "sums": verdict.sums or None}
        if not setting.quick:
            row |= pace(count, system.short(count), taken[:-1], taken[-1]) | {"memory": line["megabytes"]}
        row["most"] = ", ".join(_most(taken[-1].profile)) or None
        yield Found(row, wrong=verdict.wrong, profile=taken[-1].profile, ours=system.ours)


def _asked(system: System, streams: Files, out: Path, quick: bool) -> dict[str, Any]:
    views = []
    for view in EVERY:
        count = _count(system, view, quick)
        lengths = [count] if quick else [*[system.short(count)] * WARM, count]
        files = [str(streams.files(view, length, system.reads)) for length in lengths]
        views.append({"view": view, "streams": files, "out": str(_out(out, system, view))})
    return {"system": system.name, "module": system.module, "views": views}


def _count(system: System, view: str, quick: bool) -> int:
    return QUICK_OPERATIONS if quick else system.operations[view]


def _out(out: Path, system: System, view: str) -> Path:
    return out / system.module / file_name(view)


def pace(count: int, short: int, parts: Sequence[Taken], long: Taken) -> Row:
    """The figures from runs over a part and one over all: operations per second of those by which they differ,
    without and with the writing of base tables, and what is left over for a start.

    The shortest of the runs over a part is taken: what hinders one now and then would be taken off the long run, and
    make it faster than it is. Where a long run is mostly start even so, its rate is that of all of it."""

    def maintained(taken: Taken) -> float:
        return taken.seconds - (taken.base or 0.0) if taken.together else taken.seconds

    def altogether(taken: Taken) -> float:
        return taken.seconds if taken.together else taken.seconds + (taken.base or 0.0)

    least, most = min(map(maintained, parts)), maintained(long)
    separable = most - least >= RESOLVED * (1 - short / count) * most

    def apart(seconds: Callable[[Taken], float]) -> tuple[float, float | None]:
        """Operations per second, and seconds of the start, if the two can be separated."""
        least, most = min(map(seconds, parts)), seconds(long)
        if not separable or most <= least:
            return count / most, None
        rate = (count - short) / (most - least)
        return rate, max(least - short / rate, 0.0)

    rate, start = apart(maintained) if most > 0 else (None, None)  # a run without triggers may have been hindered
    return {
        "rate": None if rate is None else round(rate),
        "whole": None if long.base is None else round(apart(altogether)[0]),
        "start": None if start is None else round(start, 2),
        "first": round(parts[0].seconds, 2),
    }


def _most(profile: Mapping[str, float]) -> list[str]:
    """Where most of the time goes, in seconds."""
    found = sorted(profile.items(), key=lambda item: -item[1])[:4]
    return [f"{name} {seconds:.2f} s" for name, seconds in found]
