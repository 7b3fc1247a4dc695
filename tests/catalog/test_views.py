"""Views, what they read, their state tables, and groups."""

from __future__ import annotations

from dataclasses import replace

import pytest

from everview.catalog import MAIN, NEW, Catalog, Draft, Group, GroupKind, ViewDefinition, ViewStatus
from everview.change.schema import Schema
from everview.errors import DefinitionError, DuplicateObjectError, UnknownObjectError
from everview.store.contract import Metadata, StateTable, Table

ORDERS = Schema.of({"id": "BIGINT", "customer": "INTEGER"}, key=["id"])


@pytest.fixture
def orders(catalog: Catalog) -> Table:
    return catalog.create_table("orders", ORDERS)


def chain(catalog: Catalog, *names: str) -> list[ViewDefinition]:
    """Views of which each reads the one before, the first one the table."""
    views: list[ViewDefinition] = []
    below = catalog.table("orders").id
    for name in names:
        views.append(catalog.create_view(ViewDefinition(name, "SELECT …", depends_on=(below,))))
        below = views[-1].id
    return views


def state_ids(view: ViewDefinition) -> list[int]:
    return [table.id for table in view.state]


def test_a_view_comes_back_as_it_was_defined(catalog: Catalog, metadata: Metadata, orders: Table) -> None:
    view = catalog.create_view(
        ViewDefinition(
            "Totals",
            "SELECT customer, count(*) AS „n“ FROM orders GROUP BY customer",
            depends_on=(orders.id,),
            fingerprint="abc",
            plan=bytes(range(256)),
            state=(StateTable(NEW, "view", MAIN), StateTable(NEW, "delta", MAIN)),
            options={"refresh": "lazy", "parts": 4, "exact": True, "limit": None, "ratio": 0.5},
        )
    )
    assert (view.version, view.created, view.status) == (catalog.version(), 1234.5, ViewStatus.BUILDING)
    assert len({orders.id, view.id, *state_ids(view)}) == 4
    assert Catalog(metadata).view("totals") == view
    assert Catalog(metadata).views() == (view,)


def test_a_view_reads_only_what_is_there(catalog: Catalog, orders: Table) -> None:
    catalog.drop_table("orders")
    catalog.create_table("orders", ORDERS)
    with pytest.raises(UnknownObjectError, match=f"view late reads the table or view with the id {orders.id}"):
        catalog.create_view(ViewDefinition("late", "SELECT …", depends_on=(orders.id,)))


def test_what_views_read_cannot_be_dropped_alone(catalog: Catalog, orders: Table) -> None:
    first, second = chain(catalog, "first", "second")
    with pytest.raises(DefinitionError, match=r"table orders cannot be dropped\n.*depend on it: first, second"):
        catalog.drop_table("orders")
    with pytest.raises(DefinitionError, match=r"view first cannot be dropped\n.*depend on it: second"):
        catalog.drop_view("first")
    assert catalog.views() == (first, second)
    assert catalog.drop_view("second") == (second,)
    assert catalog.drop_view("first") == (first,)


def test_cascade_drops_readers_before_what_they_read(catalog: Catalog, orders: Table) -> None:
    first, second, third = chain(catalog, "first", "second", "third")
    other = catalog.create_view(ViewDefinition("other", "SELECT 1"))
    assert catalog.drop_table("orders", cascade=True) == (third, second, first, orders)
    assert catalog.views() == (other,)


def test_dependents_follow_what_is_read_not_the_age(catalog: Catalog, orders: Table) -> None:
    old = catalog.create_view(ViewDefinition("old", "SELECT 1"))
    (young,) = chain(catalog, "young")
    old = catalog.replace_view(ViewDefinition("old", "SELECT …", depends_on=(young.id,)))
    assert catalog.definitions().dependents(orders.id) == (young, old)
    assert catalog.drop_table("orders", cascade=True) == (old, young, orders)


def test_a_replaced_view_keeps_its_id_its_spelling_and_its_birthday(metadata: Metadata) -> None:
    clock = iter([10.0, 20.0])
    catalog = Catalog(metadata, clock=lambda: next(clock))
    old = catalog.create_view(ViewDefinition("Totals", "SELECT 1", state=(StateTable(NEW, "view", MAIN),)))
    new = catalog.replace_view(ViewDefinition("TOTALS", "SELECT 2", state=(StateTable(NEW, "view", MAIN),)))
    assert (new.id, new.name, new.created) == (old.id, "Totals", 10.0)
    assert (new.sql, new.version) == ("SELECT 2", old.version + 1)
    assert catalog.discarded() == old.state
    assert catalog.view("totals") == new


def test_a_view_that_others_read_cannot_be_replaced(catalog: Catalog, orders: Table) -> None:
    first, _ = chain(catalog, "first", "second")
    with pytest.raises(DefinitionError, match=r"view first cannot be replaced\n.*depend on it: second"):
        catalog.replace_view(ViewDefinition("first", "SELECT 2"))
    assert catalog.view("first") == first


def test_a_view_cannot_read_itself(catalog: Catalog) -> None:
    view = catalog.create_view(ViewDefinition("loop", "SELECT 1"))
    with pytest.raises(DefinitionError, match="view loop cannot read itself"):
        catalog.replace_view(replace(view, depends_on=(view.id,)))


def test_a_view_goes_live_without_a_new_meaning(catalog: Catalog, orders: Table) -> None:
    first, second = chain(catalog, "first", "second")
    live = catalog.change(lambda draft: draft.alter_view("first", status=ViewStatus.LIVE))
    assert live == replace(first, status=ViewStatus.LIVE, version=catalog.version())
    assert catalog.views() == (live, second)


def test_no_view_is_defined_as_dropped(catalog: Catalog) -> None:
    with pytest.raises(DefinitionError, match="cannot be defined as dropped"):
        catalog.create_view(ViewDefinition("v", "SELECT 1", status=ViewStatus.DROPPED))
    catalog.create_view(ViewDefinition("v", "SELECT 1"))
    with pytest.raises(DefinitionError, match="cannot be altered to be dropped"):
        catalog.change(lambda draft: draft.alter_view("v", status=ViewStatus.DROPPED))


# ------------------------------------------------------------------ state tables


def test_a_shared_state_table_is_discarded_with_its_last_view(catalog: Catalog) -> None:
    first = catalog.create_view(ViewDefinition("first", "SELECT 1", state=(StateTable(NEW, "delta", MAIN),)))
    second = catalog.create_view(
        ViewDefinition("second", "SELECT 2", state=(*first.state, StateTable(NEW, "view", MAIN)))
    )
    assert second.state[0] == first.state[0]
    catalog.drop_view("first")
    assert catalog.discarded() == ()
    catalog.drop_view("second")
    assert set(catalog.discarded()) == set(second.state)


def test_a_state_table_nobody_knows_is_refused(catalog: Catalog) -> None:
    with pytest.raises(UnknownObjectError, match="view v names a state table 99 that is not there"):
        catalog.create_view(ViewDefinition("v", "SELECT 1", state=(StateTable(99, "delta", MAIN),)))


def test_a_plan_may_name_its_state_tables_before_the_view_exists(catalog: Catalog) -> None:
    def work(draft: Draft) -> ViewDefinition:
        table = draft.number_state(StateTable(NEW, "delta", MAIN))
        return draft.create_view(ViewDefinition("v", "SELECT 1", plan=b"%d" % table.id, state=(table,)))

    view = catalog.change(work)
    assert view.plan == b"%d" % view.state[0].id


def test_a_view_that_joins_a_group_takes_its_state_along(catalog: Catalog) -> None:
    catalog.create_group("build-1", "building")
    view = catalog.create_view(
        ViewDefinition("v", "SELECT 1", group="build-1", state=(StateTable(NEW, "delta", "build-1"),))
    )
    joined = catalog.change(lambda draft: draft.alter_view("v", group="MAIN", status=ViewStatus.LIVE))
    assert joined.state == (replace(view.state[0], group=MAIN),)
    assert (joined.group, catalog.discarded()) == (MAIN, ())
    assert catalog.drop_group("build-1").kind is GroupKind.BUILDING


def test_a_view_that_joins_a_group_may_leave_its_state_for_what_the_group_has(catalog: Catalog) -> None:
    there = catalog.create_view(ViewDefinition("there", "SELECT 1", state=(StateTable(NEW, "delta", MAIN),)))
    catalog.create_group("build-1", "building")
    view = catalog.create_view(
        ViewDefinition("v", "SELECT 1", group="build-1", state=(StateTable(NEW, "delta", "build-1"),))
    )
    joined = catalog.change(lambda draft: draft.alter_view("v", group=MAIN, state=there.state))
    assert joined.state == there.state
    assert catalog.discarded() == view.state


def test_shared_state_cannot_move_to_another_group_under_the_other_view(catalog: Catalog) -> None:
    first = catalog.create_view(ViewDefinition("first", "SELECT 1", state=(StateTable(NEW, "delta", MAIN),)))
    catalog.create_view(ViewDefinition("second", "SELECT 2", state=first.state))
    catalog.create_group("lazy", "lazy")
    with pytest.raises(DefinitionError, match="view second shares it as delta of group main"):
        catalog.change(lambda draft: draft.alter_view("first", group="lazy"))


def test_a_view_that_shares_state_costs_the_same_however_many_share_it(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = catalog.create_view(ViewDefinition("v0", "SELECT 1", state=(StateTable(NEW, "delta", MAIN),)))
    compared = 0
    equal = StateTable.__eq__

    def counted(one: StateTable, other: object) -> bool:
        nonlocal compared
        compared += 1
        return equal(one, other)

    def work(draft: Draft) -> None:
        for number in range(1, 101):
            draft.create_view(ViewDefinition(f"v{number}", "SELECT 1", state=first.state))

    monkeypatch.setattr(StateTable, "__eq__", counted)
    catalog.change(work)
    assert compared <= 200


def test_a_view_and_its_state_belong_to_one_group() -> None:
    with pytest.raises(DefinitionError, match="that state table belongs to group other"):
        ViewDefinition("v", "SELECT 1", state=(StateTable(NEW, "delta", "other"),))
    with pytest.raises(DefinitionError, match="names a state table twice: a, a"):
        ViewDefinition("v", "SELECT 1", state=(StateTable(NEW, "a", MAIN), StateTable(NEW, "a", MAIN)))


# ------------------------------------------------------------------ groups


def test_the_main_group_is_always_there(catalog: Catalog) -> None:
    assert catalog.groups() == (Group(MAIN, GroupKind.CONTINUOUS),)
    with pytest.raises(DefinitionError, match="group main cannot be dropped"):
        catalog.drop_group("main")
    with pytest.raises(DuplicateObjectError, match="there is a group main already"):
        catalog.create_group("Main")


def test_groups_hold_views(catalog: Catalog) -> None:
    lazy = catalog.create_group("Nightly", "lazy")
    view = catalog.create_view(ViewDefinition("v", "SELECT 1", group="nightly"))
    assert view.group == "Nightly"
    assert (catalog.views("NIGHTLY"), catalog.views(MAIN)) == ((view,), ())
    assert catalog.groups() == (Group(MAIN), lazy)
    with pytest.raises(DefinitionError, match=r"group Nightly cannot be dropped\n.*depend on it: v"):
        catalog.drop_group("nightly")


def test_a_view_needs_a_group_that_is_there(catalog: Catalog) -> None:
    with pytest.raises(UnknownObjectError, match=r"there is no group mian\n.*did you mean main\?"):
        catalog.create_view(ViewDefinition("v", "SELECT 1", group="mian"))


def test_the_name_of_a_dropped_group_is_never_given_again(catalog: Catalog, metadata: Metadata) -> None:
    catalog.create_group("build-1", "building")
    assert catalog.create_group("BUILD-1", "lazy", if_not_exists=True).kind is GroupKind.BUILDING
    catalog.drop_group("build-1")
    with pytest.raises(DuplicateObjectError, match="there was a group Build-1 before"):
        Catalog(metadata).create_group("Build-1")
    catalog.create_group("build-10")
    catalog.create_group("build")

    def at_once(draft: Draft) -> None:
        draft.create_group("short")
        draft.drop_group("short")
        draft.create_group("short")

    with pytest.raises(DuplicateObjectError, match="there was a group short before"):
        catalog.change(at_once)


def test_a_group_needs_a_kind_and_a_plain_name(catalog: Catalog) -> None:
    with pytest.raises(DefinitionError, match="the kinds are continuous, lazy, building"):
        catalog.create_group("g", "eager")
    for name in ("", "a/b", "a b", "ä", "x" * 101):
        with pytest.raises(DefinitionError, match="is not a name for a group"):
            catalog.create_group(name)
