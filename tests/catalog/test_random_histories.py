"""Two catalogs on one store, in step with a model in plain dictionaries.

The model knows names only: what is there, who reads whom, and every id ever seen. After
each step both catalogs must say what the model says, whichever of them made the change. A third one looks now and then;
what they have put together from changes is what a new one reads.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from everview.catalog import MAIN, NEW, Catalog, Draft, GroupKind, IndexDefinition, ViewDefinition, ViewStatus
from everview.change.schema import Column, Schema
from everview.change.types import VARCHAR
from everview.errors import DefinitionError, DuplicateObjectError, UnknownObjectError
from everview.store.contract import StateTable
from tests.catalog.memory import MemoryMetadata

ORDERS = Schema.of({"id": "BIGINT"}, key=["id"])
NAMES = st.sampled_from(["a", "A", "b", "c", "C", "d"])
WHO = st.integers(0, 1)


class TwoCatalogs(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        metadata = MemoryMetadata()
        self.metadata = metadata
        self.catalogs = [Catalog(metadata), Catalog(metadata)]
        self.late = Catalog(metadata)
        self.tables: dict[str, int] = {}
        """Folded name to the number of columns."""
        self.views: dict[str, set[str]] = {}
        """Folded name to what it reads."""
        self.seen: set[int] = set()
        self.version = 0

    def readers(self, name: str) -> set[str]:
        direct = {view for view, reads in self.views.items() if name in reads}
        return direct.union(*(self.readers(view) for view in direct))

    def ids(self, *ids: int) -> None:
        assert self.seen.isdisjoint(ids) and len(set(ids)) == len(ids)
        self.seen.update(ids)

    @rule(who=WHO, name=NAMES)
    def create_table(self, who: int, name: str) -> None:
        try:
            self.ids(self.catalogs[who].create_table(name, ORDERS).id)
        except DuplicateObjectError:
            assert name.lower() in self.tables.keys() | self.views.keys()
        else:
            assert name.lower() not in self.tables.keys() | self.views.keys()
            self.tables[name.lower()] = 1

    @rule(who=WHO, name=NAMES)
    def add_column(self, who: int, name: str) -> None:
        columns = self.tables.get(name.lower())
        try:
            self.catalogs[who].add_column(name, Column(f"c{columns}", VARCHAR))
        except UnknownObjectError:
            assert columns is None
        else:
            assert columns is not None
            self.tables[name.lower()] = columns + 1

    @rule(who=WHO, name=NAMES, reads=st.sets(NAMES, max_size=2))
    def create_view(self, who: int, name: str, reads: set[str]) -> None:
        catalog = self.catalogs[who]
        there = {fold for fold in {read.lower() for read in reads} if fold in self.tables or fold in self.views}
        depends = tuple(catalog.table(r).id if r in self.tables else catalog.view(r).id for r in sorted(there))
        state = (StateTable(NEW, "view", MAIN), StateTable(NEW, "delta", MAIN))
        try:
            view = catalog.create_view(ViewDefinition(name, "SELECT …", depends_on=depends, state=state))
        except DuplicateObjectError:
            assert name.lower() in self.tables.keys() | self.views.keys()
        else:
            assert name.lower() not in self.tables.keys() | self.views.keys()
            self.ids(view.id, *(table.id for table in view.state))
            self.views[name.lower()] = there

    @rule(who=WHO, name=NAMES, status=st.sampled_from([ViewStatus.LIVE, ViewStatus.BUILDING]))
    def alter_view(self, who: int, name: str, status: ViewStatus) -> None:
        try:
            self.catalogs[who].change(lambda draft: draft.alter_view(name, status=status))
        except UnknownObjectError:
            assert name.lower() not in self.views

    @rule(who=WHO, name=NAMES)
    def join_a_group_of_its_own(self, who: int, name: str) -> None:
        def work(draft: Draft) -> None:
            view = draft.view(name)
            draft.alter_view(name, group=draft.fresh_group(GroupKind.LAZY).name)
            if view.group != MAIN:
                draft.drop_group(view.group)

        try:
            self.catalogs[who].change(work)
        except UnknownObjectError:
            assert name.lower() not in self.views

    @rule(who=WHO, name=NAMES, on=NAMES)
    def create_index(self, who: int, name: str, on: str) -> None:
        catalog = self.catalogs[who]
        if on.lower() in self.views:
            view = catalog.view(on)
            index = IndexDefinition(f"{name} on {on}", view.id, ("id",), view.group)
            try:
                catalog.create_index(index)
            except DuplicateObjectError:
                assert catalog.index(index.name).on == view.id

    @rule()
    def look_late(self) -> None:
        assert contents(self.late) == contents(Catalog(self.metadata))

    @rule(who=WHO, name=NAMES, cascade=st.booleans(), table=st.booleans())
    def drop(self, who: int, name: str, cascade: bool, table: bool) -> None:
        kind = self.tables if table else self.views
        gone = {name.lower()} | self.readers(name.lower())
        drop = self.catalogs[who].drop_table if table else self.catalogs[who].drop_view
        try:
            dropped = drop(name, cascade)
        except UnknownObjectError:
            assert name.lower() not in kind
        except DefinitionError:
            assert len(gone) > 1 and not cascade
        else:
            assert name.lower() in kind and (cascade or len(gone) == 1)
            assert {found.name.lower() for found in dropped} == gone
            for fold in gone:
                self.tables.pop(fold, None)
                self.views.pop(fold, None)

    @invariant()
    def both_say_what_the_model_says(self) -> None:
        if not hasattr(self, "catalogs"):
            return
        assert self.catalogs[0].version() == self.catalogs[1].version() >= self.version
        self.version = self.catalogs[0].version()
        for catalog in self.catalogs:
            known = {table.id: table.name.lower() for table in catalog.tables()}
            assert {t.name.lower(): len(t.schema.columns) for t in catalog.tables()} == self.tables
            known |= {view.id: view.name.lower() for view in catalog.views()}
            assert {v.name.lower(): {known[id] for id in v.depends_on} for v in catalog.views()} == self.views
            for table in catalog.tables():
                assert catalog.table_at(table.id, self.version).schema == table.schema
            for view in catalog.views():
                assert catalog.view_at(view.id, self.version) == view
        assert contents(self.catalogs[0]) == contents(self.catalogs[1]) == contents(Catalog(self.metadata))
        self.nothing_that_was_numbered_is_lost()

    def nothing_that_was_numbered_is_lost(self) -> None:
        """Tables and state tables are in the catalog or discarded, and never both."""
        catalog = self.catalogs[0]
        here = {t.id for t in catalog.tables()} | {t.id for v in catalog.views() for t in v.state}
        discarded = {found.id for found in catalog.discarded()}
        dropped_views = {id for id in self.seen if id not in here and id not in discarded}
        assert here.isdisjoint(discarded)
        assert all(catalog.view_history(id) for id in dropped_views)


def contents(catalog: Catalog) -> list[object]:
    """All that can be asked of the definitions of a catalog."""
    found = catalog.definitions()
    groups = [group.name for group in found.groups()]
    ids = [*(table.id for table in found.tables()), *(one.id for one in found.derived())]
    return [
        found.version,
        found.tables(),
        found.derived(),
        found.groups(),
        found.names(),
        [(group, found.views(group), set(found.live(group))) for group in groups],
        found.live_groups(),
        set(found.building()),
        [[derived.id for derived in found.dependents(id)] for id in ids],
        [found.indexes(id) for id in ids],
        [found.find(name.upper()) for name in found.names()],
    ]


TestTwoCatalogs = TwoCatalogs.TestCase
TestTwoCatalogs.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
