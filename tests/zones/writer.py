"""A writer of its own: ``python -m tests.zones.writer <store> <seed> <pause>``.

It writes random rows to the tables that a seed names until its standard input is closed.
"""

from __future__ import annotations

import random
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from everview.client.database import Database
from everview.client.database import open as open_database
from tests.oracle.maintained import database
from tests.oracle.schemas import History, random_tables
from tests.oracle.script import Write

ROOT = Path(__file__).parents[2]


def do(db: Database, write: Write) -> None:
    """Write one row, or delete one."""
    table = db.catalog.table(write.table)
    kinds = {column.name: column.type for column in table.schema.columns}
    texts = [f"CAST({value} AS {kinds[name]}) AS {name}" for name, value in write.values]
    row = database().sql(f"SELECT {', '.join(texts)}").to_arrow_table()
    base = db.store.table(table)
    (base.delete_many if write.deletes else base.put_many)(row)


def main(path: str, seed: int, pause: float) -> None:
    history = History(random.Random(seed), random_tables(random.Random(seed)))
    with open_database(path, create=False) as db:
        print("ready", flush=True)
        while not select.select([sys.stdin], [], [], pause)[0]:
            for write in history.some():
                do(db, write)


@contextmanager
def writing(path: Path, seed: int, pause: float = 0.01) -> Iterator[None]:
    """While another process writes."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.zones.writer", str(path), str(seed), str(pause)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        assert process.stdout.readline() == b"ready\n"
        yield
    finally:
        process.stdin.close()
        assert process.wait(60) == 0
        process.stdout.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
