"""Maintainers killed at every step they take, and at random moments while others write.

The maintainer after a killed one goes on where that one was: nothing is lost, nothing
counts twice, a build takes in no row again, and what was dropped is gone.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from everview.errors import LeaseTakenError
from everview.maintain.rebuilding import ask_rebuild, asked_rebuilds
from tests.faults.processes import Nursery, Victim
from tests.maintain.kept import Kept, kept
from tests.maintain.test_building import ROWS, VIEWS, create, member, write

SEED = int(os.environ.get("EVERVIEW_FAULT_SEED", "1"))
KILLS = 12
CHUNK, OPERATIONS = 4, 6


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    found = Nursery()
    yield found
    found.close()


@pytest.fixture
def k(tmp_path: Path) -> Iterator[Kept]:
    with kept(tmp_path, chunk=CHUNK, operations=OPERATIONS) as found:
        yield found


def start(nursery: Nursery, k: Kept, moment: int = 0) -> Victim:
    return nursery.start(
        "maintain", directory=str(k.store.directory), moment=moment, chunk=CHUNK, operations=OPERATIONS
    )


def listen_to_the_end(victim: Victim) -> bool:
    """Whether it came to its end; False where it died."""
    victim.listen(10**6)
    victim.kill(random.Random(0))
    return victim.reports[-1] == "done"


# ------------------------------------------------------------------ named moments

LIVES = {
    "epochs": ("", ("sums", "ends", "joined", "pages")),
    "builds": ("sums", ("ends", "joined", "rows")),
    "families": ("", ()),
    "rebuilds": ("sums", ("joined",)),
}


@pytest.mark.parametrize("life", LIVES)
def test_a_maintainer_dies_at_each_of_its_steps(nursery: Nursery, k: Kept, life: str) -> None:
    """Victim after victim dies a few steps further than the last one, until one comes to its end."""
    first, then = LIVES[life]
    k.sql(ROWS + (create(first) if first else "") + member(1) + member(2))
    k.settle()
    k.sql("".join(map(create, then)))
    if life == "epochs":
        k.settle()
        write(k, 1)
    elif life == "rebuilds":
        k.settle()
        ask_rebuild(k.store, [one.id for one in k.live() if one.name in ("sums", "m1")])
    elif life == "families":
        k.sql("DROP MATERIALIZED VIEW m1;" + member(3) + create("wide", "SELECT id, x, s, k FROM a WHERE x > 2"))
    deaths = 0
    moment = 1
    while not listen_to_the_end(start(nursery, k, moment)):
        deaths += 1
        moment += random.Random(f"{SEED}/{life}/{moment}").choice([1, 2, 3])
        k.check()
        if deaths % 5 == 0:
            write(k, deaths)
    assert deaths > 8
    k.settle()
    assert not asked_rebuilds(k.store)
    assert len(k.live()) == len(then) + bool(first) + (3 if life == "families" else 2)


def test_a_build_that_is_killed_goes_on_with_the_chunk_it_was_at(nursery: Nursery, k: Kept) -> None:
    """However often it is killed, each chunk is one epoch, as if nobody had been killed."""
    k.sql(ROWS + create("joined") + create("sums"))
    chunks = 0
    for moment in range(1, 400):
        ended = listen_to_the_end(start(nursery, k, moment))
        if ended:
            break
        now = k.chunks()
        assert now >= chunks or not k.maintainer.builder.builds()
        chunks = max(chunks, now)
    rows = {"a": 11, "b": 8}
    assert chunks == sum(count // CHUNK + 1 for count in rows.values())
    k.settle()


# ------------------------------------------------------------------ random moments


def test_maintainers_are_killed_while_others_write(nursery: Nursery, k: Kept) -> None:
    rng = random.Random(SEED)
    k.sql(ROWS)
    names = list(VIEWS)
    rng.shuffle(names)
    for number in range(KILLS):
        victim = start(nursery, k)
        victim.listen(2)
        if number < len(names):
            k.db.sql(create(names[number]))
        if number == KILLS // 2:
            k.db.sql(f"DROP MATERIALIZED VIEW {names[0]}")
        for step in range(rng.randrange(4)):
            write_beside(k, number * 10 + step)
        victim.listen(2 + rng.choice([0, 1, 2]))
        victim.kill(rng)
        k.check()
    k.settle()
    assert {one.name for one in k.live()} == set(names[1:KILLS])


def write_beside(k: Kept, step: int) -> None:
    """Writes of a client that is in nobody's way."""
    for text in (
        f"INSERT INTO a (id, k, x, s) VALUES ({step % 13}, {step % 3}, {step * 5 % 9}, 'w')",
        f"DELETE FROM a WHERE id = {step * 3 % 14}",
        f"INSERT INTO b VALUES ({step * 2 % 11}, {step % 4}, {step}.5)",
    ):
        k.db.sql(text)
        k.remember()


# ------------------------------------------------------------------ the lease


def test_who_flushes_waits_for_the_maintainer_that_is_there(nursery: Nursery, k: Kept) -> None:
    k.sql(ROWS + create("sums"))
    victim = start(nursery, k)
    victim.listen(2)
    with pytest.raises(LeaseTakenError, match=r"maintenance of .* is done by process"), k.maintainer.lease():
        pass
    write_beside(k, 3)
    k.db.flush(timeout=60)
    assert k.store.views.committed("main").frontier == k.store.log.latest(), "the other process did it"
    k.check()
    victim.kill(random.Random(0))
    with k.maintainer.lease():
        pass
    write_beside(k, 4)
    k.db.flush(timeout=60)
    k.check()
