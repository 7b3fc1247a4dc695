"""Changes of trees: a clause that is lost, or read as another.

Each change is made to what the parser read, where DuckDB's own parse can notice it, and to the resolved
tree, where only the trial can.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from tests.mutations.mutant import Change, Fault, Mutant, expanded, parsed, resolved
from tests.mutations.targets import Reading

ORDERED = "SELECT id, amount FROM orders ORDER BY amount DESC NULLS FIRST, id LIMIT 3"
SUMMED = "SELECT customer, sum(amount) AS total FROM orders WHERE amount > 1 GROUP BY customer HAVING count(*) > 1"
WINDOWED = (
    "SELECT id, sum(amount) OVER (PARTITION BY customer ORDER BY amount DESC, id "
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM orders WHERE amount < 100"
)
JOINED = "SELECT o.id, c.name FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id AND o.amount > c.score"


@dataclass(frozen=True)
class Lost:
    """A change of a tree, and a view in which it shows."""

    name: str
    view: str
    change: Change
    stages: tuple[Reading, ...] = (Reading.PARSED, Reading.RESOLVED)


def lose(kind: type[exp.Expr], part: str, other: object = None) -> Change:
    """A part of all nodes of a kind, lost or replaced."""

    def change(tree: exp.Expr) -> None:
        for node in list(tree.find_all(kind)):
            if node.args.get(part):
                node.set(part, other)

    return change


def gain(kind: type[exp.Expr], part: str, value: object) -> Change:
    """A part of all nodes of a kind, set."""

    def change(tree: exp.Expr) -> None:
        for node in list(tree.find_all(kind)):
            node.set(part, value)

    return change


def swap(kind: type[exp.Expr], other: Callable[[exp.Expr], exp.Expr]) -> Change:
    """All nodes of a kind replaced, the outermost alone where they stand in each other."""

    def change(tree: exp.Expr) -> None:
        while (node := next((n for n in tree.find_all(kind) if not n.meta.get("swapped")), None)) is not None:
            made = other(node.copy())
            for inner in made.walk():
                inner.meta["swapped"] = True
            node.replace(made)

    return change


def _bare(node: exp.Expr) -> exp.Expr:
    found: exp.Expr = node.this
    return found


def _as(kind: type[exp.Expr]) -> Callable[[exp.Expr], exp.Expr]:
    return lambda node: kind(**node.args)


def _less(node: exp.Expr) -> exp.Expr:
    node.set("expressions", node.expressions[:-1])
    return node


def _next_number(node: exp.Expr) -> exp.Expr:
    return exp.Literal.string(f"{node.name}x") if node.is_string else exp.Literal.number(int(node.name) + 1)


def _rolled_up(node: exp.Expr) -> exp.Expr:
    return exp.Group(expressions=node.expressions[0].expressions)


def _reversed_columns(node: exp.Expr) -> exp.Expr:
    node.set("columns", (node.args.get("columns") or [])[::-1])
    return node


LOST: tuple[Lost, ...] = (
    Lost("DISTINCT is lost", "SELECT DISTINCT a, b FROM visits", lose(exp.Select, "distinct")),
    Lost(
        "DISTINCT ON is DISTINCT",
        "SELECT DISTINCT ON (a) a, b, c FROM visits ORDER BY a, b, c",
        lose(exp.Distinct, "on"),
    ),
    Lost("WHERE is lost", "SELECT id, amount FROM orders WHERE amount > 1", lose(exp.Select, "where")),
    Lost("HAVING is lost", SUMMED, lose(exp.Select, "having")),
    Lost("QUALIFY is lost", "SELECT id FROM orders QUALIFY rank() OVER (ORDER BY id) = 2", lose(exp.Select, "qualify")),
    Lost(
        "FILTER is lost", "SELECT a, count(*) FILTER (WHERE b > 1) AS n FROM visits GROUP BY a", swap(exp.Filter, _bare)
    ),
    Lost("DESC is lost", ORDERED, lose(exp.Ordered, "desc", False)),
    Lost("NULLS FIRST is lost", ORDERED, lose(exp.Ordered, "nulls_first", False)),
    Lost("ORDER BY is lost", ORDERED, lose(exp.Select, "order")),
    Lost("LIMIT is lost", ORDERED, lose(exp.Select, "limit")),
    Lost("OFFSET is lost", f"{ORDERED} OFFSET 1", lose(exp.Select, "offset")),
    Lost("a window's frame is lost", WINDOWED, lose(exp.Window, "spec")),
    Lost("a window's partition is lost", WINDOWED, lose(exp.Window, "partition_by")),
    Lost("a window's order is lost", WINDOWED, lose(exp.Window, "order")),
    Lost(
        "EXCLUDE of a frame is lost",
        "SELECT id, sum(amount) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) AS s "
        "FROM orders",
        lose(exp.WindowSpec, "exclude"),
    ),
    Lost(
        "IGNORE NULLS is lost",
        "SELECT id, last_value(amount IGNORE NULLS) OVER (ORDER BY id) AS v FROM orders",
        swap(exp.IgnoreNulls, _bare),
    ),
    Lost("LEFT is lost", JOINED, lose(exp.Join, "side")),
    Lost(
        "FULL is LEFT",
        "SELECT o.id, c.id AS c FROM orders AS o FULL JOIN customers AS c ON o.customer = c.id",
        lose(exp.Join, "side", "LEFT"),
    ),
    Lost(
        "RIGHT is LEFT",
        "SELECT o.id, c.id AS c FROM orders AS o RIGHT JOIN customers AS c ON o.customer = c.id",
        lose(exp.Join, "side", "LEFT"),
    ),
    Lost(
        "ANTI is SEMI",
        "SELECT o.id FROM orders AS o ANTI JOIN customers AS c ON o.customer = c.id",
        lose(exp.Join, "kind", "SEMI"),
    ),
    Lost(
        "ON is lost",
        "SELECT o.id, c.id AS c FROM orders AS o JOIN customers AS c ON o.customer = c.id",
        lose(exp.Join, "on"),
    ),
    Lost("a part of ON is lost", JOINED, swap(exp.And, _bare)),
    Lost(
        "USING is lost",
        "SELECT c.name, p.weight FROM customers AS c JOIN (SELECT number AS id, weight FROM parts) AS p USING (id)",
        lose(exp.Join, "using"),
        (Reading.PARSED,),
    ),
    Lost(
        "ALL of UNION ALL is lost",
        "SELECT a, b FROM visits UNION ALL SELECT id, score FROM customers",
        gain(exp.Union, "distinct", True),
    ),
    Lost(
        "UNION is UNION ALL",
        "SELECT a FROM visits UNION SELECT score FROM customers",
        lose(exp.Union, "distinct", False),
    ),
    Lost(
        "EXCEPT is INTERSECT",
        "SELECT a FROM visits EXCEPT SELECT score FROM customers",
        swap(exp.Except, _as(exp.Intersect)),
    ),
    Lost(
        "ALL of EXCEPT ALL is lost",
        "SELECT a FROM visits EXCEPT ALL SELECT score FROM customers",
        gain(exp.Except, "distinct", True),
    ),
    Lost(
        "DISTINCT of an aggregate is lost",
        "SELECT a, count(DISTINCT b) AS n FROM visits GROUP BY a",
        swap(exp.Distinct, lambda node: node.expressions[0]),
    ),
    Lost(
        "the order of an aggregate is lost",
        "SELECT customer, list(amount ORDER BY amount DESC, id) AS l FROM orders GROUP BY customer",
        lose(exp.Ordered, "desc", False),
    ),
    Lost(
        "ROLLUP is lost", "SELECT a, b, count(*) AS n FROM visits GROUP BY ROLLUP (a, b)", swap(exp.Group, _rolled_up)
    ),
    Lost("a constant is another", "SELECT id, amount + 7 AS more FROM orders", swap(exp.Literal, _next_number)),
    Lost("a text is another", "SELECT id, status = 'a' AS is_a FROM orders", swap(exp.Literal, _next_number)),
    Lost("a value of IN is lost", "SELECT id, amount FROM orders WHERE amount IN (1, 2, 3)", swap(exp.In, _less)),
    Lost(
        "IS NOT DISTINCT FROM is =",
        "SELECT o.id, v.a FROM orders AS o JOIN visits AS v ON o.customer IS NOT DISTINCT FROM v.a",
        swap(exp.NullSafeEQ, _as(exp.EQ)),
    ),
    Lost(
        "COLLATE is lost", "SELECT id, status FROM orders WHERE status COLLATE nocase = 'a'", swap(exp.Collate, _bare)
    ),
    Lost("NOT is lost", "SELECT id, status FROM orders WHERE NOT status = 'a'", swap(exp.Not, _bare)),
    Lost("AND is OR", "SELECT id FROM orders WHERE amount > 1 AND customer > 1", swap(exp.And, _as(exp.Or))),
    Lost("<= is <", "SELECT id, amount FROM orders WHERE amount <= 3", swap(exp.LTE, _as(exp.LT))),
    Lost(
        "ELSE is lost", "SELECT id, CASE WHEN amount > 1 THEN 1 ELSE 0 END AS x FROM orders", lose(exp.Case, "default")
    ),
    Lost("ILIKE is LIKE", "SELECT id, status FROM orders WHERE status ILIKE 'A%'", swap(exp.ILike, _as(exp.Like))),
    Lost(
        "a type is another",
        "SELECT id, CAST(price AS BIGINT) % 2 = 0 AS even FROM orders",
        swap(exp.DataType, lambda node: exp.DataType.build("DOUBLE")),
    ),
    Lost(
        "EXISTS is lost",
        "SELECT c.id FROM customers AS c WHERE EXISTS (SELECT 1 FROM parts AS p WHERE p.customer = c.id)",
        swap(exp.Exists, lambda node: exp.true()),
    ),
    Lost("EXCLUDE of a star is lost", "SELECT * EXCLUDE (c) FROM visits", lose(exp.Star, "except_"), (Reading.PARSED,)),
    Lost(
        "the names of columns are exchanged",
        "SELECT q.x, q.y FROM (SELECT a, b FROM visits) AS q(x, y)",
        swap(exp.TableAlias, _reversed_columns),
        (Reading.PARSED,),
    ),
    Lost(
        "LATERAL loses its side",
        "SELECT o.id, i FROM orders AS o LEFT JOIN unnest(o.items) AS u(i) ON TRUE",
        lose(exp.Join, "side"),
    ),
    Lost(
        "a part that nobody knows", "SELECT a, b FROM visits", gain(exp.Select, "novel", exp.true()), (Reading.PARSED,)
    ),
    Lost(
        "RECURSIVE's end is lost",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) "
        "SELECT r.n, v.a FROM r JOIN visits AS v ON v.a = r.n",
        swap(exp.LT, _as(exp.LTE)),
    ),
    Lost(
        "a named query is lost",
        "WITH w AS (SELECT a FROM visits WHERE b > 1) SELECT a FROM w",
        lose(exp.Select, "where"),
        (Reading.EXPANDED, Reading.PARSED),
    ),
)

_FAULTS: dict[Reading, Callable[[Change], Fault]] = {
    Reading.PARSED: parsed,
    Reading.EXPANDED: expanded,
    Reading.RESOLVED: resolved,
}

MUTANTS: tuple[Mutant, ...] = tuple(
    Mutant(one.name, stage, _FAULTS[stage](one.change), (one.view,)) for one in LOST for stage in one.stages
)
