"""The result of a statement: columns, rows on demand, and notices.

A :class:`Result` pulls batches of columns from their source only as far as it is read. It keeps
the first rows, so that a small result can be read again and a large one is never in memory as a whole.

    >>> import everview, tempfile
    >>> db = everview.open(tempfile.mkdtemp())
    >>> result = db.sql("SELECT * FROM (VALUES (1, 'ada'), (2, NULL)) AS t (id, name)")
    >>> result
    id  name
    --  ----
     1  ada
     2  NULL
    2 rows
    >>> result.rows()
    [(1, 'ada'), (2, None)]
    >>> result.dicts()[0]
    {'id': 1, 'name': 'ada'}
    >>> db.close()
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from everview.boundary import public
from everview.change.types import FLOATS, INTEGERS, Kind, Type
from everview.client.exported_arrow import exported_batch, exported_schema
from everview.client.exported_values import frame, python_values
from everview.errors import InputError

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

KEPT = 10_000
"""A result of at most so many rows can be read several times."""

SHOWN = 20
_WIDEST = 40


@dataclass(frozen=True)
class ResultColumn:
    """A column of a result. Its name may be any text, and two may have the same."""

    name: str
    type: Type


@public
class Result:
    """The answer to a statement. Iterating yields the rows as tuples."""

    def __init__(
        self,
        columns: Sequence[ResultColumn] = (),
        batches: Iterable[pa.RecordBatch] = (),
        notices: Sequence[str] = (),
        close: Callable[[], None] | None = None,
    ) -> None:
        self.columns = tuple(columns)
        self.notices = tuple(notices)
        self._schema = pa.schema([pa.field(column.name, column.type.arrow) for column in self.columns])
        self._source = iter(batches)
        self._close = close
        self._pulled = 0
        self._last: pa.RecordBatch | None = None
        self._kept: list[pa.RecordBatch] = []
        self._rows_kept = 0
        self._passed = False
        """Whether rows were returned that are not kept."""

    @staticmethod
    def of(columns: Sequence[ResultColumn], rows: Sequence[Sequence[object]], notices: Sequence[str] = ()) -> Result:
        """A small result that is computed already."""
        schema = pa.schema([pa.field(column.name, column.type.arrow) for column in columns])
        arrays = [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(schema)]
        return Result(columns, [pa.RecordBatch.from_arrays(arrays, schema=schema)], notices)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    # -------------------------------------------------------------- reading

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as Arrow batches, as they come, in the types of :meth:`arrow`."""
        schema = exported_schema(self.columns)
        for batch in self.stored_batches():
            yield exported_batch(batch, self.columns, schema)

    def stored_batches(self) -> Iterator[pa.RecordBatch]:
        """The same with every value as it is stored, in the types of ``column.type.arrow``."""
        at = 0
        while True:
            if at == self._pulled:
                if self._pull() is None:
                    return
            elif self._passed:
                raise InputError(
                    "the result was read already",
                    detail=f"a result of more than {KEPT} rows is not kept",
                    hint="read it once, keep the table of .arrow(), or run the statement again",
                )
            yield self._last if at == self._pulled - 1 else self._kept[at]
            at += 1

    def _pull(self) -> pa.RecordBatch | None:
        try:
            batch = next(self._source, None)
        except BaseException:
            self.close()
            raise
        if batch is None:
            self.close()
            return None
        self._pulled += 1
        self._last = batch
        self._rows_kept += batch.num_rows
        if self._rows_kept <= KEPT and not self._passed:
            self._kept.append(batch)
        else:
            self._kept.clear()
            self._passed = True
        return batch

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for batch in self.stored_batches():
            yield from self._tuples(batch)

    def rows(self) -> list[tuple[Any, ...]]:
        """All rows as tuples of Python values, as DuckDB's ``fetchall`` returns them."""
        return [row for batch in self.stored_batches() for row in self._tuples(batch)]

    def dicts(self) -> list[dict[str, Any]]:
        """All rows by the names of their columns. Two columns cannot have one name."""
        names = self.names
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(
                f"two columns have the name {twice!r}",
                detail="a dict would hold only one of them",
                hint="give them names of their own with AS, or read rows()",
            )
        return [dict(zip(names, row, strict=True)) for row in self.rows()]

    def arrow(self) -> pa.Table:
        """All rows as an Arrow table, in the types that DuckDB's own Arrow tables have."""
        return pa.Table.from_batches(list(self.batches()), exported_schema(self.columns))

    def df(self) -> pd.DataFrame:
        """All rows as a pandas DataFrame, in the types that DuckDB's own have."""
        return frame(pa.Table.from_batches(list(self.stored_batches()), self._schema), self.columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows for any reader of Arrow's C stream: ``pa.table(result)``, ``put_many(result)``."""
        if requested_schema is not None and type(requested_schema).__name__ != "PyCapsule":
            raise InputError("the schema that is asked for is not one of Arrow's C interface")
        reader = pa.RecordBatchReader.from_batches(exported_schema(self.columns), self.batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _tuples(self, batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
        columns = [python_values(array, column.type) for array, column in zip(batch.columns, self.columns, strict=True)]
        return list(zip(*columns, strict=True))

    # -------------------------------------------------------------- the end

    def close(self) -> None:
        """Release the source of the remaining rows. Reading to the end does it too."""
        self._source = iter(())
        close, self._close = self._close, None
        if close is not None:
            close()

    def __enter__(self) -> Result:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_close", None) is not None:
            self.close()

    # -------------------------------------------------------------- for people

    def __repr__(self) -> str:
        if not self.columns:
            return "\n".join(self.notices) or "done"
        if self._passed:
            return f"({', '.join(self.names)}): read already"
        rows = self._seen()
        return "\n".join([*self._table(rows[:SHOWN]), self._total(len(rows)), *self.notices])

    def _repr_html_(self) -> str:
        """The first rows as a table, for notebooks."""
        if not self.columns or self._passed:
            return f"<pre>{escape(repr(self))}</pre>"
        rows = self._seen()
        head = "".join(f"<th>{escape(name)}</th>" for name in self.names)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(_shown(value))}</td>" for value in row) + "</tr>" for row in rows[:SHOWN]
        )
        notes = "".join(f"<p>{escape(line)}</p>" for line in (self._total(len(rows)), *self.notices))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"

    def _seen(self) -> list[tuple[Any, ...]]:
        """The first rows, SHOWN and one more if there are as many."""
        while self._rows_kept <= SHOWN and self._pull() is not None:
            pass
        seen = self._kept if self._kept or self._last is None else [self._last]
        return [row for batch in seen for row in self._tuples(batch)]

    def _table(self, rows: Sequence[tuple[Any, ...]]) -> Iterator[str]:
        if len(self.columns) == 1 and self.columns[0].type.kind is Kind.VARCHAR:
            yield from (self.names[0], "-" * len(self.names[0]))  # texts of several lines are not changed
            yield from ("NULL" if text is None else text for (text,) in rows)
            return
        yield from _drawn(self.columns, [[_shown(value) for value in row] for row in rows])

    def _total(self, seen: int) -> str:
        if self._close is None:
            return f"{seen} row{'' if seen == 1 else 's'}" + (f", the first {SHOWN} shown" if seen > SHOWN else "")
        return f"more than {SHOWN} rows"


def _drawn(columns: Sequence[ResultColumn], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a table, as wide as its values."""
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    for column in columns:
        kind = column.type.kind
        number = kind in INTEGERS or kind in FLOATS or kind is Kind.DECIMAL
        table.add_column(justify="right" if number else "left", no_wrap=True)
    lines = [[column.name for column in columns], *rows]
    widths = [max(map(cell_len, cells)) for cells in zip(*lines, strict=True)]
    for line in (lines[0], ["-" * width for width in widths], *rows):
        table.add_row(*map(Text, line))
    out = Console(file=io.StringIO(), width=sum(widths) + 2 * len(widths), color_system=None, legacy_windows=False)
    with out.capture() as captured:
        out.print(table)
    return (line.rstrip() for line in captured.get().rstrip("\n").split("\n"))


def _shown(value: object) -> str:
    from rich.cells import cell_len, set_cell_size

    text = "NULL" if value is None else str(value)
    text = "".join(char if char.isprintable() else "·" for char in text)
    return text if cell_len(text) <= _WIDEST else set_cell_size(text, _WIDEST - 1) + "…"
