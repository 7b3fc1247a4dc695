"""Top-k: the first rows of ordered bags."""

from __future__ import annotations

import math

import pytest

from everview.change.schema import Schema
from tests.operators.histories import apply, history, maintained, rows_read, taken

T = Schema.of({"id": "BIGINT", "g": "VARCHAR", "x": "DOUBLE", "n": "INTEGER", "l": "INTEGER[]"}, key=["id"])
TABLES = {"t": T}
ROWS = {
    "t": {
        "id": range(10),
        "g": [None, "", "a", "A", "é", "b"],
        "x": [None, 0.0, -0.0, 1.5, -2.0, math.inf, math.nan],
        "n": [None, 0, 1, 2],
        "l": [None, [], [1], [1, None], [2, 1], [None]],
    }
}
SETS = {
    "orders": {
        "down": "SELECT id, x FROM t ORDER BY x DESC, id LIMIT 3",
        "up": "SELECT id, x FROM t ORDER BY x, id DESC LIMIT 3",
        "nulls_first": "SELECT id, n FROM t ORDER BY n NULLS FIRST, id LIMIT 2",
        "nulls_last": "SELECT id FROM t ORDER BY n DESC NULLS LAST, g, id LIMIT 2",
        "computed": "SELECT id FROM t ORDER BY abs(x) + n DESC, id LIMIT 2",
        "lists": "SELECT id, l FROM t ORDER BY l DESC, id LIMIT 3",
        "lists_up": "SELECT id FROM t ORDER BY l NULLS FIRST, id LIMIT 3",
        "structs": "SELECT id FROM t ORDER BY {'a': n, 'b': x}, id LIMIT 3",
        "collated": "SELECT id, g FROM t ORDER BY g COLLATE NOCASE, id LIMIT 3",
        "german": "SELECT id, g FROM t ORDER BY g COLLATE de DESC, id LIMIT 3",
    },
    "cuts": {
        "offset": "SELECT id, n FROM t ORDER BY n, id LIMIT 2 OFFSET 2",
        "all_but": "SELECT id, n FROM t ORDER BY n, id OFFSET 2",
        "by_key": "SELECT id, n FROM t LIMIT 2",
        "none": "SELECT id FROM t ORDER BY n, id LIMIT 0",
        "many": "SELECT id FROM t ORDER BY n, id LIMIT 100",
    },
    "partitions": {
        "each": "SELECT id, g, n FROM t QUALIFY row_number() OVER (PARTITION BY g ORDER BY n DESC, id) <= 2",
        "zeros": "SELECT id, x FROM t QUALIFY row_number() OVER (PARTITION BY x ORDER BY n, id) = 1",
        "unseen": "SELECT id FROM t QUALIFY row_number() OVER (PARTITION BY lower(g) ORDER BY x, id) <= 1",
        "distinct_on": "SELECT DISTINCT ON (g) g, id, n FROM t ORDER BY g, n DESC NULLS LAST, id",
        "counted": "SELECT g, count(*) AS c FROM (SELECT g FROM t ORDER BY x, id LIMIT 4) GROUP BY g",
    },
    "ties": {
        "ranked": "SELECT id, g, n FROM t QUALIFY rank() OVER (PARTITION BY g ORDER BY n DESC) <= 2",
        "of_all": "SELECT id, n FROM t QUALIFY rank() OVER (ORDER BY n NULLS FIRST) <= 3",
        "of_two": "SELECT id FROM t QUALIFY rank() OVER (ORDER BY n, x) <= 2",
        "of_zeros": "SELECT id, x FROM t QUALIFY rank() OVER (ORDER BY abs(x) DESC) <= 2",
        "of_lists": "SELECT id, l FROM t QUALIFY rank() OVER (ORDER BY l) <= 2",
    },
    "a family": {
        f"above_{bound}": f"SELECT id, n FROM t WHERE n > {bound} ORDER BY n DESC, id LIMIT 2" for bound in range(-1, 2)
    }
    | {
        f"tied_{bound}": f"SELECT id FROM t WHERE n > {bound} QUALIFY rank() OVER (PARTITION BY g ORDER BY x) <= 1"
        for bound in range(-1, 2)
    },
}


@pytest.mark.parametrize("views", SETS.values(), ids=SETS.keys())
def test_the_first_rows_follow_their_table(views: dict[str, str]) -> None:
    with maintained(TABLES, views) as m:
        taken(m, history(ROWS, seed=1, epochs=10))


def rows(numbers: range, n: int | None = None) -> list[tuple[str, dict[str, object], bool]]:
    return [("t", {"id": i, "g": "a", "x": 0.0, "n": i if n is None else n, "l": None}, False) for i in numbers]


def test_only_the_beginning_of_a_bag_is_read() -> None:
    with maintained(TABLES, {"first": "SELECT id, n FROM t ORDER BY n, id LIMIT 3 OFFSET 1"}) as m:
        apply(m, rows(range(5000)))
        m.epoch()
        apply(m, [("t", {"id": 2}, True), ("t", {"id": 4000}, True)])
        assert sum(rows_read(m).values()) == 6  # four, and one for each that goes
        m.epoch()
        m.check()
        apply(m, rows(range(6000, 6010)))
        assert sum(rows_read(m).values()) == 4
        m.epoch()
        m.check()


def test_ties_are_read_to_their_end_and_not_further() -> None:
    with maintained(TABLES, {"tied": "SELECT id FROM t QUALIFY rank() OVER (ORDER BY n) <= 2"}) as m:
        apply(m, [*rows(range(300), n=1), *rows(range(300, 5000))])
        m.epoch()
        m.check()
        assert len(m.view("tied")) == 300
        apply(m, [("t", {"id": 7}, True)])
        assert sum(rows_read(m).values()) < 1200  # 3, 6, 12, … 384
        m.epoch()
        m.check()
        apply(m, [("t", {"id": 10_000, "n": 0}, False)])
        m.epoch()
        m.check()
        apply(m, [("t", {"id": 10_001, "n": 0}, False)])
        m.epoch()
        m.check()
        assert len(m.view("tied")) == 2


def test_a_row_that_cannot_be_ordered_is_quarantined() -> None:
    with maintained(TABLES, {"first": "SELECT id FROM t ORDER BY CAST(g AS INTEGER), id LIMIT 2"}) as m:
        apply(m, [("t", {"id": i, "g": g}, False) for i, g in enumerate(["2", "b", "1"])])
        m.epoch()
        assert [row["id"] for row in m.view("first").to_pylist()] == [0, 2]
        assert [said.what for _, said in m.quarantine()] == ["row"]
        apply(m, [("t", {"id": 1, "g": "0"}, False)])
        m.epoch()
        assert m.quarantine() == []
        m.check()
