"""Views by name: defining one, finding its plan, reading its rows.

One sentence: a view is a definition in the catalog and a state table in the store, and a
read takes both at one committed epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from everview.catalog import Catalog
from everview.catalog.draft import Draft
from everview.catalog.objects import MAIN, NEW, ViewDefinition, ViewStatus
from everview.errors import DefinitionError
from everview.operators.plan import AggregatePlan
from everview.store.contract import Commit, StateReader, StateTable, Store


def create_aggregate_view(
    store: Store,
    name: str,
    table: str,
    *,
    group_by: Sequence[str],
    count: str,
    sums: Mapping[str, str],
    group: str = MAIN,
) -> AggregatePlan:
    """Define ``SELECT group_by…, count(*) AS count, sum(column) AS name… GROUP BY group_by…``.
    Its group must not have moved yet: the view is computed from the beginning of the log."""
    last = store.views.committed(group)
    if last.epoch or store.views.begun(group) is not None:
        raise DefinitionError(
            f"view {name} cannot join group {group}",
            detail=f"the group is at epoch {last.epoch}, and the view would lack what came before",
            hint="create the view in a group of its own",
        )

    def work(draft: Draft) -> ViewDefinition:
        base = draft.table(table)
        state = StateTable(NEW, name, group)
        plan = AggregatePlan(name, base, state, tuple(group_by), count, tuple(sums.items()))
        return draft.create_view(
            ViewDefinition(
                name,
                plan.sql,
                group,
                depends_on=(base.id,),
                plan=plan.own_part(),
                state=(state,),
                status=ViewStatus.LIVE,
            )
        )

    Catalog(store.metadata, store.views).change(work)
    return find_view(store, name)


def find_view(store: Store, name: str) -> AggregatePlan:
    """The plan of a view."""
    known = Catalog(store.metadata, store.views).definitions()
    view = known.view(name)
    return AggregatePlan.of(view.name, view.plan, known.table_by_id(view.depends_on[0]), view.state[0])


def read_view(reader: StateReader, view: AggregatePlan) -> tuple[Commit, pa.Table]:
    """All rows of a view as of the last commit, and that commit. The reader is a snapshot, or
    nothing commits meanwhile."""
    commit = reader.committed(view.state.group)
    return commit, view.target.table(reader.scan(view.state, b"", commit.epoch))
