"""A column of every type, alone and nested, with nulls, the least and the greatest values.

The same SQL makes a table here and in a plain DuckDB, so that whatever leaves Everview can be
compared with what leaves DuckDB.
"""

from __future__ import annotations

import duckdb

import everview
from everview.change.types import parse_type
from everview.store.encoding.columns import to_python

SCALARS: dict[str, tuple[str, ...]] = {
    "BOOLEAN": ("true", "false"),
    "TINYINT": ("-128", "127"),
    "SMALLINT": ("-32768", "32767"),
    "INTEGER": ("-2147483648", "2147483647"),
    "BIGINT": ("-9223372036854775808", "9223372036854775807"),
    "HUGEINT": ("-170141183460469231731687303715884105728", "170141183460469231731687303715884105727"),
    "UTINYINT": ("0", "255"),
    "USMALLINT": ("0", "65535"),
    "UINTEGER": ("0", "4294967295"),
    "UBIGINT": ("0", "18446744073709551615"),
    "UHUGEINT": ("0", "340282366920938463463374607431768211455"),
    "REAL": ("'-inf'", "'nan'", "1.1", "-0.0"),
    "DOUBLE": ("'inf'", "'nan'", "1.1", "1.7976931348623157e308"),
    "DECIMAL(4,2)": ("-99.99", "99.99", "0"),
    "DECIMAL(18,4)": ("-99999999999999.9999", "99999999999999.9999"),
    "DECIMAL(38,10)": ("-9999999999999999999999999999.9999999999", "1"),
    "VARCHAR": ("''", "'ünïcode \"quoted\", ''text'''", "chr(10)"),
    "BLOB": ("''", "'\\x00\\xFFa'"),
    "DATE": ("'0001-01-01'", "'9999-12-31'"),
    "TIME": ("'00:00:00'", "'23:59:59.999999'"),
    "TIMESTAMP": ("'0001-01-01 00:00:00'", "'9999-12-31 23:59:59.999999'"),
    "TIMESTAMPTZ": ("'0001-01-01 00:00:00+00'", "'9999-12-31 23:59:59.999999+00'"),
    "TIMESTAMP_S": ("'0001-01-01 00:00:00'", "'9999-12-31 23:59:59'"),
    "TIMESTAMP_MS": ("'0001-01-01 00:00:00'", "'9999-12-31 23:59:59.999'"),
    "TIMESTAMP_NS": ("'1677-09-21 00:12:44'", "'2262-04-11 23:47:16'", "'2000-01-01 00:00:00.123456'"),
    "TIMETZ": ("'00:00:00-15:59:59'", "'23:59:59.999999+15:59'", "'12:00:00+00'", "'12:00:00.5-01'"),
    "BIT": ("'0'", "'111111111'", "'00000000'"),
    "BIGNUM": ("'0'", f"'-{'9' * 400}'", f"'{'9' * 400}'", "-256"),
    "ENUM('small', 'it''s', '')": ("'small'", "'it''s'", "''"),
    "INTERVAL": ("'0 days'", "'-1 day 36 hours'", "'1 microsecond'", "'1 year 2 months 3 days 04:05:06.789'"),
    "UUID": ("'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"),
    "JSON": ("'{\"a\": [1, null]}'", "'1'"),
}
"""Types, and texts of values that become one with a cast."""


def _nested() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for kind, values in SCALARS.items():
        casts = [f"CAST({value} AS {kind})" for value in values]
        found[f"{kind}[]"] = ("[]", f"[{casts[0]}, NULL, {casts[-1]}]")
        found[f"{kind}[2]"] = (f"[{casts[0]}, {casts[-1]}]", f"[NULL, {casts[0]}]")
        found[f"TUPLE({kind}, VARCHAR)"] = (f"({casts[-1]}, 'x')", "(NULL, 'y')")
        found[f"STRUCT(a {kind}, b INTEGER)"] = (f"{{'a': {casts[0]}, 'b': NULL}}", "{'a': NULL, 'b': 1}")
        found[f"MAP(VARCHAR, {kind})"] = ("MAP([], [])", f"MAP {{'x': {casts[-1]}, 'y': NULL}}")
        # NaN is another key every time in Python, and DuckDB cannot fetch a BIGNUM as a key.
        if kind not in ("REAL", "DOUBLE", "BIGNUM"):
            found[f"MAP({kind}, INTEGER)"] = (f"MAP {{{casts[0]}: 1}}",)
    found["STRUCT(a HUGEINT[], b MAP(UUID, INTERVAL[]))[]"] = (
        "[{'a': [1::HUGEINT, NULL], 'b': MAP {'00000000-0000-0000-0000-000000000001'::UUID: [INTERVAL 2 MONTH]}}]",
    )
    found["TUPLE(INTEGER, TUPLE(INTEGER, VARCHAR))[]"] = ("[(1, (1, 'x')), NULL]",)
    found["STRUCT(a INTEGER, b STRUCT(c INTEGER, d INTEGER))"] = ("(1, (1, 2))",)
    found["INTEGER[2][3]"] = ("[[1, 2], NULL, [3, NULL]]",)
    found["MAP(INTEGER[], VARCHAR)"] = ("MAP {[1, NULL]: 'x'}",)
    found["MAP(STRUCT(a HUGEINT), MAP(INTEGER[], INTERVAL))"] = ("MAP {{'a': 1}: MAP {[1]: INTERVAL 1 DAY}}",)
    return found


VALUES = SCALARS | _nested()
COLUMNS = {f"c{at}": kind for at, kind in enumerate(VALUES)}
"""The columns of the table ``every``, beside its key ``id``."""
TABLE = f"CREATE TABLE every (id INTEGER PRIMARY KEY, {', '.join(f'{n} {kind}' for n, kind in COLUMNS.items())})"
_ROWS = max(map(len, VALUES.values())) + 1
INSERTS = tuple(
    f"INSERT INTO every SELECT {at}, "
    + ", ".join(
        f"CAST({VALUES[kind][at]} AS {kind})" if at < len(VALUES[kind]) else f"CAST(NULL AS {kind})"
        for kind in COLUMNS.values()
    )
    for at in range(_ROWS)
)
"""Statements that fill it: every column ends with a null."""
NAMES = {name: parse_type(kind) for name, kind in COLUMNS.items()}


def in_duckdb() -> duckdb.DuckDBPyConnection:
    """A plain DuckDB with the table."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for statement in (TABLE, *INSERTS):
        connection.execute(statement)
    return connection


def stored_texts(db: everview.Database) -> list[str]:
    """All values of the table in another store, exactly."""
    result = db.table("every").scan()
    return [
        str(to_python(array, column.type))
        for batch in result.stored_batches()
        for array, column in zip(batch.columns, result.columns, strict=True)
    ]
