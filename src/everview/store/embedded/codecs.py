"""What is derived from a base table's definition, made once per definition."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from everview.errors import ConflictError, KeyTooLongError, UnknownObjectError
from everview.store.contract import Table
from everview.store.embedded.environment import KEY_LIMIT, Transaction
from everview.store.embedded.layout import COUNT, KEY_PREFIX, ROW, table_id
from everview.store.embedded.metadata import document_key
from everview.store.encoding.keys import KeyCodec
from everview.store.encoding.rows import RowCodec
from everview.store.intake import Intake

MAX_KEY = KEY_LIMIT - KEY_PREFIX
"""The longest encoded key a row may have."""


class TableCodecs:
    """Everything that is derived from a table's definition, made once."""

    def __init__(self, table: Table) -> None:
        self.table = table
        where = f"table {table.name}"
        self.keys = KeyCodec(table.schema.key_parts, where=where)
        self.rows = RowCodec(table.schema, where=where)
        self.intake = Intake(table, self.keys)
        self.prefix = ROW + table_id(table.id)
        self.count_key = COUNT + table_id(table.id)
        self.document_key = document_key(f"table/{table.id}")
        self.names = tuple(column.name for column in table.schema.values)
        self.required = tuple(column.name for column in table.schema.values if not column.nullable)

    def checked_key(self, key: bytes) -> bytes:
        if len(key) > MAX_KEY:
            raise too_long(self.table, self.keys.decode(key), len(key))
        return key

    def check_definition(self, transaction: Transaction) -> None:
        """Refuse to write under a definition that is gone or was changed."""
        found = transaction.get(self.document_key)
        if found != self.table.stamp:
            if found is None:
                raise UnknownObjectError(f"table {self.table.name} was dropped")
            raise ConflictError(
                f"the definition of table {self.table.name} was changed by somebody else", hint="open the table again"
            )

    def add_to_count(self, transaction: Transaction, difference: int) -> None:
        if difference:
            count = int.from_bytes(transaction.get(self.count_key) or b"", "big") + difference
            transaction.put(self.count_key, count.to_bytes(8, "big"))

    def decode(self, keys: Sequence[bytes], rows: Sequence[bytes]) -> pa.RecordBatch:
        """Rows as columns of the table's schema."""
        key_columns = self.keys.decode_columns(pa.array(keys, pa.large_binary()))
        value_columns = self.rows.decode_columns(pa.array(rows, pa.large_binary()))
        schema = self.table.schema
        by_name = dict(zip((*schema.key, *self.names), (*key_columns, *value_columns), strict=True))
        return pa.RecordBatch.from_arrays([by_name[name] for name in schema.names], schema=schema.arrow)


def too_long(table: Table, key: tuple[object, ...], length: int) -> KeyTooLongError:
    return KeyTooLongError(
        f"table {table.name}, key {shown_key(key)}: the key is too long",
        detail=f"it takes {length} bytes, and at most {MAX_KEY} fit",
        hint="use a shorter key, for example a hash of the long column",
    )


def shown_key(key: tuple[object, ...]) -> str:
    text = ", ".join(repr(part) for part in key)
    return f"({text if len(text) <= 60 else text[:57] + '…'})"
