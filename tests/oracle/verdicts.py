"""Verdicts: a query as a view under a random history, against what DuckDB answers to the same words.

A query is *right* where its view equals recomputation after every epoch, *quarantined*
where DuckDB fails over the same rows and the view left some out, *refused* where an Everview error
says why there is no such view, and anything else is a defect.
"""

from __future__ import annotations

import contextlib
import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from everview.errors import EverviewError
from tests.oracle.played import Played, Wrong
from tests.oracle.schemas import VALUES, History, Table
from tests.oracle.script import Script, View

EPOCHS = 4


@dataclass(frozen=True)
class Verdict:
    kind: str
    """``right``, ``quarantined``, ``refused``, ``wrong`` or ``crashed``."""
    said: str = ""

    @property
    def is_good(self) -> bool:
        return self.kind in ("right", "quarantined", "refused")


def verdict(
    tables: Sequence[Table],
    query: str,
    seed: int = 0,
    values: Mapping[str, tuple[str, ...]] = VALUES,
    plain: str | None = None,
) -> Verdict:
    """What becomes of a query as a view of these tables. It is compared with ``plain`` where DuckDB has
    other words for it."""
    rng = random.Random(seed)
    epochs = tuple(History(rng, list(tables), dict(values)).epochs(EPOCHS))
    script = Script(tuple(map(str, tables)), (View("v", query, plain or query),), epochs)
    try:
        with tempfile.TemporaryDirectory() as path:
            try:
                found = Played(Path(path) / "store", script)
            except EverviewError as error:
                return Verdict("refused", str(error))
            with contextlib.closing(found):
                return _played(found)
    except Wrong as error:
        return Verdict("wrong", str(error))
    except Exception as error:
        return Verdict("crashed", f"{type(error).__name__}: {error}")


def _played(found: Played) -> Verdict:
    quarantined = False
    for epoch in found.script.epochs:
        try:
            found.epoch(epoch)
        except duckdb.Error as error:
            if not found.maintained.quarantine():
                return Verdict("wrong", f"DuckDB fails ({error}), and nothing is in quarantine")
            quarantined = True
    return Verdict("quarantined" if quarantined else "right")
