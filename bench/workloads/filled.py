"""A database with a view of the papers over tables that are filled: where many measurements begin.

Every key is there and the view shows it, so what is written from then on are updates.
"""

from __future__ import annotations

from pathlib import Path

import everview
from bench.workloads.queries import QUERIES
from bench.workloads.synthetic import RIGHT, Stream


def filled(path: Path, view: str, keys: int, seed: int) -> tuple[everview.Database, list[Stream]]:
    """The database, and streams of changes of its tables. The keys are shared out among the tables; ten rows belong
    to a group, and two of each table to a join key."""
    tables = ("bt1", RIGHT) if RIGHT in QUERIES[view] else ("bt1",)
    groups = max(1, keys // (10 if len(tables) == 1 else 4))
    streams = [Stream(table, keys // len(tables), groups, seed + at) for at, table in enumerate(tables)]
    db = everview.open(path)
    for stream in streams:
        table = db.create_table(stream.table, stream.schema)
        for rows in stream.loaded():
            table.put_many(rows)
    db.sql(f"CREATE MATERIALIZED VIEW {view} AS {QUERIES[view]}")
    db.flush()
    return db, streams
