"""Numbers for equal rows, which condensing and grouping use.

Equal values get equal numbers, counted from zero in the order in which they first
appear, so that a group is a number and a table of groups is an array.

A column is one or more **words** of 64 bits, equal where its values are: the bits of a number (so
0.0 and −0.0 are two values, and equal NaNs are one), the number of a text among the texts of the
column, the words of a struct's fields or an array's items; of a list, the number of the bytes of its items' numbers.
Rows of several words are mixed into one, which is numbered, and compared with the first row of
their number: if two different rows were mixed into the same word, pairs of words are numbered one
after the other instead, which is slower and always right.

Arrow can group by several columns at once, but its hash depends little on a number's high
bits: 100,000 whole numbers in a DOUBLE column took it 1.2 s, keys of eight bytes 12 s.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
Word = npt.NDArray[np.uint64]

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_STIR = np.uint64(0xBF58476D1CE4E5B9)
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


@dataclass(frozen=True)
class Numbers:
    """A number for each row, all below ``count``."""

    of_rows: Ints
    count: int

    def first(self) -> Ints:
        """The index at which each number first appears; rising."""
        found = np.empty(self.count, np.int64)
        found[self.of_rows[::-1]] = np.arange(len(self.of_rows) - 1, -1, -1)
        return found

    def last(self) -> Ints:
        """The index at which each number last appears."""
        found = np.empty(self.count, np.int64)
        found[self.of_rows] = np.arange(len(self.of_rows))
        return found

    def sums(self, weights: Ints) -> Ints:
        """The sum of the weights of each number's rows."""
        if len(weights) and int(np.abs(weights).max()) * len(weights) >= 1 << 53:
            exact = np.zeros(self.count, np.int64)
            np.add.at(exact, self.of_rows, weights)
            return exact
        return np.bincount(self.of_rows, weights, self.count).astype(np.int64)


def column_numbers(column: pa.Array | pa.ChunkedArray) -> Numbers:
    """Numbers of the values of one column; null is a value."""
    return row_numbers([column])


def row_numbers(columns: Iterable[pa.Array | pa.ChunkedArray]) -> Numbers:
    """Numbers of rows; of at least one column."""
    words = [word for column in columns for word in _words(column)]
    if len(words) == 1:
        return _numbered(pa.array(words[0]))
    numbers = _numbered(pa.array(_mixed(words)))
    alike = numbers.first()[numbers.of_rows]
    if numbers.count == len(alike) or all(np.array_equal(word, word[alike]) for word in words):
        return numbers
    return _pair_by_pair(words)


def same_values(left: pa.Array | pa.ChunkedArray, right: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Whether the values of two columns of one type are equal bit by bit, row by row."""
    found = np.ones(len(left), np.bool_)
    for word in _words(pa.concat_arrays([_one(left), _one(right)])):
        found &= word[: len(left)] == word[len(left) :]
    return found


def _numbered(values: pa.Array) -> Numbers:
    encoded = pc.dictionary_encode(values, null_encoding="encode")
    return Numbers(encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary))


def _mixed(words: Sequence[Word]) -> Word:
    found = words[0] * _SPREAD
    for word in words[1:]:
        found ^= found >> np.uint64(31)
        found *= _STIR
        found += word * _SPREAD
    return found


def _pair_by_pair(words: Sequence[Word]) -> Numbers:
    found = _numbered(pa.array(words[0]))
    for word in words[1:]:
        beside = _numbered(pa.array(word))
        found = _numbered(pa.array(found.of_rows * beside.count + beside.of_rows))
    return found


# ------------------------------------------------------------------ words of a column


def _one(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    if not column.num_chunks:
        return pa.nulls(0, column.type)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _words(column: pa.Array | pa.ChunkedArray) -> list[Word]:
    values = _one(column)
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    kind = values.type
    there = None
    if values.null_count:
        there = values.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_struct(kind):
        found = [word for field in values.flatten() for word in _words(field)]
    elif pa.types.is_list(kind) or pa.types.is_map(kind):
        found = _words_of_bytes(_lists(values))
    elif pa.types.is_fixed_size_list(kind):
        items = values.values.slice(values.offset * kind.list_size, len(values) * kind.list_size)
        found = [part for word in _words(items) for part in word.reshape(-1, kind.list_size).T]
    elif pa.types.is_boolean(kind):
        found = [values.cast(pa.uint8()).fill_null(0).to_numpy().astype(np.uint64)]
    elif _width(kind):
        found = _words_of_bits(values, _width(kind))
    else:
        found = _words_of_bytes(values)
    return found if there is None else [*(np.where(there, word, 0) for word in found), there.astype(np.uint64)]


def _width(kind: pa.DataType) -> int:
    """Bytes of a value; 0 if values differ in length."""
    try:
        return int(kind.bit_width) // 8
    except ValueError:
        return 0


def _words_of_bits(values: pa.Array, width: int) -> list[Word]:
    count = len(values)
    held = np.frombuffer(values.buffers()[1] or b"", np.uint8, count * width, values.offset * width)
    if width in _UNSIGNED:
        return [held.view(_UNSIGNED[width]).astype(np.uint64, copy=False)]
    return _cut(held.reshape(count, width))


def _words_of_bytes(values: pa.Array) -> list[Word]:
    if pa.types.is_large_binary(values.type) and len(values) and not values.null_count:
        places = np.frombuffer(values.buffers()[1], np.int64)[values.offset : values.offset + len(values) + 1]
        width = int(places[1] - places[0])
        if 0 < width <= 16 and (np.diff(places) == width).all():
            held = np.frombuffer(values.buffers()[2], np.uint8, len(values) * width, int(places[0]))
            return _cut(held.reshape(len(values), width))
    return [_numbered(values).of_rows.view(np.uint64)]


def _cut(held: npt.NDArray[np.uint8]) -> list[Word]:
    """Rows of bytes as words, the last one filled up with zeros."""
    count, width = held.shape
    if width % 8:
        filled = np.zeros((count, -(-width // 8) * 8), np.uint8)
        filled[:, :width] = held
        held = filled
    words = held.view(np.uint64)
    return [np.ascontiguousarray(words[:, number]) for number in range(words.shape[1])]


def _lists(values: pa.ListArray) -> pa.LargeBinaryArray:
    """Lists as the bytes of their items' numbers."""
    if not len(values):
        return pa.array([], pa.large_binary())
    places = values.offsets.to_numpy().astype(np.int64)
    items = column_numbers(values.values.slice(places[0], places[-1] - places[0])).of_rows
    held = [None, pa.py_buffer((places - places[0]) * 8), pa.py_buffer(items)]
    found = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(values), held)
    return pc.if_else(values.is_valid(), found, pa.scalar(None, pa.large_binary())) if values.null_count else found
