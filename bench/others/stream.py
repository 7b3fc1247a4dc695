"""The change stream that all systems take in: made once, and written in the form each of them reads.

An operation is a put or a delete of a row by its key, with the row it found, in one order over
all tables; whatever a system is fed with says the same.

| file | what is in it | who reads it |
|---|---|---|
| ``operations-TABLE.arrow`` | its number, whether it is a put, the row, the row before | Everview, DuckDB, Pathway |
| ``rounds/TABLE-NUMBER.csv`` | the operations of a round: number, put or not, the row | PostgreSQL |
| ``signed/TABLE/NUMBER.parquet`` | rows with weight +1 and −1, in pieces | Structured Streaming |
| ``changes/TABLE/HALF.json`` | messages as Debezium's; all changes of a key are in one half, in order | Flink |

Streams begin with empty tables. A round is 10,000 operations, over all tables: 85 % puts and then 15 % deletes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from bench.others.views import CENTS, COLUMNS, HALVES, PIECE, ROUND, tables
from bench.workloads.synthetic import Stream


@dataclass(frozen=True)
class Size:
    """How large the tables of a stream become."""

    keys: int
    groups: int


FULL = Size(100_000, 10_000)
QUICK = Size(2_000, 200)


def operations(view: str, count: int, size: Size, seed: int) -> dict[str, pa.Table]:
    """Operations by table, with the numbers they have among all, and what they found."""
    names = tables(view)
    groups = size.keys // 2 if view == "q4" else size.groups
    found = {}
    for place, name in enumerate(names):
        stream = Stream(name, size.keys // len(names), groups, seed + place)
        share = ROUND // len(names)
        parts = []
        for number, (rows, dead) in enumerate(stream.batches(count // len(names), share)):
            if view == CENTS:
                amounts = np.random.default_rng([seed, number]).lognormal(4, 3, rows.num_rows)
                rows = rows.set_column(rows.schema.get_field_index("c3"), "c3", pa.array(np.round(amounts, 2)))
            first = number * ROUND + place * share
            both = pa.concat_tables([rows, dead], promote_options="default")
            both = both.append_column("put", pa.array(np.arange(both.num_rows) < rows.num_rows))
            parts.append(both.append_column("number", pa.array(np.arange(first, first + both.num_rows))))
        found[name] = _with_before(pa.concat_tables(parts), COLUMNS[name])
    return found


def _with_before(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """With the row that each operation finds, where there is one: ``old_c1`` and so on."""
    with duckdb.connect() as connection:
        connection.register("operations", rows)
        before = ", ".join(f"lag({name}) OVER same AS old_{name}" for name in columns if name != "k")
        return connection.sql(
            f"SELECT *, coalesce(lag(put) OVER same, false) AS found, {before} FROM operations "
            "WINDOW same AS (PARTITION BY k ORDER BY number) ORDER BY number"
        ).to_arrow_table()


def left(found: dict[str, pa.Table], count: int) -> dict[str, pa.Table]:
    """The rows of the tables after so many operations."""
    kept = {}
    for name, rows in found.items():
        with duckdb.connect() as connection:
            connection.register("operations", rows)
            kept[name] = connection.sql(
                f"SELECT {', '.join(COLUMNS[name])} FROM operations WHERE number < {count} "
                "QUALIFY row_number() OVER (PARTITION BY k ORDER BY number DESC) = 1 AND put"
            ).to_arrow_table()
    return kept


# ------------------------------------------------------------------ files


def save(found: dict[str, pa.Table], count: int, form: str, folder: Path) -> None:
    """Write the first so many operations in the form that is wanted."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in found.items():
        with duckdb.connect() as connection:
            connection.register("every", rows)
            connection.sql(f"CREATE VIEW operations AS SELECT * FROM every WHERE number < {count}")
            _FORMS[form](connection, name, count, folder)


def _arrow(connection: duckdb.DuckDBPyConnection, name: str, count: int, folder: Path) -> None:
    rows = connection.sql("SELECT * FROM operations ORDER BY number").to_arrow_table()
    with pa.OSFile(str(folder / f"operations-{name}.arrow"), "wb") as file, pa.ipc.new_file(file, rows.schema) as out:
        out.write_table(rows)


def _rounds(connection: duckdb.DuckDBPyConnection, name: str, count: int, folder: Path) -> None:
    (folder / "rounds").mkdir(exist_ok=True)
    columns = ", ".join(COLUMNS[name])
    for number in range(count // ROUND):
        connection.sql(
            f"SELECT number, put, {columns} FROM operations WHERE number // {ROUND} = {number} ORDER BY number"
        ).write_csv(str(folder / "rounds" / f"{name}-{number:05}.csv"), header=False)


def _signed(connection: duckdb.DuckDBPyConnection, name: str, count: int, folder: Path) -> None:
    """What each operation takes away, and what it adds."""
    (folder / "signed" / name).mkdir(parents=True, exist_ok=True)
    others = [column for column in COLUMNS[name] if column != "k"]
    for number in range(-(-count // PIECE)):
        part = f"number // {PIECE} = {number}"
        connection.sql(
            f"SELECT k, {', '.join(f'old_{one} AS {one}' for one in others)}, -1 AS w FROM operations "
            f"WHERE found AND {part} UNION ALL "
            f"SELECT k, {', '.join(others)}, 1 FROM operations WHERE put AND {part}"
        ).write_parquet(str(folder / "signed" / name / f"{number:05}.parquet"))


def _changes(connection: duckdb.DuckDBPyConnection, name: str, count: int, folder: Path) -> None:
    """Messages as Debezium writes them, with the row before and after."""
    (folder / "changes" / name).mkdir(parents=True, exist_ok=True)
    others = [column for column in COLUMNS[name] if column != "k"]
    before, after = (
        "'{\"k\":' || k || " + " || ".join(f"',\"{one}\":' || {prefix}{one}" for one in others) + " || '}'"
        for prefix in ("old_", "")
    )
    for half in range(HALVES):
        connection.sql(
            f"SELECT '{{\"before\":' || CASE WHEN found THEN {before} ELSE 'null' END || "
            f"',\"after\":' || CASE WHEN put THEN {after} ELSE 'null' END || "
            "',\"op\":\"' || CASE WHEN NOT put THEN 'd' WHEN found THEN 'u' ELSE 'c' END || '\"}' "
            f"FROM operations WHERE k % {HALVES} = {half} ORDER BY number"
        ).write_csv(
            str(folder / "changes" / name / f"{half}.json"), header=False, quotechar="", escapechar="", sep="\x01"
        )


def read(folder: Path, table: str) -> pa.Table:
    """What was written as Arrow."""
    with pa.memory_map(str(folder / f"operations-{table}.arrow")) as file:
        return pa.ipc.open_file(file).read_all()


def rounds(folder: Path, view: str) -> Iterator[list[tuple[str, pa.Table]]]:
    """Operations by table, round by round."""
    found = [(name, read(folder, name)) for name in tables(view)]
    share = ROUND // len(found)
    for low in range(0, max(rows.num_rows for _, rows in found), share):
        yield [(name, rows.slice(low, share)) for name, rows in found]


_FORMS = {"arrow": _arrow, "rounds": _rounds, "signed": _signed, "changes": _changes}


class Files:
    """Streams, made when they are first wanted, and their files."""

    def __init__(self, folder: Path, size: Size, seed: int) -> None:
        self._folder, self._size, self._seed = folder, size, seed
        self._made: dict[str, tuple[int, dict[str, pa.Table]]] = {}

    def files(self, view: str, count: int, form: str) -> Path:
        """The first so many operations in a form."""
        folder = self._folder / f"{file_name(_kind(view))}-{count}-{form}"
        if not folder.exists():
            save(self._operations(view, count), count, form, folder)
        return folder

    def rows(self, view: str, count: int) -> dict[str, pa.Table]:
        """The base rows after so many."""
        return left(self._operations(view, count), count)

    def _operations(self, view: str, count: int) -> dict[str, pa.Table]:
        """At least so many. A longer stream begins like a shorter one."""
        kind = _kind(view)
        if kind not in self._made or self._made[kind][0] < count:
            self._made[kind] = count, operations(kind, count, self._size, self._seed)
        return self._made[kind][1]


def _kind(view: str) -> str:
    """Views over one stream share it."""
    return "q1" if view in ("q1", "q2", "q3") else view


def file_name(view: str) -> str:
    return view.replace(", ", "-")
