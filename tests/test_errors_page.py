"""Every entry of docs/errors.md is an error that is raised here, with the words that the page shows.

``python -m tests.test_errors_page`` writes the words of today into the page.
"""

from __future__ import annotations

import inspect
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import everview
from everview import errors
from everview.errors import EverviewError
from everview.maintain import Plans
from tests.full_disk import full_disk

PAGE = Path(__file__).parents[1] / "docs" / "errors.md"
ENTRY = re.compile(r"^```python\n(.*?)^```\n\n^```text\n(.*?)^```", re.M | re.S)


@dataclass(frozen=True)
class Entry:
    """An example of the page, and what it is to show."""

    kind: str
    code: str
    shown: str


def entries() -> list[Entry]:
    found = []
    for section in re.split(r"^### ", PAGE.read_text("utf-8"), flags=re.M)[1:]:
        kind = section.partition("\n")[0].strip()
        found += [Entry(kind, code, shown.rstrip("\n")) for code, shown in ENTRY.findall(section)]
    return found


def beginnings() -> list[str]:
    """The examples before the first entry."""
    return re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8").partition("\n## ")[0], flags=re.M | re.S)


def disk_is_full() -> AbstractContextManager[None]:
    """No file of this process may grow."""
    return full_disk(1 << 16)


class World:
    """What an example finds: a store as the page makes it, and names for what the page does not show."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.names: dict[str, Any] = {
            "path": str(folder / "shop"),
            "newer": str(folder / "newer"),
            "without_images": str(folder / "without_images"),
            "disk_is_full": disk_is_full,
        }

    @staticmethod
    def made(folder: Path) -> World:
        """By the examples with which the page begins."""
        everview.open(folder / "newer").close()
        found = World(folder)
        for code in beginnings():
            exec(compile(code, str(PAGE), "exec"), found.names)
        found.names["db"].flush()
        found.names["db"].close()
        return found

    def copied(self, folder: Path) -> World:
        """One of its own for an example, which may ruin it."""
        shutil.copytree(self._folder, folder)
        found = World(folder)
        db = everview.open(found.names["path"])
        last = Plans(db.store, db.catalog).last("main")
        assert last is not None
        _, bound = last
        view = bound.plan.step(bound.plan.views[0].step).states[0].fingerprint
        found.names |= {"everview": everview, "db": db, "totals_table": bound.states[view]}
        return found

    def raised(self, entry: Entry) -> EverviewError:
        names = dict(self.names)
        try:
            exec(compile(entry.code, str(PAGE), "exec"), names)
        except EverviewError as error:
            return error
        finally:
            if "plain" in names:
                names["plain"].close()
        raise AssertionError(f"nothing was raised by\n{entry.code}")

    def words(self, error: EverviewError) -> str:
        """Its text, without what differs from place to place."""
        said = str(error).replace(str(self._folder), "/data").replace(str(Path.cwd()), "/home")
        said = re.sub(rf"\b{os.getpid()}\b", "4711", said)
        # a file that may not grow is not a full disk: the system says either, by where the write would begin
        said = re.sub("Input/output error|File too large", "No space left on device", said)
        return said.replace(os.uname().nodename, "this-host")

    def close(self) -> None:
        self.names["db"].close()


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World.made(tmp_path_factory.mktemp("errors"))


@pytest.fixture
def world(first: World, tmp_path: Path) -> Iterator[World]:
    found = first.copied(tmp_path / "world")
    yield found
    found.close()


@pytest.mark.parametrize("entry", [pytest.param(one, id=f"{at}-{one.kind}") for at, one in enumerate(entries())])
def test_an_entry_is_raised_as_the_page_shows_it(world: World, entry: Entry) -> None:
    error = world.raised(entry)
    assert type(error).__name__ == entry.kind
    assert world.words(error) == entry.shown


def test_every_class_has_an_entry_and_every_entry_a_class() -> None:
    classes = {name for name, found in inspect.getmembers(errors, inspect.isclass) if issubclass(found, EverviewError)}
    headings = re.findall(r"^### (\w+)$", PAGE.read_text("utf-8"), flags=re.M)
    assert len(headings) == len(set(headings))
    assert set(headings) == classes - {"EverviewError"} == {entry.kind for entry in entries()}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        first = World.made(Path(folder, "first"))
        text = PAGE.read_text("utf-8")
        for at, entry in enumerate(entries()):
            world = first.copied(Path(folder, str(at)))
            error = world.raised(entry)
            if type(error).__name__ != entry.kind:
                print(f"{entry.kind}: {type(error).__name__} is raised by\n{entry.code}{error}", file=sys.stderr)
            old = f"```python\n{entry.code}```\n\n```text\n{entry.shown}\n```".replace("text\n\n```", "text\n```")
            assert old in text, old
            text = text.replace(old, f"```python\n{entry.code}```\n\n```text\n{world.words(error)}\n```")
            world.close()
    PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
