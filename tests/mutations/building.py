"""Ways to break a builder.

A builder is a module that leaves relations behind, and its faults leave others.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from everview.plan.relations import Relation
from tests.mutations.mutant import Fault, wrapped
from tests.mutations.targets import Builder


def module(builder: Builder) -> ModuleType:
    """The module that a builder is."""
    return import_module(f"everview.plan.build.{builder.value}")


def staged(builder: Builder, function: str, change: Callable[[Relation], Relation]) -> Fault:
    """A function of a builder that takes a scope further leaves another relation there."""

    def around(real: Callable[..., Any]) -> Callable[..., Any]:
        def step(scope: Any, *args: Any, **kwargs: Any) -> Any:
            found = real(scope, *args, **kwargs)
            scope.relation = change(scope.relation)
            return found

        return step

    return wrapped(module(builder), function, around)


def texts(old: str, new: str) -> Callable[[str], str]:
    """A text with some of its words replaced."""
    return lambda text: text.replace(old, new)
