"""The commands: what they print, where, and how they end."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import everview
from everview.cli import app
from everview.cli.commands import sql as sql_command
from everview.cli.grid import plain
from tests.cli.served import ROOT

SHOP = """
    CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INTEGER, amount DECIMAL(10, 2), note VARCHAR);
    CREATE MATERIALIZED VIEW totals AS SELECT customer, sum(amount) AS total FROM orders GROUP BY customer;
    INSERT INTO orders VALUES (1, 10, 5.50, 'a, "b"'), (2, 20, 7, NULL);
"""


@dataclass(frozen=True)
class Ended:
    """A command that came to its end."""

    code: int
    out: str
    err: str


Command = Callable[..., Ended]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs ``everview`` in this process."""

    def called(*words: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["everview", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            app.main()
        said = capsys.readouterr()
        code = ended.value.code
        return Ended(code if isinstance(code, int) else 0, said.out, said.err)

    return called


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with everview.open(tmp_path / "store", durability="none") as db:
        db.sql(SHOP)
    return tmp_path / "store"


@pytest.fixture
def db(store: Path) -> Iterator[everview.Database]:
    with everview.open(store, durability="none") as found:
        yield found


# ------------------------------------------------------------------ all of them


def test_the_version_and_the_list_of_commands(command: Command) -> None:
    assert command("--version").out == f"everview {everview.__version__}\n"
    listed = command("--help").out
    places = [listed.index(f"│ {known.__name__} ") for known in app.COMMANDS]
    assert places == sorted(places)
    assert command().code == 2, "a command is missing"


@pytest.mark.parametrize("name", [known.__name__ for known in app.COMMANDS])
def test_every_command_has_an_example(command: Command, name: str) -> None:
    said = command(name, "--help")
    assert said.code == 0 and f"Example: everview {name} " in said.out


def test_nothing_is_loaded_for_help() -> None:
    code = (
        "import everview.cli.app, sys; heavy = {'pyspark', 'pyarrow', 'duckdb', 'sqlglot', 'lmdb', 'pandas', 'numpy'};"
        "sys.exit(' '.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_it_is_a_module_too() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-m", "everview.cli", "--version"], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, f"everview {everview.__version__}\n")


def test_errors_are_printed_in_a_few_lines(command: Command, tmp_path: Path) -> None:
    for words in (["status"], ["sql", "-c", "SELECT 1"]):
        said = command(words[0], tmp_path / "nothing", *words[1:])
        assert said.code == 1 and said.out == "" and said.err.startswith("error: there is no store in ")
        assert "Traceback" not in said.err


# ------------------------------------------------------------------ sql


def test_rows_as_a_table_as_json_and_as_csv(command: Command, store: Path) -> None:
    asked = ("sql", store, "-c", "SELECT * FROM orders ORDER BY id")
    table = command(*asked)
    assert table.code == 0 and "NULL" in table.out and table.out.endswith("2 rows\n")
    assert [line.split()[:3] for line in table.out.splitlines()[3:5]] == [["1", "10", "5.50"], ["2", "20", "7.00"]]
    rows = [json.loads(line) for line in command(*asked, "--json").out.splitlines()]
    assert rows[0] == {"id": 1, "customer": 10, "amount": "5.50", "note": 'a, "b"'} and rows[1]["note"] is None
    assert command(*asked, "--csv").out == 'id,customer,amount,note\n1,10,5.50,"a, ""b"""\n2,20,7.00,\n'


def test_the_rows_of_the_last_statement(command: Command, store: Path) -> None:
    text = "INSERT INTO orders (id, customer, amount) VALUES (3, 20, 1); SELECT total FROM totals WHERE customer = 20"
    assert command("sql", store, "-c", text, "--csv", "--fresh").out == "total\n8.00\n"
    assert command("sql", store, "-c", "SELECT id FROM orders WHERE id > 9", "--json").out == ""


def test_statements_of_a_file_and_of_standard_input(
    command: Command, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "some.sql"
    file.write_text("SELECT `id` FROM orders WHERE id = 2;", "utf-8")
    assert command("sql", store, file, "--csv", "--dialect", "mysql").out == "id\n2\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT 'é' AS e"))
    assert command("sql", store, "-", "--json").out == '{"e": "é"}\n'


def test_a_store_is_made_when_asked_for(command: Command, tmp_path: Path) -> None:
    assert command("sql", tmp_path / "new", "-c", "SELECT 1").code == 1
    assert command("sql", tmp_path / "new", "--create", "-c", "CREATE TABLE t (x INTEGER)").code == 0
    assert command("sql", tmp_path / "new", "-c", "SELECT count(*) AS n FROM t", "--csv").out == "n\n0\n"


def test_a_statement_that_fails(command: Command, store: Path) -> None:
    said = command("sql", store, "-c", "INSERT INTO orders (id) VALUES (5); SELECT nothing FROM orders")
    assert said.code == 1 and "there is no column nothing" in said.err and "Traceback" not in said.err
    assert command("sql", store, "-c", "SELECT count(*) FROM orders", "--csv").out.endswith("3\n")


def test_notices_go_to_standard_error(command: Command, store: Path) -> None:
    said = command("sql", store, "-c", "DROP TABLE orders CASCADE")
    assert said.code == 0 and "totals" in said.err and said.out == ""


def test_a_table_for_people_ends_somewhere(command: Command, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_command, "SHOWN", 5)
    asked = ("sql", store, "-c", "SELECT i FROM range(20000) r(i)")
    assert "the first 5 rows; --json and --csv print all" in command(*asked).out
    assert len(command(*asked, "--csv").out.splitlines()) == 20_001


@pytest.mark.parametrize(
    "words", [(), ("-c", "SELECT 1", "file.sql"), ("-c", "SELECT 1", "--json", "--csv"), ("missing.sql",)]
)
def test_a_command_that_is_wrong(command: Command, store: Path, words: tuple[str, ...]) -> None:
    said = command("sql", store, *words)
    assert said.code == 2 and "Usage: everview sql" in said.err


def test_values_as_json_has_them(command: Command, store: Path) -> None:
    text = """SELECT 'NaN'::DOUBLE AS nan, 1.5::DOUBLE AS half, TIMESTAMP '2026-01-02 03:04:05' AS at,
        DATE '2026-01-02' AS d, '\\xAB'::BLOB AS b, [1, NULL] AS l, {'a': 1.50::DECIMAL(4,2)} AS s, MAP {1: true} AS m,
        170141183460469231731687303715884105727::HUGEINT AS h"""
    assert json.loads(command("sql", store, "-c", text, "--json").out) == {
        "nan": "nan",
        "half": 1.5,
        "at": "2026-01-02T03:04:05",
        "d": "2026-01-02",
        "b": "ab",
        "l": [1, None],
        "s": {"a": "1.50"},
        "m": {"1": True},
        "h": 170141183460469231731687303715884105727,
    }
    assert plain(object.__class__) == str(type)


# ------------------------------------------------------------------ status


def test_the_status_as_tables_and_as_json(command: Command, db: everview.Database, store: Path) -> None:
    db.table("orders").put({"id": 3})
    said = command("status", store).out
    assert "maintained by nobody" in said and "3 operations" in said and "logs: " in said
    assert any(line.split()[:4] == ["totals", "view", "main", "live"] for line in said.splitlines())
    assert any(line.split() == ["orders", "3"] for line in said.splitlines())
    found = json.loads(command("status", store, "--json").out)
    assert found["groups"][0]["views"][0]["name"] == "totals" and found["maintainer"] is None
    with db.store.lease("maintenance"):
        assert f"maintained by process {os.getpid()}" in command("status", store).out


# ------------------------------------------------------------------ run


def test_run_once_prints_for_people_and_for_programs(command: Command, db: everview.Database, store: Path) -> None:
    db.table("orders").put({"id": 3, "customer": 10, "amount": 1})
    said = command("run", store, "--local", "--once")
    assert said.code == 0 and said.err == ""
    lines = [line.split("  ", 1)[1] for line in said.out.splitlines()]
    assert lines[0] == f"maintaining {store} in this process, process {os.getpid()}; main: totals"
    assert lines[-1] == "stopped: nothing is under way" and "operations, up to date" in lines[1]
    assert db.view("totals").count() == 2
    events = [json.loads(line) for line in command("run", store, "--local", "--once", "--json").out.splitlines()]
    assert [event["event"] for event in events] == ["started", "stopped"]
    assert events[0]["groups"] == {"main": ["totals"]} and events[0]["time"] > 1e9


def test_run_is_refused_while_another_one_runs(command: Command, db: everview.Database, store: Path) -> None:
    with db.store.lease("maintenance"):
        said = command("run", store, "--local")
    assert said.code == 75 and f"maintained by process {os.getpid()}" in said.err and "--wait forever" in said.err


@pytest.mark.parametrize(
    "words",
    [
        ("--wait", "soon"),
        ("--wait", "-1"),
        ("--servers", "0"),
        ("--local", "--master", "x"),
        ("--local", "--servers", "3"),
    ],
)
def test_run_with_what_makes_no_sense(command: Command, store: Path, words: tuple[str, ...]) -> None:
    said = command("run", store, *words)
    assert said.code == 2 and "Usage: everview run" in said.err


def test_run_where_no_store_is(command: Command, tmp_path: Path) -> None:
    said = command("run", tmp_path / "nothing")
    assert said.code == 1 and "there is no store in" in said.err
