"""Records into columns, all rows at once.

Every slot of every row is read by one numpy gather out of the joined bytes,
at positions computed from where the rows start, and variable bytes by one Arrow ``take``.

The trick for variable bytes: given where each value starts and ends, the sequence
start, end, start, end, … is a column of offsets whose even elements are the values and
whose odd ones are what lies between them. ``take`` of the even ones copies at C speed::

    ..abc....de.   values at 2–5 and 9–11
    offsets 2 5 9 11   →   "abc", "....", "de"   →   take 0, 2   →   "abc", "de"

Bytes are not trusted. Before a gather, its positions are known to lie inside the rows
they belong to; ends that run backwards or do not meet the end of the row, set bits
beyond the last column, null values with bytes, and text that is not UTF-8 are
:class:`Broken`. Damage that looks like good data (a flipped bit of a number) is not found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.change.types import RECORDS, Kind, Type
from everview.store.encoding import bignums, bits
from everview.store.encoding.columns import Mask, Numbers, dtype_of, from_raw, list_array
from everview.store.encoding.row_layout import END_WIDTH, Broken, Layout, slot_width
from everview.store.encoding.row_write import Integers, starts_of

_U4 = np.dtype("<u4")
_U1 = np.dtype("u1")


class RecordBytes:
    """Records in one run of bytes: where each starts (at its bitmap) and stops."""

    def __init__(self, data: npt.NDArray[np.uint8], starts: Integers, stops: Integers) -> None:
        self.data = data
        self.starts = starts
        self.stops = stops
        self._stride = self._even_stride()

    def _even_stride(self) -> int | None:
        """The distance between rows that are all equally far apart: then a view replaces a gather."""
        if len(self.starts) < 2:
            return None
        stride = int(self.starts[1] - self.starts[0])
        return stride if bool((np.diff(self.starts) == stride).all()) else None

    def slot(self, offset: int, dtype: np.dtype[Any]) -> Numbers:
        """The numbers that stand at an offset of every row."""
        if self._stride is None:
            return gather(self.data, self.starts + offset, dtype)
        first = int(self.starts[0]) + offset
        return np.ndarray((len(self.starts),), dtype, self.data, first, (self._stride,))


def gather(data: npt.NDArray[np.uint8], at: Integers, dtype: np.dtype[Any]) -> Numbers:
    """The number at each position, aligned or not."""
    if not len(at):
        return np.zeros(0, dtype)
    view: Numbers = np.ndarray((len(data) - dtype.itemsize + 1,), dtype, data, strides=(1,))
    return view[at]


def read_records(layout: Layout, rows: RecordBytes, wanted: Sequence[int]) -> list[pa.Array]:
    """The wanted columns of the records."""
    room = rows.stops - rows.starts - layout.size
    if len(room) and room.min() < 0:
        raise Broken("the row is shorter than its columns")
    if not layout.variable and room.any():
        raise Broken("the row is longer than its columns")
    bitmap = [rows.slot(byte, _U1) for byte in range(layout.bitmap)]
    marked = [bool(byte.any()) for byte in bitmap]
    spare = len(layout.types) & 7
    if spare and marked[-1] and (bitmap[-1] >> spare).any():
        raise Broken("a column that does not exist is marked null")
    spans = _spans(layout, rows, room, max(wanted, default=-1))
    columns = {}
    for i in set(wanted):
        sql = layout.types[i]
        nulls = (bitmap[i >> 3] >> (i & 7) & 1).view(np.bool_) if marked[i >> 3] else None
        if nulls is not None and not nulls.any():
            nulls = None
        if sql.width is None:
            columns[i] = _payloads(rows.data, *spans[i], nulls, sql)
        else:
            columns[i] = _fixed(rows.slot(layout.slots[i], dtype_of(sql)), sql, nulls)
    return [columns[i] for i in wanted]


def _spans(layout: Layout, rows: RecordBytes, room: Integers, last: int) -> dict[int, tuple[Integers, Integers]]:
    """Where the bytes of each variable column up to ``last`` start and end."""
    base = rows.starts + layout.size
    spans: dict[int, tuple[Integers, Integers]] = {}
    start = np.zeros(1, np.int64)
    for i in layout.variable:
        final = i == layout.variable[-1]
        if i > last and not final:
            continue
        end = rows.slot(layout.slots[i], _U4).astype(np.int64)
        if (end < start).any() or (end > room).any():
            raise Broken("the parts of the row overlap or leave it")
        if final and (end != room).any():
            raise Broken("the row is longer than its columns")
        spans[i] = (base + start, base + end)
        start = end
    return spans


def _fixed(raw: Numbers, sql: Type, nulls: Mask | None) -> pa.Array:
    try:
        return from_raw(raw, sql, nulls)
    except (ValueError, pa.ArrowInvalid) as error:
        raise Broken(str(error)) from error


def _payloads(
    data: npt.NDArray[np.uint8], starts: Integers, stops: Integers, nulls: Mask | None, sql: Type
) -> pa.Array:
    """The values whose bytes lie at these places, in rising order."""
    if nulls is not None and (starts != stops)[nulls].any():
        raise Broken("a null value has bytes")
    if sql.is_scalar:
        return _texts(data, starts, stops, nulls, sql)
    if nulls is not None:
        starts, stops = starts[~nulls], stops[~nulls]
    if sql.kind not in RECORDS:
        return _lists(data, starts, stops, nulls, sql)
    layout = Layout([child for _, child in sql.children])
    fields = read_records(layout, RecordBytes(data, starts, stops), range(len(layout.types)))
    column = pa.StructArray.from_arrays(fields, fields=list(sql.arrow))
    return column if nulls is None else column.take(pa.array(np.cumsum(~nulls) - 1, mask=nulls))


def _texts(data: npt.NDArray[np.uint8], starts: Integers, stops: Integers, nulls: Mask | None, sql: Type) -> pa.Array:
    count = len(starts)
    offsets = np.zeros(2 * count + 1, np.int32)
    if count:
        base = starts[0]
        data = data[base:]
        np.subtract(starts, base, out=offsets[0:-1:2], casting="unsafe")
        np.subtract(stops, base, out=offsets[1::2], casting="unsafe")
        offsets[-1] = offsets[-2]
    between = pa.BinaryArray.from_buffers(pa.binary(), 2 * count, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    values = between.take(pa.array(np.arange(0, 2 * count, 2), mask=nulls))
    if sql.kind is Kind.BLOB:
        return values
    if sql.kind in (Kind.BIT, Kind.BIGNUM):
        if (bits if sql.kind is Kind.BIT else bignums).damaged(values).any():
            raise Broken(f"the bytes are not those of a {sql}")
        return pa.ExtensionArray.from_storage(sql.arrow, values)
    try:
        text = values.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise Broken("a text is not UTF-8") from error
    return text if sql.kind is Kind.VARCHAR else pa.ExtensionArray.from_storage(sql.arrow, text)


def _lists(data: npt.NDArray[np.uint8], starts: Integers, stops: Integers, nulls: Mask | None, sql: Type) -> pa.Array:
    """The lists, or maps, whose blocks lie at these places; ``nulls`` says where none does."""
    if (stops - starts < END_WIDTH).any():
        raise Broken("a list is shorter than its count")
    item = sql.item
    width = slot_width(item)
    counts = gather(data, starts, _U4).astype(np.int64)
    bitmaps = (counts + 7) >> 3
    slots = starts + END_WIDTH + bitmaps
    tails = slots + counts * width
    if (tails > stops).any():
        raise Broken("a list is shorter than its items")
    ragged = np.flatnonzero(counts & 7)
    if (gather(data, slots[ragged] - 1, _U1) >> (counts[ragged] & 7)).any():
        raise Broken("an item that does not exist is marked null")
    firsts = starts_of(counts)
    numbers = np.arange(firsts[-1])
    inside = numbers - np.repeat(firsts[:-1], counts)
    bits = gather(data, np.repeat(starts + END_WIDTH, counts) + (inside >> 3), _U1)
    absent: Mask | None = (bits >> (inside & 7).astype(np.uint8) & 1).view(np.bool_)
    if absent is None or not absent.any():
        absent = None
    at = np.repeat(slots - firsts[:-1] * width, counts) + numbers * width
    if item.width is not None:
        if (tails != stops).any():
            raise Broken("a list is longer than its items")
        items = _fixed(gather(data, at, dtype_of(item)), item, absent)
    else:
        items = _variable_items(data, at, counts, firsts, tails, stops, absent, item)
    if sql.kind is Kind.ARRAY and (counts != sql.length).any():
        raise Broken("an array has another number of items")
    if sql.kind is Kind.MAP and (absent is not None or items.field(0).null_count):
        raise Broken("a map has a null key")
    if nulls is not None:
        there, counts = counts, np.zeros(len(nulls), np.int64)
        counts[~nulls] = there
    return list_array(sql, counts, items, nulls)


def _variable_items(
    data: npt.NDArray[np.uint8],
    at: Integers,
    counts: Integers,
    firsts: Integers,
    tails: Integers,
    stops: Integers,
    absent: Mask | None,
    item: Type,
) -> pa.Array:
    """The items of all lists whose slots, at ``at``, hold ends counted from the list's tail."""
    ends = gather(data, at, _U4).astype(np.int64)
    begins = np.zeros_like(ends)
    begins[1:] = ends[:-1]
    filled = counts > 0
    begins[firsts[:-1][filled]] = 0
    reached = np.zeros(len(counts), np.int64)
    reached[filled] = ends[firsts[1:][filled] - 1]
    if (ends < begins).any() or (tails + reached != stops).any():
        raise Broken("the items of a list overlap or leave it")
    base = np.repeat(tails, counts)
    return _payloads(data, base + begins, base + ends, absent, item)
