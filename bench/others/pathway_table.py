"""Pathway, in an environment of its own: operations through its Python connector, the view's changes into CSV.

The connector takes puts and deletes by key as they are (a session of upserts), a commit after every
round of operations makes them one minibatch, and two threads compute.

The connector is the way that Pathway has for changes that come from neither Kafka nor a database; it is fed row by
row from Python, which is a large part of the time for simple views. What is left is the view's changes, with times
and weights.

Its sum of floats goes wrong where rows of a group come and go in equal number in one minibatch: of rows 1.5 and 2.5,
if the first becomes 4.0, the sum stays 4.0 (seen in 0.33.0; 0.29.1 and 0.32.1 go wrong as well). Sums of
integers, counts, least and greatest values are right. So q3 is wrong, by far more than rounding.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pathway as pw
import pyarrow as pa

from bench.others.child import Take, Taken
from bench.others.views import COLUMNS, ROUND, TYPES, shape, tables

_PYTHON = {"BIGINT": int, "INTEGER": int, "DOUBLE": float}


class _Operations(pw.io.python.ConnectorSubject):  # type: ignore[misc]
    """The operations on one table."""

    def __init__(self, rows: list[dict[str, Any]], puts: list[bool], size: int) -> None:
        super().__init__(session_type="upsert")
        self._rows, self._puts, self._size = rows, puts, size

    def run(self) -> None:
        for low in range(0, len(self._rows), self._size):
            part = slice(low, low + self._size)
            for put, row in zip(self._puts[part], self._rows[part], strict=True):
                if put:
                    self.next(**row)
                else:
                    self.delete(**row)
            self.commit()


@contextmanager
def system() -> Iterator[Take]:
    yield take


def take(view: str, stream: Path, out: Path) -> Taken:
    pw.internals.parse_graph.G.clear()
    (out / "changes").mkdir()
    found = {name: _table(name, stream, ROUND // len(tables(view))) for name in tables(view)}
    pw.io.csv.write(_VIEWS[shape(view)](found), str(out / "changes" / "changes.csv"))
    started = time.perf_counter()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return Taken(time.perf_counter() - started)


def _table(name: str, stream: Path, size: int) -> Any:
    with pa.memory_map(str(stream / f"operations-{name}.arrow")) as file:
        rows = pa.ipc.open_file(file).read_all()
    schema = pw.schema_builder(
        {
            column: pw.column_definition(dtype=_PYTHON[TYPES[column]], primary_key=column == "k")
            for column in COLUMNS[name]
        }
    )
    given = _Operations(rows.select(COLUMNS[name]).to_pylist(), rows["put"].to_pylist(), size)
    return pw.io.python.read(given, schema=schema, autocommit_duration_ms=None)


def _q1(found: dict[str, Any]) -> Any:
    return found["bt1"].filter(pw.this.c2 < 500).select(pw.this.k, pw.this.c1, pw.this.c2)


def _q2(found: dict[str, Any]) -> Any:
    groups = found["bt1"].groupby(pw.this.c1)
    return groups.reduce(pw.this.c1, n=pw.reducers.count(), s=pw.reducers.sum(pw.this.c2))


def _q3(found: dict[str, Any]) -> Any:
    value = pw.this.c3
    return (
        found["bt1"]
        .groupby(pw.this.c1)
        .reduce(
            pw.this.c1,
            n=pw.reducers.count(),
            s=pw.reducers.sum(value),
            a=pw.reducers.avg(value),
            lo=pw.reducers.min(value),
            hi=pw.reducers.max(value),
        )
    )


def _q4(found: dict[str, Any]) -> Any:
    joined = found["bt1"].join(found["bt2"], pw.left.c1 == pw.right.c1)
    return joined.select(k=pw.left.k, c2=pw.left.c2, l=pw.right.k, c4=pw.right.c4)


_VIEWS = {"q1": _q1, "q2": _q2, "q3": _q3, "q4": _q4}
