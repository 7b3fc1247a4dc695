"""Plans of groups: from what the catalog defines to what epochs run, recorded by content.

One sentence: a group's plan is compiled from the definitions of its views, goes on from the plan
before it, is bound to state tables, and is recorded in the store under a digest of its bytes.

Epochs name their plan by the digest, so that ten thousand views cost an epoch nothing, and every
attempt of an epoch, in whatever process, reads the very plan that it was begun with.

::

    maintenance/group/<group>     the digest of the group's last plan
    maintenance/plan/<digest>     a bound plan, compressed
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from everview.catalog import Catalog, Definitions, IndexDefinition, Maintained, ViewDefinition
from everview.catalog.compiling import compiled_index, compiled_view
from everview.errors import ConflictError, DamagedEntryError
from everview.operators.bound import QUARANTINE, BoundPlan
from everview.plan.maintenance import MaintenancePlan, ViewInput, plan_group, restricted
from everview.store.contract import StateTable, Store

GROUPS = "maintenance/group/"
PLANS = "maintenance/plan/"

KEPT = 16
"""Plans that a process keeps decoded."""

_decoded: OrderedDict[str, BoundPlan] = OrderedDict()


class Plans:
    """The plans of one store."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self.store = store
        self.catalog = catalog
        self._inputs: dict[object, ViewInput] = {}

    # -------------------------------------------------------------- planning

    def planned(self, definitions: Definitions, found: Collection[Maintained]) -> MaintenancePlan:
        """The plan of these views and indexes, together with the views that they read."""
        needed: dict[int, Maintained] = {}
        for one in found:
            self._need(one, definitions, needed)
        inputs = [self._input(one, definitions) for one in needed.values()]
        plan = plan_group(inputs, self.store.log.guarantees.before_images)
        return restricted(plan, [one.name for one in found])

    def _need(self, one: Maintained, definitions: Definitions, needed: dict[int, Maintained]) -> None:
        if one.id in needed:
            return
        needed[one.id] = one
        for id in one.depends_on:
            read = definitions.by_id(id)
            if isinstance(read, ViewDefinition | IndexDefinition):
                self._need(read, definitions, needed)

    def _input(self, one: Maintained, definitions: Definitions) -> ViewInput:
        meaning = (one.id, one.name, one.sql if isinstance(one, ViewDefinition) else one.columns)
        found = self._inputs.get(meaning)
        if found is None:
            if isinstance(one, ViewDefinition):
                found = compiled_view(one, definitions).input
            else:
                found = compiled_index(one, definitions).input
            self._inputs[meaning] = found
        return found

    def bound(
        self,
        plan: MaintenancePlan,
        definitions: Definitions,
        states: Mapping[str, StateTable],
        number: Callable[[StateTable], StateTable],
        group: str,
    ) -> BoundPlan:
        """A plan bound to the state tables it has, and to new ones where it has none."""
        found: dict[str, StateTable] = {}
        for named in (QUARANTINE, *(state.fingerprint for step in plan.steps for state in step.states)):
            if named not in found:
                known = states.get(named)
                found[named] = number(StateTable(0, named, group)) if known is None else replace(known, group=group)
        tables = {use.name: definitions.table(use.name) for use in plan.tables}
        return BoundPlan(plan, tables, found)

    # -------------------------------------------------------------- recording

    def record(self, bound: BoundPlan) -> str:
        """Record a plan; returns its digest. May be repeated."""
        content = replace(bound, first=frozenset()).to_bytes()
        digest = hashlib.blake2b(content, digest_size=16).hexdigest()
        if digest not in _decoded or not self._there(digest):
            commit(self.store, lambda _: ({PLANS + digest: zlib.compress(content, 1)}, ()))
        _remember(digest, replace(bound, first=frozenset()))
        return digest

    def _there(self, digest: str) -> bool:
        return bool(self.store.metadata.documents(PLANS + digest)[1])

    def load(self, digest: str, *, first: bool = False) -> BoundPlan:
        """A recorded plan; ``first``: of which no step has kept anything yet."""
        found = _decoded.get(digest)
        if found is None:
            recorded = self.store.metadata.documents(PLANS + digest)[1].get(PLANS + digest)
            if recorded is None:
                raise DamagedEntryError(
                    f"plan {digest} is not recorded", hint="restore the store from a backup, or rebuild the views"
                )
            found = BoundPlan.from_bytes(zlib.decompress(recorded))
            _remember(digest, found)
        return replace(found, first=frozenset(found.plan.by_fingerprint)) if first else found

    def last(self, group: str) -> tuple[str, BoundPlan] | None:
        """The group's last plan."""
        found = self.since(group)
        return None if found is None else found[:2]

    def since(self, group: str) -> tuple[str, BoundPlan, int] | None:
        """The group's last plan, and the epoch from which on its tables hold what it says."""
        recorded = self.store.metadata.documents(GROUPS + group)[1].get(GROUPS + group)
        if recorded is None:
            return None
        said = json.loads(recorded)
        return said["plan"], self.load(said["plan"]), said["since"]

    def sweep(self, kept: Iterable[str]) -> None:
        """Forget recorded plans but these."""
        known = set(kept)
        _, found = self.store.metadata.documents(PLANS)
        stale = [name for name in found if name.removeprefix(PLANS) not in known]
        if stale:
            commit(self.store, lambda _: ({}, stale))


def group_document(digest: str, since: int) -> bytes:
    """Of a group's plan. ``since``: the epoch from which on its tables hold what it says."""
    return json.dumps({"plan": digest, "since": since}).encode()


def commit(store: Store, changes: Callable[[int], tuple[Mapping[str, bytes], Collection[str]]]) -> None:
    """Write documents, again if somebody else wrote others in between."""
    while True:
        counter = store.metadata.version()
        puts, deletes = changes(counter)
        try:
            store.metadata.commit(counter, puts, deletes)
            return
        except ConflictError:
            continue


def _remember(digest: str, bound: BoundPlan) -> None:
    _decoded[digest] = bound
    _decoded.move_to_end(digest)
    while len(_decoded) > KEPT:
        _decoded.popitem(last=False)
