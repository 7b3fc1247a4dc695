"""Rows and groups without a value: left out, listed, and back as soon as they have one.

Each view is compared with a query that leaves out what has no value, after every epoch of random
histories in which rows lose and regain their values.
"""

from __future__ import annotations

import random

import pytest

from tests.oracle.places import Places
from tests.oracle.played import Played, played
from tests.oracle.script import Epoch, Script, View, Write

TABLES = (
    "CREATE TABLE t (id INTEGER PRIMARY KEY, g INTEGER, s VARCHAR, x INTEGER)",
    "CREATE TABLE u (id INTEGER PRIMARY KEY, g INTEGER)",
)
GOOD = "(SELECT *, TRY_CAST(s AS INTEGER) AS n FROM t WHERE s IS NULL OR TRY_CAST(s AS INTEGER) IS NOT NULL)"
BIG = "120000000000000000000000000000000000000"

VIEWS = (
    ("SELECT id, CAST(s AS INTEGER) AS n FROM t", f"SELECT id, n FROM {GOOD}"),
    ("SELECT id FROM t WHERE CAST(s AS INTEGER) > 1", f"SELECT id FROM {GOOD} WHERE n > 1"),
    ("SELECT g, count(*) AS c FROM t GROUP BY g", "SELECT g, count(*) AS c FROM t GROUP BY g"),
    (
        "SELECT g, count(*) AS c, sum(CAST(s AS INTEGER)) AS n FROM t GROUP BY g",
        f"SELECT g, count(*) AS c, sum(n) AS n FROM {GOOD} GROUP BY g",
    ),
    (
        "SELECT g, count(*) AS c, min(CAST(s AS INTEGER)) AS n FROM t GROUP BY g",
        f"SELECT g, count(*) AS c, min(n) AS n FROM {GOOD} GROUP BY g",
    ),
    ("SELECT sum(CAST(s AS INTEGER)) AS n FROM t", f"SELECT sum(n) AS n FROM {GOOD}"),
    ("SELECT DISTINCT CAST(s AS INTEGER) AS n FROM t", f"SELECT DISTINCT n FROM {GOOD}"),
    (
        "SELECT t.id, u.id AS other FROM t LEFT JOIN u ON CAST(t.s AS INTEGER) = u.g",
        f"SELECT t.id, u.id AS other FROM {GOOD} AS t LEFT JOIN u ON t.n = u.g",
    ),
    (
        "SELECT u.id FROM u WHERE NOT EXISTS (SELECT 1 FROM t WHERE CAST(t.s AS INTEGER) = u.g)",
        f"SELECT u.id FROM u WHERE NOT EXISTS (SELECT 1 FROM {GOOD} AS t WHERE t.n = u.g)",
    ),
    (
        "SELECT id, CAST(s AS INTEGER) AS n FROM t ORDER BY n DESC, id LIMIT 3",
        f"SELECT id, n FROM {GOOD} ORDER BY n DESC, id LIMIT 3",
    ),
    (
        "SELECT CAST(s AS INTEGER) AS n FROM t UNION SELECT g FROM u",
        f"SELECT n FROM {GOOD} UNION SELECT g FROM u",
    ),
    (
        "SELECT id FROM t WHERE s IN ('1', '2') AND CAST(s AS INTEGER) > 1",
        "SELECT id FROM t WHERE s = '2'",
    ),
    (
        "SELECT id FROM t WHERE s IN ('1', '2') AND g + CAST(s AS INTEGER) > x",
        "SELECT id FROM t WHERE s IN ('1', '2') AND g + TRY_CAST(s AS INTEGER) > x",
    ),
    (
        "SELECT id, x + 2147483000 AS n FROM t",
        "SELECT id, CAST(x::BIGINT + 2147483000 AS INTEGER) AS n FROM t WHERE x IS NULL OR x < 648",
    ),
    (
        "SELECT id, CASE WHEN g = 3 THEN error('three is not allowed') ELSE g END AS n FROM t",
        "SELECT id, g AS n FROM t WHERE g IS DISTINCT FROM 3",
    ),
    (
        f"SELECT g, sum(sign(x)::HUGEINT * {BIG}) AS n FROM t GROUP BY g",
        f"SELECT g, CAST(sum(sign(x)) * {BIG} AS HUGEINT) AS n FROM"
        " (SELECT *, sum(sign(x)) OVER (PARTITION BY g) AS total FROM t)"
        " WHERE total IS NULL OR abs(total) < 2 GROUP BY g",
    ),
)
"""Queries, and what they are without the rows and groups that have no value."""

VALUES = {
    "g": ("1", "2", "3", "NULL"),
    "s": ("'1'", "'2'", "'3'", "'two'", "'99999999999'", "NULL"),
    "x": ("-1", "0", "1", "2147483647", "NULL"),
}


def drawn(seed: int) -> Script:
    rng = random.Random(seed)
    epochs = []
    for number in range(5):
        writes = []
        for _ in range(rng.choice([1, 3, 6]) if number else 12):
            key = ("id", str(rng.randint(0, 9)))
            if rng.random() < 0.3:
                writes.append(Write("u", (key, ("g", rng.choice(VALUES["g"])))))
            elif rng.random() < 0.2:
                writes.append(Write("t", (key,), deletes=True))
            else:
                columns = rng.sample(list(VALUES), rng.randint(1, 3))
                writes.append(Write("t", (key, *((name, rng.choice(VALUES[name])) for name in columns))))
        epochs.append(Epoch(tuple(writes)))
    epochs.append(Epoch(tuple(Write("t", (("id", str(number)),), deletes=True) for number in range(10))))
    views = [View(f"v{number}", *texts) for number, texts in enumerate(VIEWS)]
    return Script(TABLES, tuple(views), tuple(epochs))


def listed(found: Played, view: str) -> int:
    """How many rows are listed as lacking in a view."""
    return sum(count for count, said in found.maintained.quarantine() if view in said.views)


@pytest.mark.parametrize("servers", [1, 3])
@pytest.mark.parametrize("seed", range(2))
def test_what_has_no_value_is_left_out_until_it_has_one(seed: int, servers: int) -> None:
    script = drawn(seed)
    with played(script) as found:
        for epoch in script.epochs:
            maintained = found.maintained
            if servers > 1:
                bound = maintained.later if maintained.epochs else maintained.first
                maintained.runner = Places(bound, servers=servers, rng=random.Random(seed))
            found.epoch(epoch)
            rows = found.recomputed()
            for name, query in ((view.name, view.query) for view in script.views):
                if query.startswith("SELECT id, ") and "LIMIT" not in query:
                    assert listed(found, name) == found.maintained.table("t").count() - len(rows[name])
                if "s IN" in query or ("CAST" not in query and "error" not in query and "+" not in query):
                    assert listed(found, name) == 0
        assert found.maintained.quarantine() == []


def test_equal_rows_of_several_places_are_counted_together() -> None:
    """The step sees g and s only, so the rows are equal there, and they are read in different places."""
    view = View(
        "v",
        "SELECT g, sum(CAST(s AS INTEGER)) AS n FROM t GROUP BY g",
        f"SELECT g, sum(n) AS n FROM {GOOD} GROUP BY g",
    )
    with played(Script(TABLES, (view,), ())) as found:
        maintained = found.maintained

        def counts(*writes: Write) -> list[int]:
            bound = maintained.later if maintained.epochs else maintained.first
            maintained.runner = Places(bound, servers=4, rng=random.Random(1))
            found.epoch(Epoch(writes))
            return [count for count, _ in maintained.quarantine()]

        bad = [(("id", str(number)), ("g", "1"), ("s", "'two'")) for number in range(8)]
        assert counts(*(Write("t", values) for values in bad)) == [8]
        assert counts(Write("t", bad[0][:1], deletes=True)) == [7]
        assert counts(*(Write("t", values[:1], deletes=True) for values in bad[1:7])) == [1]
        assert counts(Write("t", (("id", "7"), ("s", "'2'")))) == []


@pytest.mark.parametrize("condition", ["x = 'one'", "x IN ('one', 'two')", "x <> CAST('one' AS INTEGER)"])
def test_a_constant_that_is_no_value_of_its_type_fails_for_each_row_and_not_for_the_epoch(condition: str) -> None:
    views = (
        View("failing", f"SELECT id FROM t WHERE g = 1 AND {condition}", "SELECT id FROM t WHERE false"),
        View("matching", "SELECT id FROM t WHERE x = '2'", "SELECT id FROM t WHERE x = 2"),
    )
    rows = [Write("t", (("id", str(number)), ("g", str(number % 2)), ("x", "2"))) for number in range(4)]
    with played(Script(TABLES, views, ())) as found:
        found.epoch(Epoch(()))
        found.epoch(Epoch(tuple(rows)))
        assert listed(found, "failing") == 2 and listed(found, "matching") == 0
