"""Rewrite rules: what each does, and that none changes what a relation shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from everview.change.types import BOOLEAN, DOUBLE, INTEGER, VARCHAR
from everview.plan.expressions import Expr, Field, conjuncts, parsed, written
from everview.plan.relations import Distinct, Filter, JoinKind, Reevaluate, Relation, Scan, outline
from everview.plan.rules import RULES, rewrite
from everview.plan.rules.conditions import can_fail, rejects_nulls
from everview.plan.rules.fold_constants import folded
from everview.plan.rules.join_equalities import join_equalities
from everview.plan.rules.prune_columns import prune_columns
from everview.plan.rules.push_filters import push_filters
from everview.sql.settings import connect
from tests.plan.build_queries import OPERATORS, REEVALUATED
from tests.plan.evaluate import evaluated
from tests.plan.random_relations import Trees, fill
from tests.plan.rule_cases import CASES, a, b, join, passing, select, where
from tests.plan.shop import built, filled
from tests.scripts.golden import read_script, run_script, scripts

RANDOM = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect() as found:
        yield found


@st.composite
def trees(draw: st.DrawFn) -> Relation:
    return Trees(lambda n: draw(st.integers(0, n - 1))).tree()


# ---------------------------------------------------------------- what each rule does


@pytest.mark.parametrize("path", scripts("rules"), ids=lambda path: path.stem)
def test_what_a_rule_does(path: Path) -> None:
    found = {name: (rule, tree) for name, rule, tree in CASES}

    def printed(name: str) -> str:
        rule, tree = found[name]
        assert rule.__name__ == path.stem
        after = rule(tree)
        return f"{outline(tree)}\n→\n{'the same' if after is tree else outline(after)}"

    run_script(path, printed)


def test_every_rule_has_a_script_and_every_case_is_printed() -> None:
    found = {path.stem: [case.input for case in read_script(path.read_text())[0]] for path in scripts("rules")}
    assert set(found) == {rule.__name__ for rule in RULES}
    assert found == {rule.__name__: [name for name, of, _ in CASES if of is rule] for rule in RULES}


def test_the_trace_names_every_rule_that_changed_something() -> None:
    tree = passing(where(join(JoinKind.LEFT, a, b, ("a.x", "b.id")), '"b.y" = 1'), "a.id", "b.x")
    trace: list[tuple[str, Relation]] = []
    after = rewrite(tree, lambda name, relation: trace.append((name, relation)))
    assert [name for name, _ in trace] == ["outer_to_inner", "push_filters", "prune_columns"]
    assert trace[-1][1] is after
    assert rewrite(after) is after


# ---------------------------------------------------------------- nothing else changes


@RANDOM
@given(tree=trees(), seed=st.integers(0, 1000))
def test_rules_change_neither_rows_nor_keys(connection: duckdb.DuckDBPyConnection, tree: Relation, seed: int) -> None:
    fill(connection, seed)
    note(outline(tree))
    after = rewrite(tree, lambda name, found: note(f"{name}\n{outline(found)}"))
    assert [field.name for field in after.shown] == [field.name for field in tree.shown]
    assert set(after.key) <= set(tree.key)
    assert Counter(evaluated(connection, after)) == Counter(evaluated(connection, tree))


@RANDOM
@given(tree=trees())
def test_a_rule_applied_twice_does_what_it_does_once(tree: Relation) -> None:
    for rule in RULES:
        after = rule(tree)
        assert rule(after) is after, rule.__name__
        assert after is tree or after != tree, rule.__name__
        tree = after


@RANDOM
@given(tree=trees())
def test_what_is_rewritten_holds_nothing_that_nobody_reads(tree: Relation) -> None:
    after = rewrite(tree)
    assert {field.name for field in after.fields} == {field.name for field in after.shown} | set(after.key)
    for node in after.walk():
        assert not (isinstance(node, Filter) and isinstance(node.input, Filter))


# ---------------------------------------------------------------- conditions


@st.composite
def conditions(draw: st.DrawFn) -> Expr:
    fields = [Field("x", INTEGER), Field("y", INTEGER)]
    return Expr(Trees(lambda n: draw(st.integers(0, n - 1))).condition(fields), BOOLEAN)


def is_true(connection: duckdb.DuckDBPyConnection, condition: Expr, x: int | None, y: int | None) -> bool:
    values = ", ".join(f"CAST({'NULL' if v is None else v} AS INTEGER) AS {name}" for name, v in (("x", x), ("y", y)))
    found = connection.execute(f"SELECT ({condition}) IS TRUE FROM (SELECT {values})").fetchone()
    assert found is not None
    return bool(found[0])


@RANDOM
@given(condition=conditions())
def test_what_rejects_nulls_is_never_true_of_them(connection: duckdb.DuckDBPyConnection, condition: Expr) -> None:
    for y in (None, 0, 1, 2):
        if rejects_nulls(condition, frozenset("x")):
            assert not is_true(connection, condition, None, y)
    if rejects_nulls(condition, frozenset("xy")):
        assert not is_true(connection, condition, None, None)


@pytest.mark.parametrize(
    ("condition", "rejects"),
    [
        ('"x" = "y"', True),
        ('"x" + 1 <> 2', True),
        ("\"x\" LIKE 'a%'", True),
        ("\"x\" NOT LIKE 'a%'", True),
        ('"x" NOT IN (1, 2)', True),
        ('CAST("x" AS BIGINT) BETWEEN 1 AND 2', True),
        ('"x" IS NOT NULL', True),
        ('"x" = 1 OR "x" > 5', True),
        ('"x" = 1 OR "y" > 5', False),
        ('"x" = 1 AND "y" IS NULL', True),
        ('"x" IS NULL', False),
        ('NOT ("x" = 1 AND "y" = 1)', False),
        ('COALESCE("x", 1) = 1', False),
        ('"x" IS NOT DISTINCT FROM "y"', False),
        ("\"x\" || 'a' = 'a'", False),
        ("TRUE", False),
    ],
)
def test_which_conditions_reject_nulls(condition: str, rejects: bool) -> None:
    assert rejects_nulls(Expr(condition, BOOLEAN), frozenset("x")) is rejects


@RANDOM
@given(condition=conditions())
def test_a_folded_condition_is_true_of_the_same_rows(connection: duckdb.DuckDBPyConnection, condition: Expr) -> None:
    after = folded(condition)
    assert folded(after) == after
    for x, y in ((None, None), (0, None), (1, 2), (2, 1), (1, 1)):
        assert is_true(connection, after, x, y) == is_true(connection, condition, x, y)


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("7 / 2 = 3.5", "TRUE"),
        ("7 // 2 = 3", "TRUE"),
        ("-7 // 2 = -3", "TRUE"),
        ("-7 % 2 = -1", "TRUE"),
        ("7.0 / 2 = 3.5", "TRUE"),
        ("1 / 0 > 1", "TRUE"),
        ("1.0 / 0 IS NULL", "FALSE"),
        ("0 / 0 = CAST('NaN' AS DOUBLE)", "TRUE"),
        ("1 % 0 = 1", None),
        ("1 // 0 = 1", None),
        ("0.1 + 0.2 = 0.3", "TRUE"),
        ("CAST(0.1 AS DOUBLE) + 0.2 = 0.3", "FALSE"),
        ("'01' = 1", "TRUE"),
        ("'01' = '1'", "FALSE"),
        ("'a' < 'B'", "FALSE"),
        ("'a' = 'a '", "FALSE"),
        ("NULL IS NOT DISTINCT FROM NULL", "TRUE"),
        ("NOT NULL = 1", "FALSE"),
        ("1 IN (2, NULL)", "FALSE"),
        ("9007199254740993 > 9007199254740992", "TRUE"),
        ("CAST('2020-01-31' AS DATE) + INTERVAL '1' MONTH = CAST('2020-02-29' AS DATE)", "TRUE"),
        ("CAST(300 AS TINYINT) = 1", None),
        ("CAST('x' AS INTEGER) = 1", None),
        ("TRY_CAST('x' AS INTEGER) = 1", "FALSE"),
        ("RANDOM() < 2", None),
    ],
)
def test_constants_have_the_values_that_duckdb_gives_them(condition: str, value: str | None) -> None:
    before = Expr(written(parsed(condition)), BOOLEAN)
    assert folded(before).sql == (value if value is not None else before.sql)


@st.composite
def constant_conditions(draw: st.DrawFn) -> str:
    def number(depth: int) -> str:
        if depth == 0 or draw(st.integers(0, 2)) == 0:
            literals = [
                "0",
                "1",
                "-3",
                "2147483647",
                "9223372036854775807",
                "0.1",
                "2.50",
                "1e10",
                "NULL",
                "'2'",
                "' 7'",
            ]
            return draw(
                st.sampled_from([*literals, "CAST('-0' AS DOUBLE)", "CAST(3 AS DECIMAL(4,2))", "CAST(5 AS TINYINT)"])
            )
        return f"({number(depth - 1)} {draw(st.sampled_from(['+', '-', '*', '/', '//', '%']))} {number(depth - 1)})"

    def truth(depth: int) -> str:
        kind = draw(st.integers(0, 7 if depth else 4))
        if kind <= 2:
            compared = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "IS NOT DISTINCT FROM"]))
            return f"{number(2)} {compared} {number(2)}"
        if kind == 3:
            return f"{number(1)} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
        if kind == 4:
            return f"{number(1)} {draw(st.sampled_from(['', 'NOT ']))}IN ({number(1)}, {number(1)})"
        if kind == 5:
            return f"NOT ({truth(depth - 1)})"
        return f"({truth(depth - 1)}) {draw(st.sampled_from(['AND', 'OR']))} ({truth(depth - 1)})"

    return truth(2)


@RANDOM
@given(text=constant_conditions())
def test_a_folded_constant_is_true_where_duckdb_says_so(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    """Read, written and folded, against the text itself."""
    after = folded(Expr(written(parsed(text)), BOOLEAN)).sql
    try:
        (expected,) = connection.execute(f"SELECT ({text}) IS TRUE").fetchone() or (None,)
    except duckdb.Error:
        return
    assert connection.execute(f"SELECT ({after}) IS TRUE").fetchone() == (expected,), after


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("condition", "fails"),
    [
        ('CAST("x" AS INTEGER) = 1', True),
        ('TRY_CAST("x" AS INTEGER) = 1', False),
        ("\"x\" = CAST('2020-01-01' AS DATE)", False),
        ('LN("x") > 0', True),
        ('CASE WHEN "x" LIKE \'a%\' THEN 1 ELSE COALESCE("y", 0) + 1 END > 0', False),
    ],
)
def test_which_conditions_can_fail(condition: str, fails: bool) -> None:
    assert can_fail(condition) is fails


def test_what_can_fail_never_overtakes_its_guard() -> None:
    guarded = '"a.y" < "b.y" AND CAST("a.x" AS TINYINT) = 1 AND "a.id" = 1'
    after = push_filters(where(join(JoinKind.INNER, a, b, ("a.x", "b.x")), guarded))
    assert isinstance(after, Filter)
    assert [part.sql for part in conjuncts(after.condition)] == ['"a.y" < "b.y"', 'CAST("a.x" AS TINYINT) = 1']
    joined = join_equalities(after)
    assert joined.description() == 'inner ON "a.x" = "b.x" AND "a.y" < "b.y" AND CAST("a.x" AS TINYINT) = 1'
    assert push_filters(joined) is joined


# ---------------------------------------------------------------- equal and still different


@pytest.mark.parametrize(
    ("condition", "goes"), [('"t.v" = 0', True), ('"t.v" IN (0, 1)', True), ("CAST(\"t.v\" AS VARCHAR) = '0.0'", False)]
)
def test_only_comparisons_of_floats_go_below_a_grouping(condition: str, goes: bool) -> None:
    """0.0 and −0.0 are one group, and a function may distinguish them."""
    table = Scan("t", "t", (Field("id", INTEGER, nullable=False), Field("v", DOUBLE)), ("id",))
    after = push_filters(where(Distinct(passing(table, "t.v")), condition))
    assert isinstance(after, Distinct) is goes


def test_a_constant_keeps_its_type_where_it_is_put_in() -> None:
    texts = select(a, p='"a.x"')
    after = push_filters(where(select(texts, q="'1'", r='"p"'), '"q" = "r"'))
    assert "CAST('1' AS BIGINT) = \"a.x\"" in outline(after)


# ---------------------------------------------------------------- columns


def columns(relation: Relation) -> dict[str, list[str]]:
    return {scan.alias: [c.name for c in scan.columns] for scan in relation.walk() if isinstance(scan, Scan)}


def test_scans_keep_what_is_read_and_the_key() -> None:
    tree = passing(where(join(JoinKind.INNER, a, b, ("a.x", "b.id")), '"a.x" = 1'), "b.y")
    assert columns(prune_columns(tree)) == {"a": ["id", "x"], "b": ["id", "y"]}


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ('SELECT max("a.x") AS m FROM in0', ["id", "x"]),
        ("SELECT count(*) AS m FROM in0", ["id"]),
        ("SELECT count(*) AS m FROM (SELECT DISTINCT * FROM in0)", ["id", "x", "y"]),
        ("SELECT count(DISTINCT in0) AS m FROM in0", ["id", "x", "y"]),
        ("SELECT count(*) AS m FROM in0 NATURAL JOIN in0 AS other", ["id", "x", "y"]),
    ],
)
def test_a_re_evaluation_keeps_what_its_query_may_read(query: str, kept: list[str]) -> None:
    tree = Reevaluate((a,), query, (Field("m", INTEGER),), ())
    assert columns(prune_columns(tree)) == {"a": kept}


def test_a_scan_keeps_a_column_where_none_is_read() -> None:
    total = Scan("total", "v", (Field("n", INTEGER), Field("s", VARCHAR)), ())
    tree = passing(join(JoinKind.INNER, a, total), "a.x")
    assert columns(prune_columns(tree)) == {"a": ["id", "x"], "v": ["n"]}


# ---------------------------------------------------------------- what queries become


@pytest.mark.parametrize("text", [*OPERATORS, *REEVALUATED])
def test_a_rewritten_query_means_what_the_query_means(text: str) -> None:
    before = built(text).relation
    after = rewrite(before)
    assert [field.name for field in after.shown] == [field.name for field in before.shown]
    assert set(after.key) <= set(before.key)
    with filled(seed=1) as connection:
        expected = Counter(map(repr, connection.execute(text).fetchall()))
        assert Counter(map(repr, evaluated(connection, after))) == expected
