"""One word for one thing: a class name occurs once in the sources, and so does the name of a file."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SOURCES = Path(__file__).parent.parent / "src" / "everview"
COMMANDS = SOURCES / "cli" / "commands"
"""Files that are named after commands, whatever is named after the same thing elsewhere."""


def _repeated(places: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: found for name, found in places.items() if len(found) > 1}


def test_no_class_name_occurs_twice() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for file in sorted(SOURCES.rglob("*.py")):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(file.relative_to(SOURCES)))
    assert len(places) > 300
    assert _repeated(places) == {}


def test_no_file_name_occurs_twice() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for file in sorted(SOURCES.rglob("*.py")):
        if file.name != "__init__.py" and file.parent != COMMANDS:
            places[file.name].append(str(file.relative_to(SOURCES)))
    assert len(places) > 200
    assert _repeated(places) == {}
