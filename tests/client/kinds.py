"""A database with views of every kind, and random writes to what they are made of."""

from __future__ import annotations

import random

import everview

TABLES = """
    CREATE TABLE a (id INTEGER PRIMARY KEY, k INTEGER, x INTEGER, s VARCHAR);
    CREATE TABLE b (id INTEGER PRIMARY KEY, k INTEGER, y DOUBLE);
    CREATE TABLE c (k INTEGER, z VARCHAR);
"""

VIEWS = {
    "picked": "SELECT id, x * 2 AS twice, s FROM a WHERE x > 3",
    "texts": "SELECT s FROM a",
    "grouped": "SELECT k, count(*) AS n, sum(x) AS total, min(s) AS low, max(x) AS high FROM a GROUP BY k",
    "floats": "SELECT k, sum(y) AS total, avg(y) AS mean FROM b GROUP BY k",
    "all_of_it": "SELECT count(*) AS n, sum(x) AS total, max(s) AS last FROM a",
    "joined": "SELECT a.id AS aid, b.id AS bid, a.x + b.y AS xy FROM a JOIN b USING (k)",
    "outer_joined": "SELECT a.id AS aid, b.id AS bid, b.y FROM a FULL JOIN b ON a.k = b.k AND b.y > 1",
    "lonely": "SELECT id, x FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    "different": "SELECT DISTINCT k, x FROM a",
    "either": "SELECT k FROM a UNION SELECT k FROM b EXCEPT SELECT k FROM c",
    "ranked": "SELECT id, k, rank() OVER (PARTITION BY k ORDER BY x) AS place FROM a",
    "best": "SELECT id, k, x FROM a QUALIFY row_number() OVER (PARTITION BY k ORDER BY x DESC) <= 2",
    "first_three": "SELECT id, x FROM a ORDER BY x, id LIMIT 3",
    "listed": "SELECT k, list(x ORDER BY id) AS xs, median(x) AS middle FROM a GROUP BY k",
    "repeated": "SELECT k, count(*) AS n FROM c GROUP BY k HAVING count(*) > 1",
    "above": "SELECT n, count(*) AS groups FROM grouped GROUP BY n",
    "keyless": "SELECT k, z FROM c WHERE z <> 'p'",
    "over_1": "SELECT id, x FROM a WHERE x > 1",
    "over_2": "SELECT id, x FROM a WHERE x > 2",
    "numbers": "SELECT id, CAST(s AS INTEGER) AS n FROM a",
}


def define(db: everview.Database, lazy: tuple[str, ...] = ()) -> None:
    db.sql(TABLES)
    with db.store.lease("maintenance"):  # all of them in one build
        for name, query in VIEWS.items():
            option = "WITH (refresh = 'lazy')" if name in lazy else ""
            db.sql(f"CREATE MATERIALIZED VIEW {name} {option} AS {query}")
    db.flush()


def write(db: everview.Database, rng: random.Random, count: int = 6) -> None:
    """Some random writes."""
    for _ in range(count):
        kind = rng.randrange(6)
        if kind == 0:
            db.table("a").delete(rng.randrange(12))
        elif kind == 1:
            db.table("b").delete(rng.randrange(12))
        elif kind == 2:
            row = {"k": rng.choice([None, 1, 2, 3]), "z": rng.choice(["p", "q", None])}
            db.table("c").put_many([row] * rng.randint(1, 2))
        elif kind == 3:
            with db.batch() as batch:
                batch.table("a").put({"id": rng.randrange(12), "x": rng.randrange(9)})
                batch.table("b").put({"id": rng.randrange(12), "k": rng.choice([None, 1, 2, 3])})
        elif kind == 4:
            y = rng.choice([None, 0.1, 0.2, 0.3, 1e16, -1e16, 2.5])
            db.table("b").put({"id": rng.randrange(12), "k": rng.choice([None, 1, 2, 3, 4]), "y": y})
        else:
            row = {"id": rng.randrange(12), "k": rng.choice([None, 1, 2, 3]), "x": rng.choice([None, *range(9)])}
            db.table("a").put({**row, "s": rng.choice([None, "1", "22", "seven"])})
