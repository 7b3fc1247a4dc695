"""Faults are caught before a view goes live, in every operator, rule, builder and stage of reading."""

from __future__ import annotations

import pkgutil
from collections import Counter

import pytest

import everview.plan.build
from everview.operators.stages import WORKERS
from everview.plan.maintenance.operator_definitions import IndexOperator, ViewOperator
from everview.plan.rules import RULES
from tests.mutations.catalogue import MISSED, MUTANTS, NOT_A_QUERY
from tests.mutations.judging import forgotten, judged, judgements
from tests.mutations.mutant import Mutant
from tests.mutations.report import is_caught, share, table
from tests.mutations.targets import NO_BUILDERS, TARGETS, Builder, Rule

VIEWS = sorted({view for mutant in MUTANTS for view in mutant.views})
_MISTAKES = ("AttributeError", "TypeError:", "NameError", "UnboundLocalError", "KeyError", "IndexError")
"""What a fault that is itself wrongly written ends in: no proof of anything."""


def named(mutant: Mutant) -> str:
    return f"{mutant.breaks.name.lower()}: {mutant.name}"


@pytest.mark.parametrize("view", VIEWS)
def test_without_a_fault_every_view_is_validated(view: str) -> None:
    with forgotten():
        found = judged(view)
    assert not found.caught, found
    assert found.rounds > 2


@pytest.mark.parametrize("mutant", [pytest.param(one, id=named(one)) for one in MUTANTS])
def test_a_fault_is_caught_unless_it_is_listed_with_a_reason(mutant: Mutant) -> None:
    found = judgements(mutant)
    mistakes = [one.trial for one in found if any(f" {word}" in one.trial for word in _MISTAKES)]
    assert not mistakes
    assert is_caught(found) == ((mutant.breaks, mutant.name) not in MISSED), found


def test_every_operator_rule_builder_and_stage_of_reading_is_broken_by_some_mutant() -> None:
    broken = {mutant.breaks for mutant in MUTANTS}
    targets = {target for targets in TARGETS.values() for target in targets}
    assert targets - broken == NOT_A_QUERY.keys()
    assert WORKERS[IndexOperator] is WORKERS[ViewOperator]


def test_the_targets_are_those_of_the_code() -> None:
    assert [rule.value for rule in Rule] == [rule.__name__ for rule in RULES]
    modules = {found.name for found in pkgutil.iter_modules(everview.plan.build.__path__)}
    assert {builder.value for builder in Builder} == modules - NO_BUILDERS.keys()


def test_mutants_have_different_names_and_those_that_are_missed_exist() -> None:
    names = Counter((mutant.breaks, mutant.name, mutant.views) for mutant in MUTANTS)
    assert [name for name, count in names.items() if count > 1] == []
    assert MISSED.keys() <= {(mutant.breaks, mutant.name) for mutant in MUTANTS}


def test_the_report_counts_what_each_safeguard_notices() -> None:
    some = [mutant for mutant in MUTANTS if mutant.breaks is Rule.MERGE_FILTERS][:1]
    some += [mutant for mutant in MUTANTS if (mutant.breaks, mutant.name) in MISSED][:1]
    found = {mutant: judgements(mutant) for mutant in some}
    assert "| rules | merge filters | 1 | 0 | 0 | 1 | 0 |" in table(found)
    assert share(found) == "1 of 2 mutants are caught: 50.0 %"
