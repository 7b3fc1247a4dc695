"""Ways to break a rule.

A rule is broken where it decides that something makes no difference, or by one more change of every node.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from everview.plan import rules
from everview.plan.relations import Relation
from everview.plan.rules.trees import bottom_up
from tests.mutations.mutant import Fault, instead
from tests.mutations.targets import Rule


def module(rule: Rule) -> ModuleType:
    """The module of a rule, whose name is its function's."""
    return import_module(f"everview.plan.rules.{rule.value}")


COMMA = "SELECT o.id, v.b FROM orders AS o, visits AS v WHERE o.customer = v.a AND o.amount < v.b"


def ruled(rule: Rule, change: Callable[[Relation], Relation]) -> Fault:
    """A rule that does something else to every node as well."""

    def around(found: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(_after(one, change) if one.__name__ == rule.value else one for one in found)

    return instead(rules, "RULES", around(rules.RULES))


def _after(
    real: Callable[[Relation], Relation], change: Callable[[Relation], Relation]
) -> Callable[[Relation], Relation]:
    done: list[Relation] = []

    def rule(relation: Relation) -> Relation:
        found = real(relation)
        if found is not relation or any(found is one for one in done):
            return found
        done.append(bottom_up(found, change))
        return done[-1]

    rule.__name__ = real.__name__
    return rule
