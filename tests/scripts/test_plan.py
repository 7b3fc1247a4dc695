"""Views on their way from text to plan: the relation as built, after every rule that changed
it, and the plan as EXPLAIN shows it. tests/scripts/plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from everview.errors import DefinitionError
from everview.plan.compile import CompiledView, compile_view, plan_views
from everview.plan.explain import explain_text
from everview.plan.relations import Relation as PlanRelation
from everview.plan.relations import outline
from everview.sql.namespace import Names, Relation
from everview.sql.parse import parse
from everview.sql.statements import CreateMaterializedView, CreateTable, CreateView
from tests.scripts.golden import run_script, scripts


@pytest.mark.parametrize("path", scripts("plan"), ids=lambda path: path.stem)
def test_plan(path: Path) -> None:
    run_script(path, Planner())


class Planner:
    """Defines tables and views, and prints the way of each materialized view."""

    def __init__(self) -> None:
        self.relations: dict[str, Relation] = {}
        self.views: list[CompiledView] = []

    def __call__(self, text: str) -> str:
        return "\n".join(self._run(statement) for statement in parse(text))

    def _run(self, statement: object) -> str:
        if isinstance(statement, CreateTable):
            columns = tuple(c for c in statement.schema.columns if not c.name.startswith("__"))
            key = () if statement.hidden_key else statement.schema.key
            self.relations[statement.name] = Relation(statement.name, "table", columns, key, bag=statement.hidden_key)
            return f"table {statement.name}"
        if isinstance(statement, CreateView):
            raise DefinitionError("named queries are tried in tests/sql")
        assert isinstance(statement, CreateMaterializedView)
        return self._compiled(statement)

    def _compiled(self, statement: CreateMaterializedView) -> str:
        lines: list[str] = []

        def trace(rule: str, relation: PlanRelation) -> None:
            lines.append(f"{rule}:\n" + "\n".join("  " + line for line in outline(relation).splitlines()))

        view = compile_view(statement, Names(self.relations.values()), trace)
        self.relations[view.name] = view.named
        self.views.append(view)
        lines += [f"notice: {notice}" for notice in view.notices]
        shown = explain_text(plan_views(self.views), [view.name])
        lines.append("plan:\n" + "\n".join("  " + line if line else "" for line in shown.splitlines()))
        return "\n".join(lines)
