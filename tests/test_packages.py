"""The packages of CONTRIBUTING.md, of the import contract and of the sources are the same, in one order."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "everview"
ROW = re.compile(r"^\| `(\w+)` \| (.+) \|$", re.M)


def layers() -> list[list[str]]:
    """From top to bottom; packages of one layer may not import each other."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    (found,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [layer.split(" | ") for layer in found]


def packages() -> set[str]:
    """Packages and modules directly below everview."""
    folders = {path.parent.name for path in SOURCES.glob("*/__init__.py")}
    return folders | {path.stem for path in SOURCES.glob("*.py") if path.stem != "__init__"}


def test_the_layers_are_the_packages() -> None:
    names = [name for layer in layers() for name in layer]
    assert len(names) == len(set(names))
    assert set(names) == packages()


def test_the_table_of_contributing_lists_the_layers_from_top_to_bottom() -> None:
    table = ROW.findall((ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    assert [name for name, _ in table] == [name for layer in layers() for name in layer]
    assert all(purpose.strip() for _, purpose in table)


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "README.md", "docs/README.md", "docs/zones.md"])
def test_pages_name_no_package_that_is_gone(page: str) -> None:
    named = set(re.findall(r"`everview\.(\w+)[.\w]*`", (ROOT / page).read_text("utf-8")))
    callables = set(__import__("everview").__all__)
    assert not {name for name in named - callables if not _is_system_table(name)} - packages()


def _is_system_table(name: str) -> bool:
    from everview.sql.namespace import SYSTEM_TABLES

    return name in SYSTEM_TABLES
