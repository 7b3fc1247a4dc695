"""Views on their way from text to plan: the relation as built, after every rule that changed
it, and the plan as EXPLAIN shows it. tests/scripts/plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from everview.change.schema import Column
from everview.plan.compile import CompiledView, compile_index, compile_view, plan_views
from everview.plan.explain import explain_text
from everview.plan.relations import Relation, outline
from everview.sql.check import check
from everview.sql.dialects import to_sql
from everview.sql.namespace import NamedRelation, Names
from everview.sql.parse import parse
from everview.sql.statements import CreateIndex, CreateMaterializedView, CreateTable, CreateView
from tests.scripts.golden import run_script, scripts


@pytest.mark.parametrize("path", scripts("plan"), ids=lambda path: path.stem)
def test_plan(path: Path) -> None:
    run_script(path, Planner())


class Planner:
    """Defines tables and views, and prints the way of each materialized view."""

    def __init__(self) -> None:
        self.relations: dict[str, NamedRelation] = {}
        self.views: list[CompiledView] = []

    def __call__(self, text: str) -> str:
        return "\n".join(self._run(statement) for statement in parse(text))

    def _run(self, statement: object) -> str:
        if isinstance(statement, CreateTable):
            self.relations[statement.name] = NamedRelation(
                statement.name, "table", statement.columns, statement.key, bag=statement.hidden_key
            )
            return f"table {statement.name}"
        names = Names(self.relations.values())
        if isinstance(statement, CreateView):
            found = check(statement.query, names, statement.source)
            columns = tuple(Column(name, type) for name, type in found.columns)
            self.relations[statement.name] = NamedRelation(
                statement.name, "named query", columns, query=to_sql(statement.query)
            )
            return f"view {statement.name}"
        assert isinstance(statement, CreateMaterializedView | CreateIndex)
        return self._compiled(statement, names)

    def _compiled(self, statement: CreateMaterializedView | CreateIndex, names: Names) -> str:
        lines: list[str] = []

        def trace(rule: str, relation: Relation) -> None:
            lines.append(f"{rule}:\n" + "\n".join("  " + line for line in outline(relation).splitlines()))

        if isinstance(statement, CreateIndex):
            view = compile_index(statement, names, trace)
        else:
            view = compile_view(statement, names, trace)
            self.relations[view.name] = view.named
        self.views.append(view)
        lines += [f"notice: {notice}" for notice in view.notices]
        shown = explain_text(plan_views(self.views), [view.name])
        lines.append("plan:\n" + "\n".join("  " + line if line else "" for line in shown.splitlines()))
        return "\n".join(lines)
