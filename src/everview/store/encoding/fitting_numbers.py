"""Arrow columns of numbers, brought into the one type a column has.

A number of another width or kind is taken where it is exactly a number of the column's type.

:mod:`everview.store.encoding.fitting` says what converts, and is how these are reached.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.types import INTEGERS, Kind, Type
from everview.store.encoding import bignums
from everview.store.encoding.columns import Numbers, from_raw, nulls_of, raw_values, to_arrow, to_python
from everview.store.encoding.values import Refused, checker


class Unfit(ValueError):
    """No column of that Arrow type fits; the text is the reason."""


def unfit(array: pa.Array, sql: Type) -> Unfit:
    return Unfit(f"values of the Arrow type {array.type} are not values of {sql}")


def value_by_value(array: pa.Array, sql: Type) -> pa.Array:
    """The way of single rows, for what is rare or what only Python can check."""
    check = checker(sql)
    return to_arrow([None if value is None else check(value) for value in array.to_pylist()], sql)


def is_text(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow))


def _boolean(array: pa.Array, sql: Type) -> pa.Array:
    if isinstance(array.type, pa.Bool8Type):  # how DuckDB hands over truth values, unless asked not to
        return array.storage.cast(sql.arrow)
    if not pa.types.is_boolean(array.type):
        raise unfit(array, sql)
    return array


def _integer(array: pa.Array, sql: Type) -> pa.Array:
    if array.type == sql.arrow:
        return array
    array = _narrowed(array)
    if not _is_number(array.type):
        raise unfit(array, sql)
    return array.cast(sql.arrow)


def _huge(array: pa.Array, sql: Type) -> pa.Array:
    """Arrow has no such integers: 16 bytes, of which the high half carries the sign."""
    kind = _huge_kind(array.type)
    if kind is None:
        if pa.types.is_decimal(array.type):
            halves = _halves_of_decimals(array, sql)
        elif pa.types.is_integer(array.type):
            values = array.cast(pa.uint64() if pa.types.is_unsigned_integer(array.type) else pa.int64())
            low = np.frombuffer(values.buffers()[1], "<i8")[values.offset : values.offset + len(values)]
            high = np.zeros_like(low) if values.type == pa.uint64() else low >> 63
            halves = np.stack([low, high], axis=1)
        else:
            raise unfit(array, sql)
    else:
        halves = raw_values(array, sql).view("<i8").reshape(-1, 2)
    nulls = nulls_of(array)
    checked = pa.types.is_decimal256(array.type)
    if kind is not sql.kind and not checked and (kind is Kind.UHUGEINT or sql.kind is Kind.UHUGEINT):
        negative = halves[:, 1] < 0
        if (negative if nulls is None else negative & ~nulls).any():
            raise Refused(f"a value is out of the range of {sql}")
    return from_raw(np.ascontiguousarray(halves).view("V16").reshape(-1), sql, nulls)


def _halves_of_decimals(array: pa.Array, sql: Type) -> Numbers:
    """Decimals that are whole numbers in 128 bits, low half first; those that DuckDB or we made of huge
    integers may have 39 digits."""
    if pa.types.is_decimal256(array.type) and array.type.scale == 0:
        words = np.frombuffer(array.buffers()[1] or b"", "<i8", 4 * len(array), 32 * array.offset).reshape(-1, 4)
        sign = 0 if sql.kind is Kind.UHUGEINT else words[:, 1:2] >> 63
        wrong = (words[:, 2:] != sign).any(axis=1)
        nulls = nulls_of(array)
        if (wrong if nulls is None else wrong & ~nulls).any():
            raise Refused(f"a value is out of the range of {sql}")
        return words[:, :2]
    array = array.cast(pa.decimal128(38, 0))
    halves: Numbers = raw_values(array, Type(Kind.DECIMAL, 38)).view("<i8").reshape(-1, 2)
    return halves


def _huge_kind(arrow: pa.DataType) -> Kind | None:
    return next((kind for kind in (Kind.HUGEINT, Kind.UHUGEINT) if Type(kind).arrow == arrow), None)


def _narrowed(array: pa.Array) -> pa.Array:
    """A column of huge integers in 64 bits (DuckDB's sums are huge, their values seldom)."""
    kind = _huge_kind(array.type)
    if kind is None:
        return array
    nulls = nulls_of(array)
    halves = raw_values(array, Type(kind)).view("<i8").reshape(-1, 2).copy()
    if nulls is not None:
        halves[nulls] = 0
    low, high = halves[:, 0].copy(), halves[:, 1]
    if not high.any():
        return pa.array(low.view("<u8"), mask=nulls)
    if kind is Kind.HUGEINT and (high == low >> 63).all():
        return pa.array(low, mask=nulls)
    raise Refused("a value takes more than 64 bits")


def _whole(array: pa.Array) -> pa.Array:
    """A column of huge integers, or of the decimals that they leave as, in 64 bits; any other as it is."""
    if pa.types.is_decimal(array.type) and array.type.scale == 0:
        return array.cast(pa.int64())
    return _narrowed(array)


def _is_number(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_integer(arrow) or pa.types.is_floating(arrow) or pa.types.is_decimal(arrow))


def _double(array: pa.Array, sql: Type) -> pa.Array:
    array = _whole(array)
    if pa.types.is_floating(array.type):
        return array.cast(sql.arrow)
    if not pa.types.is_integer(array.type):
        raise unfit(array, sql)
    try:
        return array.cast(sql.arrow)
    except pa.ArrowInvalid:  # beyond 53 bits Arrow gives up, though many integers are exact
        return value_by_value(array, sql)


def _real(array: pa.Array, sql: Type) -> pa.Array:
    """Floats are rounded, as those of single rows are; integers must be exact."""
    array = _whole(array)
    if pa.types.is_integer(array.type):
        return value_by_value(array, sql)
    if not pa.types.is_floating(array.type):
        raise unfit(array, sql)
    rounded = array.cast(sql.arrow)
    if array.type == pa.float64():
        beyond = pc.and_(pc.is_inf(rounded), pc.invert(pc.is_inf(array)))
        if pc.any(beyond).as_py():
            raise Refused(f"a value is out of the range of {sql}")
    return rounded


def _decimal(array: pa.Array, sql: Type) -> pa.Array:
    array = _narrowed(array)
    if pa.types.is_integer(array.type):
        array = array.cast(pa.decimal128(20, 0))
    elif not pa.types.is_decimal(array.type):
        raise unfit(array, sql)
    array = array.cast(sql.arrow)
    array.validate(full=True)
    return array


_SHORT = r"^(0|-?[1-9][0-9]{0,17})$"


def _bignum(array: pa.Array, sql: Type) -> pa.Array:
    if array.type == sql.arrow:
        return array
    kind = _huge_kind(array.type)
    if is_text(array.type):
        array.validate(full=True)
        if not pc.all(pc.match_substring_regex(array, _SHORT)).as_py():
            return value_by_value(array, sql)
        array = array.cast(pa.int64())
    elif kind is not None:
        return to_arrow([None if v is None else str(v) for v in to_python(array, Type(kind))], sql)
    elif pa.types.is_decimal(array.type):
        whole = array.cast(pa.decimal256(76 - array.type.scale, 0))
        return to_arrow([None if v is None else str(v) for v in whole.to_pylist()], sql)
    elif pa.types.is_floating(array.type):
        array = array.cast(pa.int64())
    elif not pa.types.is_integer(array.type):
        raise unfit(array, sql)
    return pa.ExtensionArray.from_storage(sql.arrow, bignums.from_integers(array))


NUMBERS: dict[Kind, Callable[[pa.Array, Type], pa.Array]] = {
    Kind.BOOLEAN: _boolean,
    **dict.fromkeys(INTEGERS, _integer),
    Kind.HUGEINT: _huge,
    Kind.UHUGEINT: _huge,
    Kind.BIGNUM: _bignum,
    Kind.REAL: _real,
    Kind.DOUBLE: _double,
    Kind.DECIMAL: _decimal,
}
