"""A view as its plan stores it: from values of its key to store keys, and from records to rows.

A :class:`ViewRows` knows the place of one view's rows under one plan, and reads them
through any reader of state: the store, a snapshot, or a snapshot with changes laid over it.

A key is given as the values of the view's key columns, in their order. The store key is the encoding
of the same values (:mod:`everview.operators.stored`), after the tag of the view's member if many
views share a table::

    view totals, key (region, customer)       get("north", 7)
    key of the record                          tag  'north' 00 00 01 80 00 00 07

Rows come in the order of the key: nulls first, texts by their UTF-8. Of texts that make a key longer
than stores take, those that agree in their first hundreds of bytes are in no particular order.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from everview.catalog import ViewDefinition
from everview.change.types import INTEGERS, Kind
from everview.client.result import ResultColumn
from everview.errors import DamagedEntryError, DefinitionError, InputError
from everview.operators.bound import BoundPlan
from everview.operators.sought import SoughtRows
from everview.operators.stored import KEPT, Keys, short
from everview.operators.view import StoredView
from everview.sql.settings import connect
from everview.store.contract import Row, StateReader
from everview.store.encoding.columns import one_array, to_python
from everview.store.encoding.fitting import Unfit, fit
from everview.store.encoding.keys import successor
from everview.store.encoding.ragged import BINARY
from everview.store.encoding.registering import register
from everview.store.encoding.values import Refused, refusal

FIRST_BLOCK = 256
LAST_BLOCK = 65_536
"""Rows that are read at a time: few at first, so that a reader that stops early reads little."""

MOST_SOUGHT = 1_000
"""Keys up to which a fresh read works off what concerns these only."""

_AS_GIVEN: dict[Kind, type] = {
    Kind.BOOLEAN: bool,
    Kind.VARCHAR: str,
    Kind.BLOB: bytes,
    Kind.DATE: datetime.date,
    Kind.TIMESTAMP: datetime.datetime,
    **dict.fromkeys(INTEGERS, int),
}
"""Values of these classes are returned as they were given in the key; others are decoded from it."""


@dataclass(frozen=True)
class Within:
    """A range of rows: those whose whole keys, without tag, are from ``low`` to before ``high``."""

    low: bytes = b""
    high: bytes | None = None

    @property
    def shared(self) -> bytes:
        """The common prefix of all keys within, as far as stored keys show it."""
        if self.high is None:
            return b""
        same = 0
        for one, other in zip(self.low[:KEPT], self.high[:KEPT], strict=False):
            if one != other:
                break
            same += 1
        prefix = self.low[:same]
        # the keys between "ab" and "ac", where "ac" is the next beginning after "ab"
        return self.low[:KEPT] if self.high == successor(self.low[:KEPT]) else prefix

    @property
    def exact(self) -> bool:
        """Whether stored keys, which may be cut, suffice to decide what is within."""
        return len(self.low) <= KEPT and (self.high is None or len(self.high) <= KEPT)


class ViewRows:
    """The rows of one view under one plan."""

    def __init__(self, view: ViewDefinition, bound: BoundPlan) -> None:
        self.view = view
        self.reader = StoredView(bound, view.name)
        self.planned = self.reader.view
        self.stored = self.reader.stored
        self.table = self.stored.table
        self.prefix = self.reader.prefix
        self.columns = tuple(ResultColumn(column.name, column.type) for column in self.planned.columns)
        stored = {column.name: column.stored for column in self.planned.columns}
        held = [stored[name] for name in view.key]
        parts = zip(self.planned.key, self.stored.state.key, strict=True)
        named = {} if view.bag else {name: view.key[held.index(name)] for name in self.planned.key}
        self._keys = Keys(tuple(replace(part, name=named.get(name, name)) for name, part in parts), f"view {view.name}")
        self._chosen = [held.index(name) for name in self.planned.key] if not view.bag else []
        self._twins = [(at, held.index(name)) for at, name in enumerate(held) if held.index(name) != at]

    # -------------------------------------------------------------- keys

    def refuse_hidden(self, call: str) -> None:
        """Refuse to find rows by a key that is not among the view's columns."""
        if self.view.bag:
            raise DefinitionError(
                f"the rows of view {self.view.name} have no key to {call} by",
                detail="the columns that distinguish its rows are not among its columns",
                hint=f"scan it, use SQL: … FROM {self.view.name} WHERE …, or add the key to its columns",
            )

    @functools.cached_property
    def encode(self) -> Callable[[Sequence[object]], bytes]:
        """The whole key, without tag, of a value for each column of the view's key."""
        self.refuse_hidden("get")
        if self._chosen == list(range(len(self.view.key))) and self._chosen:
            return self._keys.encode_one
        return self._encode_slowly

    def _encode_slowly(self, values: Sequence[object]) -> bytes:
        if len(values) != len(self.view.key):
            raise InputError(
                f"view {self.view.name}: {len(values)} values for a key of {len(self.view.key)}",
                hint=f"the key is ({', '.join(self.view.key)})",
            )
        return self._keys.encode_one([values[at] for at in self._chosen])

    def agrees(self, values: Sequence[object]) -> bool:
        """Whether columns of the key that are always equal are given equal values."""
        return all(values[one] == values[other] for one, other in self._twins)

    def place(self, whole: bytes) -> bytes:
        """The store key of a record, from its whole key."""
        return self.prefix + short(whole)

    def places(self, keys: pa.Table | Sequence[object]) -> pa.Array:
        """The store keys of many records. ``keys`` is an Arrow table with the key's columns, or a list of keys,
        each a tuple of values, or the value itself if there is one."""
        self.refuse_hidden("get")
        if hasattr(keys, "__arrow_c_stream__"):
            return self._places_of_columns(pa.table(keys))
        if isinstance(keys, Mapping | str | bytes) or not isinstance(keys, Iterable):
            raise InputError(
                f"view {self.view.name} cannot take {keys!r} as keys",
                hint=f"give a list of ({', '.join(self.view.key)})",
            )
        single = len(self.view.key) == 1
        found = []
        for key in keys:
            values = (key,) if single and not isinstance(key, tuple) else key
            if not isinstance(values, tuple | list):
                raise InputError(
                    f"view {self.view.name}: {key!r} is not a key", hint=f"give a tuple of ({', '.join(self.view.key)})"
                )
            found.append(self.place(self.encode(values)) if self.agrees(values) else None)
        return pa.array([place for place in found if place is not None], BINARY)

    def _places_of_columns(self, given: pa.Table) -> pa.Array:
        missing = [name for name in self.view.key if name not in given.column_names]
        if missing:
            raise InputError(
                f"view {self.view.name}: the keys have no column {missing[0]}",
                hint=f"the key is ({', '.join(self.view.key)})",
            )
        columns = []
        for part in self._keys.parts:
            try:
                columns.append(fit(one_array(given[part.name].chunks), part.type))
            except (Unfit, Refused) as reason:
                place = f"view {self.view.name}, key column {part.name}"
                raise refusal(place, given[part.name].type, part.type, Refused(str(reason))) from None
        whole = self._keys.encode(columns, len(given)).to_pylist()
        twins = [(self.view.key[one], self.view.key[other]) for one, other in self._twins]
        equal = [[a == b for a, b in zip(given[x].to_pylist(), given[y].to_pylist(), strict=True)] for x, y in twins]
        return pa.array([self.place(key) for at, key in enumerate(whole) if all(one[at] for one in equal)], BINARY)

    def sought(self, keys: Sequence[Sequence[object]]) -> SoughtRows | None:
        """The rows with these keys, each the values of the view's key; None where the key has no columns."""
        for key in keys:
            self.encode(key)
        return self._sought([[key[at] for at in self._chosen] for key in keys])

    def sought_keys(self, keys: pa.Table | Sequence[object]) -> SoughtRows | None:
        """The rows with keys that are given as a list; None if there are very many, or they are an Arrow table."""
        if not isinstance(keys, list | tuple) or not 0 < len(keys) <= MOST_SOUGHT:
            return None
        self.refuse_hidden("get")
        single = len(self.view.key) == 1
        whole = [(key,) if single and not isinstance(key, tuple) else key for key in keys]
        return self.sought([key for key in whole if isinstance(key, tuple | list)])

    def sought_prefix(self, prefix: Sequence[object]) -> SoughtRows | None:
        """The rows whose keys begin with these values. A text in the last column of a key may go on."""
        if isinstance(prefix, str | bytes) or not isinstance(prefix, Sequence):
            prefix = (prefix,)
        self.within(prefix)
        goes_on = len(prefix) == len(self._keys.parts) > 0 and self._keys.parts[-1].type.width is None
        return self._sought([prefix[:-1] if goes_on else prefix])

    def _sought(self, rows: Sequence[Sequence[object]]) -> SoughtRows | None:
        parts = zip(self.planned.key, self._keys.parts, strict=True)
        found = SoughtRows.of([(name, part.type) for name, part in parts], rows)
        return found if found.fields else None

    def within(
        self,
        prefix: Sequence[object] = (),
        start: Sequence[object] | None = None,
        stop: Sequence[object] | None = None,
    ) -> Within:
        """The rows with these values in the first columns of the key, from ``start`` to before ``stop``,
        each of them the values of the first columns of the key."""
        if not prefix and start is None and stop is None:
            return Within()
        self.refuse_hidden("scan")
        if self._twins:
            raise InputError(
                f"view {self.view.name} cannot be scanned by a part of its key",
                detail="columns of its key are always equal",
                hint=f"use SQL: … FROM {self.view.name} WHERE …",
            )
        if any(not part.type.is_scalar for part in self._keys.parts):
            raise InputError(
                f"view {self.view.name} cannot be scanned by a part of its key",
                detail="lists, structs and maps in a key are in no order",
                hint=f"use SQL: … FROM {self.view.name} WHERE …",
            )
        inside = self._begins(prefix)
        low = inside if start is None else max(inside, self._begins(start))
        high = successor(inside)
        if stop is not None:
            end = self._begins(stop)
            high = end if high is None else min(high, end)
        return Within(low, high)

    def _begins(self, values: Sequence[object]) -> bytes:
        if isinstance(values, str | bytes) or not isinstance(values, Sequence):
            values = (values,)
        if len(values) > len(self._keys.parts):
            raise InputError(
                f"view {self.view.name}: {tuple(values)} has too many values for a key",
                hint=f"the key is ({', '.join(self.view.key)})",
            )
        return self._keys.begins(values)

    # -------------------------------------------------------------- rows

    @functools.cached_property
    def row(self) -> Callable[[Sequence[object], bytes, bytes], Row]:
        """The row, from the values of the given key, the whole key, and its record."""
        parts = self._keys.parts
        if any(not part.type.is_scalar for part in parts):
            return self._row_slowly
        names = tuple(column.name for column in self.columns)
        held = [*self.planned.key, *(field.name for field in self.stored.fields)]
        chosen = [held.index(column.stored) for column in self.planned.columns]
        pick = operator.itemgetter(*chosen) if len(chosen) > 1 else lambda values: (values[chosen[0]],)
        classes = tuple(_AS_GIVEN.get(part.type.kind) for part in parts)
        decode_key, beside, straight = self._keys.decode_one, self.stored.beside, self.encode == self._keys.encode_one

        def row(key: Sequence[object], whole: bytes, record: bytes) -> Row:
            values = key if straight and tuple(map(type, key)) == classes else decode_key(whole)
            return dict(zip(names, pick((*values, *beside(record))), strict=True))

        return row

    def _row_slowly(self, key: Sequence[object], whole: bytes, record: bytes) -> Row:
        found = self.stored.table_of(pa.array([self.place(whole)], BINARY), pa.array([record], BINARY))
        seen = self.reader.shown(found)
        values = [to_python(one_array(seen[column.name].chunks), column.type)[0] for column in self.columns]
        return dict(zip((column.name for column in self.columns), values, strict=True))

    def get(self, reader: StateReader, epoch: int, key: Sequence[object]) -> Row | None:
        """The row with this key as of an epoch."""
        whole = self.encode(key)
        record = reader.get(self.table, self.place(whole), epoch) if self.agrees(key) else None
        return None if record is None else self.row(key, whole, record)

    def get_many(self, reader: StateReader, epoch: int, keys: pa.Table | Sequence[object]) -> pa.Table:
        """The rows that exist, in the order of the keys."""
        places = self.places(keys)
        records = reader.read(self.table, places, epoch)
        there = records.is_valid()
        return self.reader.shown(self.stored.table_of(places.filter(there), records.filter(there)))

    def scan(self, reader: StateReader, epoch: int, within: Within, limit: int | None = None) -> Iterator[pa.Table]:
        """Stored rows in the order of the key, as of an epoch."""
        left, size = limit, FIRST_BLOCK
        prefix = self.prefix + within.shared
        after = _before(self.prefix + within.low[:KEPT])
        stop = None if within.high is None else pa.scalar(self.prefix + within.high[:KEPT], BINARY)
        start = pa.scalar(self.prefix + within.low[:KEPT], BINARY)
        while left is None or left > 0:
            found = reader.scan(self.table, prefix, epoch, size, after)
            keys, values = found.keys, found.values
            more = len(keys) == size
            if more:
                after = keys[-1].as_py()
            inside = pc.greater_equal(keys, start)
            if stop is not None:
                # a stored key that begins as the bound does may be cut, and then its whole key decides
                below = pc.less(keys, stop)
                if not within.exact:
                    below = pc.or_(below, pc.starts_with(keys, stop.as_py()))
                more = more and bool(below[-1].as_py())
                inside = pc.and_(inside, below)
            rows = self.stored.table_of(keys.filter(inside), values.filter(inside))
            if not within.exact:
                rows = rows.filter(_inside(self.stored.whole_keys_in(rows), within))
            if left is not None:
                rows = rows[:left]
                left -= len(rows)
            if len(rows):
                yield rows
            if not more:
                return
            size = min(4 * size, LAST_BLOCK)

    def matching(
        self, reader: StateReader, epoch: int, prefixes: Sequence[Sequence[object]] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Rows as a reader sees them, in the order in which the view is read; with ``prefixes`` those
        whose key begins with one of them, and perhaps others."""
        parts = [None] if prefixes is None else list(map(self.reader.begins, self._distinct(prefixes)))
        blocks = (block for part in parts for block in self.reader.scan(reader, epoch, part))
        for block in self.ordered(blocks) if self.planned.order else blocks:
            yield from self.reader.shown(block).to_batches()

    def _distinct(self, prefixes: Sequence[Sequence[object]]) -> list[tuple[object, ...]]:
        """Values of the first columns of the view's key, as values of the first parts of its row key."""
        stored = {column.name: column.stored for column in self.planned.columns}
        found = []
        for values in sorted(prefixes, key=repr):
            given = {stored[name]: value for name, value in zip(self.view.key, values, strict=False)}
            found.append(tuple(given[name] for name in itertools.takewhile(given.__contains__, self.planned.key)))
        return list(dict.fromkeys(found))

    def ordered(self, blocks: Iterable[pa.Table]) -> list[pa.Table]:
        """Stored rows in the order in which the view is read."""
        rows = list(blocks)
        if not rows:
            return []
        order = ", ".join(
            f"{part.sql} {'DESC' if part.descending else 'ASC'} NULLS {'FIRST' if part.nulls_first else 'LAST'}"
            for part in self.planned.order
        )
        with connect() as connection:
            whole = pa.concat_tables(rows)
            whole = whole.append_column("__n", pa.array(range(len(whole))))
            register(connection, "stored", whole)
            try:
                places = connection.sql(f"SELECT __n FROM stored ORDER BY {order}, __n").to_arrow_table()
            except duckdb.Error as error:
                raise DamagedEntryError(
                    f"the recorded order of view {self.view.name} cannot be used",
                    detail=str(error).partition("\n")[0],
                    hint=f"rebuild {self.view.name}, or restore the store from a backup",
                ) from error
        return [whole.drop_columns(["__n"]).take(places["__n"])]

    def count(self, reader: StateReader, epoch: int) -> int:
        """How many rows there are as of an epoch."""
        total, after = 0, None
        while True:
            found = reader.scan(self.table, self.prefix, epoch, LAST_BLOCK, after)
            total += len(found.keys)
            if len(found.keys) < LAST_BLOCK:
                return total
            after = found.keys[-1].as_py()


def _inside(keys: pa.Array, within: Within) -> pa.Array:
    found = pc.greater_equal(keys, pa.scalar(within.low, BINARY))
    return found if within.high is None else pc.and_(found, pc.less(keys, pa.scalar(within.high, BINARY)))


def _before(key: bytes) -> bytes | None:
    """A key before this one, with few or none between the two."""
    if not key:
        return None
    if key[-1] == 0:
        return key[:-1]
    return key[:-1] + bytes([key[-1] - 1]) + b"\xff" * 8
