"""An UPDATE that changes keys must not give two rows the same key."""

from __future__ import annotations

import pyarrow as pa

from everview.client.answers import Answer, AnswerSource, Connections
from everview.client.result import ResultColumn
from everview.errors import InputError
from everview.plan.expressions import quoted
from everview.store.contract import Table, TableSnapshot
from everview.store.encoding.columns import to_python


def refuse_collisions(
    connections: Connections, table: Table, snapshot: TableSnapshot, old: pa.Table, new: pa.Table
) -> None:
    """Refuse new keys that repeat, or that belong to rows whose keys do not change."""
    key = list(table.schema.key)
    names = ", ".join(map(quoted, key))
    twice = f"SELECT {names} FROM new GROUP BY ALL HAVING count(*) > 1 LIMIT 1"
    _refuse(connections, table, twice, {"new": new}, "two of the rows that UPDATE changes would have the key")
    there = snapshot.table(table).get_many(new).select(key)
    kept = f"SELECT {names} FROM there ANTI JOIN old USING ({names}) LIMIT 1"
    _refuse(connections, table, kept, {"there": there, "old": old}, "UPDATE would give a row the key of another:")


def _refuse(connections: Connections, table: Table, sql: str, tables: dict[str, pa.Table], what: str) -> None:
    parts = table.schema.key_parts
    sources = {name: AnswerSource(rows.schema, rows.to_batches) for name, rows in tables.items()}
    found = Answer(connections, sql, [ResultColumn(part.name, part.type) for part in parts], sources).table()
    if found.num_rows:
        key = [to_python(found.column(at).combine_chunks(), part.type)[0] for at, part in enumerate(parts)]
        raise InputError(
            f"table {table.name}: {what} ({', '.join(map(repr, key))})",
            detail="a key belongs to one row",
            hint="delete the other row first, or choose other keys",
        )
