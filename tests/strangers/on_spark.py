"""Queries that were right in one process, with the rounds of their histories maintained by the pipeline on Spark.

The files with the most right queries are read again, as the seed drew them, and all views of a file are
kept up to date by one pipeline, until so many queries were compared as are asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from everview.zones.session import new_session
from tests.strangers.campaign import lines_of
from tests.strangers.extraction import Extract
from tests.strangers.repositories import Repository
from tests.strangers.suites import suites_of
from tests.strangers.trial import BrokenError, Outcome, Trial
from tests.strangers.worker import foretell, read_file

SECONDS = 300.0
"""How long a flush may take."""


def run(
    places: tuple[Path, ...], report: Path, count: int, per_file: int, seed: int, say: Callable[[str], None]
) -> list[dict[str, Any]]:
    """One line for each query that was tried on Spark."""
    lines: list[dict[str, Any]] = []
    session = new_session()
    try:
        for suite, path, extract in _batches(places, report, per_file, seed):
            if len(lines) >= count:
                break
            few = replace(extract, queries=extract.queries[: count - len(lines)])
            found = _tried(few, session, seed)
            for query, outcome in zip(few.queries, found, strict=True):
                lines.append({"kind": "spark", "suite": suite, "path": path, "query": query, **outcome.to_json()})
            say(f"on Spark: {path}: {dict(Counter(outcome.kind for outcome in found))}")
    finally:
        session.stop()
    return lines


def _batches(places: tuple[Path, ...], report: Path, per_file: int, seed: int) -> Iterator[tuple[str, str, Extract]]:
    """Extracts with the queries of a file that were right under extreme values, of all suites in turn."""
    right: dict[tuple[str, str], set[str]] = {}
    for line in lines_of(report):
        is_right = line["kind"] == "query" and line["outcome"] in ("right", "reevaluated")
        if is_right and line["reads"] and line["extreme"]:
            right.setdefault((line["suite"], line["path"]), set()).add(line["query"])
    homes = {
        (suite.name, path): place
        for place in places
        for suite, files in suites_of(Repository(place), frozenset())
        for path in files
    }
    ranked: dict[str, list[str]] = {}
    for suite, path in sorted(right, key=lambda one: -len(right[one])):
        ranked.setdefault(suite, []).append(path)
    order = sorted((at, suite, path) for suite, paths in ranked.items() for at, path in enumerate(paths))
    for _, suite, path in order:
        if (suite, path) not in homes:
            continue
        read = read_file(str(homes[suite, path]), suite, path, per_file, seed)
        for held in read["batches"]:
            extract = Extract.of_json(held)
            queries = tuple(query for query in extract.queries if query in right[suite, path])
            if len(queries) >= 5:
                yield suite, path, replace(extract, queries=queries)


def _tried(extract: Extract, session: Any, seed: int) -> list[Outcome]:
    history, _, _ = foretell(extract, {}, seed, extreme=True)
    trial = Trial(extract, history, patience=SECONDS)
    try:
        for number, query in enumerate(extract.queries):
            trial.create(str(number), query)
        try:
            trial.play(trial.db.maintain(session))
        except BrokenError as error:
            return [Outcome("crashed", f"{error}\n{trial.db.status()}", error.round) for _ in extract.queries]
        found = trial.finished()
        return [found[str(number)] for number in range(len(extract.queries))]
    finally:
        trial.close()
