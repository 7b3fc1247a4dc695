"""The corpora as views of one group, taken through rounds of changes.

All queries of a corpus are maintained together, and after every round each is compared
with what DuckDB answers over the tables as the round left them.

    python -m tests.oracle.corpora tpch --scale 100 --rounds 10
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa

from everview.change.schema import Schema
from tests.oracle.base import emptied
from tests.oracle.maintained import Maintained, difference
from tests.queries.corpora import CORPORA, Corpus, corpus, without_window_functions
from tests.queries.data import applied, changes, tables


def schemas(found: Corpus) -> dict[str, Schema]:
    """The tables of a corpus, as a store gets them."""
    made: dict[str, Schema] = {}
    with emptied() as connection:
        connection.execute(found.schema_text)
        for shape in found.tables.values():
            described = connection.execute(f"DESCRIBE {shape.name}").fetchall()
            made[shape.name] = Schema.of({row[0]: row[1] for row in described}, key=shape.key)
    return made


def recomputed(found: Corpus, rows: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """What DuckDB answers."""
    with emptied() as connection:
        connection.execute(found.schema_text)
        for name, there in rows.items():
            connection.register("incoming", there)
            connection.execute(f"INSERT INTO {name} BY NAME SELECT * FROM incoming")
            connection.unregister("incoming")
        return {
            name: connection.sql(without_window_functions(text).rstrip().rstrip(";")).to_arrow_table()
            for name, text in found.queries.items()
        }


def play(
    name: str, scale: float, rounds: int, seed: int = 0, said: Callable[[str], object] = lambda line: None
) -> None:
    """Take all views of a corpus through rounds; fails where one is wrong after any of them."""
    found = corpus(name)
    queries = {f"v_{query}": text.rstrip().rstrip(";") for query, text in found.queries.items()}
    with tempfile.TemporaryDirectory() as path:
        maintained = Maintained(Path(path) / "store", schemas(found), queries)
        try:
            rows = tables(name, scale, seed)
            for table, there in rows.items():
                maintained.table(table).put_many(there)
            _round(maintained, found, rows, "the rows at first", said)
            for number, change in enumerate(changes(name, rounds, scale, seed), start=1):
                rows = applied(rows, change)
                for table, part in change.items():
                    maintained.table(table).delete_many(part.deletes)
                    maintained.table(table).put_many(part.puts)
                _round(maintained, found, rows, f"round {number}", said)
        finally:
            maintained.close()


def _round(
    maintained: Maintained, found: Corpus, rows: Mapping[str, pa.Table], what: str, said: Callable[[str], object]
) -> None:
    start = time.perf_counter()
    maintained.epoch()
    said(f"{what}: {time.perf_counter() - start:.2f} s for {len(found.queries)} views")
    assert not maintained.quarantine()
    wrong = [
        f"{query}: {difference(expected, maintained.view(f'v_{query}'))}"
        for query, expected in recomputed(found, rows).items()
        if difference(expected, maintained.view(f"v_{query}"))
    ]
    assert not wrong, "\n".join([what, *wrong])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.corpora")
    parser.add_argument("name", choices=[found.name for found in CORPORA])
    parser.add_argument("--scale", type=float, default=1.0, help="times the rows of the tests")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    play(asked.name, asked.scale, asked.rounds, asked.seed, print)
    return 0


if __name__ == "__main__":
    sys.exit(main())
