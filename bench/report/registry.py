"""Which experiments there are, and in which order the report shows them.

An experiment is a module of ``bench/figures`` or ``bench/others`` that has a constant
``EXPERIMENT``, and its name is read from the text, so that listing them loads none.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Sequence
from pathlib import Path

from bench.report.experiment import Experiment

ROOT = Path(__file__).parents[2]
"""The checkout."""

PLACES = ("bench/figures", "bench/others")

ORDER = (
    "view_types",
    "many_views",
    "one_more_view",
    "sharing",
    "baseline",
    "growth",
    "lazy",
    "clients",
    "staleness",
    "skew",
    "sessions",
    "crash",
    "tpch_orders",
    "tpch",
    "tpch1",
    "others",
)
"""How the report goes: how fast, for how many, instead of what, at which price, and beside whom. What is not
named here comes after it."""


def known(places: Sequence[str] = PLACES, root: Path = ROOT) -> dict[str, str]:
    """The module of each experiment by its name, in the report's order."""
    found: dict[str, str] = {}
    for place in places:
        for file in sorted((root / place).glob("*.py")):
            name = _name(file)
            if name is None:
                continue
            module = ".".join((*Path(place).parts, file.stem))
            if name in found:
                raise ValueError(f"{module} and {found[name]} are both called {name}: give one another name")
            found[name] = module
    place_of = {name: at for at, name in enumerate(ORDER)}
    return dict(sorted(found.items(), key=lambda item: (place_of.get(item[0], len(ORDER)), item[0])))


def load(module: str) -> Experiment:
    """The experiment of a module."""
    experiment = importlib.import_module(module).EXPERIMENT
    if not isinstance(experiment, Experiment):
        raise TypeError(f"EXPERIMENT of {module} is not an Experiment")
    return experiment


def _name(file: Path) -> str | None:
    """The name that a file gives its experiment; nothing where it has none."""
    for node in ast.parse(file.read_text("utf-8")).body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(target, ast.Name) and target.id == "EXPERIMENT" for target in targets):
            value = getattr(node, "value", None)
            for keyword in value.keywords if isinstance(value, ast.Call) else ():
                if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
                    return str(keyword.value.value)
            raise ValueError(f'{file.name}: write EXPERIMENT = Experiment(name="…", …), with the name as a text')
    return None
