"""A process that uses views and forks: run by test_forking.py, with a directory and what it forks.

Prints one line for each child: what it was, and its exit status.
"""

import contextlib
import faulthandler
import gc
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import everview
from everview.errors import StoreError
from everview.store.embedded import EmbeddedStore

FORK = multiprocessing.get_context("fork")
PATIENCE = 300
"""Seconds after which a child that hangs ends itself, with an error."""


def use(path: Path) -> everview.Database:
    """All that starts threads, opens connections and maps files."""
    db = everview.open(path)
    if not db.tables():
        db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, g BIGINT)")
        db.sql("CREATE MATERIALIZED VIEW n AS SELECT g, count(*) AS n, max(k) AS last FROM t GROUP BY g")
    end = db.table("t").count()
    db.table("t").put_many([{"k": end + at, "g": at % 3} for at in range(100)])
    db.flush()
    assert db.verify().right
    assert db.sql("SELECT sum(n) FROM n").rows() == [(end + 100,)]
    assert db.sql("SELECT * FROM n ORDER BY g").df().shape == (3, 3)
    return db


def forked(name: str, work: Callable[[], None], end: Callable[[int], None]) -> None:
    process = os.fork()
    if process == 0:
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        work()
        end(0)
    print(name, os.waitpid(process, 0)[1], flush=True)


def refused(*calls: Callable[[], object]) -> None:
    for number, call in enumerate(calls):
        try:
            call()
        except StoreError as error:
            if "forked from" not in error.message:
                raise
        else:
            raise AssertionError(f"call {number} was not refused")


def with_the_store_open(path: Path) -> None:
    db = use(path)
    table, view, snapshot = db.table("t"), db.view("n"), db.store.snapshot()
    held, scan, result = db.snapshot(), iter(table.scan()), db.sql("SELECT * FROM t")
    next(scan)

    def let_go() -> None:
        nonlocal snapshot, held, scan, result
        snapshot.close()
        del snapshot, held, scan, result
        gc.collect()
        db.close()

    def touch() -> None:
        refused(
            lambda: table.get(1),
            lambda: table.put({"k": 1, "g": 1}),
            lambda: table.scan().rows(),
            lambda: view.get(1),
            lambda: db.sql("SELECT * FROM n").rows(),
            lambda: db.sql("INSERT INTO t VALUES (-1, 1)"),
            lambda: snapshot.table(db.catalog.table("t")).get(1),
            lambda: held.sql("SELECT * FROM n").rows(),
            db.snapshot,
            db.flush,
            db.store.sync,
        )

    def work_elsewhere() -> None:
        use(path.parent / "of the child").close()

    def open_the_same() -> None:
        everview.open(path).close()
        let_go()
        with everview.open(path) as own:
            assert own.sql("SELECT sum(n) FROM n").rows() == [(100,)]
            own.flush()
            assert own.verify().right
        refused(lambda: table.get(1), db.flush)

    works = {
        "nothing": lambda: None,
        "lets go": let_go,
        "touches": touch,
        "other": work_elsewhere,
        "same": open_the_same,
    }
    for name, work in works.items():
        forked(f"open, {name}, sys.exit", work, sys.exit)
        forked(f"open, {name}, _exit", work, os._exit)
        process = FORK.Process(target=work)
        process.start()
        process.join()
        print(f"open, {name}, multiprocessing", process.exitcode, flush=True)
    before = table.count()
    for number in range(50):
        table.put({"k": -1 - number, "g": 7})
    assert snapshot.table(db.catalog.table("t")).count() == before, "the slot of a reader was not taken"
    assert sum(len(batch) for batch in snapshot.table(db.catalog.table("t")).scan()) == before
    assert held.sql("SELECT sum(n) FROM n").rows() == [(100,)]
    held.close()
    snapshot.close()
    db.flush()
    assert db.verify().right
    db.close()


def with_a_store_each(path: Path) -> None:
    """Parent and children write to one store at once, and none frees the slot of a reader that another has."""
    db = use(path)
    snapshot, inherited = db.snapshot(), db.snapshot()
    before = [(100,)]

    def work() -> None:
        nonlocal inherited
        own = everview.open(path)
        held = own.snapshot()
        assert held.sql("SELECT sum(n) FROM n").rows() == before
        del inherited
        gc.collect()
        os.write(ready[1], b"1")
        for number in range(200):
            own.table("t").put({"k": os.getpid() * 1000 + number, "g": 1})
        own.flush()
        assert held.sql("SELECT sum(n) FROM n").rows() == before
        assert len(held.sql("SELECT * FROM t").rows()) == 100
        os.write(ready[1], b"2")
        os.read(go_on[0], 1)
        assert held.sql("SELECT sum(n) FROM n").rows() == before
        assert len(held.sql("SELECT * FROM t").rows()) == 100

    ready, go_on = os.pipe(), os.pipe()
    children = [FORK.Process(target=work) for _ in range(3)]
    for child in children:
        child.start()
    reported = 0
    while reported < 2 * len(children) and any(child.is_alive() for child in children):
        reported += len(os.read(ready[0], 1))
    assert isinstance(db.store, EmbeddedStore)
    dead = sum(environment._env.reader_check() for environment in db.store._core.environments)
    assert dead == 0, "all readers live"
    for number in range(200):
        db.table("t").put({"k": -1 - number, "g": 2})
    os.write(go_on[1], b"123")
    for child in children:
        child.join()
        print("each", child.exitcode, flush=True)
    assert snapshot.sql("SELECT sum(n) FROM n").rows() == before
    db.flush()
    assert db.sql("SELECT sum(n) FROM n").rows() == [(900,)]
    assert db.verify().right
    db.close()


def with_the_store_closed(path: Path) -> None:
    use(path).close()

    def work() -> None:
        use(path).close()

    def leave_it_open() -> None:
        use(path)

    for name, what in (("nothing", lambda: None), ("same", work), ("left open", leave_it_open)):
        forked(f"closed, {name}, sys.exit", what, sys.exit)
        forked(f"closed, {name}, _exit", what, os._exit)
    with ProcessPoolExecutor(2, mp_context=FORK) as pool:
        print("closed, pool", sum(pool.map(count_of, [path] * 4)) // 4 % 100, flush=True)
    use(path).close()


def count_of(path: Path) -> int:
    with everview.open(path) as db:
        return db.table("t").count()


def while_others_work(path: Path) -> None:
    """Other threads hold locks and run queries at the moment of the fork."""
    db = use(path)
    ended = threading.Event()

    def go_on() -> None:
        while not ended.is_set():
            db.sql("SELECT g, count(*) FROM t GROUP BY g").df()
            db.sql(f"SELECT k + {threading.get_ident()} FROM t LIMIT 1").rows()

    threads = [threading.Thread(target=go_on) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(4):
        forked(f"busy {number}", lambda: use(path.parent / "of the child").close(), os._exit)
        forked(f"busy {number}, same", lambda: everview.open(path).close(), os._exit)
    ended.set()
    for thread in threads:
        thread.join()
    db.close()


def lease_is_given_back(path: Path) -> None:
    """A child that lives on does not keep what its parent gave back."""
    db = everview.open(path)
    reader, writer = os.pipe()
    lease = contextlib.ExitStack()
    lease.enter_context(db.store.lease("work"))
    process = os.fork()
    if process == 0:
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
    lease.close()
    with db.store.lease("work"):
        pass
    db.close()
    os.close(writer)
    print("lease", os.waitpid(process, 0)[1], flush=True)


if __name__ == "__main__":
    globals()[sys.argv[2]](Path(sys.argv[1]))
