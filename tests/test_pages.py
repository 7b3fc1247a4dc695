"""What the pages of docs/ say of the code is so: numbers, tests, modules, files, links and examples."""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import everview
import everview.catalog
from everview.change.schema import Column, Schema
from everview.change.types import VARCHAR
from everview.errors import EverviewError
from everview.maintain import Maintainer
from everview.sql.namespace import SYSTEM_TABLES
from everview.store.contract import StateTable

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)


def page(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def prose(text: str) -> str:
    return BLOCK.sub("", text)


# ------------------------------------------------------------------ limits

LIMIT = re.compile(r"^\| (?P<what>[^|]+) \| (?P<limit>[^|]+) \| `(?P<module>[\w.]+):(?P<name>[\w.()]+)` \|$", re.M)


def said(limit: str) -> float:
    number, unit = re.match(r"([\d.,]*\d)(?: (\w+))?", limit).groups()  # type: ignore[union-attr]
    one_less = 1 if "less one byte" in limit else 0
    return float(number.replace(",", "")) * UNITS.get(unit or "", 1) - one_less


@pytest.mark.parametrize("found", [pytest.param(one, id=one["name"]) for one in LIMIT.finditer(page("limits.md"))])
def test_a_limit_is_the_one_in_the_code(found: re.Match[str]) -> None:
    value: object = importlib.import_module(found["module"])
    for part in found["name"].split("."):
        value = getattr(value, part.removesuffix("()"))
        value = value() if part.endswith("()") else value  # type: ignore[operator]
    assert said(found["limit"]) == value


def test_every_row_of_a_table_of_limits_is_compared() -> None:
    rows = [line for line in page("limits.md").splitlines() if re.match(r"\|.*\| `everview\.", line)]
    assert len(rows) == len(list(LIMIT.finditer(page("limits.md")))) > 20


def test_limits_that_are_no_constants(tmp_path: Path) -> None:
    with everview.open(tmp_path / "store") as db:
        db.create_table("texts", {"k": "VARCHAR"}, key=["k"]).put({"k": "x" * 506})
        pair = db.create_table("pairs", {"a": "VARCHAR", "b": "INTEGER"}, key=["a", "b"])
        pair.put({"a": "x" * (506 - 2 - 4), "b": 1})
        with pytest.raises(EverviewError, match="too long"):
            pair.put({"a": "x" * (506 - 2 - 4 + 1), "b": 1})
        numbers = {f"k{at}": "INTEGER" for at in range(100)}
        db.create_table("numbers", numbers, key=list(numbers)).put(dict.fromkeys(numbers, 7))
        wide = {"id": "BIGINT", **{f"c{at}": "INTEGER" for at in range(1_999)}}
        table = db.create_table("wide", wide, key=["id"])
        table.put({"id": 1, "c1998": 5})
        assert (table.get(1) or {})["c1998"] == 5
    for option in ({"shards": 65}, {"shards": 0}, {"nodes": 1025}, {"nodes": 0}):
        with pytest.raises(EverviewError, match="1 to"):
            everview.open(tmp_path / "other", **option)  # type: ignore[arg-type]


# ------------------------------------------------------------------ what is named exists

TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("path", sorted({path for one in PAGES for path, _ in TEST.findall(one.read_text("utf-8"))}))
def test_tests_that_a_page_names_exist(path: str) -> None:
    named = {name for one in PAGES for found, name in TEST.findall(one.read_text("utf-8")) if found == path}
    assert not named - functions(path)


def test_every_guarantee_has_tests_and_an_end() -> None:
    first, *sections = re.split(r"^## ", page("consistency.md"), flags=re.M)
    listed = re.findall(r"^\| \[[^]]+\]\(#([\w-]+)\) \|", first, re.M)
    titles = [section.partition("\n")[0] for section in sections]
    assert listed == [re.sub(r"[^a-z -]", "", title.lower()).replace(" ", "-") for title in titles]
    for title, section in zip(titles, sections, strict=True):
        assert TEST.search(section) and "*Where it ends*" in section, title


@pytest.mark.parametrize("path", PAGES, ids=[one.stem for one in PAGES])
def test_links_files_and_modules_exist(path: Path) -> None:
    text = path.read_text("utf-8")
    for target in re.findall(r"\]\(([^)#]+)(?:#[\w-]*)?\)", text):
        assert target.startswith("http") or (DOCS / target).exists(), target
    for file in re.findall(r"`((?:[\w.]+/)+[\w.]+\.py)`", text):
        assert (ROOT / file).exists() or list((ROOT / "src" / "everview").rglob(file)), file
    for module in re.findall(r"`(everview(?:\.[a-z_]+)+)`", text):
        assert module.split(".")[1] in SYSTEM_TABLES or importlib.util.find_spec(module) or has_attribute(module), (
            module
        )


def has_attribute(name: str) -> bool:
    module, _, last = name.rpartition(".")
    return hasattr(importlib.import_module(module), last)


def test_all_pages_are_listed() -> None:
    listed = re.findall(r"\]\((\w+\.md)\)", page("README.md"))
    assert sorted(listed) == sorted(one.name for one in PAGES if one.name != "README.md")


# ------------------------------------------------------------------ examples

ORDERS = """
    CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INTEGER, amount DECIMAL(10,2));
    CREATE MATERIALIZED VIEW totals AS SELECT customer, sum(amount) AS total FROM orders GROUP BY customer;
    INSERT INTO orders VALUES (1, 7, 10)
"""
SET_UP = {
    "catalog.md": "",
    "client.md": "",
    "consistency.md": """
        CREATE TABLE accounts (id INTEGER PRIMARY KEY, branch VARCHAR, owner VARCHAR, balance INTEGER);
        CREATE MATERIALIZED VIEW by_branch AS SELECT branch, sum(balance) AS balance FROM accounts GROUP BY branch;
        CREATE MATERIALIZED VIEW by_owner AS SELECT owner, sum(balance) AS balance FROM accounts GROUP BY owner
    """,
    "limits.md": "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)",
    "maintain.md": ORDERS,
    "metrics.md": ORDERS,
    "verify.md": ORDERS,
}
"""Pages with examples, and what is there before the first of them. The README, the errors and what needs Spark
have tests of their own."""


@pytest.fixture
def names(tmp_path: Path) -> Iterator[dict[str, object]]:
    """What an example may use without saying where it comes from."""
    with everview.open(tmp_path / "store") as db:
        yield {
            "everview": everview,
            "db": db,
            "store": db.store,
            "directory": str(tmp_path / "other"),
            **{name: getattr(everview.catalog, name) for name in everview.catalog.__all__},
            **{found.__name__: found for found in (Column, Maintainer, Schema, StateTable)},
            "VARCHAR": VARCHAR,
            "session": None,
        }


@pytest.mark.parametrize("name", SET_UP)
def test_examples_run(names: dict[str, object], name: str) -> None:
    """Statement by statement; one that is marked as refused is."""
    db = names["db"]
    assert isinstance(db, everview.Database)
    db.sql(SET_UP[name])
    blocks = [code for kind, code in BLOCK.findall(page(name)) if kind == "python"]
    assert blocks
    for code in blocks:
        lines = code.splitlines()
        for statement in ast.parse(code).body:
            run = compile(ast.Module([statement], []), name, "exec")
            refused = "# refused" in lines[(statement.end_lineno or 1) - 1]
            with pytest.raises(EverviewError) if refused else contextlib.nullcontext():
                exec(run, names)
    opened = names["db"]
    assert isinstance(opened, everview.Database)
    opened.close()


def test_the_first_commands_of_the_command_line(tmp_path: Path) -> None:
    """In a shell, with a service that does without Spark."""
    commands = next(code for kind, code in BLOCK.findall(page("cli.md")) if kind == "sh")
    assert "everview run" in commands and "everview status" in commands
    script = f"""set -em
        everview() {{ if [ "$1" = run ]; then "$PYTHON" -m everview.cli "$@" --local
                      else "$PYTHON" -m everview.cli "$@"; fi; }}
        {commands}
        wait"""
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "10.00" in done.stdout and "totals" in done.stdout and "stopped" in done.stdout


# ------------------------------------------------------------------ docstrings

REFERENCE = re.compile(r":(?:mod|class|func|meth|attr|data):`~?(everview\.[\w.]+)`")


def test_what_docstrings_refer_to_exists() -> None:
    missing = []
    count = 0
    for file in sorted((ROOT / "src").rglob("*.py")):
        for found in REFERENCE.finditer(file.read_text()):
            count += 1
            if not _exists(found[1]):
                missing.append(f"{file.name}: {found[1]}")
    assert count > 50
    assert missing == []


def _exists(name: str) -> bool:
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        with contextlib.suppress(ModuleNotFoundError):
            value: object = importlib.import_module(".".join(parts[:length]))
            for part in parts[length:]:
                known = getattr(value, "__dataclass_fields__", {}) | getattr(value, "__annotations__", {})
                value = getattr(value, part, known.get(part))
            return value is not None
    return False


# ------------------------------------------------------------------ builds

TRANSITION = re.compile(r"^\| (?P<phase>\w+) \| [^|]+ \| (?P<work>\w+): [^|]+ \| (?P<leads_to>[^|]*)\|$", re.M)


def test_the_transitions_of_builds_are_those_of_the_code(tmp_path: Path) -> None:
    """Builds that are given up, and transitions that another process came before, are not in the table."""
    with everview.open(tmp_path) as db:
        transitions = Maintainer(db.store, db.catalog).builder.transitions
    leads_to = {
        (one.phase.value, one.work.__name__): {phase.value for phase in one.leads_to if phase is not None}
        for one in transitions
        if one.work.__name__ != "abandon"
    }
    phases = {phase for phase, _ in leads_to}
    shown = {
        (found["phase"], found["work"]): phases.intersection(re.findall(r"\w+", found["leads_to"]))
        for found in TRANSITION.finditer(page("design.md"))
    }
    assert shown.keys() == leads_to.keys()
    assert [one for one, found in shown.items() if not found <= leads_to[one]] == []
