"""Joins: pairs, rows without a partner, and what is read for them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from everview.change.schema import Schema
from tests.operators.histories import apply, history, maintained, rows_read, taken
from tests.oracle.maintained import bag

A = Schema.of({"id": "BIGINT", "k": "INTEGER", "v": "VARCHAR"}, key=["id"])
B = Schema.of({"id": "BIGINT", "k": "BIGINT", "w": "INTEGER"}, key=["id"])
TABLES = {"a": A, "b": B}
BOTH = "a.id AS ai, b.id AS bi, v, w"
KINDS = {
    "joined": f"SELECT {BOTH} FROM a JOIN b ON {{on}}",
    "lefts": f"SELECT {BOTH} FROM a LEFT JOIN b ON {{on}}",
    "rights": f"SELECT {BOTH} FROM a RIGHT JOIN b ON {{on}}",
    "fulls": f"SELECT {BOTH} FROM a FULL JOIN b ON {{on}}",
    "semis": "SELECT * FROM a SEMI JOIN b ON {on}",
    "antis": "SELECT * FROM a ANTI JOIN b ON {on}",
}
CONDITIONS = {
    "equal keys": "a.k = b.k",
    "equal keys and more": "a.k = b.k AND length(a.v) < b.w",
    "keys that may be null": "a.k IS NOT DISTINCT FROM b.k",
    "two keys": "a.k = b.k AND a.id = b.w",
    "one key twice": "a.k = b.k AND a.k = b.w",
}
ROWS: dict[str, dict[str, Sequence[object]]] = {
    "a": {"id": range(6), "k": [None, 0, 1, 2], "v": [None, "x", "xx", "xxxx"]},
    "b": {"id": range(6), "k": [None, 0, 1, 2], "w": [None, 0, 1, 2, 3]},
}


@pytest.mark.parametrize("on", CONDITIONS.values(), ids=CONDITIONS.keys())
def test_every_kind_of_join_follows_its_tables(on: str) -> None:
    with maintained(TABLES, {name: text.format(on=on) for name, text in KINDS.items()}) as m:
        taken(m, history(ROWS, seed=1))


def test_joins_of_joins_and_of_a_table_with_itself() -> None:
    views = {
        "self_join": "SELECT x.id AS xi, y.id AS yi, y.v FROM a AS x LEFT JOIN a AS y ON x.k = y.k AND x.id < y.id",
        "three": "SELECT a.id AS ai, b.id AS bi, c.id AS ci FROM a JOIN b ON a.k = b.k LEFT JOIN a AS c ON c.k = b.w",
        "outer_of_outer": "SELECT a.id, b.w, c.v FROM a FULL JOIN b ON a.k = b.k FULL JOIN a AS c ON c.id = b.id",
        "no_key": "SELECT a.id, n FROM a CROSS JOIN (SELECT count(*) AS n FROM b)",
        "computed": "SELECT a.id AS ai, b.id AS bi FROM a JOIN b ON a.k + 1 = b.k",
        "in_query": "SELECT id FROM a WHERE k NOT IN (SELECT k FROM b WHERE k IS NOT NULL)",
    }
    with maintained(TABLES, views) as m:
        taken(m, history(ROWS, seed=1))


def test_floats_that_are_equal_meet_and_keep_their_looks() -> None:
    one = Schema.of({"id": "BIGINT", "x": "DOUBLE"}, key=["id"])
    views = {
        "met": "SELECT a.id AS ai, b.id AS bi, a.x AS ax, b.x AS bx FROM a FULL JOIN b ON a.x = b.x",
        "again": "SELECT m.ai, c.id FROM met AS m JOIN a AS c ON m.ax = c.x",
    }
    with maintained({"a": one, "b": one}, views) as m:
        a, b = m.table("a"), m.table("b")
        a.put({"id": 1, "x": -0.0})
        a.put({"id": 2, "x": math.nan})
        m.epoch()
        m.check()
        b.put({"id": 1, "x": 0.0})
        b.put({"id": 2, "x": -math.nan})
        m.epoch()
        m.check()
        met = {row["ai"]: row for row in m.view("met").to_pylist()}
        assert math.copysign(1, met[1]["ax"]) == -1 and math.copysign(1, met[1]["bx"]) == 1
        a.put({"id": 1, "x": 0.0})
        b.delete(2)
        m.epoch()
        m.check()
        b.delete(1)
        m.epoch()
        m.check()


def test_numbers_of_different_types_meet() -> None:
    tables = {
        "a": Schema.of({"id": "BIGINT", "k": "INTEGER"}, key=["id"]),
        "b": Schema.of({"id": "BIGINT", "k": "DECIMAL(10,2)"}, key=["id"]),
        "c": Schema.of({"id": "BIGINT", "k": "DOUBLE"}, key=["id"]),
    }
    views = {
        "ab": "SELECT a.id AS ai, b.id AS bi FROM a JOIN b ON a.k = b.k",
        "ac": "SELECT a.id AS ai, c.id AS ci FROM a LEFT JOIN c ON a.k = c.k",
        "bc": "SELECT b.id AS bi, c.id AS ci FROM b FULL JOIN c ON b.k = c.k",
    }
    with maintained(tables, views) as m:
        for name in ("a", "b", "c"):
            for number in range(3):
                m.table(name).put({"id": number, "k": number})
            m.epoch()
            m.check()
        assert len(m.view("ab")) == len(m.view("ac")) == len(m.view("bc")) == 3


def test_views_that_differ_in_constants_join_their_own_rows() -> None:
    views = {
        f"v{n}{kind}": f"SELECT a.id AS ai, b.id AS bi FROM a {kind} JOIN b ON a.k = b.k WHERE a.id > {n}"
        for n in (0, 2)
        for kind in ("INNER", "LEFT")
    }
    views |= {
        f"s{n}": f"SELECT a.id FROM a SEMI JOIN (SELECT k FROM b WHERE w < {n}) AS c ON a.k = c.k" for n in (1, 3)
    }
    with maintained(TABLES, views) as m:
        taken(m, history(ROWS, seed=1))


def test_keys_that_are_lists() -> None:
    table = Schema.of({"id": "BIGINT", "k": "DOUBLE[]"}, key=["id"])
    rows = {"id": range(6), "k": [None, [], [0.0], [-0.0], [1, None]]}
    views = {kind: f"SELECT a.id AS ai, b.id AS bi, a.k FROM a {kind} JOIN b ON a.k = b.k" for kind in ("LEFT", "FULL")}
    with maintained({"a": table, "b": table}, views) as m:
        taken(m, history({"a": rows, "b": rows}, seed=1))


# ------------------------------------------------------------------ conditions without a value


def test_a_pair_whose_condition_has_no_value_is_no_match_and_is_quarantined() -> None:
    view = "SELECT a.id AS ai, b.id AS bi FROM a LEFT JOIN b ON a.k = b.k AND CAST(a.v AS INTEGER) < b.w"
    with maintained(TABLES, {"v": view}) as m:
        a, b = m.table("a"), m.table("b")
        a.put({"id": 1, "k": 7, "v": "one"})
        a.put({"id": 2, "k": 7, "v": "1"})
        b.put({"id": 1, "k": 7, "w": 5})
        m.epoch()
        assert bag(m.view("v")) == {(1, None): 1, (2, 1): 1}
        ((count, said),) = m.quarantine()
        assert (count, said.what, said.views, said.values["a.v"]) == (1, "pair", ("v",), "one")
        b.put({"id": 2, "k": 7, "w": 5})
        m.epoch()
        assert m.quarantine()[0][0] == 2
        b.delete(1)
        m.epoch()
        assert m.quarantine()[0][0] == 1
        assert bag(m.view("v")) == {(1, None): 1, (2, 2): 1}
        a.put({"id": 1, "k": 7, "v": "0"})
        m.epoch()
        assert not m.quarantine()
        m.check()


# ------------------------------------------------------------------ what is read


def _reads(m_rows: dict[str, int], side: str) -> int:
    return sum(count for name, count in m_rows.items() if name.startswith(f"REVERSE-JOIN {side} "))


@pytest.mark.parametrize("kind", ["SEMI", "ANTI"])
def test_whether_a_row_has_a_partner_is_asked_of_the_beginning_of_a_bag(kind: str) -> None:
    with maintained(TABLES, {"v": f"SELECT a.id FROM a {kind} JOIN b ON a.k = b.k"}) as m:
        apply(m, [("b", {"id": n, "k": 1, "w": n}, False) for n in range(1000)])
        apply(m, [("a", {"id": n, "k": 1, "v": "x"}, False) for n in range(1000)])
        m.epoch()
        apply(m, [("b", {"id": 5, "k": 1, "w": 0}, True), ("a", {"id": 5000, "k": 1, "v": "y"}, False)])
        read = rows_read(m)
        assert _reads(read, "b") <= 2 and _reads(read, "a") == 0
        m.epoch()
        m.check()


def test_a_changed_row_that_no_column_of_the_join_shows_reads_nothing() -> None:
    views = {
        "narrow": "SELECT a.id AS ai, b.id AS bi FROM a JOIN b ON a.k = b.k",
        "wide": "SELECT a.id AS ai, b.id AS bi, v FROM (SELECT * FROM a WHERE id < 3) AS a JOIN b ON a.k = b.k",
    }
    with maintained(TABLES, views) as m:
        apply(m, [("b", {"id": n, "k": 1, "w": n}, False) for n in range(100)])
        apply(m, [("a", {"id": n, "k": 1, "v": "x"}, False) for n in range(100)])
        m.epoch()
        apply(m, [("a", {"id": 5, "k": 1, "v": "y"}, False)])
        assert not any(rows_read(m).values())
        m.epoch()
        m.check()


def test_a_change_of_the_large_side_of_a_cross_join_reads_only_the_one_row() -> None:
    with maintained(TABLES, {"v": "SELECT a.id, n FROM a CROSS JOIN (SELECT count(*) AS n FROM b)"}) as m:
        apply(m, [("a", {"id": n, "k": 1, "v": "x"}, False) for n in range(1000)])
        apply(m, [("b", {"id": 1, "k": 1, "w": 1}, False)])
        m.epoch()
        m.check()
        apply(m, [("a", {"id": 5000, "k": 1, "v": "y"}, False), ("a", {"id": 3, "k": 1, "v": "y"}, True)])
        assert sum(rows_read(m).values()) <= 1
        m.epoch()
        m.check()
