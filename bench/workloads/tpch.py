"""TPC-H: its eight tables, its 22 queries, and its refresh functions as streams of changes.

Rows come from tpchgen, queries from the tests' corpus, and a :class:`Refresh` is what a pair of
the benchmark's refresh functions writes and removes, drawn by the rules by which the tables were filled.

The benchmark's text (2.5 to 2.7) has RF1 insert 1,500 orders times the scale, a thousandth of them all, each with
one to seven lines, and RF2 delete as many with their lines. New orders have keys in the gaps that the tables were
filled with: of every 32 keys eight are used at first, the next eight are those of refreshes, so a pair puts
orders where it takes others away, and the tables stay as large as they are. ::

    index of an order   key at first   key of a refresh
    1                   1              9
    8                   32             40
    9                   33             41

Beside each pair a thousandth of the customers get another balance and segment, and a thousandth of the
parts another size, container and price: the benchmark never changes those, and views that only read them would have
nothing to do.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.queries.corpora import corpus
from tests.queries.tpch_rows import CONTAINERS, INSTRUCTIONS, PRIORITIES, SEGMENTS

CORPUS = corpus("tpch")
QUERIES: Mapping[str, str] = CORPUS.queries
SCHEMA: str = CORPUS.schema_text
TABLES: tuple[str, ...] = tuple(CORPUS.tables)
OF_PAPER: Mapping[str, str] = corpus("papers/004-tpch").queries
"""The views of the VMS paper on orders and customer."""

FOLDER = Path(__file__).resolve().parents[2] / ".bench" / "data"
"""Where files are kept between runs."""

SHARE = 1000
"""A refresh changes one row of so many."""
ORDERS, CUSTOMERS, PARTS, SUPPLIERS, CLERKS = 1_500_000, 150_000, 200_000, 10_000, 1_000
"""Rows at scale 1."""
MOST_LINES = 7
MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
FIRST, LAST, TODAY = (np.datetime64(day) for day in ("1992-01-01", "1998-08-02", "1995-06-17"))
COMMENTS = 10_000
"""Comments of rows that are there, of which new rows take theirs."""


# ------------------------------------------------------------------ the tables


def files(scale: float) -> dict[str, Path]:
    """A Parquet file for each table, made where it is not there yet."""
    folder = FOLDER / f"tpch-{scale:g}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="tpch-", dir=folder.parent) as made:
            _generate(scale, Path(made) / "tables")
            try:
                Path(made, "tables").rename(folder)
            except OSError:
                if not folder.exists():  # else somebody else has made them meanwhile
                    raise
    return {name: folder / f"{name}.parquet" for name in TABLES}


def _generate(scale: float, folder: Path) -> None:
    beside = Path(sys.executable).with_name("tpchgen-cli")
    tool = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if tool is None:
        raise FileNotFoundError("tpchgen-cli is not installed, which makes the rows of TPC-H: pip install tpchgen-cli")
    asked = [tool, "parquet", "--quiet", "--scale-factor", f"{scale:g}", "--output-dir", str(folder)]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ChildProcessError(f"tpchgen-cli could not make TPC-H at scale {scale:g}: {done.stderr.strip()}")


def batches(path: Path, size: int = 100_000) -> Iterator[pa.Table]:
    """The rows of a file, some at a time."""
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(size):
            yield pa.Table.from_batches([batch])


# ------------------------------------------------------------------ refreshes


@dataclass(frozen=True)
class Refresh:
    """What a pair of refresh functions does: rows put and keys deleted by table."""

    puts: Mapping[str, pa.Table]
    """Whole orders and lines (RF1); of customers and parts the key and the columns that change."""
    deletes: Mapping[str, pa.Table]
    """Keys of orders and lines (RF2)."""

    @property
    def operations(self) -> int:
        return self.operations_of({*self.puts, *self.deletes})

    def operations_of(self, tables: Collection[str]) -> int:
        """How many of them concern some tables."""
        parts = (self.puts, self.deletes)
        return sum(len(rows) for part in parts for name, rows in part.items() if name in tables)


class Refreshes:
    """Refreshes of TPC-H at a scale."""

    def __init__(self, scale: float, seed: int) -> None:
        self._files = files(scale)
        self._random = np.random.default_rng(seed)
        self._orders, self._customers, self._parts, self._suppliers = (
            round(size * scale) for size in (ORDERS, CUSTOMERS, PARTS, SUPPLIERS)
        )
        self._clerks = round(CLERKS * max(scale, 1))

    def pairs(self, count: int) -> Iterator[Refresh]:
        """Pairs of RF1 and RF2, with updates beside them."""
        size = max(1, self._orders // SHARE)
        for number in range(count):
            index = np.arange(number * size, (number + 1) * size) + 1
            new, old = order_keys(index, refresh=True), order_keys(index)
            updates = {"customer": self._changed_customers(), "part": self._changed_parts()}
            yield Refresh(self.orders(new) | updates, self._removed(old))

    def single(self, number: int) -> Refresh:
        """One new order with its lines, after all pairs."""
        return Refresh(self.orders(order_keys(np.array([self._orders - number]), refresh=True)), {})

    def orders(self, keys: np.ndarray) -> dict[str, pa.Table]:
        """New orders with their lines (4.2.3 of the benchmark's text)."""
        draw, count = self._random, len(keys)
        ordered = FIRST + draw.integers(0, (LAST - FIRST).astype(int) + 1, count)
        lines = draw.integers(1, MOST_LINES + 1, count)
        of = np.repeat(np.arange(count), lines)
        columns, prices, open_lines = self._lines(keys, ordered, lines, of)
        totals = np.bincount(of, prices, count).astype(np.int64)
        still = np.bincount(of, open_lines, count)
        customer = draw.integers(0, self._customers // 3, count) * 3 + draw.integers(1, 3, count)  # a third never order
        orders = {
            "o_orderkey": keys,
            "o_custkey": customer,
            "o_orderstatus": np.select([still == 0, still == lines], ["F", "O"], "P"),
            "o_totalprice": money(totals),
            "o_orderdate": ordered,
            "o_orderpriority": draw.choice(PRIORITIES, count),
            "o_clerk": numbered("Clerk#", draw.integers(1, self._clerks + 1, count)),
            "o_shippriority": np.zeros(count, np.int32),
            "o_comment": self._comments("orders", "o_comment", count),
        }
        return {"orders": pa.table(orders), "lineitem": pa.table(columns)}

    def _lines(
        self, keys: np.ndarray, ordered: np.ndarray, lines: np.ndarray, of: np.ndarray
    ) -> tuple[dict[str, object], np.ndarray, np.ndarray]:
        """The lines of orders, what each adds to its order's price, and whether it is still open."""
        draw, count = self._random, len(of)
        part = draw.integers(1, self._parts + 1, count)
        quantity, discount, tax = draw.integers(1, 51, count), draw.integers(0, 11, count), draw.integers(0, 9, count)
        price = quantity * (90_000 + part // 10 % 20_001 + part % 1_000 * 100)
        shipped = ordered[of] + draw.integers(1, 122, count)
        received = shipped + draw.integers(1, 31, count)
        still_open = shipped > TODAY
        columns = {
            "l_orderkey": keys[of],
            "l_partkey": part,
            "l_suppkey": supplier_of(part, draw.integers(0, 4, count), self._suppliers),
            "l_linenumber": (np.arange(count) - np.repeat(np.cumsum(lines) - lines, lines) + 1).astype(np.int32),
            "l_quantity": money(100 * quantity),
            "l_extendedprice": money(price),
            "l_discount": money(discount),
            "l_tax": money(tax),
            "l_returnflag": np.where(received <= TODAY, draw.choice(("R", "A"), count), "N"),
            "l_linestatus": np.where(still_open, "O", "F"),
            "l_shipdate": shipped,
            "l_commitdate": ordered[of] + draw.integers(30, 91, count),
            "l_receiptdate": received,
            "l_shipinstruct": draw.choice(INSTRUCTIONS, count),
            "l_shipmode": draw.choice(MODES, count),
            "l_comment": self._comments("lineitem", "l_comment", count),
        }
        return columns, price * (100 - discount) // 100 * (100 + tax) // 100, still_open

    def _removed(self, orders: np.ndarray) -> dict[str, pa.Table]:
        keys = self._line_keys
        first, last = np.searchsorted(keys["l_orderkey"].to_numpy(), [orders[0], orders[-1] + 1])
        return {"lineitem": keys.slice(first, last - first), "orders": pa.table({"o_orderkey": orders})}

    def _changed_customers(self) -> pa.Table:
        keys = self._some(self._customers)
        balance = money(self._random.integers(-99_999, 1_000_000, len(keys)))
        segment = self._random.choice(SEGMENTS, len(keys))
        return pa.table({"c_custkey": keys, "c_acctbal": balance, "c_mktsegment": segment})

    def _changed_parts(self) -> pa.Table:
        keys = self._some(self._parts)
        columns = {
            "p_partkey": keys,
            "p_size": self._random.integers(1, 51, len(keys)).astype(np.int32),
            "p_container": self._random.choice(CONTAINERS, len(keys)),
            "p_retailprice": money(self._random.integers(90_000, 210_000, len(keys))),
        }
        return pa.table(columns)

    def _some(self, rows: int) -> np.ndarray:
        """Distinct keys of a table whose keys are 1, 2, …"""
        return self._random.choice(rows, max(1, rows // SHARE), replace=False) + 1

    @functools.cached_property
    def _line_keys(self) -> pa.Table:
        """Of all lines at first, in order."""
        keys = pq.read_table(self._files["lineitem"], columns=["l_orderkey", "l_linenumber"])
        return keys.combine_chunks()

    def _comments(self, table: str, column: str, count: int) -> pa.Array:
        known = _first_values(self._files[table], column)
        return known.take(pa.array(self._random.integers(0, len(known), count)))


@functools.cache
def _first_values(path: Path, column: str) -> pa.Array:
    with pq.ParquetFile(path) as file:
        return next(file.iter_batches(COMMENTS, columns=[column])).column(0).cast(pa.string())


def order_keys(index: np.ndarray, *, refresh: bool = False) -> np.ndarray:
    """The keys of orders by their number.

    >>> order_keys(np.array([1, 8, 9])).tolist(), order_keys(np.array([1, 8, 9]), refresh=True).tolist()
    ([1, 32, 33], [9, 40, 41])
    """
    return index // 8 * 32 + index % 8 + 8 * refresh


def supplier_of(part: np.ndarray, which: np.ndarray, suppliers: int) -> np.ndarray:
    """One of the four suppliers of a part."""
    return (part + which * (suppliers // 4 + (part - 1) // suppliers)) % suppliers + 1


def money(cents: np.ndarray) -> pa.Array:
    """Hundredths as DECIMAL(15,2).

    >>> money(np.array([-5, 1234])).to_pylist()
    [Decimal('-0.05'), Decimal('12.34')]
    """
    words = np.stack([cents, cents >> 63], axis=1).astype("<i8")
    return pa.Array.from_buffers(pa.decimal128(15, 2), len(cents), [None, pa.py_buffer(words.tobytes())])


def numbered(name: str, numbers: Sequence[int] | np.ndarray) -> np.ndarray:
    """Names such as Clerk#000000951."""
    return np.char.add(name, np.char.zfill(np.asarray(numbers).astype(str), 9))
