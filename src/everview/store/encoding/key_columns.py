"""Keys from columns and columns from keys, without a loop over rows.

A key column is a few segments (a matrix of bytes for neighbouring
fixed-width components, a ragged array for text) that Arrow joins row by row; reading
goes the other way with one cursor per row that all components move in step.

Writing (BIGINT, VARCHAR, INTEGER)::

    segment 1   8 bytes a row      the BIGINT
    segment 2   ragged             the text, escaped only if a 00 occurs anywhere
    segment 3   6 bytes a row      the text's end, and the INTEGER

Reading gathers fixed words at the cursors. The end of a text is known from the end of the
key where only fixed-width components follow; otherwise it is the first 00 00 at or after
the cursor, found by a binary search in the sorted list of all places with 00 00.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.types import Kind
from everview.store.encoding import bignums, bits
from everview.store.encoding.columns import Mask, Numbers, from_raw, nulls_of, raw_values
from everview.store.encoding.key_parts import END, ESCAPED, NULL, PRESENT, ZERO, Component

_BINARY = pa.large_binary()
_EMPTY = pa.scalar(b"", _BINARY)

Cursors = npt.NDArray[np.int64]


class RowRefused(ValueError):
    """A value of a column that cannot stand in a key, or a key that is damaged."""

    def __init__(self, reason: str, row: int, component: Component | None = None, null: bool = False) -> None:
        super().__init__(reason)
        self.row = row
        self.component = component
        self.null = null


# ------------------------------------------------------------------ writing


def encode(components: Sequence[Component], columns: Sequence[pa.Array]) -> pa.Array:
    """The keys of equally long columns. Raises RowRefused."""
    segments = _Segments(len(columns[0]))
    for component, column in zip(components, columns, strict=True):
        nulls = nulls_of(column)
        if nulls is not None and not component.part.nullable:
            raise RowRefused("null in a key", int(np.argmax(nulls)), component, null=True)
        if component.words:
            _write_words(segments, component, column, nulls)
        else:
            _write_text(segments, component, column, nulls)
    return segments.joined()


class _Segments:
    """The pieces that make up the keys, in order. Neighbouring words become one piece."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._pieces: list[pa.Array] = []
        self._words: list[Numbers] = []

    def add_words(self, words: Sequence[Numbers]) -> None:
        self._words.extend(words)

    def add_constant(self, byte: int, times: int = 1) -> None:
        self._words.extend([np.broadcast_to(np.uint8(byte), self.count)] * times)

    def add_ragged(self, piece: pa.Array) -> None:
        self._flush()
        self._pieces.append(piece)

    def _flush(self) -> None:
        if self._words:
            self._pieces.append(_of_equal_length(_matrix(self._words)))
            self._words = []

    def joined(self) -> pa.Array:
        self._flush()
        if len(self._pieces) == 1:
            return self._pieces[0]
        return pc.binary_join_element_wise(*self._pieces, _EMPTY)


def _matrix(words: Sequence[Numbers]) -> npt.NDArray[np.uint8]:
    """The words of each row, big-endian, one after the other: a row of the matrix each."""
    layout = np.dtype([(f"w{i}", f">u{word.itemsize}") for i, word in enumerate(words)])
    rows = np.empty(len(words[0]), layout)
    for i, word in enumerate(words):
        rows[f"w{i}"] = word
    return rows.view(np.uint8).reshape(len(rows), layout.itemsize)


def _of_equal_length(matrix: npt.NDArray[np.uint8]) -> pa.Array:
    count, width = matrix.shape
    offsets = np.arange(0, (count + 1) * width, width, dtype=np.int64)
    return _ragged(offsets, matrix)


def _ragged(offsets: Cursors, data: Any, nulls: Mask | None = None) -> pa.Array:
    validity = None if nulls is None else pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    return pa.Array.from_buffers(_BINARY, len(offsets) - 1, [validity, pa.py_buffer(offsets), pa.py_buffer(data)])


def _write_words(segments: _Segments, component: Component, column: pa.Array, nulls: Mask | None) -> None:
    assert component.words is not None
    raw = raw_values(column, component.part.type)
    if component.refuses_nan:
        wrong = np.isnan(raw)
        if nulls is not None:
            wrong &= ~nulls
        if wrong.any():
            raise RowRefused("NaN in a key", int(np.argmax(wrong)), component)
    words = component.words.split(raw)
    if component.part.nullable:
        present = np.uint8(PRESENT) if nulls is None else np.where(nulls, np.uint8(NULL), np.uint8(PRESENT))
        words.insert(0, np.broadcast_to(present, len(raw)))
    if component.part.descending:
        words = [~word for word in words]
    if nulls is None:
        segments.add_words(words)
        return
    matrix = _matrix(words)
    kept = np.ones(matrix.shape, np.bool_)
    kept[nulls, 1:] = False
    offsets = np.zeros(len(raw) + 1, np.int64)
    np.cumsum(np.where(nulls, 1, matrix.shape[1]), out=offsets[1:])
    segments.add_ragged(_ragged(offsets, matrix[kept]))


def _write_text(segments: _Segments, component: Component, column: pa.Array, nulls: Mask | None) -> None:
    text = column.storage if isinstance(column, pa.ExtensionArray) else column
    text = (bits.texts(text) if component.part.type.kind is Kind.BIT else text).cast(_BINARY)
    if not component.open_ended and _any_zero(_bytes_of(text)[1]):
        text = pc.replace_substring(text, ZERO, ESCAPED)
    if nulls is None and not component.part.descending:
        if component.part.nullable:
            segments.add_constant(PRESENT)
        segments.add_ragged(text)
        if not component.open_ended:
            segments.add_constant(END[0], times=len(END))
        return
    before = bytes([PRESENT]) if component.part.nullable else b""
    after = b"" if component.open_ended else END
    whole = pc.binary_join_element_wise(pa.scalar(before, _BINARY), text, pa.scalar(after, _BINARY), _EMPTY)
    if nulls is not None:
        whole = pc.fill_null(whole, pa.scalar(bytes([NULL]), _BINARY))
    segments.add_ragged(_inverted(whole) if component.part.descending else whole)


def _bytes_of(array: pa.Array) -> tuple[Cursors, npt.NDArray[np.uint8]]:
    """Offsets and bytes of a large binary array; the offsets begin at 0."""
    if len(array) == 0:
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    offsets = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array) + 1]
    held = array.buffers()[2]
    data = np.zeros(0, np.uint8) if held is None else np.frombuffer(held, np.uint8)[offsets[0] : offsets[-1]]
    return offsets - offsets[0], data


def _any_zero(data: npt.NDArray[np.uint8]) -> bool:
    return int(np.count_nonzero(data)) != len(data)


def _inverted(array: pa.Array) -> pa.Array:
    offsets, data = _bytes_of(array)
    return _ragged(offsets, ~data)


# ------------------------------------------------------------------ reading


def decode(components: Sequence[Component], keys: pa.Array) -> list[pa.Array]:
    """The columns of keys. Raises RowRefused for the first key that is damaged."""
    nulls = nulls_of(keys)
    if nulls is not None:
        raise RowRefused("there is no key", int(np.argmax(nulls)))
    reader = _Reader(keys)
    columns = []
    for i, component in enumerate(components):
        rest = [later.width for later in components[i + 1 :]]
        if component.words:
            columns.append(reader.words(component))
        else:
            columns.append(reader.text(component, None if None in rest else sum(width or 0 for width in rest)))
    reader.finish()
    return columns


class _Reader:
    """A cursor in every key; each component moves them all."""

    def __init__(self, keys: pa.Array) -> None:
        offsets, self._data = _bytes_of(keys)
        self._at: Cursors = offsets[:-1].copy()
        self._ends: Cursors = offsets[1:]
        self._pairs: dict[int, Cursors] = {}

    def finish(self) -> None:
        self._refuse(self._at != self._ends, "there are bytes after the last component")

    def _refuse(self, wrong: Mask, reason: str) -> None:
        if wrong.any():
            raise RowRefused(reason, int(np.argmax(wrong)))

    def _nulls(self, component: Component) -> Mask | None:
        """Read the markers of a component that may be null."""
        if not component.part.nullable:
            return None
        self._refuse(self._at >= self._ends, "the bytes end before the marker")
        markers = self._data[self._at]
        if component.part.descending:
            markers = ~markers
        self._refuse(markers > PRESENT, "there is no such marker")
        self._at += 1
        nulls: Mask = markers == NULL
        return nulls if nulls.any() else None

    def words(self, component: Component) -> pa.Array:
        assert component.words is not None
        nulls = self._nulls(component)
        ends = self._at + component.words.width
        short = ends > self._ends
        self._refuse(short if nulls is None else short & ~nulls, "the bytes end within the value")
        words = []
        at = self._at if nulls is None else self._at[~nulls]
        for width in component.words.widths:
            word = self._gather(at, width)
            words.append(~word if component.part.descending else word)
            at = at + width
        self._at = ends if nulls is None else np.where(nulls, self._at, ends)
        try:
            present = component.words.join(words)
            if nulls is None:
                return from_raw(present, component.part.type, None)
            raw = np.zeros(len(nulls), present.dtype)
            raw[~nulls] = present
            return from_raw(raw, component.part.type, nulls)
        except ValueError as error:
            raise RowRefused(str(error), self._first_damaged(component, words, nulls)) from None

    def _gather(self, at: Cursors, width: int) -> Numbers:
        """The big-endian words that begin at the cursors, wherever in memory that is."""
        if not len(at):
            return np.zeros(0, f"u{width}")
        everywhere = np.ndarray((len(self._data) - width + 1,), f">u{width}", self._data, strides=(1,))
        return everywhere[at].astype(f"u{width}")

    def _first_damaged(self, component: Component, words: list[Numbers], nulls: Mask | None) -> int:
        """Which key it is that cannot be a value: found one by one, as it ends the work anyway."""
        rows = np.arange(len(self._at)) if nulls is None else np.flatnonzero(~nulls)
        assert component.words is not None
        for row, held in zip(rows.tolist(), zip(*(word.tolist() for word in words), strict=True), strict=True):
            try:
                component.words.lift(held)
            except OverflowError:
                continue
            except ValueError:
                return int(row)
        return 0

    def text(self, component: Component, rest: int | None) -> pa.Array:
        """``rest``: the bytes that follow this component in every key, if that is one number."""
        nulls = self._nulls(component)
        ends = self._ends if component.open_ended else self._text_ends(component, rest, nulls)
        if nulls is not None:
            ends = np.where(nulls, self._at, ends)
        offsets, data = self._cut(self._at, ends)
        if component.open_ended:
            self._at = ends
        else:
            self._at = ends + len(END) if nulls is None else np.where(nulls, ends, ends + len(END))
            if component.part.descending:
                data = ~data
            if _any_zero(data):
                offsets, data = self._unescaped(offsets, data)
        text = _ragged(offsets, data, nulls)
        return _typed(component, text)

    def _text_ends(self, component: Component, rest: int | None, nulls: Mask | None) -> Cursors:
        """Where the end mark of each text stands."""
        zero = 255 if component.part.descending else 0
        present = slice(None) if nulls is None else ~nulls
        ends = self._at.copy()
        if rest is not None:
            ends[present] = self._ends[present] - rest - len(END)
            wrong = ends < self._at
            self._refuse(wrong, "the text has no end")
            at = ends[present]
            unmarked = np.zeros(len(ends), np.bool_)
            unmarked[present] = (self._data[at] != zero) | (self._data[at + 1] != zero)
            self._refuse(unmarked, "the text has no end")
            return ends
        pairs = self._places_of_pairs(zero)
        found = np.searchsorted(pairs, self._at[present])
        ends[present] = np.append(pairs, len(self._data))[found]
        wrong = np.zeros(len(ends), np.bool_)
        wrong[present] = ends[present] + len(END) > self._ends[present]
        self._refuse(wrong, "the text has no end")
        return ends

    def _places_of_pairs(self, byte: int) -> Cursors:
        if byte not in self._pairs:
            same = self._data == byte
            self._pairs[byte] = np.flatnonzero(same[:-1] & same[1:])
        return self._pairs[byte]

    def _cut(self, starts: Cursors, ends: Cursors) -> tuple[Cursors, npt.NDArray[np.uint8]]:
        """The bytes between starts and ends: the array value, gap, value, gap … without its gaps."""
        count = len(starts)
        if not count:
            return np.zeros(1, np.int64), self._data
        bounds = np.empty(2 * count + 1, np.int64)
        bounds[0:-1:2] = starts
        bounds[1::2] = ends
        bounds[-1] = ends[-1]
        pieces = _ragged(bounds, self._data)
        return _bytes_of(pieces.take(pa.array(np.arange(0, 2 * count, 2))))

    def _unescaped(self, offsets: Cursors, data: npt.NDArray[np.uint8]) -> tuple[Cursors, npt.NDArray[np.uint8]]:
        text = _ragged(offsets, data)
        bare = pc.not_equal(pc.count_substring(text, ZERO), pc.count_substring(text, ESCAPED))
        self._refuse(bare.to_numpy(zero_copy_only=False), "the text has a 00 that is not escaped")
        return _bytes_of(pc.replace_substring(text, ESCAPED, ZERO))


def _typed(component: Component, text: pa.Array) -> pa.Array:
    """Bytes as a column of the component's type."""
    sql = component.part.type
    try:
        if sql.kind is Kind.JSON:
            return pa.ExtensionArray.from_storage(sql.arrow, text.cast(sql.arrow.storage_type))
        if sql.kind is Kind.BIT:
            try:
                return pa.ExtensionArray.from_storage(sql.arrow, bits.from_texts(text))
            except ValueError as error:
                wrong = pc.invert(pc.fill_null(pc.match_substring_regex(text, "^[01]+$"), True))
                raise RowRefused(str(error), pc.index(wrong, True).as_py()) from None
        if sql.kind is Kind.BIGNUM:
            held = text.cast(sql.arrow.storage_type)
            damaged = bignums.damaged(held)
            if damaged.any():
                raise RowRefused("the bytes are not those of a BIGNUM", int(np.argmax(damaged)))
            return pa.ExtensionArray.from_storage(sql.arrow, held)
        return text.cast(sql.arrow)
    except pa.ArrowInvalid:
        for row, held in enumerate(text.to_pylist()):
            try:
                held is None or held.decode()
            except UnicodeDecodeError:
                raise RowRefused("the text is not UTF-8", row) from None
        raise
