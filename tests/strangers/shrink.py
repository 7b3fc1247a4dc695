"""The smallest history that still shows what is wrong with a view.

Tables that the query does not read, rounds, statements and rows are left out one after another, for as
long as the outcome stays, within a number of attempts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.strangers.extraction import Extract, Table
from tests.strangers.histories import History, insert
from tests.strangers.oracle import Oracle
from tests.strangers.statements import top_level
from tests.strangers.trial import Outcome, attempt

ATTEMPTS = 60
"""How often a smaller history is tried."""


def narrowed(extract: Extract, history: History, queries: Sequence[str]) -> tuple[Extract, History]:
    """Only the tables and named queries that some queries read."""
    oracle = Oracle(extract)
    read: set[str] = set()
    for query in queries:
        read |= oracle.reads(query)
    oracle.close()
    tables = tuple(table for table in extract.tables if table.name.lower() in read)
    named = tuple(one for one in extract.named if one.name.lower() in read)
    names = {table.name for table in tables}

    def kept(texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(text for text in texts if text.split('"', 2)[1] in names)

    smaller = History(kept(history.before), tuple(kept(texts) for texts in history.rounds))
    return replace(extract, tables=tables, named=named), smaller


def shrink(extract: Extract, history: History, query: str, outcome: Outcome) -> tuple[Extract, History, Outcome]:
    """A smaller extract and history with an outcome of the same kind, and that outcome."""
    left = ATTEMPTS
    extract, history = narrowed(extract, history, [query])
    best = outcome

    def still(candidate: History) -> bool:
        nonlocal best, history, left
        left -= 1
        found = attempt(extract, candidate, {"0": query})["0"]
        if found.kind != outcome.kind:
            return False
        best, history = found, candidate
        return True

    if not still(History(history.before, history.rounds[: max(outcome.round, 0)])):
        return extract, history, outcome
    flat = [text for texts in (history.before, *history.rounds) for text in texts]
    if not still(History(tuple(flat), ())):
        still(History((), (tuple(flat),)))
    singles = History(
        tuple(_single(extract.tables, history.before)),
        tuple(tuple(_single(extract.tables, texts)) for texts in history.rounds),
    )
    still(singles)
    size = max(1, sum(map(len, (history.before, *history.rounds))) // 2)
    while left > 0:
        places = [(at, place) for at, texts in enumerate(_parts(history)) for place in range(len(texts))]
        smaller = False
        for start in range(0, len(places), size):
            smaller = still(_without(history, set(places[start : start + size])))
            if smaller or left <= 0:
                break
        if not smaller:
            if size == 1:
                break
            size = max(1, size // 2)
    trimmed = History(history.before, tuple(texts for texts in history.rounds if texts))
    if trimmed != history:
        still(trimmed)
    return extract, history, best


def _parts(history: History) -> list[tuple[str, ...]]:
    return [history.before, *history.rounds]


def _without(history: History, left: set[tuple[int, int]]) -> History:
    parts = [
        tuple(text for place, text in enumerate(texts) if (at, place) not in left)
        for at, texts in enumerate(_parts(history))
    ]
    return History(parts[0], tuple(parts[1:]))


def _single(tables: Sequence[Table], texts: Sequence[str]) -> list[str]:
    """Inserts of several rows as inserts of one row each."""
    found: list[str] = []
    by_name = {table.name: table for table in tables}
    for text in texts:
        head = re.match(r'INSERT INTO "([^"]+)" VALUES ', text)
        if head is None:
            found.append(text)
            continue
        for row in top_level(text[head.end() :]):
            found.append(insert(by_name[head[1]], [[row[1:-1]]]))
    return found


def reproduction(extract: Extract, history: History, query: str, outcome: Outcome) -> dict[str, Any]:
    """What is needed to see it again, as statements."""
    return {
        "tables": [table.definition(key=True) for table in extract.tables],
        "named": [named.definition for named in extract.named],
        "before": list(history.before),
        "query": query,
        "rounds": [list(texts) for texts in history.rounds],
        "seen": outcome.detail,
    }
