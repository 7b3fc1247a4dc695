"""Rows of the eight TPC-H tables: the benchmark's domains, bent towards what its queries ask for.

Values come from the lists of the benchmark (section 4.2), but nations, parts,
containers and sizes that appear in a query are drawn more often, so that a few hundred rows
are enough for every query to find some.
"""

from __future__ import annotations

import datetime

import numpy as np

from tests.queries.draw import Columns, Draw, Recipe, Reference, values_of

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = (
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3),
    ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4),
    ("KENYA", 0), ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3), ("SAUDI ARABIA", 4),
    ("VIETNAM", 2), ("RUSSIA", 3), ("UNITED KINGDOM", 3), ("UNITED STATES", 1),
)  # fmt: skip
BUSY_NATIONS = (2, 3, 6, 7, 8, 18, 20)
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
INSTRUCTIONS = ("COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN")
MODES = ("AIR", "AIR REG", "FOB", "MAIL", "RAIL", "SHIP", "TRUCK")
COLOURS = (
    "almond", "antique", "azure", "blush", "chocolate", "forest", "green", "ivory", "lemon", "navy", "salmon", "tan",
)  # fmt: skip
TYPES = tuple(
    f"{size} {finish} {metal}"
    for size in ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
    for finish in ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED")
    for metal in ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")
)
CONTAINERS = tuple(
    f"{size} {kind}"
    for size in ("SM", "LG", "MED", "JUMBO", "WRAP")
    for kind in ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM")
)
ASKED_FOR = (
    ("Brand#12", "SMALL PLATED BRASS", 3, "SM BOX"),
    ("Brand#23", "ECONOMY ANODIZED STEEL", 9, "MED BOX"),
    ("Brand#34", "PROMO BURNISHED COPPER", 14, "LG CASE"),
    ("Brand#45", "MEDIUM POLISHED TIN", 49, "WRAP JAR"),
    ("Brand#51", "LARGE BRUSHED BRASS", 15, "JUMBO PKG"),
)
"""Brand, type, size and container of parts that queries select by several of them at once."""
PROSE = ("carefully", "final", "deposits", "sleep", "quickly", "above", "ironic", "packages", "bold", "accounts")

FIRST_DAY, LAST_DAY, TODAY = datetime.date(1992, 1, 1), datetime.date(1998, 8, 2), np.datetime64("1995-06-17")


def _region(draw: Draw, count: int) -> Columns:
    return {
        "r_regionkey": np.arange(len(REGIONS)),
        "r_name": REGIONS,
        "r_comment": draw.words(len(REGIONS), PROSE, 4),
    }


def _nation(draw: Draw, count: int) -> Columns:
    return {
        "n_nationkey": np.arange(len(NATIONS)),
        "n_name": [name for name, _ in NATIONS],
        "n_regionkey": [region for _, region in NATIONS],
        "n_comment": draw.words(len(NATIONS), PROSE, 4),
    }


def _phone(draw: Draw, nations: np.ndarray) -> list[str]:
    numbers = draw.random.integers(100, 1000, (len(nations), 3))
    return [f"{nation + 10}-{a}-{b}-{c}" for nation, (a, b, c) in zip(nations, numbers, strict=True)]


def _supplier(draw: Draw, count: int) -> Columns:
    ids = draw.ids(count, SIZES["supplier"])
    nations = draw.pick(count, range(len(NATIONS)), BUSY_NATIONS, share=0.8)
    return {
        "s_suppkey": ids,
        "s_name": [f"Supplier#{id:09d}" for id in ids],
        "s_address": draw.words(count, PROSE, 2),
        "s_nationkey": nations,
        "s_phone": _phone(draw, nations),
        "s_acctbal": draw.money(count, -999.99, 9999.99),
        "s_comment": draw.words(count, PROSE, 5, rare="Customer slow Complaints"),
    }


def _part(draw: Draw, count: int) -> Columns:
    ids = draw.ids(count, SIZES["part"])
    asked = draw.random.random(count) < 0.6
    brands, types, sizes, containers = (
        np.where(asked, likely, draw.pick(count, domain))
        for likely, domain in zip(
            np.array(ASKED_FOR, dtype=object)[draw.whole(count, 0, len(ASKED_FOR) - 1)].T,
            ([f"Brand#{m}{n}" for m in range(1, 6) for n in range(1, 6)], TYPES, range(1, 51), CONTAINERS),
            strict=True,
        )
    )
    first = draw.pick(count, COLOURS, ("forest", "green"))
    return {
        "p_partkey": ids,
        "p_name": [f"{a} {b}" for a, b in zip(first, draw.words(count, COLOURS, 4), strict=True)],
        "p_mfgr": [f"Manufacturer#{brand[6]}" for brand in brands],
        "p_brand": brands,
        "p_type": types,
        "p_size": sizes,
        "p_container": containers,
        "p_retailprice": 900 + ids % 1000 / 10,
        "p_comment": draw.words(count, PROSE, 2),
    }


def _partsupp(draw: Draw, count: int) -> Columns:
    return {
        "ps_partkey": draw.some("part", count)["p_partkey"],
        "ps_suppkey": draw.some("supplier", count)["s_suppkey"],
        "ps_availqty": draw.whole(count, 1, 9999),
        "ps_supplycost": draw.money(count, 1, 1000),
        "ps_comment": draw.words(count, PROSE, 6),
    }


def _customer(draw: Draw, count: int) -> Columns:
    ids = draw.ids(count, SIZES["customer"])
    nations = draw.pick(count, range(len(NATIONS)), BUSY_NATIONS, share=0.8)
    return {
        "c_custkey": ids,
        "c_name": [f"Customer#{id:09d}" for id in ids],
        "c_address": draw.words(count, PROSE, 2),
        "c_nationkey": nations,
        "c_phone": _phone(draw, nations),
        "c_acctbal": draw.money(count, -999.99, 9999.99),
        "c_mktsegment": draw.pick(count, SEGMENTS),
        "c_comment": draw.words(count, PROSE, 6),
    }


def _orders(draw: Draw, count: int) -> Columns:
    # As in the benchmark, a third of the customers never order (Q13, Q22).
    ordering = draw.some("customer", count, prefer=lambda rows: rows["c_custkey"].to_numpy() % 3 != 0, share=1.0)
    days = draw.days(count, FIRST_DAY, LAST_DAY)
    return {
        "o_orderkey": draw.ids(count, SIZES["orders"]),
        "o_custkey": ordering["c_custkey"],
        "o_orderstatus": np.where(days < TODAY, "F", draw.pick(count, ("O", "P"))),
        "o_totalprice": draw.money(count, 900, 300_000) * draw.pick(count, (0.01, 1.0)).astype(float),
        "o_orderdate": days,
        "o_orderpriority": draw.pick(count, PRIORITIES),
        "o_clerk": [f"Clerk#{clerk:09d}" for clerk in draw.whole(count, 1, 20)],
        "o_shippriority": np.zeros(count, dtype=int),
        "o_comment": draw.words(count, PROSE, 5, rare="special blithe requests"),
    }


def _lineitem(draw: Draw, count: int) -> Columns:
    # Every 25th order is a large one (Q18): it gets all its seven lines and high quantities.
    orders = draw.some("orders", count, prefer=lambda rows: rows["o_orderkey"].to_numpy() % 25 == 0, share=0.25)
    offers = draw.some("partsupp", count)
    keys = values_of(orders["o_orderkey"], 1)
    quantity = np.where(keys % 25 == 0, draw.whole(count, 44, 50), draw.whole(count, 1, 50))
    ordered = values_of(orders["o_orderdate"], FIRST_DAY).astype("datetime64[D]")
    shipped = ordered + draw.whole(count, 1, 121)
    committed = ordered + draw.whole(count, 30, 150)
    received = shipped + draw.whole(count, 1, 30)
    return {
        "l_orderkey": orders["o_orderkey"],
        "l_partkey": offers["ps_partkey"],
        "l_suppkey": offers["ps_suppkey"],
        "l_linenumber": draw.whole(count, 1, 7),
        "l_quantity": quantity.astype(float),
        "l_extendedprice": quantity * draw.money(count, 900, 2000),
        "l_discount": draw.whole(count, 0, 10) / 100,
        "l_tax": draw.whole(count, 0, 8) / 100,
        "l_returnflag": np.where(received <= TODAY, draw.pick(count, ("R", "A")), "N"),
        "l_linestatus": np.where(shipped > TODAY, "O", "F"),
        "l_shipdate": shipped,
        "l_commitdate": committed,
        "l_receiptdate": received,
        "l_shipinstruct": draw.pick(count, INSTRUCTIONS, ("DELIVER IN PERSON",)),
        "l_shipmode": draw.pick(count, MODES, ("AIR", "MAIL")),
        "l_comment": draw.words(count, PROSE, 3),
    }


SIZES = {
    "region": len(REGIONS),
    "nation": len(NATIONS),
    "supplier": 30,
    "part": 40,
    "partsupp": 120,
    "customer": 60,
    "orders": 300,
    "lineitem": 1200,
}

RECIPES = {
    "region": Recipe(SIZES["region"], _region, fixed=True, steady=frozenset({"r_name"})),
    "nation": Recipe(
        SIZES["nation"],
        _nation,
        (Reference(("n_regionkey",), "region", ("r_regionkey",)),),
        fixed=True,
        steady=frozenset({"n_name"}),
    ),
    "supplier": Recipe(SIZES["supplier"], _supplier, (Reference(("s_nationkey",), "nation", ("n_nationkey",)),)),
    "part": Recipe(SIZES["part"], _part),
    "partsupp": Recipe(
        SIZES["partsupp"],
        _partsupp,
        (
            Reference(("ps_partkey",), "part", ("p_partkey",)),
            Reference(("ps_suppkey",), "supplier", ("s_suppkey",)),
        ),
    ),
    "customer": Recipe(SIZES["customer"], _customer, (Reference(("c_nationkey",), "nation", ("n_nationkey",)),)),
    "orders": Recipe(SIZES["orders"], _orders, (Reference(("o_custkey",), "customer", ("c_custkey",)),)),
    "lineitem": Recipe(
        SIZES["lineitem"],
        _lineitem,
        (
            Reference(("l_orderkey",), "orders", ("o_orderkey",)),
            Reference(("l_partkey", "l_suppkey"), "partsupp", ("ps_partkey", "ps_suppkey")),
        ),
    ),
}
