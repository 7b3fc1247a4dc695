"""Random scripts: schemas, views and histories that a seed names."""

from __future__ import annotations

import random

from tests.oracle.script import Epoch, Script, View, Write
from tests.queries.random_queries import ALL, Feature, random_query
from tests.queries.random_tables import TABLES

_VALUES = {
    "INTEGER": [str(n) for n in range(5)],
    "BIGINT": [str(n) for n in range(5)],
    "SMALLINT": [str(n) for n in range(5)],
    "DOUBLE": [str(n / 4) for n in range(-2, 9)],
    "VARCHAR": ["''", "'p'", "'q'", "'Q'", "'pq'"],
    "BOOLEAN": ["true", "false"],
    "DECIMAL(8,2)": [f"{n}.{f}" for n in range(10) for f in ("00", "50")],
    "TIMESTAMP": [f"'2024-01-01 0{h}:{m}:00'" for h in range(6) for m in ("00", "30")],
    "INTEGER[]": ["[]", "[1]", "[2, NULL]", "[0, 0, 3]", "[NULL]", "[4, 1]"],
}


def literal(rng: random.Random, kind: str) -> str:
    return "NULL" if rng.random() < 0.2 else rng.choice(_VALUES[kind])


def small_script(seed: int, features: frozenset[Feature] = ALL, views: int = 1, depth: int = 2) -> Script:
    """Views of random queries over the tables of :mod:`tests.queries.random_tables`."""
    rng = random.Random(seed)
    drawn = [random_query(rng, features, depth) for _ in range(views)]
    texts = []
    for table in TABLES.values():
        columns = [f"{name} {kind}" for name, kind in table.columns]
        key = [f"PRIMARY KEY ({', '.join(table.key)})"] if table.key else []
        texts.append(f"CREATE TABLE {table.name} ({', '.join([*columns, *key])})")
    read = sorted({name for query in drawn for name in query.tables}) or ["a"]
    epochs = []
    for number in range(rng.randint(3, 5)):
        count = rng.choice([0, 1, 3, 6, 12]) if number else rng.choice([0, 5, 20, 40])
        writes = tuple(_write(rng, rng.choice(read)) for _ in range(count))
        epochs.append(Epoch(writes, None if rng.random() < 0.7 else rng.randint(1, 8)))
    made = tuple(View(f"v{n}", query.text, query.plain) for n, query in enumerate(drawn))
    return Script(tuple(texts), made, tuple(epochs), rng.choice([1, 2, 4]))


def _write(rng: random.Random, name: str) -> Write:
    table = TABLES[name]
    kinds = dict(table.columns)
    keys = table.key or ("__row",)
    key = []
    for part in keys:
        if part == "__row":
            key.append((part, f"'00000000-0000-0000-0000-{rng.randint(0, 12):012}'"))
        else:
            key.append(
                (part, rng.choice([str(n) for n in range(12)] if kinds[part] == "INTEGER" else _VALUES["VARCHAR"]))
            )
    if rng.random() < 0.25:
        return Write(name, tuple(key), deletes=True)
    rest = [(column, literal(rng, kind)) for column, kind in table.columns if column not in table.key]
    if rng.random() < 0.25:
        rest = rng.sample(rest, rng.randint(0, len(rest)))
    return Write(name, (*key, *rest))
