"""JSON Lines: an object in each line, by the names of the columns.

A line is a row, of which columns that are not named keep their values; how values look in
JSON is said in :mod:`everview.cli.files.json_values`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from everview.change.types import Type
from everview.cli.files import SAMPLED
from everview.cli.files.json_values import guessed, read
from everview.cli.files.streams import ByteStream
from everview.errors import DefinitionError, InputError, ValueTypeError
from everview.store.encoding.values import shown

_DECODER = json.JSONDecoder(parse_float=Decimal)


class JsonRows:
    """Rows of a file of JSON objects, one in a line. Empty lines are passed over."""

    def __init__(self, file: str) -> None:
        self._bytes = ByteStream(file)
        self.size = self._bytes.size
        self._rows = self._objects()
        try:
            self._sample = list(itertools.islice(self._rows, SAMPLED))
        except BaseException:
            self.close()
            raise
        self.names = tuple(dict.fromkeys(name for _, row in self._sample for name in row))

    def _objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The rows, each with the number of its line."""
        for number, line in enumerate(self._bytes.lines(), 1):
            if not line.strip():
                continue
            where = f"{self._bytes.name}, line {number}"
            try:
                found = _DECODER.decode(line.decode("utf-8-sig" if number == 1 else "utf-8"))
            except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
                raise InputError(f"{where} is not JSON", detail=str(error)) from None
            if not isinstance(found, dict):
                raise InputError(f"{where} is not an object", hint='a row is written {"column": value, …}')
            yield number, found

    def types(self) -> Mapping[str, Type]:
        return {name: self._guessed(name) for name in self.names}

    def _guessed(self, name: str) -> Type:
        try:
            return guessed([row.get(name) for _, row in self._sample])
        except ValueError as error:
            raise DefinitionError(
                f"{self._bytes.name} has no type for column {name}",
                detail=str(error),
                hint="CREATE TABLE first to choose the types of the columns",
            ) from None

    def batches(self, types: Mapping[str, Type], rows: int) -> Iterator[list[dict[str, Any]]]:
        readers = {name: read(kind) for name, kind in types.items()}
        lines = itertools.chain(self._sample, self._rows)
        while batch := list(itertools.islice(lines, rows)):
            self._sample = []
            yield [self._row(number, row, readers, types) for number, row in batch]

    def _row(
        self, number: int, row: dict[str, Any], readers: Mapping[str, Any], types: Mapping[str, Type]
    ) -> dict[str, Any]:
        found = {}
        for name, value in row.items():
            where = f"{self._bytes.name}, line {number}, column {name}"
            if name not in readers:
                raise InputError(f"{where}: the table has no such column", hint=f"the columns are {', '.join(types)}")
            try:
                found[name] = readers[name](value)
            except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
                raise ValueTypeError(
                    f"{where}: {shown(value)} is not a value of {types[name]}", detail=str(error)
                ) from None
        return found

    def done(self) -> int:
        return self._bytes.done()

    def close(self) -> None:
        self._bytes.close()
