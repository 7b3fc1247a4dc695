"""Plans of groups: from what the catalog defines to what epochs run, recorded by content.

A group's plan is compiled from the definitions of its views, goes on from the plan
before it, is bound to state tables, and is recorded in the store under a digest of its bytes.

Epochs name their plan by the digest, so that ten thousand views cost an epoch nothing, and every
attempt of an epoch, in whatever process, reads the very plan that it was begun with.

::

    maintenance/group/<group>     the digests of the group's last plans, each with the epoch from which
                                  on its tables hold the views: for snapshots that are older than a plan
    maintenance/plan/<digest>     a bound plan, compressed: as a whole, or what it changes in another one
    maintenance/left/<group>/<digest>
                                  a plan that the group has left, and of which something may be stored
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from everview.catalog import Catalog, Definitions, IndexDefinition, Maintained, ViewDefinition
from everview.catalog.compiling import compiled_index, compiled_view
from everview.errors import ConflictError, DamagedEntryError
from everview.maintain.recorded_plans import RecordedPlan, plan_before
from everview.maintain.rounds import Rounds
from everview.operators.bound import QUARANTINE, BoundChange, BoundPlan
from everview.plan import rules
from everview.plan.maintenance import (
    MaintenancePlan,
    PlanChange,
    ViewInput,
    continued,
    joined,
    plan_group,
    restricted,
)
from everview.plan.maintenance.model import FORMAT
from everview.store.contract import StateTable, Store, Table
from everview.version import __version__

GROUPS = "maintenance/group/"
PLANS = "maintenance/plan/"
BUILDS = "maintenance/build/"
LEFT = "maintenance/left/"
PAUSES = "maintenance/pause/"

KEPT = 16
"""Plans that a process keeps decoded."""
INPUTS = 1_000
"""Views of which it is kept what they compile to."""
CHANGES = 64
"""So many changes are recorded one after another, then a whole plan."""
REMEMBERED = 8
"""Plans of a group that snapshots can still be read with."""


class Plans:
    """The plans of one store."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self.store = store
        self.catalog = catalog
        self._inputs: dict[object, ViewInput] = {}
        self._histories: dict[str, tuple[int, Sequence[tuple[str, int]]]] = {}
        """By group, with the counter of all documents at which they were read."""
        self._created: dict[object, ViewInput] = {}
        self._alike: set[object] = set()
        """Templates whose views compile to the same when they are created and from their records."""
        self._planned: tuple[object, MaintenancePlan, Sequence[ViewInput]] | None = None
        """The last plan, of which views, and these: who builds views asks for the same plan twice."""

    # -------------------------------------------------------------- planning

    def planned(self, definitions: Definitions, found: Collection[Maintained]) -> MaintenancePlan:
        """The plan of these views and indexes, together with the views that they read."""
        needed: dict[int, Maintained] = {}
        for one in found:
            self._need(one, definitions, needed)
        inputs = [self._input(one, definitions) for one in needed.values()]
        asked = {one.name for one in found}
        of = frozenset((id(one), one.name in asked) for one in inputs)
        if self._planned is None or self._planned[0] != of:
            plan = plan_group(inputs, self.store.log.guarantees.before_images)
            self._planned = of, restricted(plan, asked), inputs
        return self._planned[1]

    def _need(self, one: Maintained, definitions: Definitions, needed: dict[int, Maintained]) -> None:
        if one.id in needed:
            return
        needed[one.id] = one
        for id in one.depends_on:
            read = definitions.by_id(id)
            if isinstance(read, ViewDefinition | IndexDefinition):
                self._need(read, definitions, needed)

    def learn(self, one: Maintained, compiled: ViewInput) -> None:
        """What a view compiled to when it was created. That is used where a view of the same template
        was found to compile to the same from its record: a plan must be the same in every process."""
        self._created[_meaning(one)] = compiled

    def forget_inputs(self) -> None:
        """Forget what views compiled to when they were created, once they are built here or by another process; and
        what very many views compile to: Python's garbage collector would look at it again and again, for seconds."""
        self._created.clear()
        if len(self._inputs) > INPUTS:
            self._inputs.clear()
            self._planned = None

    def _input(self, one: Maintained, definitions: Definitions) -> ViewInput:
        meaning = _meaning(one)
        found = self._inputs.get(meaning)
        if found is None:
            created = self._created.pop(meaning, None)
            shape = None if created is None else (created.template[0], created.order)
            found = created if created is not None and shape in self._alike else self._compiled(one, definitions)
            if created == found:
                self._alike.add(shape)
            self._inputs[meaning] = found
        return found

    def _compiled(self, one: Maintained, definitions: Definitions) -> ViewInput:
        if isinstance(one, ViewDefinition):
            return compiled_view(one, definitions).input
        return compiled_index(one, definitions).input

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
        return BoundPlan(plan, tables, found, planner=planner())

    def joining(self, held: BoundPlan, own: MaintenancePlan) -> PlanChange | None:
        """What views add to the plan of a group, of whose steps they have a plan of their own; None where the whole
        group has to be planned: also where another version of Everview has planned it."""
        return joined(held.plan, continued(own, held.plan)) if held.planner == planner() else None

    def as_defined(self, bound: BoundPlan, definitions: Definitions) -> BoundPlan:
        """The plan with the schemas that its tables have now; the very same where none has changed."""
        tables = {
            name: known if isinstance(known := definitions.find(name), Table) and known.id == table.id else table
            for name, table in bound.tables.items()
        }
        changed = any(tables[name].schema != table.schema for name, table in bound.tables.items())
        return replace(bound, tables=tables) if changed else bound

    def with_tables(self, digest: str, bound: BoundPlan, definitions: Definitions) -> str:
        """The plan, recorded with the schemas that its tables have now."""
        again = self.as_defined(bound, definitions)
        return digest if again is bound else self.record(again)

    # -------------------------------------------------------------- recording

    def document(self, bound: BoundPlan) -> tuple[str, dict[str, bytes]]:
        """A plan's digest, and the document that records it as a whole."""
        plain = replace(bound, first=frozenset()) if bound.first else bound
        recorded = RecordedPlan("", 0, plain.to_bytes())
        _remember(recorded.digest, plain, 0)
        return recorded.digest, {PLANS + recorded.digest: recorded.to_bytes()}

    def record(self, bound: BoundPlan) -> str:
        """Record a plan; returns its digest. May be repeated."""
        digest, document = self.document(bound)
        commit(self.store, lambda _: (document, ()))
        return digest

    def record_after(self, before: str, change: BoundChange) -> tuple[str, BoundPlan]:
        """Record the plan that a change makes of another one: as that change, and now and then as a whole, so that
        a reader has few changes to make."""
        known = self._known(before)
        bound, changes = known.plan.after(change), known.changes + 1
        if changes > CHANGES:
            return self.record(bound), bound
        recorded = RecordedPlan(before, changes, change.to_bytes())
        _remember(recorded.digest, bound, changes)
        commit(self.store, lambda _: ({PLANS + recorded.digest: recorded.to_bytes()}, ()))
        return recorded.digest, bound

    def load(self, digest: str, *, first: bool = False) -> BoundPlan:
        """A recorded plan; ``first``: of which no step has kept anything yet."""
        found = self._known(digest).plan
        return replace(found, first=frozenset(found.plan.by_fingerprint)) if first else found

    def _known(self, digest: str) -> _KnownPlan:
        """The plan, from the last one before it that is known or recorded as a whole, by the changes since then."""
        changes: list[RecordedPlan] = []
        before = digest
        while (found := _decoded.get(before)) is None:
            recorded = self._recorded(before)
            if not recorded.before:
                found = _remember(before, recorded.whole(), 0)
                break
            changes.append(recorded)
            before = recorded.before
        plan = found.plan
        for change in reversed(changes):
            plan = change.after(plan)
        return _remember(digest, plan, changes[0].changes) if changes else found

    def _recorded(self, digest: str) -> RecordedPlan:
        document = self.store.metadata.documents(PLANS + digest)[1].get(PLANS + digest)
        if document is None:
            raise DamagedEntryError(
                f"plan {digest} is not recorded", hint="restore the store from a backup, or rebuild the views"
            )
        return RecordedPlan.from_bytes(digest, document)

    def last(self, group: str) -> tuple[str, BoundPlan] | None:
        """The group's last plan."""
        return self._loaded(lambda: next((digest for digest, _ in self._history(group)), None))

    def at(self, group: str, epoch: int) -> BoundPlan | None:
        """The plan whose tables hold the group's views as of an epoch; None where it is forgotten."""
        found = self.named_at(group, epoch)
        return None if found is None else found[1]

    def named_at(self, group: str, epoch: int) -> tuple[str, BoundPlan] | None:
        """The same plan with its digest."""
        return self._loaded(lambda: next((digest for digest, since in self._history(group) if since <= epoch), None))

    def _loaded(self, named: Callable[[], str | None]) -> tuple[str, BoundPlan] | None:
        """The plan that is named now, also if it is replaced and swept while we read."""
        while (digest := named()) is not None:
            try:
                return digest, self.load(digest)
            except DamagedEntryError:
                if named() == digest:
                    raise
        return None

    def group_document(self, group: str, digest: str, since: int | None = None) -> bytes:
        """Of a group's next plan. ``since``: the epoch from which on its tables hold the views;
        None: they are those of the plan before."""
        known = self._history(group)
        if since is None:
            history = [(digest, known[0][1]), *known[1:]]
        else:
            history = [(digest, since), *(one for one in known if one[1] < since)]
        return json.dumps(history[:REMEMBERED]).encode()

    def groups(self) -> list[str]:
        """The groups that have a plan, or had one that is not cleaned up."""
        left = [name.removeprefix(LEFT).rpartition("/")[0] for name in self.store.metadata.documents(LEFT)[1]]
        found = [name.removeprefix(GROUPS) for name in self.store.metadata.documents(GROUPS)[1]]
        return sorted({*found, *left})

    def is_joined(self, group: str) -> bool:
        """Whether views are about to become the group's own: its next epoch is theirs."""
        if PAUSES + group in self.store.metadata.documents(PAUSES)[1]:
            return True
        builds = (json.loads(document) for document in self.store.metadata.documents(BUILDS)[1].values())
        return any(build["target"] == group and build["joined"] is not None for build in builds)

    def _history(self, group: str) -> Sequence[tuple[str, int]]:
        known = self._histories.get(group)
        if known is not None and known[0] == self.store.metadata.version():
            return known[1]
        counter, found = self.store.metadata.documents(GROUPS + group)
        recorded = found.get(GROUPS + group)
        history = () if recorded is None else tuple((digest, since) for digest, since in json.loads(recorded))
        self._histories[group] = counter, history
        return history

    def pause(self, group: str) -> None:
        """Refuse to begin epochs of the group, until :meth:`resume`."""
        commit(self.store, lambda _: ({PAUSES + group: b"{}"}, ()))

    def resume(self, group: str | None = None) -> None:
        """Let epochs of the group begin again; without a name, of every group."""
        paused = self.store.metadata.documents(PAUSES)[1]
        gone = [name for name in paused if group is None or name == PAUSES + group]
        if gone:
            commit(self.store, lambda _: ({}, gone))

    def left(self, group: str) -> list[str]:
        """The plans that a group has left, and of which something may still be stored."""
        prefix = left_document(group, "")
        return [name.removeprefix(prefix) for name in self.store.metadata.documents(prefix)[1]]

    def running(self, group: str) -> list[BoundPlan]:
        """The plans that epochs of a group may still run."""
        last = self.last(group)
        return [*([] if last is None else [last[1]]), *map(self.load, self.left(group))]

    def sweep(self, kept: Iterable[str]) -> None:
        """Forget recorded plans but these and those of groups."""
        known = {digest for group in self.groups() for digest, _ in self._history(group)}.union(kept)
        known |= {name.rpartition("/")[2] for name in self.store.metadata.documents(LEFT)[1]}
        _, found = self.store.metadata.documents(PLANS)
        before = {name.removeprefix(PLANS): plan_before(document) for name, document in found.items()}
        for digest in list(known):
            while (digest := before.get(digest, "")) and digest not in known:
                known.add(digest)
        stale = [name for name in found if name.removeprefix(PLANS) not in known]
        if stale:
            commit(self.store, lambda _: ({}, stale))


def _meaning(one: Maintained) -> object:
    return one.id, one.name, one.sql if isinstance(one, ViewDefinition) else one.columns


def planner() -> str:
    """What plans views: another version of Everview, with other rules, may plan them otherwise."""
    return "/".join((__version__, str(FORMAT), *(rule.__name__ for rule in rules.RULES)))


def left_document(group: str, digest: str) -> str:
    """The name of the document that records that a group has left a plan."""
    return f"{LEFT}{group}/{digest}"


def commit(store: Store, changes: Callable[[int], tuple[Mapping[str, bytes], Collection[str]]]) -> None:
    """Write documents, again if another process wrote others in between."""
    rounds = Rounds("documents of the store cannot be written")
    while True:
        counter = store.metadata.version()
        rounds.changed(counter)
        puts, deletes = changes(counter)
        try:
            store.metadata.commit(counter, puts, deletes)
            return
        except ConflictError:
            continue


@dataclass(frozen=True)
class _KnownPlan:
    """A plan that is decoded."""

    plan: BoundPlan
    changes: int
    """How many changes it is recorded away from a whole plan."""


_decoded: OrderedDict[str, _KnownPlan] = OrderedDict()


def _remember(digest: str, bound: BoundPlan, changes: int) -> _KnownPlan:
    found = _decoded[digest] = _KnownPlan(bound, changes)
    with suppress(KeyError):  # another thread may have forgotten it already
        _decoded.move_to_end(digest)
        while len(_decoded) > KEPT:
            _decoded.popitem(last=False)
    return found
