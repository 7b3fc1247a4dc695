"""The check of words finds what readers stumble over, and the repository passes it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "scripts" / "check-words"


@pytest.fixture(scope="module")
def words() -> ModuleType:
    spec = importlib.util.spec_from_loader("check_words", SourceFileLoader("check_words", str(SCRIPT)))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look up annotations
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A work tree of git with a plain page."""
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    plant(tmp_path, "README.md", "The view is rebuilt.\n")
    return tmp_path


def plant(tree: Path, name: str, text: str) -> None:
    (tree / name).write_text(text)
    subprocess.run(["git", "add", name], cwd=tree, check=True)


def run(tree: Path) -> subprocess.CompletedProcess[str]:
    """The script as `make check` runs it, without the allow list of this repository."""
    code = f"""
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
spec = spec_from_loader("check_words", SourceFileLoader("check_words", {str(SCRIPT)!r}))
words = sys.modules["check_words"] = module_from_spec(spec)
spec.loader.exec_module(words)
words.check.__defaults__ = ((),)
sys.exit(words.main([{str(tree)!r}]))
"""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("The view is made anew.", "anew"),
        ("Whoever comes next", "Whoever"),
        ("a log that tells the old rows", "tells"),
        ("def found_is_told() -> None: ...", "told"),
        ("The rows are set aside.", "set aside"),
        ("a row that was set\n# aside", "set # aside"),
        ("sets entries aside", "sets entries aside"),
        ("set_aside = 1", "set_aside"),
        ("class SetAside: ...", "SetAside"),
        ("lookalikes of 0.0", "lookalikes"),
        ("an open order", "open order"),
        ("rows without a value", "rows without a value"),
        ("where nobody does", "where nobody"),
        ("One sentence: this", "One sentence:"),
    ],
)
def test_a_phrase_is_found_where_it_stands(words: ModuleType, tree: Path, text: str, phrase: str) -> None:
    plant(tree, "page.md", f"A plain line.\n{text}\n")
    assert any(line.startswith(f"page.md:2: {phrase!r}: write ") for line in words.check(tree, ()))


@pytest.mark.parametrize("text", ["told", "It retells nothing of intellectuals.", "renewal", "a set of asides"])
def test_a_phrase_is_a_whole_word(words: ModuleType, tree: Path, text: str) -> None:
    plant(tree, "page.md", text)
    assert bool(words.check(tree, ())) == (text == "told")


def test_every_phrase_says_what_to_write_instead(words: ModuleType) -> None:
    assert len(words.BANNED) > 10 and all(words.BANNED.values())


def test_an_allowed_place_needs_a_reason_and_a_phrase(words: ModuleType, tree: Path) -> None:
    allowed = (words.Allowed("quoted*.md", "told", "words of others"),)
    plant(tree, "quoted_page.md", "I was told.\n")
    assert words.check(tree, allowed) == []
    plant(tree, "page.md", "I was told.\n")
    assert [line.partition(":")[0] for line in words.check(tree, allowed)] == ["page.md"]
    plant(tree, "page.md", "Nothing.\n")
    plant(tree, "quoted_page.md", "Nothing.\n")
    assert words.check(tree, allowed) == ["scripts/check-words: nothing to allow in quoted*.md: told (words of others)"]
    assert all(one.reason for one in words.ALLOWED)


def test_files_that_git_does_not_know_are_not_read(words: ModuleType, tree: Path) -> None:
    (tree / "draft.md").write_text("made anew")
    assert words.check(tree, ()) == []


def test_the_command_prints_the_places_and_fails(tree: Path) -> None:
    done = run(tree)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    plant(tree, "page.md", "It is rebuilt.\nIt is made anew.\n")
    done = run(tree)
    assert done.returncode == 1 and done.stdout.startswith("page.md:2: 'anew': write again; rebuilt")


def test_the_repository_passes(words: ModuleType) -> None:
    assert words.check(ROOT) == []
