"""Random lives of a database: views come and go, rows are written, work is done in pieces."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from everview.errors import DefinitionError
from everview.maintain.rebuilding import ask_rebuild
from tests.maintain.kept import Kept, kept

SEED = int(os.environ.get("EVERVIEW_MAINTAIN_SEED", "1"))
LIVES = 6
STEPS = 45

QUERIES = [
    "SELECT id, x FROM a WHERE x > {n}",
    "SELECT id, x, s FROM a WHERE x > {n}",
    "SELECT k, count(*) AS n FROM a GROUP BY k",
    "SELECT k, count(*) AS n, sum(x) AS t FROM a WHERE x > {n} GROUP BY k",
    "SELECT k, sum(x) AS t, max(x) AS m FROM a GROUP BY k",
    "SELECT a.id, b.id AS other, x FROM a JOIN b ON a.k = b.k",
    "SELECT a.id, y, s FROM a LEFT JOIN b ON a.k = b.k AND y > {n}",
    "SELECT DISTINCT k, z FROM c",
    "SELECT k FROM a EXCEPT SELECT k FROM c",
    "SELECT sum(y) AS t FROM b",
    "SELECT * FROM b ORDER BY y DESC, id LIMIT {n}",
    "SELECT k, string_agg(z, ',' ORDER BY z) AS l FROM c GROUP BY k",
    "SELECT count(*) AS n, min(x) AS low FROM {view}",
    "SELECT * FROM {view} WHERE x > {n}",
]


class Life:
    """One random life. Its history is printed when it fails."""

    def __init__(self, k: Kept, seed: int) -> None:
        self.k = k
        self.rng = random.Random(seed)
        self.history: list[str] = []
        self.number = 0

    def step(self) -> None:
        weights = {
            self.create: 3,
            self.drop: 1,
            self.replace: 1,
            self.write: 8,
            self.turn: 6,
            self.turn_of_build: 8,
            self.settle: 1,
            self.rebuild: 0.7,
            self.add_column: 0.3,
        }
        self.rng.choices(list(weights), list(weights.values()))[0]()
        self.k.check()

    def say(self, text: str) -> None:
        self.history.append(text)
        self.k.sql(text)

    def names(self) -> list[str]:
        return [view.name for view in self.k.db.catalog.views()]

    def query(self) -> str:
        with_x = [view.name for view in self.k.db.catalog.views() if "x" in {column.name for column in view.columns}]
        text = self.rng.choice(QUERIES if with_x else QUERIES[:-2])
        return text.format(n=self.rng.randrange(1, 5), view=self.rng.choice(with_x or [""]))

    def create(self) -> None:
        for _ in range(self.rng.choice([1, 1, 3])):
            self.number += 1
            options = self.rng.choice(["", "", "", "WITH (refresh = 'lazy')", "WITH (group = 'other')"])
            self.say(f"CREATE MATERIALIZED VIEW v{self.number} {options} AS {self.query()}")
        if self.rng.random() < 0.2:
            self.number += 1
            self.say(f"CREATE INDEX i{self.number} ON a ({self.rng.choice(['k', 'x, k', 's'])})")

    def drop(self) -> None:
        indexes = self.k.db.catalog.indexes()
        if indexes and self.rng.random() < 0.3:
            self.say(f"DROP INDEX {self.rng.choice(indexes).name}")
        elif self.names():
            self.say(f"DROP MATERIALIZED VIEW {self.rng.choice(self.names())} CASCADE")

    def replace(self) -> None:
        if self.names():
            name = self.rng.choice(self.names())
            try:
                self.say(f"CREATE OR REPLACE MATERIALIZED VIEW {name} AS {self.query()}")
            except DefinitionError:
                self.history.pop()  # others read it, or it would read itself

    def add_column(self) -> None:
        self.number += 1
        self.say(f"ALTER TABLE {self.rng.choice('ab')} ADD COLUMN c{self.number} INTEGER")

    def write(self) -> None:
        id, k, x = (self.rng.randrange(most) for most in (14, 4, 7))
        self.say(
            self.rng.choice(
                [
                    f"INSERT INTO a (id, k, x, s) VALUES ({id}, {k}, {x}, 's{x % 3}'), ({id + 1}, NULL, {x}, NULL)",
                    f"UPDATE a SET x = {x}, k = k + 1 WHERE id % 3 = {id % 3}",
                    f"DELETE FROM a WHERE id = {id} OR id = {id + 3}",
                    f"INSERT INTO b (id, k, y) VALUES ({id}, {k}, {x}.25)",
                    f"DELETE FROM b WHERE id % 5 = {id % 5}",
                    f"INSERT INTO c VALUES ({k}, 'z{x % 3}'), ({k}, 'z{x % 3}')",
                    f"DELETE FROM c WHERE k = {k}",
                ]
            )
        )

    def turn(self) -> None:
        self.history.append("-- turn")
        self.k.turn()

    def turn_of_build(self) -> None:
        self.history.append("-- turn of a build")
        self.k.turn_of_build()

    def rebuild(self) -> None:
        live = self.k.live()
        some = self.rng.sample(live, self.rng.randint(0, min(3, len(live))))
        self.history.append(f"-- rebuild {', '.join(one.name for one in some)}")
        ask_rebuild(self.k.store, [one.id for one in some])

    def settle(self) -> None:
        self.history.append("-- settle")
        self.k.settle()


@pytest.mark.parametrize("number", range(LIVES))
def test_all_views_are_right_at_every_moment_of_a_random_life(tmp_path: Path, number: int) -> None:
    with kept(tmp_path) as k:
        life = Life(k, SEED * 1000 + number)
        try:
            for _ in range(STEPS):
                life.step()
            life.settle()
            for name in life.names():
                if k.db.catalog.definitions().find(name) is not None:
                    life.say(f"DROP MATERIALIZED VIEW {name} CASCADE")
            for index in k.db.catalog.indexes():
                life.say(f"DROP INDEX {index.name}")
            life.settle()
            assert not k.state_keys()
            assert not [name for name in k.documents() if name.startswith(("maintenance/", "discard/"))]
        except Exception as error:
            raise AssertionError(";\n".join(life.history)) from error
