"""Refreshes of TPC-H follow the benchmark's rules, and a copy takes them in."""

from __future__ import annotations

import doctest

import duckdb
import pytest

import bench.workloads.tpch
from bench.figures import tpch, tpch_orders
from bench.report.experiment import Row
from bench.tpch_views import ALL, OURS, SHARED, SPARK, THEIRS, THEIRS_TWO, figures, repeated
from bench.workloads.tpch import OF_PAPER, QUERIES, Refresh, Refreshes, files
from bench.workloads.tpch_copy import Copy

SCALE = 0.01


@pytest.fixture(scope="module")
def pairs() -> list[Refresh]:
    return list(Refreshes(SCALE, seed=1).pairs(2))


@pytest.fixture(scope="module")
def tables() -> duckdb.DuckDBPyConnection:
    """The tables as they are at first."""
    connection = duckdb.connect()
    connection.execute("CREATE MACRO cents(value) AS CAST(value * 100 AS BIGINT)")
    for name, path in files(SCALE).items():
        connection.execute(f"CREATE VIEW {name} AS FROM read_parquet('{path}')")
    return connection


def asked(tables: duckdb.DuckDBPyConnection, query: str, refresh: Refresh) -> list[tuple[object, ...]]:
    """The answer to a query over the tables and the rows of a refresh, called new_… and gone_…"""
    for prefix, parts in (("new", refresh.puts), ("gone", refresh.deletes)):
        for name, rows in parts.items():
            tables.register(f"{prefix}_{name}", rows)
    return tables.sql(query).fetchall()


def test_examples() -> None:
    assert doctest.testmod(bench.workloads.tpch).failed == 0


def test_a_seed_names_the_refreshes() -> None:
    one, other = (next(Refreshes(SCALE, seed=3).pairs(1)) for _ in range(2))
    assert one == other
    assert one != next(Refreshes(SCALE, seed=4).pairs(1))


def test_a_pair_inserts_and_deletes_a_thousandth_of_the_orders(pairs: list[Refresh]) -> None:
    for pair in pairs:
        assert len(pair.puts["orders"]) == len(pair.deletes["orders"]) == 15
        assert pair.operations == sum(map(len, (*pair.puts.values(), *pair.deletes.values())))
        assert pair.operations_of({"part"}) == 2


def test_new_orders_have_keys_of_their_own(tables: duckdb.DuckDBPyConnection, pairs: list[Refresh]) -> None:
    keys = [key for pair in pairs for key in pair.puts["orders"]["o_orderkey"].to_pylist()]
    assert len(set(keys)) == 30
    there = "SELECT count(*) FROM new_orders JOIN orders USING (o_orderkey)"
    assert [asked(tables, there, pair) for pair in pairs] == [[(0,)], [(0,)]]


def test_what_is_deleted_is_there_with_all_its_lines(tables: duckdb.DuckDBPyConnection, pairs: list[Refresh]) -> None:
    for pair in pairs:
        orders = asked(tables, "SELECT count(*) FROM gone_orders JOIN orders USING (o_orderkey)", pair)
        assert orders == [(15,)]
        lines = "SELECT l_orderkey, l_linenumber FROM lineitem JOIN gone_orders ON l_orderkey = o_orderkey"
        assert sorted(asked(tables, lines, pair)) == sorted(asked(tables, "FROM gone_lineitem", pair))


def test_new_orders_refer_to_rows_that_are_there(tables: duckdb.DuckDBPyConnection, pairs: list[Refresh]) -> None:
    lost = """
        SELECT l_orderkey FROM new_lineitem ANTI JOIN partsupp ON ps_partkey = l_partkey AND ps_suppkey = l_suppkey
        UNION ALL SELECT o_orderkey FROM new_orders ANTI JOIN customer ON c_custkey = o_custkey
        UNION ALL SELECT l_orderkey FROM new_lineitem ANTI JOIN new_orders ON l_orderkey = o_orderkey
        UNION ALL SELECT c_custkey FROM new_customer ANTI JOIN customer USING (c_custkey)
        UNION ALL SELECT p_partkey FROM new_part ANTI JOIN part USING (p_partkey)
    """
    assert asked(tables, lost, pairs[0]) == []


RULES = """
    SELECT o_orderkey FROM {orders} JOIN (
        SELECT l_orderkey, count(*) AS n, max(l_linenumber) AS last, count(*) FILTER (l_linestatus = 'O') AS open,
            sum(cents(l_extendedprice) * (100 - cents(l_discount)) // 100 * (100 + cents(l_tax)) // 100) AS price,
            bool_and(l_extendedprice = l_quantity * p_retailprice) AS priced,
            bool_and(l_shipdate < l_receiptdate AND (l_linestatus = 'O') = (l_shipdate > DATE '1995-06-17')) AS dated
        FROM {lineitem} JOIN part ON p_partkey = l_partkey GROUP BY l_orderkey
    ) ON l_orderkey = o_orderkey
    WHERE n <> last OR n > 7 OR NOT priced OR NOT dated OR o_custkey % 3 = 0 OR price <> cents(o_totalprice)
        OR o_orderstatus <> CASE open WHEN 0 THEN 'F' WHEN n THEN 'O' ELSE 'P' END
"""


def test_new_rows_follow_the_rules_of_those_at_first(tables: duckdb.DuckDBPyConnection, pairs: list[Refresh]) -> None:
    new = RULES.format(orders="new_orders", lineitem="new_lineitem")
    assert asked(tables, new, pairs[0]) == []
    assert asked(tables, RULES.format(orders="orders", lineitem="lineitem"), pairs[0]) == []


def test_a_copy_takes_in_a_refresh(tables: duckdb.DuckDBPyConnection, pairs: list[Refresh]) -> None:
    copy = Copy(files(SCALE))
    pair = pairs[0]
    copy.apply(pair)
    ((first,),) = tables.sql("SELECT count(*) FROM lineitem").fetchall()
    added = len(pair.puts["lineitem"]) - len(pair.deletes["lineitem"])
    assert copy.answer("SELECT count(*) AS n FROM lineitem").to_pydict() == {"n": [first + added]}
    customer = pair.puts["customer"].to_pylist()[0]
    kept = f"SELECT c_custkey, c_acctbal, c_mktsegment FROM customer WHERE c_custkey = {customer['c_custkey']}"
    assert copy.answer(kept).to_pylist() == [customer]
    assert copy.seconds(QUERIES["q06"]) > 0
    copy.close()


# ------------------------------------------------------------------ what is said of the rows


def rows_of_a_run(again: float) -> list[Row]:
    """As if a view took ten milliseconds after a pair, and one after an order."""
    found: list[Row] = []
    for name in QUERIES:
        row: Row = {"query": name, "system": OURS, "state_mb": 2.0, "read_ms": 0.1}
        found.append(row | figures(1000, 2.0, [9.0, 0.01], [9.0, 0.001], [0 if name == "q11" else 50], again))
        found.append({"query": name, "system": THEIRS, **repeated(again)})
    for ours, theirs in ((SHARED, THEIRS), (SPARK, THEIRS_TWO)):
        timed = figures(1000, 20.0, [9.0, 0.1], [9.0, 0.01], [50], 22 * again)
        found.append(timed | {"query": ALL, "system": ours, "state_mb": 30.0})
        found.append({"query": ALL, "system": theirs, **repeated(22 * again)})
    return found


def test_figures_leave_out_what_warms_up() -> None:
    row = figures(1000, 2.0, [9.0, 0.01, 0.03, 0.02], [9.0, 0.001], [50, 70], again=0.005)
    assert row["rows_s"] == 500 and row["refresh_ms"] == 20 and row["changes_s"] == 3000 and row["ratio"] == 0.25
    assert row["order_ms"] == 1 and row["order_ratio"] == 5


@pytest.mark.parametrize(("again", "pair", "order"), [(0.1, 0, 0), (0.005, 22, 0), (0.0005, 22, 22)])
def test_where_asking_again_is_faster_it_is_said(again: float, pair: int, order: int) -> None:
    rows = rows_of_a_run(again)
    said = tpch.notes(rows)
    assert f"faster than the view for {pair} of 22" in said[0]
    assert f"faster than the view for {order} of 22" in said[1]
    assert "built in 20 s (one by one 44 s)" in said[2] and "30 MB of state (one by one 44 MB)" in said[3]
    assert "q11" in said[4]
    assert f"{22 - pair} of 22" in tpch.headline(rows)
    assert all(plot.y in tpch.COLUMNS and any(map(plot.where, rows)) for plot in tpch.PLOTS)


def test_without_rows_nothing_is_said() -> None:
    assert not tpch.notes([]) and not tpch_orders.comparisons([])
    assert tpch.headline([]) == tpch_orders.headline([]) == ""


def test_each_figure_of_the_paper_has_its_sentence() -> None:
    assert set(OF_PAPER.values()) < set(tpch_orders.VIEWS.values())
    rows: list[Row] = [
        {"view": view, "operations": 1000, "operations_s": 100_000 * number, "view_rows": 500, "share": 50.0}
        for number, view in enumerate(tpch_orders.VIEWS, 1)
    ]
    assert [said.figure for said in tpch_orders.comparisons(rows)] == [f"004, Figure {n}, TPC-H" for n in (7, 8, 9, 10)]
    assert tpch_orders.headline(rows) == "100,000 to 600,000 operations/s on two cores"
    assert len(tpch_orders.comparisons(rows[:1])) == 1, "what a wrong row would have said is left out"
