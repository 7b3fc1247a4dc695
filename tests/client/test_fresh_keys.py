"""A fresh read by key works off only what can touch the key; what it returns is DuckDB's answer to the view's own SQL.

Views of all kinds, whose key goes through every operator or is stopped at one; random writes, which move rows from
key to key; keys that are there, were there, and never were; and epochs between two reads.
"""

from __future__ import annotations

import math
import random
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import everview
from everview.sql.settings import connect
from everview.store.encoding.registering import register
from tests.client.every_type import SCALARS

TABLES = """
    CREATE TABLE a (id INTEGER PRIMARY KEY, k INTEGER, x INTEGER, s VARCHAR, y DOUBLE);
    CREATE TABLE b (k INTEGER, n INTEGER, s VARCHAR, d DATE, PRIMARY KEY (k, n));
    CREATE TABLE c (k INTEGER, z VARCHAR);
"""
VIEWS = {
    "picked": "SELECT id, x * 2 AS twice, s FROM a WHERE x > 3",
    "numbers": "SELECT id, CAST(s AS INTEGER) AS n FROM a",
    "grouped": "SELECT k, count(*) AS n, sum(x) AS total, min(s) AS low, max(x) AS high FROM a GROUP BY k",
    "by_float": "SELECT y, count(*) AS n, count(DISTINCT x) AS xs FROM a GROUP BY y",
    "by_text": "SELECT lower(s) AS t, sum(x) AS total FROM a GROUP BY lower(s)",
    "by_number": "SELECT CAST(s AS INTEGER) AS t, count(*) AS n FROM a GROUP BY 1",
    "by_two": "SELECT k, s, count(*) AS n FROM a WHERE x IS NOT NULL GROUP BY k, s",
    "by_month": "SELECT date_trunc('month', d) AS m, count(*) AS n, max(n) AS high FROM b GROUP BY 1",
    "joined": "SELECT a.id, b.k, b.n, a.x, b.s FROM a JOIN b ON a.k = b.k AND a.x > b.n",
    "joined_totals": "SELECT b.k, b.n, count(*) AS c, sum(a.x) AS total FROM a JOIN b ON a.k = b.k GROUP BY b.k, b.n",
    "left_joined": "SELECT a.id, b.k, b.n, b.s FROM a LEFT JOIN b ON a.k = b.k AND b.s = a.s",
    "full_joined": "SELECT a.id AS aid, b.k AS bk, b.n AS bn, a.x FROM a FULL JOIN b ON a.k = b.k AND b.n > 1",
    "with_itself": "SELECT one.id AS one, other.id AS other, one.x FROM a one JOIN a other ON one.k = other.x",
    "lonely": "SELECT id, k, x FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    "matched": "SELECT k, n FROM b WHERE k IN (SELECT k FROM a WHERE x > 2)",
    "different": "SELECT DISTINCT k, x FROM a",
    "either": "SELECT k FROM a UNION SELECT k FROM b EXCEPT SELECT k FROM c",
    "stacked": "SELECT k, count(*) AS n FROM (SELECT k FROM a UNION ALL SELECT k FROM b UNION ALL SELECT 7) GROUP BY k",
    "ranked": "SELECT id, k, rank() OVER (PARTITION BY k ORDER BY x) AS place FROM a",
    "best": "SELECT k, max(id) AS id, count(*) AS n FROM a GROUP BY k QUALIFY row_number() OVER (ORDER BY k) <= 3",
    "first_two": "SELECT id, k, x FROM a QUALIFY row_number() OVER (PARTITION BY k ORDER BY x DESC, id) <= 2",
    "windowed_totals": """SELECT k, sum(place) AS places FROM
        (SELECT k, row_number() OVER (PARTITION BY k ORDER BY x, id) AS place FROM a) GROUP BY k""",
    "listed": "SELECT k, list(x ORDER BY id) AS xs, median(x) AS middle FROM a GROUP BY k",
    "sets": "SELECT k, s, count(*) AS n FROM a GROUP BY GROUPING SETS ((k), (s), ())",
    "whole": "SELECT count(*) AS n, sum(x) AS total FROM a",
    "above": "SELECT n, count(*) AS groups, max(k) AS last FROM grouped GROUP BY n",
    "over_1": "SELECT id, x, k FROM a WHERE x > 1",
    "over_2": "SELECT id, x, k FROM a WHERE x > 2",
    "walked": """WITH RECURSIVE r(id, x) AS (SELECT id, x FROM a WHERE x < 2 UNION SELECT a.id, a.x FROM a, r
        WHERE a.k = r.id) SELECT id, count(*) AS n FROM r GROUP BY id""",
}
FLOATS = [None, 0.0, -0.0, 1.5, float("nan"), float("inf")]
DAYS = ["2024-01-31", "2024-02-01", "2024-02-29", None]


def write(db: everview.Database, rng: random.Random, count: int) -> None:
    """Random writes, of few keys and values: rows move from key to key and back."""
    for _ in range(count):
        kind = rng.randrange(10)
        some = rng.choice([None, 0, 1, 2, 3])
        if kind == 0:
            db.table("a").delete(rng.randrange(10))
        elif kind == 1:
            db.table("b").delete(rng.randrange(4), rng.randrange(4))
        elif kind == 2:
            db.table("c").put({"k": some, "z": "z"})
        elif kind == 3:
            db.table("a").put({"id": rng.randrange(10), "x": rng.randrange(6)})
        elif kind < 6:
            row = {"k": rng.randrange(4), "n": rng.randrange(4), "s": rng.choice(["1", "B", None])}
            db.sql("INSERT INTO b VALUES (?, ?, ?, CAST(? AS DATE))", [*row.values(), rng.choice(DAYS)])
        else:
            x, s = rng.choice([None, *range(6)]), rng.choice([None, "1", "22", "b", "B"])
            db.table("a").put({"id": rng.randrange(10), "k": some, "x": x, "s": s, "y": rng.choice(FLOATS)})


def asked_of_duckdb(db: everview.Database) -> dict[str, list[dict[str, object]]]:
    """The rows of all views: the user's own SQL, over the tables as they are."""
    with connect() as connection:
        for table in ("a", "b", "c"):
            register(connection, table, db.sql(f"SELECT * FROM {table}").arrow())
        found = {}
        for name, sql in VIEWS.items():
            if name in ("numbers", "by_number"):  # rows whose expression fails are left out
                sql = sql.replace("FROM a", "FROM a WHERE s IS NULL OR s NOT IN ('b', 'B')")
            connection.execute(f"CREATE TEMP TABLE {name} AS {sql}")
            answer = connection.sql(f"SELECT * FROM {name}")
            found[name] = [dict(zip(answer.columns, row, strict=True)) for row in answer.fetchall()]
        return found


def plain(value: object) -> object:
    """A value that is equal to itself, and to what SQL finds equal."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return [plain(one) for one in value] if isinstance(value, list) else value


def shown(row: dict[str, object] | None) -> dict[str, object] | None:
    return None if row is None else {name: plain(value) for name, value in row.items()}


class Checked:
    """Views that are read by key, as fresh as they can be, and compared with DuckDB."""

    def __init__(self, db: everview.Database, rng: random.Random) -> None:
        self.db, self.rng = db, rng
        self.views = {name: db.view(name) for name in VIEWS if name not in bags(db)}
        self.seen: dict[str, dict[tuple[object, ...], tuple[object, ...]]] = {name: {} for name in self.views}
        """By view the keys that were ever there."""

    def check(self, views: list[str]) -> None:
        expected = asked_of_duckdb(self.db)
        for name in views:
            view = self.views[name]
            rows = {tuple(plain(row[part]) for part in view.key): row for row in expected[name]}
            self.seen[name] |= {key: tuple(row[part] for part in view.key) for key, row in rows.items()}
            asked = self.rng.sample(sorted(self.seen[name], key=repr), min(4, len(self.seen[name])))
            for key in asked:
                values = self.seen[name][key]
                found = view.get(*values, fresh=True)
                assert shown(found) == shown(rows.get(key)), (name, key)
            given = [self.seen[name][key] for key in asked]
            if given and given[0]:
                many = view.get_many(given, fresh=True).num_rows
                assert many == sum(key in rows for key in asked), (name, asked)
                self.check_prefix(name, list(rows), asked[0])

    def check_prefix(self, name: str, rows: list[tuple[object, ...]], key: tuple[object, ...]) -> None:
        """A scan by the first column of a key."""
        first = self.seen[name][key][:1]
        found = self.views[name].scan(first, fresh=True).rows()
        assert len(found) == sum(row[0] == key[0] for row in rows), (name, first)


def bags(db: everview.Database) -> set[str]:
    """Views whose rows have no key among their columns."""
    return {view.name for view in db.catalog.definitions().views() if view.bag}


@pytest.fixture(scope="module", params=[True, False], ids=["before-images", "no before-images"])
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[everview.Database]:
    with everview.open(tmp_path_factory.mktemp("keys"), durability="none", before_images=request.param) as db:
        db.sql(TABLES)
        with db.store.lease("maintenance"):  # all of them in one build
            for number, (name, query) in enumerate(VIEWS.items()):
                option = "WITH (refresh = 'lazy')" if number % 5 == 4 else ""
                db.sql(f"CREATE MATERIALIZED VIEW {name} {option} AS {query}")
        db.flush()
        yield db


@pytest.mark.parametrize("seed", range(3))
def test_a_fresh_row_is_what_its_query_gives(filled: everview.Database, seed: int) -> None:
    rng = random.Random(seed)
    checked = Checked(filled, rng)
    assert len(checked.views) > 22
    for _ in range(4):
        write(filled, rng, rng.choice([1, 5, 30]))
        checked.check(rng.sample(list(checked.views), 12))
        write(filled, rng, 2)
        checked.check(rng.sample(list(checked.views), 12))
        if rng.random() < 0.5:
            filled.flush()


def test_a_row_gets_and_loses_its_partner(filled: everview.Database) -> None:
    """What is there without a partner depends on rows of the other side, of whatever key."""
    a, b, full, left = (filled.table("a"), filled.table("b"), filled.view("full_joined"), filled.view("left_joined"))
    b.put({"k": 77, "n": 3, "s": "1"})
    a.put({"id": 78, "k": 78, "x": 1, "s": "1"})
    filled.flush()
    assert full.get(None, 77, 3, fresh=True) is not None and full.get(78, None, None, fresh=True) is not None
    a.put({"id": 77, "k": 77, "x": 1, "s": "1"})
    assert full.get(None, 77, 3, fresh=True) is None
    assert full.get(77, 77, 3, fresh=True) == {"aid": 77, "bk": 77, "bn": 3, "x": 1}
    assert left.get(78, None, None, fresh=True) == {"id": 78, "k": None, "n": None, "s": None}
    b.put({"k": 78, "n": 2, "s": "1"})
    assert full.get(78, None, None, fresh=True) is None and left.get(78, None, None, fresh=True) is None
    assert left.get(78, 78, 2, fresh=True) == {"id": 78, "k": 78, "n": 2, "s": "1"}
    a.delete(77)
    b.delete(78, 2)
    assert full.get(None, 77, 3, fresh=True) == {"aid": None, "bk": 77, "bn": 3, "x": None}
    assert full.get(77, 77, 3, fresh=True) is None
    assert left.get(78, None, None, fresh=True) is not None and left.get(78, 78, 2, fresh=True) is None
    b.delete(77, 3)
    a.delete(78)
    assert full.get(None, 77, 3, fresh=True) is None and full.get(78, None, None, fresh=True) is None


def test_a_text_at_the_end_of_a_prefix_may_go_on(db: everview.Database) -> None:
    """The last column of a key has no end mark, so a scan by a text returns all that begins with it."""
    db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, k INTEGER, s VARCHAR)")
    db.sql("CREATE MATERIALIZED VIEW one AS SELECT s, count(*) AS n FROM t GROUP BY s")
    db.sql("CREATE MATERIALIZED VIEW two AS SELECT s, k, count(*) AS n FROM t GROUP BY s, k")
    db.sql("INSERT INTO t VALUES (1, 1, 'ab'), (2, 1, 'abc'), (3, 2, NULL), (4, 2, 'b')")
    one, two = db.view("one"), db.view("two")
    for text in ("ab", "", None, "abc", "x"):
        fresh = one.scan([text], fresh=True).rows(), two.scan([text], fresh=True).rows()
        db.sql("UPDATE t SET k = k")
        again = one.scan([text], fresh=True).rows(), two.scan([text], fresh=True).rows()
        assert fresh == again
        expected = [
            (s, 1) for s in (None, "ab", "abc", "b") if s == text or (s and text is not None and s.startswith(text))
        ]
        assert fresh[0] == expected
        assert [row[0] for row in fresh[1]] == [s for s, _ in expected if s == text]


def rows_of(rows: list[dict[str, object]]) -> Counter[str]:
    return Counter(repr(shown(row)) for row in rows)


@pytest.mark.parametrize("seed", range(2))
def test_reads_of_all_rows_go_on_from_the_last_one(filled: everview.Database, seed: int) -> None:
    """Without an epoch in between, over the state that earlier reads have computed."""
    rng = random.Random(100 + seed)
    epochs = {
        view.group: filled.store.views.committed(view.group).epoch for view in filled.catalog.definitions().views()
    }
    names = rng.sample(list(VIEWS), 16)
    for _ in range(5):
        write(filled, rng, rng.choice([1, 4, 12]))
        expected = asked_of_duckdb(filled)
        for name in names:
            found = filled.view(name).scan(fresh=True).dicts()
            assert rows_of(found) == rows_of(expected[name]), name
    for group, epoch in epochs.items():
        assert filled.store.views.committed(group).epoch == epoch, "nothing was committed"
    filled.flush()
    assert all(rows_of(filled.view(name).scan().dicts()) == rows_of(expected[name]) for name in names)


@pytest.mark.parametrize("limit", ["ENTRIES", "KEPT", "ANSWERS"])
def test_what_is_kept_is_bounded(filled: everview.Database, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    """What had to be forgotten is computed again."""
    monkeypatch.setattr(f"everview.maintain.pending.{limit}", 2)
    rng = random.Random(5)
    checked = Checked(filled, rng)
    names = ["grouped", "joined_totals", "ranked", "picked", "by_float"]
    for _ in range(3):
        write(filled, rng, 8)
        checked.check(names)
        kept = filled._freshness.pending
        assert limit != "ENTRIES" or kept.size <= 2
        assert limit != "KEPT" or len(kept) <= 2


def test_rows_stay_right_while_epochs_are_committed_between_reads(filled: everview.Database) -> None:
    """A maintainer commits whenever it likes; each read is of the moment of its call."""
    rng = random.Random(7)
    view, joined = filled.view("grouped"), filled.view("joined_totals")
    over = threading.Event()

    def maintain() -> None:
        while not over.is_set():
            filled.flush()

    maintainer = threading.Thread(target=maintain)
    maintainer.start()
    try:
        for _ in range(15):
            write(filled, rng, 2)
            expected = asked_of_duckdb(filled)
            for k in (None, 0, 1, 2, 3):
                row = next((row for row in expected["grouped"] if row["k"] == k), None)
                assert view.get(k, fresh=True) == row
            for row in expected["joined_totals"][:4]:
                assert joined.get(row["k"], row["n"], fresh=True) == row
    finally:
        over.set()
        maintainer.join()


KINDS = [
    *SCALARS,
    "INTEGER[]",
    "DOUBLE[2]",
    "STRUCT(a INTERVAL, b INTEGER)",
    "TUPLE(DATE, VARCHAR)",
    "MAP(VARCHAR, REAL)",
]
VALUES = SCALARS | {
    "INTEGER[]": ("[]", "[1, NULL]"),
    "DOUBLE[2]": ("[0.0, 1.5]", "[-0.0, 1.5]", "[NULL, 'nan']"),
    "STRUCT(a INTERVAL, b INTEGER)": ("{'a': '30 days', 'b': 1}", "{'a': '1 month', 'b': 1}", "{'a': NULL, 'b': NULL}"),
    "TUPLE(DATE, VARCHAR)": ("('2024-01-01', 'x')",),
    "MAP(VARCHAR, REAL)": ("MAP {'x': 1.5}", "MAP([], [])"),
    "INTERVAL": ("'30 days'", "'1 month'", "'720 hours'", "'1 microsecond'"),
    "DOUBLE": ("0.0", "-0.0", "'nan'", "1.1"),
}


def test_keys_of_every_type(tmp_path: Path) -> None:
    """Values that SQL finds equal are one key, whichever of them rows have, and whichever is asked for."""
    with everview.open(tmp_path, durability="none") as db:
        with db.store.lease("maintenance"):
            for number, kind in enumerate(KINDS):
                db.sql(f"CREATE TABLE t{number} (id INTEGER PRIMARY KEY, v {kind}, x INTEGER)")
                db.sql(f"CREATE MATERIALIZED VIEW v{number} AS SELECT v, count(*) AS n FROM t{number} GROUP BY v")
        db.flush()
        for number, kind in enumerate(KINDS):
            values = [f"CAST({value} AS {kind})" for value in VALUES[kind]] + ["NULL"]
            rows = [f"({id}, {value}, 0)" for id, value in enumerate(values * 2)]
            db.sql(f"INSERT INTO t{number} VALUES {', '.join(rows)}")
            view, table = db.view(f"v{number}"), db.table(f"t{number}")
            for id in range(len(values)):
                row = table.get(id)
                assert row is not None
                mine = f"SELECT v FROM t{number} WHERE id = {id}"
                same = f"SELECT count(*) AS n FROM t{number} WHERE v IS NOT DISTINCT FROM ({mine})"
                found = view.get(row["v"], fresh=True)
                assert found is not None and found["n"] == db.sql(same).rows()[0][0], (kind, row)
                assert view.get_many([(row["v"],)], fresh=True)["n"].to_pylist() == [found["n"]], (kind, row)
