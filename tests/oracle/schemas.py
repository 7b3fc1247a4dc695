"""Random tables of all types, and random writes to them.

A table is drawn with its key, its columns and few values for each, so that rows meet,
tie, repeat and come back.

Floats are multiples of 1/8, so that every sum of them is exact and DuckDB's answer depends on no order;
beside them stand the two zeros, the infinities and NaN.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tests.oracle.script import Epoch, Write

ROW_ID = "__row"
NULLS = 0.2

VALUES: dict[str, tuple[str, ...]] = {
    "BOOLEAN": ("true", "false"),
    "TINYINT": ("-128", "0", "1", "127"),
    "SMALLINT": ("-32768", "0", "7", "32767"),
    "INTEGER": ("-1", "0", "1", "2", "3"),
    "BIGINT": ("-9223372036854775808", "0", "1", "9223372036854775807"),
    "HUGEINT": ("-100000000000000000000", "0", "5", "100000000000000000000"),
    "UTINYINT": ("0", "1", "255"),
    "USMALLINT": ("0", "1", "65535"),
    "UINTEGER": ("0", "1", "4294967295"),
    "UBIGINT": ("0", "1", "18446744073709551615"),
    "REAL": ("0.125", "-2.5", "0.0", "'-0.0'", "'NaN'", "'inf'"),
    "DOUBLE": ("0.125", "-2.5", "1000.25", "0.0", "'-0.0'", "'NaN'", "'inf'", "'-inf'"),
    "DECIMAL(9,2)": ("0.00", "1.25", "-3.50", "1000000.01"),
    "DECIMAL(30,4)": ("0.0000", "1.2500", "-99999999999999999999.0001"),
    "VARCHAR": ("''", "'p'", "'q'", "'Q'", "'p q'", "'ß😀'", "'it''s'"),
    "BLOB": ("''::BLOB", "'\\x00'::BLOB", "'\\x00\\xFFa'::BLOB"),
    "DATE": ("'1969-12-31'", "'2024-02-29'", "'2024-03-01'"),
    "TIME": ("'00:00:00'", "'12:30:00.000001'"),
    "TIMESTAMP": ("'1969-12-31 23:59:59.5'", "'2024-01-01 00:30:00'", "'2024-01-01 01:00:00'", "'2024-01-01 02:10:00'"),
    "TIMESTAMP WITH TIME ZONE": ("'1969-12-31 23:59:59.5+00'", "'2024-01-01 00:30:00+00'"),
    "TIMESTAMP_S": ("'1969-12-31 23:59:59'", "'2024-01-01 00:30:00'", "'infinity'"),
    "TIMESTAMP_MS": ("'1969-12-31 23:59:59.999'", "'2024-01-01 00:30:00'"),
    "TIMESTAMP_NS": ("'1969-12-31 23:59:59.999999999'", "'2024-01-01 00:30:00'", "'2024-01-01 00:30:00.000000001'"),
    "TIME WITH TIME ZONE": ("'12:00:00+00'", "'13:00:00+01'", "'24:00:00-02'", "'00:00:00.5+15:59:59'"),
    "BIT": ("'0'", "'00'", "'1'", "'10101010'", "'000000001'"),
    "BIGNUM": ("0", "1", "-1", "255", "-256", f"'{'9' * 80}'", f"'-1{'0' * 80}'"),
    "ENUM('small', 'large', 'a')": ("'small'", "'large'", "'a'"),
    "INTERVAL": ("'1 month'", "'30 days'", "'1 hour'"),
    "UUID": ("'00000000-0000-0000-0000-000000000001'", "'ffffffff-0000-0000-0000-000000000002'"),
    "JSON": ("'{\"a\": 1}'", "'[1, 2]'", "'null'"),
    "INTEGER[]": ("[]", "[1]", "[2, NULL]", "[0, 0, 3]"),
    "STRUCT(a INTEGER, b VARCHAR)": ("{'a': 1, 'b': 'p'}", "{'a': NULL, 'b': 'q'}"),
    "MAP(VARCHAR, INTEGER)": ("MAP {'p': 1}", "MAP {}"),
    "INTEGER[2]": ("[0, 1]", "[1, 0]", "[1, 1]"),
    "TUPLE(INTEGER, VARCHAR)": ("(1, 'p')", "(NULL, 'q')", "(1, 'q')"),
    "STRUCT(t TIME WITH TIME ZONE, i INTERVAL)": (
        "{'t': '12:00:00+00', 'i': '1 month'}",
        "{'t': '13:00:00+01', 'i': '30 days'}",
        "{'t': NULL, 'i': '1 hour'}",
    ),
}

WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
NUMBERS = (*WHOLE, "HUGEINT", "REAL", "DOUBLE", "DECIMAL(9,2)", "DECIMAL(30,4)")
NESTED = tuple(kind for kind in VALUES if "[" in kind or kind.startswith(("STRUCT", "MAP", "TUPLE")))
ORDERED = tuple(kind for kind in VALUES if kind not in ("JSON", "INTERVAL") and "INTERVAL" not in kind)

KEYS: dict[str, tuple[str, ...]] = {
    "INTEGER": tuple(map(str, range(-2, 10))),
    "BIGINT": ("-9223372036854775808", *map(str, range(8))),
    "VARCHAR": ("''", "'p'", "'q'", "'pq'", "'Q'", "'ß'", "'a b'"),
    "DATE": ("'1969-12-31'", "'2024-02-29'", "'2024-03-01'", "'2024-03-02'"),
    "TIMESTAMP": VALUES["TIMESTAMP"],
    "DECIMAL(9,2)": VALUES["DECIMAL(9,2)"],
    "UUID": VALUES["UUID"],
    "BOOLEAN": VALUES["BOOLEAN"],
    "HUGEINT": VALUES["HUGEINT"],
    "BLOB": VALUES["BLOB"],
    "TIMESTAMP_NS": VALUES["TIMESTAMP_NS"],
    "TIMESTAMP_S": VALUES["TIMESTAMP_S"],
    "TIME WITH TIME ZONE": VALUES["TIME WITH TIME ZONE"],
    "BIT": VALUES["BIT"],
    "BIGNUM": VALUES["BIGNUM"],
    "ENUM('small', 'large', 'a')": VALUES["ENUM('small', 'large', 'a')"],
    "DOUBLE": ("0.0", "0.125", "'inf'", "'-inf'"),
}


@dataclass(frozen=True)
class Table:
    """A table that was drawn. Every table has the column ``g``, of few whole numbers, by which it is
    joined and grouped."""

    name: str
    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...]

    def __str__(self) -> str:
        columns = [f"{name} {kind}" for name, kind in self.columns]
        key = [f"PRIMARY KEY ({', '.join(self.key)})"] if self.key else []
        return f"CREATE TABLE {self.name} ({', '.join([*columns, *key])})"

    def of(self, kinds: Sequence[str]) -> list[str]:
        return [name for name, kind in self.columns if kind in kinds]

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.columns]

    @property
    def order(self) -> list[str]:
        """What orders the rows so far that those that tie are equal."""
        return list(self.key) or [name for name, kind in self.columns if kind not in ("JSON",)]


def random_tables(rng: random.Random) -> list[Table]:
    """Two to four tables."""
    found = []
    for number in range(rng.randint(2, 4)):
        key: list[tuple[str, str]] = []
        if rng.random() < 0.85:
            key = [(f"k{n}", rng.choice(["INTEGER", rng.choice(list(KEYS))])) for n in range(rng.choice([1, 1, 2, 3]))]
        values = [("g", "INTEGER"), ("x", rng.choice(["INTEGER", "DOUBLE", rng.choice(NUMBERS)]))]
        values += [(f"c{n}", rng.choice(list(VALUES))) for n in range(rng.randint(1, 4))]
        found.append(Table(f"t{number}", (*key, *values), tuple(name for name, _ in key)))
    return found


@dataclass
class History:
    """Draws writes. Some keys are hot, and what was deleted comes back."""

    rng: random.Random
    tables: Sequence[Table]
    values: Mapping[str, Sequence[str]] = field(default_factory=lambda: VALUES)

    def __post_init__(self) -> None:
        self.hot = {table.name: [self._key(table) for _ in range(2)] for table in self.tables}

    def epochs(self, count: int) -> Iterator[Epoch]:
        for number in range(count):
            size = self.rng.choice([0, 1, 2, 4, 8, 16]) if number else self.rng.choice([0, 8, 24, 48])
            writes: list[Write] = []
            while len(writes) < size:
                writes += self.some()
            yield Epoch(tuple(writes), None if self.rng.random() < 0.75 else self.rng.randint(1, 10))

    def some(self) -> list[Write]:
        """One write, or several that belong together."""
        table = self.rng.choice(self.tables)
        key = self.rng.choice(self.hot[table.name]) if self.rng.random() < 0.2 else self._key(table)
        chance = self.rng.random()
        if chance < 0.2:
            return [Write(table.name, key, deletes=True)]
        if chance < 0.3:  # the row gets another key
            return [Write(table.name, key, deletes=True), self._put(table, self._key(table))]
        if chance < 0.35:  # and comes back
            return [Write(table.name, key, deletes=True), self._put(table, key)]
        if chance < 0.45:
            return [self._put(table, key, whole=False) for _ in range(self.rng.randint(1, 3))]
        return [self._put(table, key, whole=chance < 0.85)]

    def _put(self, table: Table, key: tuple[tuple[str, str], ...], whole: bool = True) -> Write:
        values = [(name, self._value(kind)) for name, kind in table.columns if name not in table.key]
        if not whole:
            values = self.rng.sample(values, self.rng.randint(0, len(values)))
        return Write(table.name, (*key, *values))

    def _value(self, kind: str) -> str:
        return "NULL" if self.rng.random() < NULLS else self.rng.choice(self.values[kind])

    def _key(self, table: Table) -> tuple[tuple[str, str], ...]:
        if not table.key:
            return ((ROW_ID, f"'00000000-0000-0000-0000-{self.rng.randint(0, 12):012}'"),)
        kinds = dict(table.columns)
        return tuple((name, self.rng.choice(KEYS[kinds[name]])) for name in table.key)
