"""Plans as they are recorded: by what views add to them one at a time, and read again by another process."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import everview
from everview.catalog import MAIN
from everview.errors import DamagedEntryError
from everview.maintain import plans as module
from everview.maintain.plans import CHANGES, PLANS, Plans
from everview.maintain.recorded_plans import RecordedPlan, plan_before
from everview.operators.bound import BoundPlan

MEMBERS = 2 * CHANGES + 10


@pytest.fixture
def db(tmp_path: Path) -> Iterator[everview.Database]:
    with everview.open(tmp_path / "store", durability="none") as db:
        db.sql("CREATE TABLE a (id INTEGER PRIMARY KEY, x INTEGER, y INTEGER)")
        db.sql("INSERT INTO a SELECT i, i % 7, i % 5 FROM range(50) AS r(i)")
        yield db


def create(db: everview.Database, number: int) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW m{number} AS SELECT id, y FROM a WHERE x > {number}")


def plans_of(db: everview.Database) -> Plans:
    return Plans(db.store, db.catalog)


def documents(db: everview.Database) -> dict[str, bytes]:
    return {name.removeprefix(PLANS): found for name, found in db.store.metadata.documents(PLANS)[1].items()}


def as_another_process(db: everview.Database) -> BoundPlan:
    """The group's plan, read from what is recorded alone."""
    module._decoded.clear()
    found = plans_of(db).last(MAIN)
    assert found is not None
    return found[1]


def assert_alike(one: BoundPlan, other: BoundPlan) -> None:
    assert one.plan == other.plan
    assert one.states == other.states
    assert one.planner == other.planner
    assert one.to_bytes() == other.to_bytes()


def test_a_plan_that_grew_one_view_at_a_time_is_the_same_for_every_process(db: everview.Database) -> None:
    for number in range(MEMBERS):
        create(db, number)
    last = plans_of(db).last(MAIN)
    assert last is not None
    assert len(last[1].plan.views) == MEMBERS
    assert_alike(last[1], as_another_process(db))
    assert_alike(last[1], BoundPlan.from_bytes(last[1].to_bytes()))
    for number in range(0, MEMBERS, 3):
        db.sql(f"DROP MATERIALIZED VIEW m{number}")
    db.flush()
    last = plans_of(db).last(MAIN)
    assert last is not None
    assert_alike(last[1], as_another_process(db))
    found = db.verify(state=True)
    assert found.right, str(found)


def test_what_a_view_adds_is_recorded_alone_and_now_and_then_the_whole(db: everview.Database) -> None:
    sizes: dict[str, int] = {}
    for number in range(MEMBERS):
        create(db, number)
        for digest, document in documents(db).items():
            if plan_before(document):
                sizes[digest] = len(document)
    assert len(sizes) > MEMBERS - 10
    assert max(sizes.values()) < 3 * min(sizes.values()), "the last view adds as little as the first"
    kept = documents(db)
    assert len(kept) <= 2 * CHANGES + 10
    for digest, document in kept.items():
        assert RecordedPlan.from_bytes(digest, document).changes <= CHANGES
        before = plan_before(document)
        assert not before or before in kept, "what a recorded plan changes is recorded"


def test_a_view_that_shares_steps_is_recorded_alone(db: everview.Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW sums AS SELECT y, sum(x) AS s FROM a GROUP BY y")
    db.sql("CREATE MATERIALIZED VIEW counts AS SELECT y, count(*) AS n FROM a GROUP BY y")
    last = plans_of(db).last(MAIN)
    assert last is not None and plan_before(documents(db)[last[0]])
    assert_alike(last[1], as_another_process(db))
    db.sql("INSERT INTO a VALUES (100, 3, 4)")
    db.flush()
    assert db.verify(state=True).right


def test_a_plan_of_another_planner_is_planned_as_a_whole(
    db: everview.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        create(db, number)
    monkeypatch.setattr("everview.maintain.plans.__version__", "0.0.1")
    create(db, 6)
    last = plans_of(db).last(MAIN)
    assert last is not None and not plan_before(documents(db)[last[0]])
    assert last[1].planner.startswith("0.0.1/")
    create(db, 7)
    again = plans_of(db).last(MAIN)
    assert again is not None and plan_before(documents(db)[again[0]]) == last[0]


def test_a_plan_that_an_older_version_recorded_is_read(db: everview.Database) -> None:
    for number in range(5):
        create(db, number)
    last = plans_of(db).last(MAIN)
    assert last is not None
    bound = last[1]
    recorded = json.loads(bound.to_bytes())
    views = [
        {**{name: value for name, value in kind.items() if name != "members"}, "name": name, "constants": constants}
        for kind in recorded["plan"]["views"]
        for name, *constants in kind["members"]
    ]
    recorded["plan"] |= {"format": 2, "views": sorted(views, key=lambda view: str(view["name"]))}
    del recorded["planner"]
    content = json.dumps(recorded).encode()
    digest = RecordedPlan("", 0, content).digest
    found = RecordedPlan.from_bytes(digest, zlib.compress(content))
    assert not plan_before(zlib.compress(content))
    assert found.whole().plan == bound.plan
    assert found.whole().planner == ""


@pytest.mark.parametrize(
    "damage", [b"", b"- 0\n", b"- x\nabc", b"\xff\xff", b"0" * 32 + b" 1\nabc", b"x\x9cabc"], ids=repr
)
def test_a_damaged_plan_is_named(db: everview.Database, damage: bytes) -> None:
    for number in range(5):
        create(db, number)
    last = plans_of(db).last(MAIN)
    assert last is not None
    before = plan_before(documents(db)[last[0]])
    for digest in (last[0], before):
        whole = documents(db)[digest]
        db.store.metadata.commit(db.store.metadata.version(), {PLANS + digest: damage})
        module._decoded.clear()
        with pytest.raises(DamagedEntryError, match=f"plan {digest} "):
            plans_of(db).load(last[0])
        db.store.metadata.commit(db.store.metadata.version(), {PLANS + digest: whole})
    assert as_another_process(db).plan == last[1].plan


def test_a_plan_that_is_missing_is_named(db: everview.Database) -> None:
    for number in range(6):
        create(db, number)
    last = plans_of(db).last(MAIN)
    assert last is not None
    before = plan_before(documents(db)[last[0]])
    db.store.metadata.commit(db.store.metadata.version(), {}, [PLANS + before])
    module._decoded.clear()
    with pytest.raises(DamagedEntryError, match=f"plan {before} is not recorded"):
        plans_of(db).load(last[0])
