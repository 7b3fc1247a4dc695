"""Sessions in several processes: what they saw has an order, and the checker finds what has none."""

from __future__ import annotations

import contextlib
import multiprocessing
import queue
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

import everview
from tests.client.order_checker import Operation, Read, Violation, Write, check
from tests.client.session_worker import TABLES, Done, maintain, work

# ------------------------------------------------------------------ the checker


def w(session: str, element: int, *subjects: str) -> Write:
    return Write(session, element, frozenset(subjects or {"x"}))


def r(session: str, *elements: int, of: str = "x") -> Read:
    return Read(session, of, frozenset(elements))


def found(*sessions: Sequence[Operation]) -> str:
    violation = check(sessions)
    return "" if violation is None else violation.kind


def test_histories_that_have_an_order() -> None:
    assert found([w("a", 1), r("a", 1), w("a", 2), r("a", 1, 2)], [r("b"), r("b", 1), r("b", 1)]) == ""
    assert found([w("a", 1)], [w("b", 2)], [r("c", 2), r("c", 1, 2)], [r("d"), r("d", 2)]) == ""
    assert found([w("a", 1, "x", "z"), r("a", 1)], [r("b", of="z"), r("b", 1)]) == ""
    assert found() == ""


def test_planted_violations_are_found() -> None:
    assert "read your writes" in found([w("a", 1), r("a")])
    assert "read your writes" in found([w("a", 1), r("b", 1), w("a", 2), r("a", 1)])
    assert "monotonic reads" in found([w("a", 1)], [r("b", 1), r("b")])
    assert "monotonic reads" in found([w("a", 1, "x", "y")], [r("b", 1), r("b", of="y")])
    assert "no single order" in found([w("a", 1)], [w("b", 2)], [r("c", 1)], [r("d", 2)])
    assert "no single order" in found([w("a", 1), w("a", 2)], [r("b", 2)])
    assert "nobody wrote it" in found([r("a", 7)])
    assert "nobody wrote it" in found([w("a", 7, "y"), r("b", 7)])


def test_a_violation_shows_what_happened() -> None:
    violation = check([[w("a", 1), w("a", 2)], [r("b", 1), r("b", 2)]])
    assert isinstance(violation, Violation)
    assert str(violation) == "\n".join(
        [
            "monotonic reads: a session sees less than before",
            "  a writes 1 to x",
            "  b reads x: [1]",
            "  b reads x: [2]",
        ]
    )


@pytest.mark.parametrize("seed", range(20))
def test_one_wrong_read_of_many_is_found(seed: int) -> None:
    """A history of one copy has an order; with one element taken out of one read it has none."""
    rng = random.Random(seed)
    sessions: list[list[Operation]] = [[] for _ in range(4)]
    there: set[int] = set()
    for element in range(150):
        number = rng.randrange(4)
        if rng.random() < 0.4:
            there.add(element)
            sessions[number].append(w(str(number), element))
        else:
            sessions[number].append(r(str(number), *there))
    assert found(*sessions) == ""
    number, at = rng.choice(
        [
            (n, at)
            for n, session in enumerate(sessions)
            for at, one in enumerate(session)
            if isinstance(one, Read) and any(isinstance(b, Read) and b.elements for b in session[:at])
        ]
    )
    before = [one for one in sessions[number][:at] if isinstance(one, Read) and one.elements]
    wrong = sessions[number][at]
    assert isinstance(wrong, Read)
    lost = rng.choice(sorted(before[-1].elements))
    sessions[number][at] = r(str(number), *(wrong.elements - {lost}))
    assert found(*sessions) != ""


# ------------------------------------------------------------------ what sessions see


def test_without_a_session_the_checker_has_something_to_find(db: everview.Database) -> None:
    db.sql(TABLES)
    db.table("added").put({"id": 1, "k": 1, "session": "a"})
    assert db.view("by_key").get(1) is None
    assert "read your writes" in found([w("a", 1, "key 1"), r("a", of="key 1")])
    with db.session() as session:
        session.table("added").put({"id": 2, "k": 1, "session": "a"})
        assert session.view("by_key").get(1) == {"k": 1, "ids": [1, 2]}
    assert found([w("a", 1, "key 1"), w("a", 2, "key 1"), r("a", 1, 2, of="key 1")]) == ""


def test_sessions_of_several_processes(tmp_path: Path) -> None:
    """Three processes write and read in six sessions that wander between them, while views are
    maintained by a fourth that is killed and started again."""
    spawn = multiprocessing.get_context("spawn")
    sessions, done = spawn.Queue(), spawn.Queue()
    for number in range(6):
        sessions.put((f"s{number}", None, 0))
    rng = random.Random(1)
    with everview.open(tmp_path, durability="none") as db:
        db.sql(TABLES)
        workers = [spawn.Process(target=work, args=(tmp_path, 1 + n, 50, sessions, done)) for n in range(3)]
        for worker in workers:
            worker.start()
        records: list[Done] = []
        epochs = db.view("by_key").subscribe(timeout=0.1)
        passed = 0
        while len(records) < 1 or any(worker.is_alive() for worker in workers):
            maintainer = spawn.Process(target=maintain, args=(tmp_path, rng.choice([1, 5, 100])), daemon=True)
            maintainer.start()
            left = rng.randint(5, 40)
            while left > 0 and any(worker.is_alive() for worker in workers):
                seen = sum(1 for _ in epochs)
                passed, left = passed + seen, left - seen
                with contextlib.suppress(queue.Empty):
                    records += done.get_nowait()
            maintainer.kill()
            maintainer.join()
        for worker in workers:
            worker.join()
            assert worker.exitcode == 0
        with contextlib.suppress(queue.Empty):
            while len({one[2].session for one in records}) < 6 or not done.empty():
                records += done.get(timeout=5)
        written = db.view("lazily").count(fresh=True)
    history: dict[str, list[Operation]] = {}
    for name, _, operation in sorted(records, key=lambda one: (one[0], one[1])):
        history.setdefault(name, []).append(operation)
    operations = [one for session in history.values() for one in session]
    assert sum(isinstance(one, Read) and bool(one.elements) for one in operations) > 50
    assert sum(isinstance(one, Write) for one in operations) == written, "all of them were recorded"
    assert passed > 3, "views were maintained meanwhile"
    violation = check(list(history.values()))
    assert violation is None, str(violation)
