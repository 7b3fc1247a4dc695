"""Whether the view that a system left is right.

Rows are compared with DuckDB's answer over the rows that the stream leaves, exactly; sums and means of
DOUBLE with the exact ones, and a difference that any order of adding could have made is distinguished from drift.

Adding n numbers in any order, each step rounded, is off by at most (n − 1) · 2⁻⁵³ · Σ|x|. A system that computes
a group from its rows stays within that. One that adds what comes and subtracts what goes may leave it: a million
that passed through a group of pennies takes their last digits with it. That is a wrong sum, and is reported as one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from bench.others.views import RESULTS, query, shape

_UNIT = 2.0**-53


@dataclass(frozen=True)
class Verdict:
    wrong: str = ""
    sums: str = ""
    """How sums and means of DOUBLE are, where the view has any."""


def judge(view: str, tables: dict[str, pa.Table], form: str, out: Path) -> Verdict:
    """Compare what a system left in a folder with what the base rows give."""
    with duckdb.connect() as connection:
        for name, rows in tables.items():
            connection.register(name, rows)
        connection.sql(f"CREATE TABLE wanted AS {query(view)}")
        connection.sql(f"CREATE TABLE left_behind AS {FORMS[form](view, out)}")
        if shape(view) == "q3":
            return _with_sums(connection)
        return Verdict(_differences(connection, ", ".join(RESULTS[view])))


def _differences(connection: duckdb.DuckDBPyConnection, columns: str) -> str:
    """Rows that are missing and rows that are too much."""
    counts = []
    for one, other in (("wanted", "left_behind"), ("left_behind", "wanted")):
        asked = f"SELECT count(*) FROM (SELECT {columns} FROM {one} EXCEPT ALL SELECT {columns} FROM {other})"
        counts += connection.sql(asked).fetchall()
    (missing,), (more,) = counts
    return f"{missing} rows are missing and {more} should not be there" if missing or more else ""


def _with_sums(connection: duckdb.DuckDBPyConnection) -> Verdict:
    wrong = _differences(connection, "c1, n, lo, hi")
    if wrong:
        return Verdict(wrong)
    rows = connection.sql(
        "SELECT left_behind.s, left_behind.a, list(bt1.c3) FROM left_behind JOIN bt1 USING (c1) "
        "GROUP BY c1, left_behind.s, left_behind.a"
    ).fetchall()
    inexact, beyond, most = 0, 0, 0.0
    for total, mean, values in rows:
        exact = math.fsum(values)
        off = abs(total - exact)
        bound = (len(values) - 1) * _UNIT * math.fsum(map(abs, values))
        far = abs(mean - exact / len(values))
        inexact += off > 0 or far > 0
        if off > bound or far > bound / len(values) + 2 * _UNIT * abs(mean):
            beyond += 1
            most = max(most, off, far)
    if beyond:
        return Verdict(f"sums of {beyond} of {len(rows)} groups are off by more than rounding, by up to {most:.1g}")
    return Verdict(sums=f"rounded in {inexact} of {len(rows)} groups" if inexact else "exact")


# ------------------------------------------------------------------ what a system leaves, as a query


def _rows(view: str, files: str) -> str:
    """The view itself."""
    return f"SELECT {_typed(view)} FROM {files}"


def _signed(view: str, files: str, weight: str) -> str:
    """Rows by the weights of their changes. A weight other than 0 and 1 shows as so many rows."""
    columns = ", ".join(RESULTS[shape(view)])
    changes = f"SELECT {_typed(view)}, {weight} AS weight FROM {files}"
    folded = f"SELECT {columns}, sum(weight)::INTEGER AS times FROM ({changes}) GROUP BY ALL HAVING times <> 0"
    return f"SELECT {columns} FROM ({folded}), range(abs(times))"


def _latest(view: str, files: str) -> str:
    """Groups as the last batch left them that had any of it."""
    last = "QUALIFY row_number() OVER (PARTITION BY c1 ORDER BY batch DESC) = 1 AND n > 0"
    return f"SELECT {_typed(view)} FROM {files} {last}"


def _typed(view: str) -> str:
    return ", ".join(f"{name}::{type_} AS {name}" for name, type_ in RESULTS[shape(view)].items())


def _parquet(view: str, out: Path) -> str:
    return _rows(view, f"read_parquet('{out}/rows.parquet')")


def _csv(view: str, out: Path) -> str:
    return _rows(view, f"read_csv('{out}/rows.csv', header = true, all_varchar = true)")


def _spark(view: str, out: Path) -> str:
    files = f"read_parquet('{out}/changes/*/*.parquet')"
    return _signed(view, files, "w") if shape(view) in ("q1", "q4") else _latest(view, files)


def _flink(view: str, out: Path) -> str:
    names = ", ".join(f"'{name}': 'VARCHAR'" for name in ("op", *RESULTS[shape(view)]))
    files = f"read_csv('{out}/changes/*', header = false, columns = {{{names}}})"
    return _signed(view, files, "CASE WHEN op IN ('INSERT', 'UPDATE_AFTER') THEN 1 ELSE -1 END")


def _pathway(view: str, out: Path) -> str:
    files = f"read_csv('{out}/changes/changes.csv', header = true, all_varchar = true)"
    return _signed(view, files, "diff::INTEGER")


FORMS = {"parquet": _parquet, "csv": _csv, "spark": _spark, "flink": _flink, "pathway": _pathway}
"""What systems leave, and how the view is made of it."""
