"""A process that reads files and tries queries for the campaign, and may be killed at any moment.

Jobs come as lines of JSON, answers go as lines of JSON, and what a job finds depends on nothing but
the job.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import traceback
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.strangers import histories
from tests.strangers.extraction import Extract, Extraction
from tests.strangers.oracle import Foretold, Oracle
from tests.strangers.repositories import Repository
from tests.strangers.shrink import narrowed, reproduction, shrink
from tests.strangers.suites import SUITES
from tests.strangers.trial import Outcome, attempt

BATCH = 40
"""How many queries are views of one store."""
TRIED = 4
"""Of a file so many times the wanted queries are looked at, at most, to find those that are for us."""
_LONG = re.compile(r"(?:generate_series|range)\s*\([^()]*\d{6}", re.IGNORECASE)
"""Queries that may take so long that they are tried alone."""
_repositories: dict[str, Repository] = {}


def seed_of(*parts: object) -> int:
    return zlib.crc32(repr(parts).encode())


def read_file(place: str, suite_name: str, path: str, most: int, seed: int) -> dict[str, Any]:
    """The batches of a file: extracts with at most ``BATCH`` queries that DuckDB takes, and how many are not for us."""
    repository = _repositories.setdefault(place, Repository(Path(place)))
    suite = next(suite for suite in SUITES if suite.name == suite_name)
    rng = random.Random(seed_of(seed, suite_name, path))
    extracts = Extraction().read(suite.reader(repository, path))
    chosen = [(at, query) for at, extract in enumerate(extracts) for query in extract.queries]
    if len(chosen) > TRIED * most:
        chosen = sorted(rng.sample(chosen, TRIED * most))
    others: Counter[str] = Counter()
    accepted: dict[int, list[str]] = {}
    count = 0
    oracles: dict[int, Oracle] = {}
    for at, query in rng.sample(chosen, len(chosen)):
        if count == most:
            break
        if at not in oracles:
            oracles[at] = Oracle(extracts[at])
        oracle = oracles[at]
        reason = oracle.rejection(query)
        if reason is None:
            accepted.setdefault(at, []).append(query)
            count += 1
        else:
            others[reason] += 1
    batches = []
    for at, queries in sorted(accepted.items()):
        alone = [query for query in queries if _LONG.search(query)]
        usual = [query for query in queries if query not in alone]
        groups = [usual[start : start + BATCH] for start in range(0, len(usual), BATCH)]
        for some in [*groups, *([query] for query in alone)]:
            extract, _ = narrowed(extracts[at], histories.History((), ()), some)
            batches.append(replace(extract, queries=tuple(some)).to_json())
    for oracle in oracles.values():
        oracle.close()
    return {"batches": batches, "others": others, "asked": sum(len(extract.queries) for extract in extracts)}


def try_batch(held: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """The outcome of each query of a batch. What is too large with extreme values is tried without them."""
    extract = Extract.of_json(held)
    waiting = {str(at): query for at, query in enumerate(extract.queries)}
    found: dict[str, dict[str, Any]] = {}
    for extreme in (True, False):
        history, foretold, read = foretell(extract, waiting, seed, extreme)
        asked = {number: waiting.pop(number) for number in foretold}
        outcomes = attempt(extract, history, asked, foretold) if asked else {}
        for number, outcome in outcomes.items():
            found[number] = {"query": asked[number], "reads": read[number], "extreme": extreme, **outcome.to_json()}
            if outcome.kind in ("refused", "open"):
                empty = histories.History((), ())
                small, _ = narrowed(extract, empty, [asked[number]])
                found[number]["reproduction"] = reproduction(small, empty, asked[number], outcome)
        if not waiting:
            break
    for number, query in waiting.items():
        found[number] = {"query": query, "reads": read[number], **Outcome("too large").to_json()}
    return [found[number] for number in sorted(found, key=int)]


def reproduce(held: dict[str, Any], query: str, seed: int, extreme: bool, shrinks: bool) -> dict[str, Any]:
    """What is needed to see again that a query of a batch is wrong or crashes."""
    extract = Extract.of_json(held)
    history, _, _ = foretell(extract, {}, seed, extreme)
    small, history = narrowed(extract, history, [query])
    outcome = attempt(small, history, {"0": query})["0"]
    if shrinks and outcome.kind in ("wrong", "crashed"):
        small, history, outcome = shrink(small, history, query, outcome)
    return reproduction(small, history, query, outcome) | {"alone": outcome.kind}


def foretell(
    extract: Extract, queries: dict[str, str], seed: int, extreme: bool
) -> tuple[histories.History, Foretold, dict[str, list[str]]]:
    """A history, DuckDB's answers all through it, and which tables each query reads."""
    oracle = Oracle(extract)
    try:
        drawn = seed_of(seed, extract.tables)
        history = histories.draw(extract.tables, extract.queries, drawn, oracle.connection, extreme=extreme)
        read = {number: sorted(oracle.reads(query)) for number, query in queries.items()}
        return *oracle.foretell(history, queries), read
    finally:
        oracle.close()


def _answered(job: dict[str, Any]) -> object:
    match job["do"]:
        case "read":
            return read_file(job["place"], job["suite"], job["path"], job["most"], job["seed"])
        case "try":
            return try_batch(job["batch"], job["seed"])
        case _:
            return reproduce(job["batch"], job["query"], job["seed"], job["extreme"], job["shrinks"])


def main(arguments: Sequence[str]) -> int:
    """Answers go to the standard output that the process began with; what libraries print goes elsewhere."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        job = json.loads(line)
        try:
            answer = {"answer": _answered(job)}
        except Exception:
            answer = {"failed": traceback.format_exc()[-2000:]}
        print(json.dumps(answer), file=answers, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
