"""What a view shows against its query over the base rows, as benchmarks compare it."""

from __future__ import annotations

import pyarrow as pa

from everview.cli.recompute import differences


def test_differences_name_what_is_missing_and_what_is_wrong() -> None:
    expected = pa.table({"customer": [1, 2, None], "orders": [1, 1, 4]})
    shown = pa.table({"customer": [1, 2, None], "orders": [1, 3, 4]})
    assert differences(expected, expected) == []
    assert differences(expected, shown) == ["missing: (2, 1)", "wrong: (2, 3)"]
