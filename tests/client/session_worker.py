"""A process that works in sessions: goes on with one that another process has left, and hands it on."""

from __future__ import annotations

import queue
import random
from pathlib import Path
from typing import Any, TypeAlias

import everview
from tests.client.order_checker import Operation, Read, Write

KEYS = 4
VIEWS = ("by_key", "by_session", "lazily", "above")

TABLES = """
    CREATE TABLE added (id BIGINT PRIMARY KEY, k INTEGER, session VARCHAR);
    CREATE MATERIALIZED VIEW by_key AS SELECT k, list(id ORDER BY id) AS ids FROM added GROUP BY k;
    CREATE MATERIALIZED VIEW by_session AS SELECT session, list(id ORDER BY id) AS ids FROM added GROUP BY session;
    CREATE MATERIALIZED VIEW lazily WITH (refresh = 'lazy') AS SELECT id, k, session FROM added;
    CREATE MATERIALIZED VIEW above AS SELECT list(ids) AS ids FROM by_key;
"""

Left: TypeAlias = tuple[str, str | None, int]
"""A session that nobody works in: its name, its token, how many operations it has done."""
Done: TypeAlias = tuple[str, int, Operation]
"""An operation of a session, by its number."""


def work(path: Path, seed: int, turns: int, sessions: queue.Queue[Left], done: queue.Queue[list[Done]]) -> None:
    """Take turns in sessions."""
    rng = random.Random(seed)
    found: list[Done] = []
    with everview.open(path, durability="none") as db:
        for turn in range(turns):
            name, token, count = sessions.get()
            with db.session(token) as session:
                for step in range(rng.randint(2, 6)):
                    element = seed * 1_000_000 + turn * 100 + step * 10
                    for operation in _operations(session, name, element, rng):
                        found.append((name, count, operation))
                        count += 1
                sessions.put((name, session.token, count))
    done.put(found)


def _operations(session: everview.Session, name: str, element: int, rng: random.Random) -> list[Operation]:
    kind = rng.randrange(8)
    if kind == 0:
        keys = [rng.randrange(KEYS) for _ in range(2)]
        with session.batch() as batch:
            for number, k in enumerate(keys):
                batch.table("added").put({"id": element + number, "k": k, "session": name})
        return [Write(name, element + number, _subjects(k, name)) for number, k in enumerate(keys)]
    if kind in (1, 2):
        k = rng.randrange(KEYS)
        session.table("added").put({"id": element, "k": k, "session": name})
        return [Write(name, element, _subjects(k, name))]
    if kind == 3:
        k = rng.randrange(KEYS)
        session.sql("INSERT INTO added VALUES (?, ?, ?)", [element, k, name])
        return [Write(name, element, _subjects(k, name))]
    return [_read(session, name, rng)]


def _subjects(k: int, session: str) -> frozenset[str]:
    return frozenset({f"key {k}", f"session {session}", "everything"})


def _read(session: everview.Session, name: str, rng: random.Random) -> Read:
    k = rng.randrange(KEYS)
    kind = rng.randrange(6)
    if kind == 0:
        return Read(name, f"key {k}", _ids(session.view("by_key").get(k)))
    if kind == 1:
        return Read(name, f"session {name}", _ids(session.view("by_session").get(name)))
    if kind == 2:
        rows = session.sql("SELECT id FROM lazily WHERE k = ?", [k]).rows()
        return Read(name, f"key {k}", frozenset(id for (id,) in rows))
    if kind == 3:
        return Read(name, "everything", frozenset(id for id, _, _ in session.view("lazily").scan()))
    if kind == 4:
        (lists,) = session.view("above").scan().rows()
        return Read(name, "everything", frozenset(id for ids in lists[0] or [] for id in ids))
    rows = session.sql("SELECT unnest(ids) FROM by_key").rows()
    return Read(name, "everything", frozenset(id for (id,) in rows))


def _ids(row: dict[str, Any] | None) -> frozenset[int]:
    return frozenset() if row is None else frozenset(row["ids"])


def maintain(path: Path, operations: int) -> None:
    """Maintain the views until killed."""
    with everview.open(path, durability="none") as db, db.maintain(spark=False, operations=operations, wait=None) as it:
        for _ in db.view("by_key").subscribe():
            it.check()
