"""CREATE and DROP of views, materialized and not.

A view is compiled inside the change that records it, so what it was compiled
against is what is defined when it is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from everview.catalog import MAIN, Definitions, Draft, GroupKind, NamedQuery, ViewDefinition
from everview.catalog.compiling import define_query, define_view
from everview.catalog.draft import Dropped
from everview.client.maintenance import leave_group
from everview.client.reading import SessionContext
from everview.client.result import Result
from everview.client.statements.dropping import drop_object
from everview.client.statements.placing import place
from everview.client.validating import ViewTrial
from everview.errors import DefinitionError, EverviewError
from everview.plan.compile import DIFFERS, CompiledView, plan_views
from everview.sql.statements import CreateMaterializedView, CreateView, DropView, OwnWords

_Created: TypeAlias = tuple[ViewDefinition | None, CompiledView | None, ViewDefinition | None, tuple[str, ...]]
"""What was recorded, what it compiled to, the view that it replaces, and notices."""


def create_materialized(context: SessionContext, statement: CreateMaterializedView) -> Result:
    view, compiled, replaced, notices = context.catalog.change(lambda draft: _create(context, draft, statement))
    if view is not None:
        context.clean_up()
        context.maintenance.created(view, compiled, replaced)
    return Result(notices=notices)


def create_together(context: SessionContext, statements: Sequence[CreateMaterializedView]) -> Result:
    """Create views one after another in one change of the catalog, so that each costs the same however
    many there are. Those before one that is refused are created all the same."""
    at = 0

    def work(draft: Draft) -> list[_Created]:
        nonlocal at
        found: list[_Created] = []
        for at, statement in enumerate(statements):  # noqa: B007 (used by the handler below)
            found.append(_create(context, draft, statement))
        at = len(statements)
        return found

    try:
        created = context.catalog.change(work)
    except EverviewError as error:
        if at < len(statements):
            if at:
                create_together(context, statements[:at])
            place(error, statements[at])
        raise
    context.clean_up()
    for view, compiled, replaced, _ in created:
        if view is not None:
            context.maintenance.created(view, compiled, replaced)
    return Result(notices=[notice for *_, notices in created for notice in notices])


def _create(context: SessionContext, draft: Draft, statement: CreateMaterializedView) -> _Created:
    existing = draft.find(statement.name)
    if statement.if_not_exists and isinstance(existing, ViewDefinition):
        return None, None, None, (f"view {existing.name} exists already",)
    asked = with_session_options(context, statement)
    view, compiled = defined(context, draft, asked)
    view = replace(view, group=_group(draft, statement), options=dict(statement.options))
    notices = tuple(str(notice) for notice in compiled.notices)
    if not statement.or_replace or not isinstance(existing, ViewDefinition):
        return draft.create_view(view), compiled, None, notices
    replaced = draft.replace_view(view)
    leave_group(draft, existing)
    return replaced, compiled, existing, notices


def defined(
    context: SessionContext, definitions: Definitions, statement: CreateMaterializedView
) -> tuple[ViewDefinition, CompiledView]:
    """A view with a plan that was tried and agrees with DuckDB, or else in the user's own words."""
    view, compiled = define_view(statement, definitions, dialect=context.settings.dialect)
    if compiled.verbatim:
        plan_views([compiled])
        return replace(view, validated=VERBATIM), compiled
    try:
        verdict = context.validated(statement, compiled, definitions)
    except EverviewError:
        raise
    except Exception as error:  # what fails in planning, in whatever way, is not recorded
        verdict = ViewTrial(difference=f"the plan fails: {type(error).__name__}: {error}")
    if not verdict.difference:
        return replace(view, validated=str(verdict)), compiled
    words = statement.words or OwnWords(compiled.meaning)
    view, compiled = define_view(
        replace(statement, words=words), definitions, dialect=context.settings.dialect, instead=DIFFERS
    )
    return replace(view, validated=str(verdict)), compiled


VERBATIM = "evaluated in its own words"


def with_session_options(context: SessionContext, statement: CreateMaterializedView) -> CreateMaterializedView:
    """The statement with the session's settings where it says nothing itself."""
    options = {"on_reevaluation": context.settings.on_reevaluation, **statement.options}
    return replace(statement, options=options)


def _group(draft: Draft, statement: CreateMaterializedView) -> str:
    """The group that a view's options ask for; made where it is not there."""
    kind = GroupKind.LAZY if statement.options.get("refresh") == "lazy" else GroupKind.CONTINUOUS
    name = statement.options.get("group")
    if name is None:
        return MAIN if kind is GroupKind.CONTINUOUS else draft.fresh_group(kind).name
    group = draft.create_group(str(name), kind, if_not_exists=True)
    if "refresh" in statement.options and group.kind is not kind:
        raise DefinitionError(
            f"view {statement.name} cannot be {kind} in group {group.name}",
            detail=f"the views of the group are {group.kind}",
            hint=f"leave refresh out, or choose another group for {kind} views",
        )
    return group.name


def create_named(context: SessionContext, statement: CreateView) -> Result:
    def work(draft: Draft) -> tuple[str, ...]:
        existing = draft.find(statement.name)
        if statement.if_not_exists and isinstance(existing, NamedQuery):
            return (f"view {existing.name} exists already",)
        query = define_query(statement, draft, dialect=context.settings.dialect)
        if statement.or_replace and isinstance(existing, NamedQuery):
            draft.replace_query(query)
        else:
            draft.create_query(query)
        return ()

    return Result(notices=context.catalog.change(work))


def drop(context: SessionContext, statement: DropView) -> Result:
    kind = "materialized view" if statement.materialized else "view"

    def work(draft: Draft) -> Dropped:
        found = draft.find(statement.name)
        if isinstance(found, ViewDefinition) and not statement.materialized:
            raise DefinitionError(
                f"{found.name} is a materialized view", hint=f"write DROP MATERIALIZED VIEW {found.name}"
            )
        if isinstance(found, NamedQuery) and statement.materialized:
            raise DefinitionError(f"{found.name} is not materialized", hint=f"write DROP VIEW {found.name}")
        if statement.materialized:
            return draft.drop_view(statement.name, statement.cascade)
        return draft.drop_query(statement.name, statement.cascade)

    return drop_object(context, statement.name, kind, work, if_exists=statement.if_exists)
