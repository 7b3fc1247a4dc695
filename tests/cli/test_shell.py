"""The shell: typed into a terminal, and its parts by themselves."""

from __future__ import annotations

import io
import stat
from pathlib import Path

import pytest

import everview
from everview.change.types import DOUBLE, INTEGER, VARCHAR, parse_type
from everview.cli.completion import Known, candidates
from everview.cli.grid import draw, fitted
from everview.cli.history import History
from everview.client.result import Result, ResultColumn
from tests.cli.terminal import CTRL_C, CTRL_D, TAB, UP, Terminal, terminal

PROMPT = "shop> "
SHOP = """
    CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INTEGER, amount DECIMAL(10, 2), note VARCHAR);
    INSERT INTO orders VALUES (1, 10, 5.50, 'first'), (2, 20, 7, NULL);
    CREATE MATERIALIZED VIEW totals AS SELECT customer, sum(amount) AS total FROM orders GROUP BY customer;
    CREATE INDEX by_customer ON orders (customer);
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shell") / "shop"
    with everview.open(path, durability="none") as db:
        db.sql(SHOP)
    return path


def left(shell: Terminal) -> None:
    shell.type(CTRL_D)
    assert shell.end() == 0 and shell.is_as_before()


# ------------------------------------------------------------------ in a terminal


def test_a_session(shop: Path, tmp_path: Path) -> None:
    """Statements, errors, commands, completion, Ctrl-C, and a history that the next shell has."""
    state = {"XDG_STATE_HOME": str(tmp_path)}
    with terminal("sql", shop, variables=state) as shell:
        assert "1 table, 1 view; \\? for help" in shell.until(PROMPT)

        shell.enter("SELECT id,", "   -> ")
        shown = shell.enter("amount, note FROM orders -- all; of them", "   -> ")
        shown = shell.enter("ORDER BY id; SELECT 'a;b' AS semicolons;", PROMPT)
        assert "2 rows; " in shown and " ms" in shown and "NULL" in shown and "5.50" in shown
        assert "a;b" in shown and "1 row; " in shown

        shown = shell.enter("SELECT nothing FROM orders;", PROMPT)
        line, marks = shown.split("    SELECT nothing")[1].splitlines()[:2]
        assert "there is no column nothing" in shown and line == " FROM orders" and marks.strip() == "^^^^^^^"

        shell.enter("SELECT 'half", "   -> ")
        shell.interrupt()
        shell.until(PROMPT)
        assert "42" in shell.enter("SELECT 41 + 1 AS n;", PROMPT)

        shell.type("SELECT tot" + TAB)  # of nothing that is named yet: the view
        shell.until("totals")
        shell.interrupt()
        shell.until(PROMPT)
        shell.type("SELECT total FROM tot" + TAB)
        shell.until("totals")
        shell.type(" WHERE cus" + TAB)
        shell.until("customer")
        assert "7.00" in shell.enter(" = 20;", PROMPT)

        for word, message in (
            ("\\d", "by_customer"),
            ("\\dv", "totals"),
            ("\\d orders", "PRIMARY KEY"),
            ("\\?", "Ctrl-C"),
        ):
            assert message in shell.enter(word, PROMPT)
        assert "CREATE INDEX" in shell.enter("\\d by_customer", PROMPT)
        assert "there is no command \\x" in shell.enter("\\x", PROMPT)
        shell.enter("\\timing", "timing is off")
        shell.until(PROMPT)
        assert " ms" not in shell.enter("SELECT 1 AS one;", PROMPT)
        left(shell)

    with terminal("sql", shop, variables=state) as shell:
        shell.until(PROMPT)
        shell.type(UP)
        shell.until("SELECT 1 AS one;")
        assert "1 row; " in shell.enter("", PROMPT)
        shell.enter("\\q", "\n")
        assert shell.end() == 0
    file = tmp_path / "everview" / "sql_history"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    lines = file.read_text("utf-8").splitlines()
    assert "SELECT total FROM totals WHERE customer = 20;" in lines and "SELECT id," in lines


def test_a_statement_that_is_executed_is_given_up(shop: Path, tmp_path: Path) -> None:
    """Columns that do not fit are said to be hidden, too."""
    with terminal("sql", shop, columns=40, variables={"XDG_STATE_HOME": str(tmp_path)}) as shell:
        shell.until(PROMPT)
        wide = ", ".join(f"'value {at}' AS c{at}" for at in range(9))
        shown = shell.enter(f"SELECT {wide};", PROMPT)
        assert "columns are not shown: c" in shown and "1 row; " in shown
        assert all(len(line) <= 40 for line in shown.splitlines() if line.startswith(" "))
        shell.type("SELECT count(*) FROM range(1000000) a(i), range(1000000000) b(j) WHERE i * j % 7 = 8;\n")
        shell.until("\r\n")
        shell.type(CTRL_C)
        shell.until(PROMPT)
        assert "42" in shell.enter("SELECT 41 + 1 AS n;", PROMPT)
        left(shell)


# ------------------------------------------------------------------ completion

KNOWN = Known({"orders": ("id", "amount"), "Old Orders": ("id", "oddity"), "table": ("x",)}, ("by_day",))


@pytest.mark.parametrize(
    ("before", "word", "behind", "offered"),
    [
        ("", "sel", "", ["select"]),
        ("", "SEL", "", ["SELECT"]),
        ("SELECT * FROM ", "", "", ['"Old Orders"', '"table"', "orders"]),
        ("SELECT * FROM ", '"o', "", ['"Old Orders"']),
        ("SELECT ", "am", " FROM orders", ["amount"]),
        ("SELECT ", "am", "", []),
        ('SELECT * FROM "Old Orders" WHERE ', "od", "", ["oddity"]),
        ("SELECT ", "x.a", " FROM orders AS x", ["x.amount"]),
        ("SELECT ", "orders.", " FROM orders", ["orders.amount", "orders.id"]),
        ("DROP INDEX ", "b", "", ["by_day"]),
        ("", "\\t", "", ["\\timing"]),
        ("\\d ", "or", "", ["orders"]),
        ("SELECT * FROM orders ", "wher", "", ["where"]),
    ],
)
def test_what_a_word_may_become(before: str, word: str, behind: str, offered: list[str]) -> None:
    assert candidates(before + word, word, KNOWN, before + word + behind) == offered


# ------------------------------------------------------------------ tables that fit


def drawn(result: Result, width: int | None, rows: int = 10) -> tuple[list[str], str]:
    out = io.StringIO()
    missing = draw(result, out, width, rows).missing()
    return [line.rstrip() for line in out.getvalue().splitlines()], missing


def test_a_table_is_cut_and_says_so() -> None:
    columns = [ResultColumn("id", INTEGER), ResultColumn("text", VARCHAR), ResultColumn("number", DOUBLE)]
    result = Result.of(columns, [(1, "a" * 30, 0.1), (22, None, 1e300)])
    lines, missing = drawn(result, None)
    assert f"  1   {'a' * 30}      0.1" in lines and missing == ""
    lines, missing = drawn(result, 32)
    assert max(map(len, lines)) <= 32 and missing == "values that end in … are cut"
    assert any(line.endswith("aaa…      0.1") for line in lines)
    lines, missing = drawn(result, 20)
    assert max(map(len, lines)) <= 20
    assert missing == "1 column is not shown: number; values that end in … are cut"
    assert drawn(result, 3)[1].startswith("2 columns are not shown")


def test_nothing_in_a_table_steers_the_terminal() -> None:
    columns = [ResultColumn("a\x1b[2J", VARCHAR), ResultColumn("l", parse_type("VARCHAR[]"))]
    lines, _ = drawn(Result.of(columns, [("x\ny\x1b[31m\x9b", ["\x07"])]), None)
    text = "\n".join(lines)
    assert "x␊y␛[31m�" in text and "\\u0007" in text and "\x1b" not in text
    lines, _ = drawn(Result.of(columns[:1], [("x\ny\x1b[31m",)]), None)
    assert lines == ["a␛[2J", "x", "y␛[31m"]


def test_as_many_columns_as_fit() -> None:
    assert fitted([5, 5], [True, True], 15) == [5, 5]
    assert fitted([5, 5], [True, True], 14) == [5]
    assert fitted([30, 30], [False, False], 45) == [20, 20]
    assert fitted([30, 30, 9], [False, False, True], 33) == [8, 8, 9]
    assert fitted([30, 30, 9], [False, False, True], 32) == [13, 13], "the number goes before it is cut"
    assert fitted([100], [True], 50) == [48]


# ------------------------------------------------------------------ history


def test_the_last_lines_are_kept(tmp_path: Path) -> None:
    readline = pytest.importorskip("readline")
    file = tmp_path / "state" / "history"
    try:
        for start in (0, 3):
            history = History(readline, file, kept=4)
            for at in range(start, start + 3):
                history.add([f"SELECT {at};"])
                history.add([f"SELECT {at};"])
            history.save()
        assert file.read_text("utf-8").splitlines() == [f"SELECT {at};" for at in range(2, 6)]
        assert [one.name for one in file.parent.iterdir()] == ["history"]
    finally:
        readline.clear_history()
        readline.set_auto_history(True)
        readline.set_history_length(-1)
