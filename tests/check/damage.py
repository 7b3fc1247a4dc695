"""Damage on purpose, through the store's contract: records and rows of bags that go, come and change.

What a state table held at an earlier moment is put back where it does not belong any more,
so damage looks like what a lost, repeated or torn write would leave.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

import everview
from everview.maintain import EpochTask, Plans
from everview.operators.bound import QUARANTINE, BoundPlan
from everview.plan.maintenance import Shape, State
from everview.store.contract import BagRows, Deletes, Puts, StateTable

BINARY = pa.large_binary()
Held = dict[Any, Any]
"""Records by key; of bags the counts of entries by (key, entry)."""


@dataclass
class Damage:
    """What was done to one state."""

    missing: Held = field(default_factory=dict)
    extra: Held = field(default_factory=dict)
    changed: Held = field(default_factory=dict)


def plan_of(db: everview.Database, group: str = "main") -> tuple[str, BoundPlan]:
    found = Plans(db.store, db.catalog).last(group)
    assert found is not None
    return found


def states_of(bound: BoundPlan) -> dict[str, tuple[State, StateTable]]:
    """Every state of a plan, by fingerprint, without the quarantine."""
    found = {state.fingerprint: state for step in bound.plan.steps for state in step.states}
    return {name: (state, bound.states[name]) for name, state in found.items() if name != QUARANTINE}


def held(db: everview.Database, group: str = "main") -> dict[str, Held]:
    """What every state holds now."""
    _, bound = plan_of(db, group)
    found: dict[str, Held] = {}
    with db.store.snapshot() as snapshot:
        epoch = snapshot.committed(group).epoch
        for name, (state, table) in states_of(bound).items():
            if state.shape is Shape.RECORD:
                records = snapshot.scan(table, b"", epoch)
                found[name] = dict(zip(records.keys.to_pylist(), records.values.to_pylist(), strict=True))
            else:
                rows = snapshot.read_bags(table, snapshot.bag_keys(table, epoch), epoch)
                pairs = zip(rows.keys.to_pylist(), rows.entries.to_pylist(), strict=True)
                found[name] = dict(zip(pairs, rows.counts.to_pylist(), strict=True))
    return found


def damage(db: everview.Database, before: Mapping[str, Held], names: set[str] | None = None) -> dict[str, Damage]:
    """Damage every state (or those with these fingerprints) of the main group: one record or row goes,
    one that was there before comes back, and one is what it was before. All in one epoch."""
    now = held(db)
    done = {name: chosen(before.get(name, {}), now[name]) for name in now if names is None or name in names}
    damage_by(db, done)
    return done


def damage_by(db: everview.Database, done: Mapping[str, Damage]) -> None:
    """Do this damage to states of the main group, given by their fingerprints."""
    digest, bound = plan_of(db)
    views = db.store.views
    begun = views.begin("main", views.committed("main").frontier, EpochTask(digest).to_bytes())
    assert not begun.resumed
    for name, what in done.items():
        state, table = states_of(bound)[name]
        if state.shape is Shape.RECORD:
            _damage_records(db, table, begun.epoch, what)
        else:
            _damage_bags(db, table, begun.epoch, what)
    views.commit("main", begun.epoch)


def chosen(before: Mapping, now: Mapping) -> Damage:
    """One of each kind, as far as there are some. Never two for one key of a bag, so that what is done
    to one does not undo the other."""
    found = Damage()
    taken: set[object] = set()

    def bag(key: object) -> object:
        return key[0] if isinstance(key, tuple) else key

    for kind, keys in (
        ("extra", [key for key in sorted(before) if key not in now]),
        ("changed", [key for key in sorted(before) if key in now and before[key] != now[key]]),
        ("missing", sorted(now)),
    ):
        free = [key for key in keys if bag(key) not in taken]
        if free:
            key = free[0]
            taken.add(bag(key))
            getattr(found, kind)[key] = now[key] if kind == "missing" else before[key]
    return found


def _damage_records(db: everview.Database, table: StateTable, epoch: int, what: Damage) -> None:
    put = {**what.extra, **what.changed}
    db.store.views.write(
        table,
        epoch,
        Puts(pa.array(list(put), BINARY), pa.array(list(put.values()), BINARY)),
        Deletes(pa.array(list(what.missing), BINARY)),
    )


def _damage_bags(db: everview.Database, table: StateTable, epoch: int, what: Damage) -> None:
    with db.store.snapshot() as snapshot:
        as_of = snapshot.committed(table.group).epoch
        rows = snapshot.read_bags(table, snapshot.bag_keys(table, as_of), as_of)
    pairs = zip(rows.keys.to_pylist(), rows.entries.to_pylist(), strict=True)
    now = dict(zip(pairs, rows.counts.to_pylist(), strict=True))
    changes = [(key, -count) for key, count in what.missing.items()]
    changes += [(key, count) for key, count in what.extra.items()]
    changes += [(key, count - now[key]) for key, count in what.changed.items()]
    if changes:
        keys, counts = zip(*changes, strict=True)
        db.store.views.add_to_bags(
            table,
            epoch,
            BagRows(
                pa.array([key for key, _ in keys], BINARY),
                pa.array([entry for _, entry in keys], BINARY),
                pa.array(counts, pa.int64()),
            ),
        )


def damage_aside(db: everview.Database) -> None:
    """In the quarantine of the main group one record is removed, and one is added under another key."""
    digest, bound = plan_of(db)
    views, table = db.store.views, bound.states[QUARANTINE]
    found = views.scan(table, b"", views.committed("main").epoch)
    key, value = found.keys[0].as_py(), found.values[0].as_py()
    begun = views.begin("main", views.committed("main").frontier, EpochTask(digest).to_bytes())
    other = key[:-1] + bytes([key[-1] ^ 1])
    puts = Puts(pa.array([other], BINARY), pa.array([value], BINARY))
    views.write(table, begun.epoch, puts, Deletes(pa.array([key], BINARY)))
    views.commit("main", begun.epoch)
