"""Views that are rebuilt because their state is damaged, while readers go on reading them.

A rebuild is a build of views that are there already; it makes every state below them again
in tables of its own, and on joining those take the place of the group's, in one epoch.

::

    asked for      maintenance/rebuild/<id of the view>
    built          in a group of its own, chunk by chunk, as any other view; the old rows are read meanwhile
    joined         the group's next epoch runs with the new tables; the old ones are dropped

A state is built with all the columns that the group keeps in it, and of a family with all members, so
other views that read it go on with the new table: what several views share is healed for all of them.
A view that shows wrong rows of its own, because it was maintained from damaged state, has to be rebuilt
itself; ``verify`` names it.

Where the damage is such that the group's epochs fail, the group cannot be brought to the frontier of the
build. Then all of its views have to be rebuilt: nothing of its state is kept, so its frontier is the
build's, and an epoch that cannot be finished is closed as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from everview.catalog import Definitions, Maintained
from everview.maintain.plans import commit
from everview.operators.bound import QUARANTINE, BoundPlan
from everview.operators.members import tags_of
from everview.operators.quarantine_records import NO_MEMBER, prefix_of, recorded
from everview.plan.maintenance import MaintenancePlan, restricted
from everview.store.contract import Begun, Deletes, Puts, StateTable, Store
from everview.store.encoding.ragged import BINARY

REBUILDS = "maintenance/rebuild/"
PREFIX = 8 + len(NO_MEMBER)
"""Bytes of the key of what is quarantined that name the step and the member."""


def rebuild_document(id: int) -> str:
    """The name of the document that asks for a view or index to be rebuilt."""
    return f"{REBUILDS}{id}"


def ask_rebuild(store: Store, ids: Iterable[int]) -> None:
    """Ask that views and indexes are rebuilt."""
    documents = {rebuild_document(id): b"{}" for id in ids}
    commit(store, lambda _: (documents, ()))


def asked_rebuilds(store: Store) -> set[int]:
    """The ids of the views and indexes that are to be rebuilt."""
    return {int(name.removeprefix(REBUILDS)) for name in store.metadata.documents(REBUILDS)[1]}


def to_rebuild(store: Store, definitions: Definitions) -> list[Maintained]:
    """The views and indexes that are to be rebuilt. What is gone or being built needs no rebuild
    any more."""
    asked = asked_rebuilds(store)
    if not asked:
        return []
    live = [one for group in definitions.live_groups() for one in definitions.live(group)]
    moot = asked.difference(one.id for one in live)
    if moot:
        commit(store, lambda _: ({}, [rebuild_document(id) for id in moot]))
    return [one for one in live if one.id in asked]


def is_rebuilt(store: Store, definitions: Definitions, group: str) -> bool:
    """Whether all views of a group are to be rebuilt, so that nothing of its state is kept."""
    asked = asked_rebuilds(store)
    if not asked:
        return False
    ids = {one.id for one in definitions.live(group)}
    return bool(ids) and ids <= asked


def rebuilt_part(whole: MaintenancePlan, names: Sequence[str]) -> tuple[MaintenancePlan, set[str]]:
    """The part of a group's plan that makes these views, with all members of every state, and the views
    whose tables it makes."""
    asked = set(names)
    while True:
        own = restricted(whole, sorted(asked))
        kept = [step for step in own.steps if step.states and step.constants is not None]
        cut = [step for step in kept if step.constants != whole.step(step.fingerprint).constants]
        more = {view for step in cut for view in whole.users[step.fingerprint]}
        if more <= asked:
            return own, asked
        asked |= more


def rebuilt_states(own: BoundPlan, last: BoundPlan) -> dict[str, StateTable]:
    """The tables of a group after a rebuild has joined it: the rebuild's, and what it has not made."""
    made = {name: table for name, table in own.states.items() if name != QUARANTINE}
    return {**last.states, **made}


def replace_quarantine(store: Store, target: StateTable, begun: Begun, own: BoundPlan) -> None:
    """In the epoch in which a build joins: what its steps have quarantined is all that they quarantined in the
    group, also where the group had it under fewer columns. What was known keeps the epoch in which it came."""
    views = store.views
    source = own.states[QUARANTINE]
    found = views.scan(source, b"", views.committed(source.group).epoch)
    made = dict(zip(found.keys.to_pylist(), found.values.to_pylist(), strict=True))
    there = views.scan(target, b"", begun.base)
    own_prefixes = set(_prefixes(own.plan)) if len(there.keys) else set()
    known = zip(there.keys.to_pylist(), there.values.to_pylist(), strict=True)
    held = {key: value for key, value in known if key[:PREFIX] in own_prefixes}
    puts = {key: value for key, value in made.items() if key not in held or not _alike(held[key], value)}
    gone = [key for key in held if key not in made]
    if not puts and not gone:
        return
    views.write(
        target,
        begun.epoch,
        Puts(pa.array(list(puts), BINARY), pa.array(list(puts.values()), BINARY)),
        Deletes(pa.array(gone, BINARY)),
    )


def _prefixes(plan: MaintenancePlan) -> Iterator[bytes]:
    """What the keys of records begin with that the steps of a plan may write."""
    for step in plan.steps:
        sources = (plan.step(one.step) for one in step.inputs)
        for tag in {NO_MEMBER, *tags_of(step), *(tag for source in sources for tag in tags_of(source))}:
            yield prefix_of(step, tag)


def _alike(one: bytes, other: bytes) -> bool:
    """Whether two records hold the same, whenever they were written."""
    try:
        (count, row), (other_count, other_row) = recorded(one), recorded(other)
    except (ValueError, TypeError, KeyError):
        return False
    return (count, row.what, row.values, row.reason) == (
        other_count,
        other_row.what,
        other_row.values,
        other_row.reason,
    )
