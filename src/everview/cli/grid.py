"""Rows of a result as a table that fits the terminal.

The table leaves out what does not fit, and a line below it lists what is missing.

Columns are narrowed before any is left out: texts down to a few characters, each cut value ending in "…";
then the last columns are left out. Numbers are never cut::

    id  name        note
    ──────────────────────────────
     1  ada         the first of…
    the first 1,000 rows, there are more; 2 columns are not shown: city, zip; values that end in … are cut
"""

from __future__ import annotations

import datetime
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

    from everview.client.result import Result, ResultColumn

ROWS = 1000
"""Rows that are shown at most."""
NARROW = 8
"""Characters that a text is cut to before a column is left out."""
_GAP = 3
_EDGES = 2
_NAMED = 5


@dataclass
class Drawn:
    """The part of a result that is in a table, and what is missing."""

    rows: int = 0
    more: bool = False
    """Whether there are rows that are not shown."""
    hidden: list[str] = field(default_factory=list)
    """Columns that are not shown."""
    cut: bool = False
    """Whether a value is shown in part."""

    def missing(self) -> str:
        """A description of what is not shown; empty if nothing is missing."""
        parts = []
        if self.hidden:
            named = ", ".join(self.hidden[:_NAMED]) + (", …" if len(self.hidden) > _NAMED else "")
            count = len(self.hidden)
            parts.append(f"{count} column{' is' if count == 1 else 's are'} not shown: {named}")
        if self.cut:
            parts.append("values that end in … are cut")
        return "; ".join(parts)


def draw(result: Result, stream: TextIO, width: int | None, rows: int = ROWS) -> Drawn:
    """Print the rows of a result, in so many characters; None: in as many as they take."""
    from rich import box
    from rich.cells import cell_len, set_cell_size
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    found = list(itertools.islice(iter(result), rows + 1))
    drawn = Drawn(min(len(found), rows), len(found) > rows)
    if _is_prose(result.columns):
        out = Console(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=True)
        out.print(Text(printable(result.names[0]), "bold"))
        for (text,) in found[:rows]:
            out.print(Text("NULL", "dim") if text is None else Text("\n".join(map(printable, text.split("\n")))))
        return drawn
    cells = [[None if value is None else printable(shown(value)) for value in row] for row in found[:rows]]
    names = [printable(name) for name in result.names]
    natural = [
        max(cell_len(name), *(4 if row[at] is None else cell_len(str(row[at])) for row in cells), 1)
        for at, name in enumerate(names)
    ]
    numeric = [_is_number(column) for column in result.columns]
    widths = natural if width is None else fitted(natural, numeric, width)
    drawn.hidden = list(names[len(widths) :])
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")

    def cell(text: str, room: int) -> str:
        if cell_len(text) <= room:
            return text
        drawn.cut = True
        return set_cell_size(text, room - 1) + "…"

    for name, right, room in zip(names, numeric, widths, strict=False):
        table.add_column(
            Text(cell(name, room)),
            justify="right" if right else "left",
            no_wrap=True,
            min_width=room,
            max_width=room,
        )
    for row in cells:
        table.add_row(
            *(
                Text("NULL"[:room], "dim") if text is None else Text(cell(text, room))
                for text, room in zip(row, widths, strict=False)
            )
        )
    total = sum(widths) + _GAP * (len(widths) - 1) + _EDGES
    Console(file=stream, highlight=False, markup=False, emoji=False, width=total).print(table)
    return drawn


def fitted(natural: Sequence[int], numeric: Sequence[bool], width: int) -> list[int]:
    """The widths of as many of the first columns as fit; of one at least."""
    for count in range(len(natural), 0, -1):
        room = width - _EDGES - _GAP * (count - 1)
        low, high = NARROW, max(natural[:count], default=NARROW)
        if sum(_capped(natural[:count], numeric, low)) > room:
            continue
        while low < high:
            middle = (low + high + 1) // 2
            if sum(_capped(natural[:count], numeric, middle)) <= room:
                low = middle
            else:
                high = middle - 1
        return _capped(natural[:count], numeric, low)
    return [max(1, min(natural[0], width - _EDGES))]


def _capped(natural: Sequence[int], numeric: Sequence[bool], most: int) -> list[int]:
    return [one if number else min(one, most) for one, number in zip(natural, numeric, strict=False)]


def _is_number(column: ResultColumn) -> bool:
    from everview.change.types import FLOATS, INTEGERS, Kind

    kind = column.type.kind
    return kind in INTEGERS or kind in FLOATS or kind is Kind.DECIMAL


def _is_prose(columns: Sequence[ResultColumn]) -> bool:
    """Texts of several lines are printed unchanged: plans, statements."""
    from everview.change.types import Kind

    return len(columns) == 1 and columns[0].type.kind is Kind.VARCHAR


def shown(value: object) -> str:
    """A value as text."""
    return json.dumps(plain(value), ensure_ascii=False) if isinstance(value, dict | list) else str(value)


def printable(text: str) -> str:
    """A text without control characters, which are replaced by their printable symbols."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else chr(0x2400 + ord(char)) if ord(char) < 0x20 else "�" for char in text
    )


def plain(value: object) -> object:
    """A value as JSON has it: exact numbers, times and bytes as text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {_key(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return str(value)


def _key(value: object) -> str:
    """A key of a map as text."""
    found = plain(value)
    return found if isinstance(found, str) else json.dumps(found)
