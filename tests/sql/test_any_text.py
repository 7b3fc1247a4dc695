"""Whatever text is handed in, the answer is a result or an error of ours that says where.

A short seeded run over the texts of the scripts, the corpora and the samples: cut off, changed,
mixed with one another, nested, with odd characters, in every dialect. Texts that once did something
else are listed one by one.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlglot
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot import Dialects, exp

from everview.errors import EverviewError, SqlError, SqlRefusedError
from everview.sql.check import Checked, check
from everview.sql.dialects import to_sql
from everview.sql.parse import parse
from everview.sql.statements import CreateMaterializedView, CreateView, Explain, Insert, Select
from everview.sql.typer import typer
from tests.queries.corpora import CORPORA
from tests.sql.samples import QUERIES, namespace, query_of

SCRIPTS = Path(__file__).parent.parent / "scripts"
STATEMENTS = sorted(
    {
        found[1].strip()
        for path in SCRIPTS.glob("*/*.txt")
        for found in re.finditer(r"(?:\A|\n\n)((?:[^#\n-].*\n)+)---\n", path.read_text())
    }
)
SHORT = [text for text in STATEMENTS if len(text) < 300]
TEXTS = [*STATEMENTS, *QUERIES, *(text for found in CORPORA for text in found.queries.values())]
WORDS = sorted({word for text in TEXTS for word in re.findall(r"\w+|[^\w\s]", text)})
ODD = [
    *"\x00\ufeff\u200b\u00a0\u2028\u202e\t\r\x1a\x7f\\'\"`#@!~^&|?%é𝒳ßİſK“’；∞\ud800",
    *("''", "$$", "$x$", "/*", "*/", "--", "//", "{{", "{%", "@@", "||", "->", "->>", "::", ":=", "=>", "..", "<=>"),
    *("$1", ":n", "1e309", "1e-400", "0x1F", "1_000", "9" * 50, "." + "9" * 80, "'" + "x" * 300 + "'", "E'\\x'"),
    *("x'zz'", "b'2'", "U&'\\0041'", "DATE 'x'", "::INT[][]", "::STRUCT(", "[1:2]", "OVER (", "FILTER (", "COLUMNS(*)"),
    *("MATCH_RECOGNIZE", "TABLESAMPLE", "CONNECT BY", "PREWHERE", "FOR SYSTEM_TIME AS OF", "WITH TIES", "SIMILAR TO"),
    *("SET dialect = mysql;", ";", "now()", "EXPLAIN", "CREATE", "PIVOT", "QUALIFY", "LATERAL", "RECURSIVE", "BY NAME"),
]
NESTS = [
    ("(", ")"), ("f(", ")"), ("[", "]"), ("- ", ""), ("NOT ", ""), ("CASE WHEN ", " THEN 1 END"), ("(SELECT ", ")"),
    ("coalesce(", ", 1)"), ("{'a': ", "}"), ("CAST(", " AS INT)"), ("1 + ", ""), ("a OR ", ""), ("x -> ", ""),
    ("(SELECT * FROM (", ") q)"), ("EXISTS (SELECT ", ")"), ("a.", ""),
]  # fmt: skip
DIALECTS = sorted(dialect.value for dialect in Dialects if dialect.value)


def answered(text: str, dialect: str = "duckdb") -> None:
    """All statements of a text are read and checked, or an error says where in it is what wrong."""
    error = error_of(text, dialect)
    if error is None:
        return
    assert re.search(r"line \d+, column \d+", error.message), error
    assert not re.search(r"<class|sqlglot|⟨|__whole|inputs_\d", error.message), error
    if isinstance(error, SqlError):
        lines = text.split("\n")
        assert 1 <= error.line <= len(lines) and 1 <= error.column <= len(lines[error.line - 1]) + 1


def error_of(text: str, dialect: str) -> EverviewError | None:
    try:
        for statement in parse(text, dialect):
            inner = statement.statement if isinstance(statement, Explain) else statement
            if isinstance(inner, Select | CreateView | CreateMaterializedView | Insert):
                free = isinstance(inner, Select)
                found = check(inner.query, namespace(), statement.source, allow_volatile=free)
                assert_answers(found)
    except EverviewError as error:
        return error
    return None


def assert_answers(found: Checked) -> None:
    """What was accepted, DuckDB accepts, with the columns that were promised."""
    inputs = {used.name: [(column.name, column.type) for column in used.columns] for used in found.uses}
    assert typer().describe(to_sql(found.tree), inputs) == found.columns


@pytest.fixture(autouse=True)
def silence(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Nobody but the caller hears of an error."""
    yield
    assert not caplog.records
    assert capfd.readouterr() == ("", "")


# ------------------------------------------------------------------ cut off, changed, mixed


def test_the_texts_are_there() -> None:
    assert len(SHORT) > 200 and len(TEXTS) > 400


@pytest.mark.parametrize("text", SHORT)
def test_a_text_cut_off_anywhere_is_answered(text: str) -> None:
    for end in range(0, len(text), 3):
        answered(text[:end])
        answered(text[end:])


def changed(draw: random.Random, text: str) -> str:
    """A text with one change."""
    words = re.findall(r"\s+|\w+|[^\w\s]", text) or [""]
    first, last = sorted(draw.randrange(len(words)) for _ in range(2))
    match draw.choice(["cut", "drop", "double", "replace", "insert", "odd", "splice", "nest", "shuffle", "swap"]):
        case "cut":
            words = words[:last]
        case "drop":
            del words[first:last]
        case "double":
            words[last:last] = words[first:last]
        case "replace":
            words[first] = f" {draw.choice(WORDS)} "
        case "insert":
            words.insert(first, f" {draw.choice(WORDS)} ")
        case "odd":
            words.insert(first, draw.choice(ODD))
        case "splice":
            other = re.findall(r"\s+|\w+|[^\w\s]", draw.choice(TEXTS))
            begin = draw.randrange(len(other))
            words[first : draw.choice([first, last])] = [" ", *other[begin : begin + draw.randrange(1, 15)], " "]
        case "nest":
            depth, (opening, closing) = draw.choice([2, 5, 20, 60]), draw.choice(NESTS)
            words[first:last] = [" ", opening * depth, *words[first:last], closing * depth]
        case "shuffle":
            draw.shuffle(words)
        case "swap":
            words[first], words[last] = words[last], words[first]
    return "".join(words)[:1999]


@pytest.mark.parametrize("dialect", ["duckdb"] * 8 + [*DIALECTS])
@pytest.mark.parametrize("seed", [1])
def test_a_changed_text_is_answered(dialect: str, seed: int, request: pytest.FixtureRequest) -> None:
    draw = random.Random(f"{seed} {request.node.name}")
    for _ in range(40):
        text = draw.choice(TEXTS)
        for _ in range(draw.choice([1, 1, 2, 3])):
            text = changed(draw, text)
        answered(text, dialect)


@given(text=st.text(max_size=40), dialect=st.sampled_from(DIALECTS))
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_text_is_answered(text: str, dialect: str) -> None:
    answered(text, dialect)
    answered(f"SELECT {text}", dialect)


# ------------------------------------------------------------------ depth


@pytest.mark.parametrize("depth", [10, 100, 2000])
@pytest.mark.parametrize(("opening", "closing"), NESTS)
@pytest.mark.parametrize("dialect", ["duckdb", "mysql", "materialize"])
def test_deep_nesting_is_answered(opening: str, closing: str, depth: int, dialect: str) -> None:
    answered(f"SELECT {opening * depth}1{closing * depth}", dialect)


def test_deep_nesting_says_so() -> None:
    with pytest.raises(SqlRefusedError, match="nested too deeply at line 2, column 1"):
        parse("SELECT 1;\nSELECT " + "f(" * 2000 + "1" + ")" * 2000)


def test_long_lists_are_not_deep() -> None:
    tree = query_of("SELECT a FROM t WHERE " + " OR ".join(f"a = {number}" for number in range(3000)))
    assert to_sql(tree).count("OR") == 2999
    listed = query_of(f"SELECT a FROM t WHERE a IN ({', '.join(map(str, range(3000)))})").find(exp.In)
    assert listed is not None and len(listed.expressions) == 3000


# ------------------------------------------------------------------ texts that once were not answered


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("SELECT max(", "duckdb"),
        ("SELECT ()", "duckdb"),
        ("SELECT 1 AS a; SELECT *", "duckdb"),
        ("SELECT '\ud800' AS a", "duckdb"),
        ("SELECT NOT NOT * FROM orders", "druid"),
        ("SELECT (", "athena"),
        ("-- the channel's name\nSELECT id FROM orders WHERE id IN (1)", "fabric"),
        ("WITH a AS (EXPLAIN SELECT 1) SELECT * FROM a", "duckdb"),
        ("SELECT id -> '$[' FROM orders", "mysql"),
        ("SELECT " + "f(" * 60 + ")" * 60, "materialize"),
    ],
)
def test_a_text_that_was_not_answered_is(text: str, dialect: str) -> None:
    answered(text, dialect)


def test_sqlglot_goes_on_logging_for_others(caplog: pytest.LogCaptureFixture) -> None:
    answered("SELECT 1 AS a")
    sqlglot.parse_one("EXPLAIN SELECT 1", dialect="duckdb")
    assert len(caplog.records) == 1
    caplog.clear()
