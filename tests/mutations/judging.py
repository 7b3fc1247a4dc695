"""Is a mutant caught, and by what?

With the fault injected, each view is read, compiled and tried as a CREATE would, by a fresh
:class:`Validation`, and both safeguards are asked, also where the first alone would do.

Nothing depends on how fast the machine is: where a CREATE would stop waiting, a trial here goes on.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

import everview.plan
from everview.check import trial_queries
from everview.check.sample import Sample
from everview.client import validating
from everview.client.validating import Validation
from everview.errors import EverviewError
from everview.plan import compile as compiling
from everview.plan.compile import compile_view
from everview.sql import constants, own_parse, passes
from everview.sql.dialects import to_sql
from everview.sql.own_parse import is_trusted
from everview.sql.parse import parse
from everview.sql.patience import given_up
from everview.sql.refused_constructs import unknown_parts
from everview.sql.statements import CreateMaterializedView
from tests.mutations.mutant import Mutant
from tests.mutations.shop import SHOP

_PATIENCE = 600.0


@dataclass(frozen=True)
class Judgement:
    """What came of one view; a text for each safeguard that noticed something, empty for one that did not."""

    reading: str = ""
    """Our reading of the words is not trusted."""
    planning: str = ""
    """Building the plan was refused by the checks that relations and plans make of themselves."""
    trial: str = ""
    """The plan differs from DuckDB's answer, or fails."""
    rounds: int = 0

    @property
    def caught(self) -> bool:
        return bool(self.reading or self.planning or self.trial)


def judgements(mutant: Mutant, seed: int = 1) -> tuple[Judgement, ...]:
    """What comes of each of a mutant's views, over the sample of a CREATE or, with another seed, over another one."""
    with pytest.MonkeyPatch.context() as patch, forgotten():
        patch.setattr(validating, "Sample", functools.partial(Sample, seed=seed))
        mutant.inject(patch)
        return tuple(map(judged, mutant.views))


def judged(query: str) -> Judgement:
    """What comes of a view over the shop, in the product as it is now."""
    (view,) = parse(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert isinstance(view, CreateMaterializedView)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reading = _misread(view)
        patch.setattr(compiling, "is_trusted", lambda words, rendered: True)
        patch.setattr(passes, "refuse_unknown_parts", lambda tree, text: None)
        patch.setattr(validating, "PATIENCE", _PATIENCE)
        patch.setattr(trial_queries, "given_up", lambda connection, patience: given_up(connection, _PATIENCE))
        try:
            compiled = compile_view(view, SHOP)
        except EverviewError as error:
            return Judgement(reading, planning=error.message)
        if compiled.verbatim:
            return Judgement(reading, planning=compiled.verbatim)
        try:
            verdict = Validation().of(view, compiled, SHOP, dict)
        except EverviewError as error:
            return Judgement(reading, planning=error.message)
    return Judgement(reading, trial=verdict.difference, rounds=verdict.rounds)


def _misread(view: CreateMaterializedView) -> str:
    if view.words is None:
        return ""
    if not view.words.is_read:
        return compiling.UNREAD
    if not is_trusted(view.words.text, to_sql(view.query)):
        return compiling.READ_OTHERWISE
    return ", ".join(f"{part} of {node.key} is unknown" for node, part in unknown_parts(view.query))


# ------------------------------------------------------------------ what is remembered


@contextmanager
def forgotten() -> Iterator[None]:
    """Nothing that was worked out before is known inside, nor afterwards what was worked out inside."""
    _forget()
    try:
        yield
    finally:
        _forget()


def _forget() -> None:
    constants._KNOWN.clear()
    own_parse._TRUSTED.clear()
    for remembered in _caches():
        remembered.cache_clear()


@functools.cache
def _caches() -> tuple[functools._lru_cache_wrapper, ...]:
    """What the functions of planning remember."""
    for found in pkgutil.walk_packages(everview.plan.__path__, "everview.plan."):
        importlib.import_module(found.name)
    modules = [module for name, module in sys.modules.items() if name.startswith("everview.plan.")]
    values = {id(value): value for module in modules for value in vars(module).values()}
    return tuple(value for value in values.values() if isinstance(value, functools._lru_cache_wrapper))
