"""A process that reads files and tries queries for the campaign, and may be killed at any moment.

One sentence: jobs come as lines of JSON, answers go as lines of JSON, and what a job finds depends on nothing but
the job.
"""

from __future__ import annotations

import json
import os
import random
import sys
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.strangers import histories
from tests.strangers.extraction import Extract, Extraction
from tests.strangers.oracle import Oracle
from tests.strangers.repositories import Repository
from tests.strangers.shrink import narrowed, reproduction, shrink
from tests.strangers.suites import SUITES
from tests.strangers.trial import Outcome, attempt

BATCH = 25
"""How many queries are views of one store."""
TRIED = 4
"""Of a file so many times the wanted queries are looked at, at most, to find those that are for us."""
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
        oracle = oracles.setdefault(at, Oracle(extracts[at]))
        reason = oracle.rejection(query)
        if reason is None:
            accepted.setdefault(at, []).append(query)
            count += 1
        else:
            others[reason] += 1
    batches = []
    for at, queries in sorted(accepted.items()):
        for start in range(0, len(queries), BATCH):
            some = queries[start : start + BATCH]
            extract, _ = narrowed(extracts[at], histories.History((), ()), some)
            batches.append(replace(extract, queries=tuple(some)).to_json())
    for oracle in oracles.values():
        oracle.close()
    return {"batches": batches, "others": others, "asked": sum(len(extract.queries) for extract in extracts)}


def try_batch(held: dict[str, Any], seed: int, shrinks: bool) -> list[dict[str, Any]]:
    """The outcome of each query of a batch, with a reproduction of what is wrong or crashed."""
    extract = Extract.of_json(held)
    judge = Oracle(extract)
    history = histories.draw(extract.tables, extract.queries, seed_of(seed, extract.tables), judge.connection)
    read = [sorted(judge.reads(query)) for query in extract.queries]
    judge.close()
    found = attempt(extract, history, {str(at): query for at, query in enumerate(extract.queries)})
    lines = []
    for at, query in enumerate(extract.queries):
        outcome = found[str(at)]
        line = {"query": query, "reads": read[at], **outcome.to_json()}
        if outcome.kind in ("wrong", "crashed"):
            line["reproduction"] = _reproduced(extract, history, query, outcome, shrinks)
        elif outcome.kind in ("refused", "open"):
            line["reproduction"] = reproduction(*narrowed(extract, histories.History((), ()), [query]), query, outcome)
        lines.append(line)
    return lines


def _reproduced(
    extract: Extract, history: histories.History, query: str, outcome: Outcome, shrinks: bool
) -> dict[str, Any]:
    if shrinks:
        return reproduction(*_in_order(shrink(extract, history, query, outcome), query))
    return reproduction(*narrowed(extract, history, [query]), query, outcome)


def _in_order(
    found: tuple[Extract, histories.History, Outcome], query: str
) -> tuple[Extract, histories.History, str, Outcome]:
    extract, history, outcome = found
    return extract, history, query, outcome


def _answered(job: dict[str, Any]) -> object:
    if job["do"] == "read":
        return read_file(job["place"], job["suite"], job["path"], job["most"], job["seed"])
    return try_batch(job["batch"], job["seed"], job["shrinks"])


def main(arguments: Sequence[str]) -> int:
    """Answers go to the standard output that the process began with; what libraries print goes elsewhere."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        job = json.loads(line)
        try:
            answer = {"answer": _answered(job)}
        except Exception as error:
            import traceback

            answer = {"failed": f"{type(error).__name__}: {error}\n{traceback.format_exc()[-1500:]}"}
        print(json.dumps(answer), file=answers, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
