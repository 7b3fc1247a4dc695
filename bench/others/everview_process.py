"""Everview in the process that asks: ``db.flush()``, on one core, without Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

import everview
from bench.others.child import Take, Taken
from bench.others.stream import rounds
from bench.others.views import RESULTS, columns, query, shape, tables


@contextmanager
def system() -> Iterator[Take]:
    def take(view: str, stream: Path, out: Path) -> Taken:
        with opened(view, out) as db:
            base = fill(db, view, stream)
            started = time.perf_counter()
            db.flush()
            seconds = time.perf_counter() - started
            leave(db, view, out)
        return Taken(seconds, base)

    yield take


@contextmanager
def opened(view: str, out: Path) -> Iterator[everview.Database]:
    """A store with the view over empty tables."""
    with everview.open(out / "store") as db:
        for name in tables(view):
            db.sql(f"CREATE TABLE {name} ({columns(name)}, PRIMARY KEY (k))")
        db.sql(f"CREATE MATERIALIZED VIEW v AS {query(view)}")
        db.flush()
        yield db


def fill(db: everview.Database, view: str, stream: Path) -> float:
    """Write everything into the logs; how long that took."""
    found = list(rounds(stream, view))
    started = time.perf_counter()
    for parts in found:
        for name, rows in parts:
            names = [column for column in db.table(name).schema.names if column in rows.column_names]
            db.table(name).put_many(rows.filter(rows["put"]).select(names))
            db.table(name).delete_many(rows.filter(pc.invert(rows["put"])).select(["k"]))
    return time.perf_counter() - started


def leave(db: everview.Database, view: str, out: Path) -> None:
    """A sum of INTEGER is a HUGEINT, which Parquet does not have."""
    columns = ", ".join(f"{name}::{type_} AS {name}" for name, type_ in RESULTS[shape(view)].items())
    pq.write_table(db.sql(f"SELECT {columns} FROM v").arrow(), out / "rows.parquet")
