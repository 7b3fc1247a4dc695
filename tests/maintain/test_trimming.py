"""Logs are trimmed up to what somebody needs; a reader that comes too late gets an error with what to do.

Everything in this folder is maintained over logs that are trimmed as far as they can be, so that a build
or a group that needed more would fail there.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import everview
from everview.change.frontier import Frontier
from everview.errors import LogTrimmedError, SnapshotExpiredError
from everview.maintain import trimming
from everview.maintain.maintainer import Maintainer
from everview.maintain.scheduler import Scheduler
from everview.maintain.table_chunks import rows_at
from everview.maintain.tasks import Chunk
from everview.maintain.trimming import Retention, Trimmer, needed, retention_of
from everview.store.embedded import logs
from everview.store.embedded.layout import LOG
from everview.store.embedded.store import EmbeddedStore
from tests.maintain.kept import kept
from tests.maintain.test_building import ROWS, create, write

COUNTED = "CREATE MATERIALIZED VIEW counted AS SELECT x % 3 AS g, count(*) AS n FROM t GROUP BY g"
LAZY = "CREATE MATERIALIZED VIEW lazy WITH (refresh = 'lazy') AS SELECT count(*) AS n FROM t"
NOTHING = "SET GLOBAL log_retention_operations = 1; SET GLOBAL log_retention_age = '0 seconds'"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[everview.Database]:
    with everview.open(tmp_path / "store", durability="none", map_size=1 << 28) as found:
        found.sql("CREATE TABLE t (x INTEGER PRIMARY KEY)")
        found.sql(COUNTED)
        yield found


def put(db: everview.Database, first: int, count: int) -> None:
    for x in range(first, first + count):
        db.table("t").put({"x": x})


def operations(db: everview.Database) -> int:
    """How many entries the logs have."""
    return db.store.log.oldest().operations_to(db.store.log.latest())


def trim(db: everview.Database) -> None:
    """One who maintains the store comes, and trims what it can."""
    Maintainer(db.store, db.catalog).trim()


def blocks(db: everview.Database) -> int:
    """How many blocks of logs are stored."""
    assert isinstance(db.store, EmbeddedStore)
    with db.store._handle.base.read() as transaction:
        return sum(key.startswith(LOG) for key in transaction.cursor().iternext(values=False))


# ------------------------------------------------------------------ what is kept for readers


def test_the_last_operations_are_kept(db: everview.Database) -> None:
    db.sql("SET GLOBAL log_retention_operations = 10; SET GLOBAL log_retention_age = '0 seconds'")
    put(db, 0, 8)
    db.flush()
    assert operations(db) == blocks(db) == 8
    put(db, 8, 30)
    db.flush()
    trim(db)
    assert operations(db) == blocks(db) == 10
    assert sum(db.view("counted").scan().arrow()["n"].to_pylist()) == 38


def test_what_is_young_is_kept(db: everview.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    db.sql("SET GLOBAL log_retention_operations = 1; SET GLOBAL log_retention_age = '2 hours'")
    put(db, 0, 40)
    db.flush()
    trim(db)
    assert operations(db) == 40
    now = time.time()
    for hours, left in [(1.9, 40), (2.1, 1)]:
        monkeypatch.setattr(time, "time", lambda hours=hours: now + 3600 * hours)
        trim(db)
        assert operations(db) == left


def test_by_default_much_is_kept(db: everview.Database) -> None:
    assert retention_of(db.store) == Retention(1_000_000, 3600)
    put(db, 0, 20)
    db.flush()
    assert operations(db) == 20


def test_the_setting_is_the_stores(db: everview.Database, tmp_path: Path) -> None:
    db.sql("SET GLOBAL log_retention_operations = 77")
    db.sql("SET GLOBAL log_retention_age TO '30 minutes'")
    with everview.open(tmp_path / "store") as again:
        assert retention_of(again.store) == Retention(77, 1800)


def test_a_batch_is_not_cut_and_turns_are_bounded(db: everview.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trimming, "TURN", 4)
    db.sql("SET GLOBAL log_retention_operations = 5; SET GLOBAL log_retention_age = '0 seconds'")
    db.table("t").put_many([{"x": x} for x in range(10)])
    put(db, 10, 3)
    db.flush()
    assert operations(db) == 13, "without the batch there would be less than five"
    put(db, 13, 8)
    with Maintainer(db.store, db.catalog).lease() as maintainer:
        maintainer.trimmer = Trimmer(db.store, db.catalog, every=1e9)
        maintainer.catch_up()
    assert operations(db) == 5
    trimmer = Trimmer(db.store, db.catalog, every=1e9)
    put(db, 21, 9)
    with Maintainer(db.store, db.catalog).lease() as maintainer:
        maintainer.advance("main", db.store.log.latest())
        taken = [operations(db)]
        while trimmer.turn():
            taken.append(operations(db))
    assert all(before - after <= 4 for before, after in itertools.pairwise(taken)) and len(taken) > 2
    assert not trimmer.turn(), "nothing more to do for a while"


# ------------------------------------------------------------------ who needs logs


def test_a_lazy_group_holds_the_log_back(db: everview.Database) -> None:
    db.sql(LAZY)
    db.sql(NOTHING)
    maintainer = Maintainer(db.store, db.catalog)
    put(db, 0, 30)
    with maintainer.lease():
        maintainer.advance("main", db.store.log.latest())
    trim(db)
    lazy = db.catalog.view("lazy").group
    assert operations(db) == 30
    log = db.status().log
    assert (log.operations, log.needed_by) == (30, {"main": 0, lazy: 30})
    assert f"30 operations are kept, group {lazy} needs the last 30" in repr(db.status())
    assert json.loads(json.dumps(db.status().to_dict()))["log"]["retention"] == {"operations": 1, "age": 0.0}
    db.flush()
    trim(db)
    assert operations(db) == 1 and db.view("lazy").get() == {"n": 30}
    db.sql("DROP MATERIALIZED VIEW lazy; DROP MATERIALIZED VIEW counted; FLUSH")
    put(db, 30, 5)
    trim(db)
    assert operations(db) == 1, "a group without views needs nothing"


def test_a_build_holds_the_log_back(tmp_path: Path) -> None:
    with kept(tmp_path) as k:
        k.sql(ROWS + create("sums"))
        k.settle()
        k.sql(create("joined"))
        k.turn_of_build()
        (build,) = k.maintainer.builder.builds()
        assert build.group not in needed(k.store, k.db.catalog), "it has not read anything yet"
        k.turn_of_build()
        reached = k.store.views.committed(build.group).frontier
        write(k, 1)
        write(k, 2)
        k.maintainer.advance("main", k.store.log.latest())
        k.maintainer.trim()
        assert k.store.log.oldest() == reached < k.store.views.committed("main").frontier
        k.settle()
        k.maintainer.trim()
        assert k.store.log.oldest() == k.store.log.latest()


def test_the_first_chunk_of_a_build_that_was_interrupted_holds_the_log_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with kept(tmp_path) as k:
        k.sql(ROWS + create("sums"))
        k.settle()
        k.sql(create("joined"))
        k.turn_of_build()
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(k.maintainer.epochs, "run", interrupted)
            k.turn_of_build()
        begun = k.store.views.begun(k.maintainer.builder.builds()[0].group)
        assert begun is not None and begun.base == 0
        write(k, 1)
        k.maintainer.advance("main", k.store.log.latest())
        k.maintainer.trim()
        assert k.store.log.oldest() == begun.frontier < k.store.log.latest()
        k.settle()


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


# ------------------------------------------------------------------ who comes too late


def test_a_subscriber_who_comes_too_late_begins_with_all_rows(db: everview.Database) -> None:
    put(db, 0, 3)
    db.flush()
    token = db.view("counted").subscribe().token
    put(db, 3, 10)
    db.flush()
    db.sql(NOTHING)
    trim(db)
    with pytest.raises(SnapshotExpiredError, match="is not known any more") as found:
        db.view("counted").subscribe(since=token)
    assert "snapshot=True" in str(found.value.hint)
    changes = db.view("counted").subscribe(since=token, snapshot=True, timeout=0)
    assert sum(next(changes).came["n"].to_pylist()) == 13


def test_rows_of_long_ago_are_refused_with_what_to_do(db: everview.Database) -> None:
    db.sql(NOTHING)
    put(db, 0, 3)
    before = db.store.log.latest()
    put(db, 3, 10)
    db.flush()
    trim(db)
    table = db.catalog.table("t")
    with db.store.snapshot() as snapshot:
        with pytest.raises(LogTrimmedError, match="begins after") as found:
            rows_at(db.store, snapshot, table, Chunk("t"), before)
        assert "SET GLOBAL log_retention_age" in str(found.value.hint)
        assert len(rows_at(db.store, snapshot, table, Chunk("t"), snapshot.frontier)) == 13


def test_a_fresh_read_over_a_log_that_is_gone_says_so(db: everview.Database) -> None:
    put(db, 0, 3)
    db.store.log.trim(db.store.log.latest())
    with pytest.raises(LogTrimmedError, match="begins after"):
        db.view("counted").get(0, fresh=True)


def test_fresh_reads_and_sessions_go_on_while_logs_are_trimmed(db: everview.Database) -> None:
    db.sql(NOTHING)
    with db.maintain(spark=False), db.session() as session:
        for x in range(20):
            session.table("t").put({"x": x})
            assert sum(session.view("counted").scan().arrow()["n"].to_pylist()) == x + 1
            assert sum(db.view("counted").scan(fresh=True).arrow()["n"].to_pylist()) == x + 1


# ------------------------------------------------------------------ who trims


def test_pipelines_trim(db: everview.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trimming, "EVERY", 0.0)
    db.sql(NOTHING)
    with db.maintain(spark=False) as running:
        put(db, 0, 20)
        running.drain(60)
        while operations(db) > 1:
            running.check()
    put(db, 20, 20)
    with Maintainer(db.store, db.catalog).lease() as maintainer:
        maintainer.advance("main", db.store.log.latest())
        Scheduler(maintainer, lambda error: pytest.fail(str(error)), "main").turn()
    assert operations(db) == 1


def test_what_a_killed_one_left_is_removed_by_the_next(db: everview.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "TRIM_BLOCKS", 3)
    db.sql(NOTHING)
    put(db, 0, 20)
    db.flush()
    put(db, 20, 20)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        db.flush()
        patch.setattr(logs, "_trim_some", interrupted)
        trim(db)
    assert operations(db) == 1 and blocks(db) > 1, "marked and not removed"
    trim(db)
    assert operations(db) == blocks(db) == 1
    assert db.store.log.oldest() < db.store.log.latest() != Frontier()
