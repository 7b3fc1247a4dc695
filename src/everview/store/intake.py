"""Taking in what users hand over: checked, canonical, or refused before anything is written.

A quick way takes what is right, a careful way explains what is wrong, and
the careful way for many rows is the one for a single row, so the errors are the same.

A row is a mapping from column names to Python values. Many rows come as a list of such
mappings, which need not name the same columns, or as an Arrow table. Out of both come
columns of exactly the table's types and, per value column, which rows name it::

    many([{"id": 1, "amount": 2}, {"id": 2, "note": None}])
    keys    id      1, 2
    values  amount  2.0, null     given  yes, no
            note    null, null    given  no, yes

An error names the table, the key of the row and the column.

Where a table's key is hidden, rows come without it and get fresh ids. Only an Arrow table may
name it: that is how rows which are there already are written again.
"""

from __future__ import annotations

import datetime
import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from everview.change.schema import ROW_ID, Column
from everview.change.types import FLOATS, INTEGERS, Kind, Type
from everview.errors import InputError, MissingColumnError, UnknownColumnError, ValueTypeError
from everview.store.contract import Table
from everview.store.encoding.columns import Mask, one_array, raw_values, to_arrow, to_python
from everview.store.encoding.fitting import Unfit, first_misfit, fit
from everview.store.encoding.keys import KeyCodec
from everview.store.encoding.refused_values import a
from everview.store.encoding.values import Checker, Refused, checker, refusal, shown
from everview.store.row_ids import row_ids


@dataclass(frozen=True)
class Incoming:
    """Checked rows in columns: the key's, and all value columns, null where a row does not
    name them. ``given`` says per value column whether all rows, none, or which name it."""

    keys: list[pa.Array]
    values: list[pa.Array]
    given: list[bool | Mask]

    def __len__(self) -> int:
        return len(self.keys[0])


class Intake:
    """Checks what is written to one table."""

    def __init__(self, table: Table, key_codec: KeyCodec) -> None:
        self._table = table
        self._where = f"table {table.name}"
        self._schema = schema = table.schema
        self._hidden = schema.hidden_key
        self._key_columns = tuple(schema.column(name) for name in schema.key)
        self._key_names = frozenset(schema.key)
        self._key_hint = f"the key is ({', '.join(f'{part.name} {part.type}' for part in key_codec.parts)})"
        self._key_checks = [(c.name, _without_nan(c.type)) for c in self._key_columns]
        self._checks = {column.name: checker(column.type) for column in schema.values}
        self._required = frozenset(column.name for column in schema.values if not column.nullable)

    # -------------------------------------------------------------- one row

    def row(self, row: Mapping[str, object]) -> tuple[tuple[object, ...], dict[str, object]]:
        """The key's values in key order, and the named value columns, all canonical."""
        if type(row) is not dict:
            row = _plain(row)
        if self._hidden:
            row = self._with_id(row)
        try:
            key = tuple([check(row[name]) for name, check in self._key_checks])
            checks, key_names = self._checks, self._key_names
            given: dict[str, object] = {}
            for name, value in row.items():
                if value is not None:
                    if name not in key_names:
                        given[name] = checks[name](value)
                elif name in self._required or name not in checks:
                    raise Refused("null")
                else:
                    given[name] = None
        except (Refused, LookupError, TypeError, AttributeError) as error:
            problem = error
        else:
            return key, given
        self._explain(row)
        raise problem

    def _with_id(self, row: object) -> Any:
        """A new row with an id of its own."""
        if not isinstance(row, dict):
            return row
        if ROW_ID in row:
            raise self._unknown(ROW_ID)
        return {ROW_ID: to_python(row_ids(1), self._key_columns[0].type)[0], **row}

    def _explain(self, row: object) -> None:
        """Raise the error for what is wrong with a row."""
        if not isinstance(row, Mapping):
            raise InputError(
                f"{self._where} cannot take {shown(row)} as a row",
                detail=f"{a(type(row).__name__)} is not a mapping from column names to values",
                hint="hand over a dict",
            )
        for name in row:
            self._check_known(name)
        self._explain_key([row[name] for name in self._schema.key if name in row])
        for name in self._schema.key:
            if name not in row:
                raise self._no_key_column(name)
        place = self._place(tuple(row[name] for name in self._schema.key))
        for name, value in row.items():
            if name in self._checks:
                self._check(place, self._schema.column(name), value, self._checks[name])

    def _explain_key(self, values: Sequence[object]) -> None:
        if len(values) < len(self._key_columns):
            return
        place = self._place(values)
        for column, (_, check), value in zip(self._key_columns, self._key_checks, values, strict=True):
            self._check(place, column, value, check)

    def _check(self, place: str, column: Column, value: object, check: Checker) -> None:
        if value is None:
            if not column.nullable:
                raise self._null(place, column)
            return
        try:
            check(value)
        except Refused as reason:
            raise refusal(f"{place}: {self._named(column)}", value, column.type, reason) from None

    # -------------------------------------------------------------- many rows

    def many(self, rows: pa.Table | pa.RecordBatch | Sequence[Mapping[str, object]]) -> Incoming:
        """Many rows at once: from Arrow, whatever offers Arrow's stream, or mappings."""
        table = _as_table(rows)
        return self._from_rows(self._listed(rows)) if table is None else self._from_arrow(table)

    def _listed(self, rows: object) -> list[Any]:
        if isinstance(rows, (Mapping, str, bytes)) or not isinstance(rows, Iterable):
            raise InputError(
                f"{self._where} cannot take {shown(rows)} as rows",
                hint="hand over a list of dicts or an Arrow table; a single row goes to put",
            )
        listed = list(rows)
        return listed if set(map(type, listed)) <= {dict} else [_plain(row) for row in listed]

    def _from_rows(self, rows: list[Any]) -> Incoming:
        try:
            return self._columns_of(rows)
        except (Refused, LookupError, TypeError, AttributeError, ValueError, OverflowError, pa.ArrowException) as error:
            problem = error
        for row in rows:
            self.row(row)
        raise problem

    def _columns_of(self, rows: list[Any]) -> Incoming:
        """Raises whatever it likes where something is wrong."""
        count = len(rows)
        if self._hidden:
            keys, seen = [row_ids(count)], 0
        else:
            keys = self._checked_keys([[row[name] for row in rows] for name in self._schema.key])
            seen = count * len(keys)
        values: list[pa.Array] = []
        given: list[bool | Mask] = []
        for column in self._schema.values:
            name, times, named = column.name, count, None
            try:
                handed = [row[name] for row in rows]
            except KeyError:
                named = np.fromiter((name in row for row in rows), np.bool_, count)
                times = int(np.count_nonzero(named))
                handed = [row.get(name) for row in rows] if times else []
            seen += times
            array = _column(handed, column.type) if times else pa.nulls(count, column.type.arrow)
            if not column.nullable and array.null_count != count - times:
                raise Refused("null in a NOT NULL column")
            values.append(array)
            given.append(times > 0 if named is None or not times else named)
        if sum(map(len, rows)) != seen:
            raise LookupError("an unknown column")
        return Incoming(keys, values, given)

    def _from_arrow(self, table: pa.Table) -> Incoming:
        names = table.column_names
        for i, name in enumerate(names):
            self._check_known(name)
            if name in names[:i]:
                raise InputError(f"{self._where}: column {name} stands there twice", hint="give each column once")
        new = self._hidden and ROW_ID not in names
        keys = [row_ids(table.num_rows)] if new else self._key_arrays(table)
        values: list[pa.Array] = []
        given: list[bool | Mask] = []
        for column in self._schema.values:
            if column.name not in names:
                values.append(pa.nulls(table.num_rows, column.type.arrow))
                given.append(False)
                continue
            array = self._fitted(table.column(column.name), column, keys)
            if not column.nullable and array.null_count:
                raise self._null(self._place_of(keys, _first_null(array)), column)
            values.append(array)
            given.append(True)
        return Incoming(keys, values, given)

    def _fitted(self, chunks: pa.ChunkedArray, column: Column, keys: Sequence[pa.Array] | None) -> pa.Array:
        """A column in its type; an error names the key of the row, or its number if the key
        itself is what is being fitted."""
        array = one_array(chunks.chunks) if chunks.num_chunks else pa.nulls(0, column.type.arrow)
        try:
            return fit(array, column.type)
        except Unfit as reason:
            raise ValueTypeError(
                f"{self._where}: {self._named(column)} cannot take a column of {array.type}",
                detail=str(reason),
                hint=f"cast it to {column.type.arrow}",
            ) from None
        except Refused as reason:
            at = first_misfit(array, column.type)
            place = f"{self._where}, row {at}" if keys is None else self._place_of(keys, at)
            raise self._refused_in_column(place, column, array.slice(at, 1), reason) from None

    def _refused_in_column(self, place: str, column: Column, one: pa.Array, reason: Refused) -> ValueTypeError:
        try:
            fit(one, column.type)
        except Refused as nearer:
            reason = nearer
        try:
            value = one.to_pylist()[0]
        except (ValueError, OverflowError, pa.ArrowException):  # not UTF-8, or beyond what Python holds
            value = one.cast(pa.binary()).to_pylist()[0] if pa.types.is_string(one.type) else one.type
        return refusal(f"{place}: {self._named(column)}", value, column.type, reason)

    # -------------------------------------------------------------- keys

    def keys(self, keys: pa.Table | pa.RecordBatch | pa.Array | Sequence[object]) -> list[pa.Array]:
        """The key columns of many keys: from Arrow, or from a sequence of tuples, of dicts, or,
        if the key has one column, of plain values. Value columns are passed over."""
        if isinstance(keys, (pa.Array, pa.ChunkedArray)) and len(self._key_columns) == 1:
            keys = pa.table({self._schema.key[0]: keys})
        table = _as_table(keys)
        if table is not None:
            for name in table.column_names:
                self._check_known(name)
            return self._key_arrays(table)
        if isinstance(keys, (Mapping, str, bytes)) or not isinstance(keys, Iterable):
            raise InputError(
                f"{self._where} cannot take {shown(keys)} as keys", hint=f"hand over a list; {self._key_hint}"
            )
        listed = self._tuples_of(list(keys))
        try:
            return self._checked_keys([[key[i] for key in listed] for i in range(len(self._key_columns))])
        except (Refused, TypeError, ValueError, OverflowError, pa.ArrowException) as error:
            problem = error
        for parts in listed:
            self._explain_key(parts)
        raise problem

    def _checked_keys(self, handed: Sequence[list[Any]]) -> list[pa.Array]:
        """Raises whatever it likes where something is wrong."""
        arrays = [_column(values, c.type) for values, c in zip(handed, self._key_columns, strict=True)]
        for column, array in zip(self._key_columns, arrays, strict=True):
            if array.null_count or _first_nan(array, column.type) is not None:
                raise Refused("null or NaN in a key")
        return arrays

    def _tuples_of(self, keys: list[Any]) -> list[Sequence[object]]:
        """The values of each key; the quick way is for tuples and for the values of one column."""
        kinds = set(map(type, keys))
        if kinds == {tuple} and set(map(len, keys)) == {len(self._key_columns)}:
            return keys
        if len(self._key_columns) == 1 and kinds <= {int, float, str, bytes}:
            return list(zip(keys, strict=True))
        return [self._parts_of(key) for key in keys]

    def _parts_of(self, key: object) -> Sequence[object]:
        """The values of one key, in key order, as many as there must be."""
        if isinstance(key, Mapping):
            for name in key:
                self._check_known(name)
            for name in self._schema.key:
                if name not in key:
                    raise self._no_key_column(name)
            return [key[name] for name in self._schema.key]
        parts = key if isinstance(key, (tuple, list)) else (key,)
        if len(parts) != len(self._key_columns):
            raise InputError(
                f"{self._where} cannot take {shown(key)} as a key",
                detail=f"it has {len(parts)} of {len(self._key_columns)} values",
                hint=self._key_hint,
            )
        return parts

    def _key_arrays(self, table: pa.Table) -> list[pa.Array]:
        arrays = []
        for column in self._key_columns:
            if column.name not in table.column_names:
                raise self._no_key_column(column.name)
            array = self._fitted(table.column(column.name), column, None)
            if array.null_count:
                raise self._null(f"{self._where}, row {_first_null(array)}", column)
            arrays.append(array)
        for column, array in zip(self._key_columns, arrays, strict=True):
            at = _first_nan(array, column.type)
            if at is not None:
                place = f"{self._place_of(arrays, at)}: {self._named(column)}"
                raise refusal(place, math.nan, column.type, Refused(_NO_NAN))
        return arrays

    # -------------------------------------------------------------- errors

    def _check_known(self, name: object) -> None:
        if name not in self._checks and name not in self._key_names:
            raise self._unknown(name)

    def _unknown(self, name: object) -> UnknownColumnError:
        shown = [column.name for column in self._schema.shown]
        near = difflib.get_close_matches(str(name), shown, 1, 0.5)
        return UnknownColumnError(
            f"{self._where} has no column {name}",
            hint=f"did you mean {near[0]}?" if near else f"the columns are {', '.join(shown)}",
        )

    def _no_key_column(self, name: str) -> MissingColumnError:
        return MissingColumnError(
            f"{self._where}: key column {name} has no value", detail=self._key_hint, hint=f"name {name} in every row"
        )

    def _null(self, place: str, column: Column) -> MissingColumnError:
        why = "a key has no nulls" if column.name in self._key_names else "the column is NOT NULL"
        return MissingColumnError(f"{place}: {self._named(column)} is null", detail=why, hint="give it a value")

    def _named(self, column: Column) -> str:
        return f"key column {column.name}" if column.name in self._key_names else f"column {column.name}"

    def _place(self, key: Sequence[object]) -> str:
        if self._hidden:
            return f"{self._where}, a new row"
        return f"{self._where}, key ({', '.join(shown(value) for value in key)})"

    def _place_of(self, keys: Sequence[pa.Array], at: int) -> str:
        return self._place(
            [to_python(array.slice(at, 1), c.type)[0] for array, c in zip(keys, self._key_columns, strict=True)]
        )


# ------------------------------------------------------------------ columns of values

_NO_NAN = "NaN in a key: it equals nothing, so no row could be found by it"

_QUICK: dict[Kind, type] = {
    Kind.BOOLEAN: bool,
    **{kind: int for kind, bits in INTEGERS.items() if bits <= 64},
    Kind.DOUBLE: float,
    Kind.VARCHAR: str,
    Kind.BLOB: bytes,
    Kind.DATE: datetime.date,
}
"""Where values of exactly this class are canonical, or Arrow itself refuses them."""


def _plain(row: Any) -> Any:
    """A mapping as a dict, which has no columns but those it names (a defaultdict has)."""
    return dict(row) if isinstance(row, Mapping) else row


def _column(values: list[Any], sql: Type) -> pa.Array:
    """A column of values as they were handed over."""
    quick = _QUICK.get(sql.kind)
    if quick is not None and set(map(type, values)) <= {quick, type(None)}:
        return pa.array(values, sql.arrow)
    check = checker(sql)
    return to_arrow([None if value is None else check(value) for value in values], sql)


def _without_nan(sql: Type) -> Checker:
    """The checker of a key column."""
    check = checker(sql)
    if sql.kind not in FLOATS:
        return check

    def check_float(value: object) -> object:
        number = check(value)
        if number != number:
            raise Refused(_NO_NAN)
        return number

    return check_float


def _first_nan(array: pa.Array, sql: Type) -> int | None:
    if sql.kind not in FLOATS:
        return None
    wrong = np.isnan(raw_values(array, sql))
    return int(np.argmax(wrong)) if wrong.any() else None


def _first_null(array: pa.Array) -> int:
    return int(np.argmax(array.is_null().to_numpy(zero_copy_only=False)))


def _as_table(rows: object) -> pa.Table | None:
    """Rows that are columns already, as an Arrow table."""
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if hasattr(rows, "__arrow_c_stream__") and not isinstance(rows, pa.ChunkedArray):
        return pa.table(rows)
    return None
