"""Random scripts: schemas, views and histories that a seed names.

Two scripts in three hold views by template over tables of all types, with families and
views on views among them; the third holds queries of the grammar of :mod:`tests.queries.random_queries`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.oracle.schemas import VALUES, History, Table, random_tables
from tests.oracle.script import Script, View
from tests.oracle.templates import TEMPLATES, Pen, Text, family
from tests.queries import random_tables as plain_tables
from tests.queries.random_queries import ALL, Feature, random_query

EPOCHS = 4


def random_script(seed: int, views: int = 6) -> Script:
    return by_grammar(seed, views // 2, depth=2) if seed % 3 == 0 else by_template(seed, views)


def by_template(seed: int, views: int = 6, names: Sequence[str] | None = None) -> Script:
    """Views of templates, all of them or those with these names."""
    rng = random.Random(seed)
    tables = random_tables(rng)
    pen = Pen(rng, tables)
    drawn: list[Text] = []
    chosen = list(names) if names is not None else list(TEMPLATES)
    while len(drawn) < views:
        if names is None and rng.random() < 0.1:
            drawn += family(pen, 3)
        else:
            drawn.append(TEMPLATES[rng.choice(chosen)](pen))
    made = [_view(number, text) for number, text in enumerate(drawn)]
    if names is None and rng.random() < 0.5:
        made.append(_on_view(rng, made, len(made)))
    epochs = tuple(History(rng, tables).epochs(EPOCHS))
    return Script(tuple(map(str, tables)), tuple(made), epochs, rng.choice([1, 2, 4]), rng.random() < 0.75)


def _view(number: int, text: Text) -> View:
    query, plain = (text, text) if isinstance(text, str) else text
    return View(f"v{number}", query, plain)


def _on_view(rng: random.Random, views: Sequence[View], number: int) -> View:
    """A view of another one: whatever its columns are, its rows can be counted and distinguished."""
    found = rng.choice(views).name
    query = rng.choice(
        [
            f"SELECT count(*) AS n FROM {found}",
            f"SELECT * FROM {found}",
            f"SELECT DISTINCT * FROM {found}",
            f"SELECT * FROM {found} EXCEPT SELECT * FROM {found} LIMIT 0",
            f"SELECT 1 AS one FROM {found} UNION ALL SELECT 2 FROM {found}",
        ]
    )
    return View(f"v{number}", query, query)


def by_grammar(seed: int, views: int = 3, features: frozenset[Feature] = ALL, depth: int = 2) -> Script:
    """Views of random queries over the tables of :mod:`tests.queries.random_tables`."""
    rng = random.Random(seed)
    drawn = [random_query(rng, features, depth) for _ in range(views)]
    known = [Table(table.name, table.columns, table.key) for table in plain_tables.TABLES.values()]
    read = {name for query in drawn for name in query.tables}
    history = History(rng, [table for table in known if table.name in read] or known[:1], _FEW)
    made = tuple(View(f"v{n}", query.text, query.plain) for n, query in enumerate(drawn))
    return Script(
        tuple(map(str, known)), made, tuple(history.epochs(EPOCHS)), rng.choice([1, 2, 4]), rng.random() < 0.75
    )


_FEW = VALUES | {
    "INTEGER": ("0", "1", "2", "3", "4"),
    "BIGINT": ("0", "1", "2", "3", "4"),
    "SMALLINT": ("0", "1", "2", "3", "4"),
    "DOUBLE": tuple(str(n / 4) for n in range(-2, 9)),
    "VARCHAR": ("''", "'p'", "'q'", "'Q'", "'pq'"),
    "DECIMAL(8,2)": ("0.00", "0.50", "1.00", "7.50"),
    "TIMESTAMP": tuple(f"'2024-01-01 0{hour}:{half}:00'" for hour in range(6) for half in ("00", "30")),
}
"""What the grammar's expressions stay within."""
