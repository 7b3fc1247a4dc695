"""Views that differ in constants of every type: each has the value that the user's own words have in DuckDB."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import everview

CONSTANTS = {
    "d": ["DATE '2024-02-29'", "'2024-01-01'", "'1999-12-31'"],
    "t": ["TIMESTAMP '2024-02-29 10:00:00.5'", "'2024-01-01'", "'2024-02-29 10:00:00'"],
    "s": ["'it''s'", "''", "'1'", "'-- no comment'", "'ä $1 {}'"],
    "i": ["1", "12345678901", "0", "2.5", "-3"],
    "f": ["0.1", "123456789012345678", "1.00000000000000001", "CAST(0.3 AS DOUBLE)", "CAST('0.3' AS DOUBLE)"],
    "m": ["1.25", "1", "0.005", "CAST(2.5 AS INTEGER)", "CAST('2.5' AS DECIMAL(9,2))"],
    "h": ["170141183460469231731687303715884105727", "12345678901234567", "0"],
    "b": ["'ab'", "'\\x00\\xFF'", "''"],
    "c": ["'10:00:00'", "TIME '23:59:59.999999'"],
}
ROWS = """
INSERT INTO a VALUES
    (1, '2024-02-29', '2024-02-29 10:00:00.5', 'it''s', 1, 0.1, 1.25, 170141183460469231731687303715884105727,
     'ab', '10:00:00'),
    (2, '2024-01-01', '2024-01-01', '', 12345678901, 123456789012345678, 1, 12345678901234567, '\\x00\\xFF',
     '23:59:59.999999'),
    (3, '1999-12-31', '2024-02-29 10:00:00', '1', 0, 0.3, 0.01, 0, '', '00:00:00'),
    (4, NULL, NULL, '-- no comment', 3, 0.30000000000000004, 2.5, -1, NULL, NULL),
    (5, NULL, NULL, 'ä $1 {}', -3, 1, 3, NULL, NULL, NULL)
"""
TABLE = """
CREATE TABLE a (id INTEGER PRIMARY KEY, d DATE, t TIMESTAMP, s VARCHAR, i BIGINT, f DOUBLE, m DECIMAL(9, 2),
                h HUGEINT, b BLOB, c TIME)
"""


@pytest.mark.parametrize("column", CONSTANTS)
def test_each_member_compares_with_its_own_constant(tmp_path: Path, column: str) -> None:
    texts = {
        f"v{number}_{way}": f"SELECT id, {column} FROM a WHERE {column} {sign} {constant}"
        for number, constant in enumerate(CONSTANTS[column])
        for way, sign in enumerate(("=", "<=", ">"))
    }
    expected = duckdb.connect()
    expected.execute(TABLE)
    expected.execute(ROWS)
    with everview.open(tmp_path / "store") as db:
        db.sql(TABLE)
        for name, text in texts.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {text}")
        db.sql(ROWS)
        db.flush()
        for name, text in texts.items():
            wanted = sorted(id for (id,) in expected.execute(f"SELECT id FROM ({text})").fetchall())
            assert sorted(id for (id,) in db.sql(f"SELECT id FROM {name}").rows()) == wanted, text
