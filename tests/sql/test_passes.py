"""The passes over a query: the page lists them, each has a reason, and their order is the one in which they run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from everview.sql import constants
from everview.sql.check import check
from everview.sql.passes import NAME_PASSES, PASSES, SELECT_PASSES, Pass
from tests.sql.samples import namespace, query_of

TUPLES: dict[str, tuple[Pass[Any], ...]] = {
    "PASSES": PASSES,
    "NAME_PASSES": NAME_PASSES,
    "SELECT_PASSES": SELECT_PASSES,
}
PAGE = Path(__file__).parents[2] / "docs" / "sql.md"
ROW = re.compile(r"^\| `(?P<name>\w+)`(?P<resolves> \*)? \| (?P<what>.+) \| (?P<reason>.+) \|$", re.M)
PER_SELECT = "rewrite_selects"


def section() -> str:
    return PAGE.read_text("utf-8").partition("## The passes over a query\n")[2].partition("\n## ")[0]


def test_the_page_lists_the_passes_in_their_order_with_their_reasons() -> None:
    listed = [(row["name"], bool(row["resolves"]), row["reason"]) for row in ROW.finditer(section())]
    assert listed == [(step.name, step.resolves, step.reason) for steps in TUPLES.values() for step in steps]
    assert [name for name in TUPLES if f"`{name}`" in section()] == list(TUPLES)


@pytest.mark.parametrize("steps", TUPLES.values(), ids=TUPLES)
def test_every_pass_has_a_reason_and_a_name_of_its_own(steps: tuple[Pass[Any], ...]) -> None:
    assert all(len(step.reason.split()) > 3 for step in steps)
    assert len({step.name for step in steps}) == len(steps)


def ran(text: str, monkeypatch: pytest.MonkeyPatch, *, allow_volatile: bool = False) -> list[str]:
    """The passes that run while a query is checked, with those of its first SELECT only."""
    names: list[str] = []

    def noted(step: Pass[Any]) -> Pass[Any]:
        def function(state: Any) -> None:
            names.append(step.name)
            step.function(state)

        return Pass(function, step.reason, step.resolves)

    with monkeypatch.context() as patch:
        for name, steps in TUPLES.items():
            patch.setattr(f"everview.sql.passes.{name}", tuple(map(noted, steps)))
        check(query_of(text), namespace(), text, allow_volatile=allow_volatile)
    return names


def test_the_passes_run_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    constants._KNOWN.clear()
    outer, names, selects = ([step.name for step in steps] for steps in TUPLES.values())
    at, inner = outer.index("qualify_columns") + 1, names.index(PER_SELECT) + 1
    whole = [*outer[:at], *names[:inner], *selects, *names[inner:], *outer[at:]]
    assert ran("SELECT id FROM orders WHERE amount > 10", monkeypatch) == whole
    recalled = [step.name for step in PASSES if not step.resolves]
    assert ran("SELECT id FROM orders WHERE amount > 25", monkeypatch) == recalled


def test_a_view_is_rehearsed_though_a_select_was_resolved_that_differs_in_a_constant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    constants._KNOWN.clear()
    assert "rehearse" in ran("SELECT id FROM orders WHERE amount > 10", monkeypatch, allow_volatile=True)
    assert "rehearse" in ran("SELECT id FROM orders WHERE amount > 25", monkeypatch)
    assert "rehearse" not in ran("SELECT id FROM orders WHERE amount > 30", monkeypatch)
