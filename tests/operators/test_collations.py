"""Text under a collation: what is equal there is one key, and follows its tables."""

from __future__ import annotations

import pytest

from everview.change.schema import Schema
from tests.operators.histories import apply, history, maintained, taken
from tests.oracle.maintained import Maintained

T = Schema.of({"id": "BIGINT", "g": "VARCHAR", "n": "INTEGER"}, key=["id"])
U = Schema.of({"k": "BIGINT", "g": "VARCHAR"}, key=["k"])
TABLES = {"t": T, "u": U}
texts = [None, "", "a", "A", "á", "b", "B"]
ROWS = {
    "t": {"id": range(8), "g": texts, "n": [None, 0, 1]},
    "u": {"k": range(6), "g": texts},
}
SETS = {
    "operators": {
        "joined": "SELECT t.id, u.k FROM t JOIN u ON t.g COLLATE NOCASE = u.g",
        "of_both": "SELECT t.id, u.k FROM t LEFT JOIN u ON t.g COLLATE NOCASE.NOACCENT = u.g COLLATE NOCASE.NOACCENT",
        "member": "SELECT id FROM t WHERE g COLLATE NOCASE IN (SELECT g FROM u)",
        "no_member": "SELECT id FROM t WHERE g COLLATE NOACCENT NOT IN (SELECT g FROM u WHERE g IS NOT NULL)",
        "whether": "SELECT id, g COLLATE NOCASE IN (SELECT g FROM u) AS b FROM t",
        "linked": "SELECT id, (SELECT count(*) FROM u WHERE u.g COLLATE NOCASE = t.g) AS c FROM t",
        "window": "SELECT id, row_number() OVER (PARTITION BY g COLLATE NOCASE ORDER BY id) AS r FROM t",
        "first": "SELECT id, g FROM t QUALIFY row_number() OVER (PARTITION BY g COLLATE NOACCENT ORDER BY id) = 1",
        "filter": "SELECT id FROM t WHERE g COLLATE NOCASE = 'A' OR g COLLATE NOCASE IN ('b', '')",
        "in_group": "SELECT n, count(DISTINCT g COLLATE NOCASE) AS c, list(id ORDER BY g COLLATE NOCASE, id) AS l"
        " FROM t GROUP BY n",
        "least": "SELECT n, lower(min(g COLLATE NOCASE)) AS a FROM t GROUP BY n",
    },
    "evaluated again": {
        "groups": "SELECT count(*) AS c, min(id) AS i FROM t GROUP BY g COLLATE NOCASE",
        "handed_on": "SELECT count(*) AS c, min(id) AS i FROM (SELECT id, g COLLATE NOCASE AS g FROM t) GROUP BY g",
        "distinct": "SELECT count(*) AS c FROM (SELECT DISTINCT g COLLATE NOCASE FROM t)",
        "united": "SELECT count(*) AS c FROM (SELECT g COLLATE NOCASE FROM t UNION SELECT g FROM u)",
        "lacking": "SELECT count(*) AS c FROM (SELECT g COLLATE NOCASE FROM t EXCEPT SELECT g FROM u)",
        "having": "SELECT n FROM t GROUP BY n HAVING max(g COLLATE NOCASE) = 'B'",
        "more_than": "SELECT id FROM t WHERE g COLLATE NOCASE > ALL (SELECT g FROM u)",
        "two_columns": "SELECT t.id, u.k FROM (SELECT id, g COLLATE NOCASE AS g FROM t) t JOIN u USING (g)",
    },
}


@pytest.mark.parametrize("views", SETS.values(), ids=SETS.keys())
def test_collated_text_follows_its_tables(views: dict[str, str]) -> None:
    with maintained(TABLES, views) as m:
        m.epoch()
        taken(m, history(ROWS, seed=1, epochs=8))


def shown(m: Maintained) -> list[tuple[object, ...]]:
    return sorted((row["g"], row["c"]) for row in m.view("groups").to_pylist())


def test_of_texts_that_are_equal_one_is_shown_always_the_same() -> None:
    views = {"groups": "SELECT g COLLATE NOCASE AS g, count(*) AS c FROM t GROUP BY 1"}
    with maintained(TABLES, views) as m:
        apply(m, [("t", {"id": i, "g": "aAbB"[i], "n": 0}, False) for i in (3, 1, 2, 0)])
        m.epoch()
        assert shown(m) == [("a", 2), ("b", 2)]
        apply(m, [("t", {"id": 0}, True)])
        m.epoch()
        assert shown(m) == [("A", 1), ("b", 2)]
