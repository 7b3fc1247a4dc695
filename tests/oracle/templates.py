"""Views of every kind, by template: one for each operator and construct, each as likely as the others.

A template draws tables, columns and details, and says the query twice where Everview has
words that DuckDB lacks.

Where SQL leaves an order open, the order is total: it ends with the table's key, or with all columns
where there is none.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.oracle.schemas import NESTED, NUMBERS, ORDERED, VALUES, WHOLE, Table

Text = str | tuple[str, str]
"""A query, or the same as Everview and as DuckDB is asked it."""

TEMPLATES: dict[str, Callable[[Pen], Text]] = {}


def template(draw: Callable[[Pen], Text]) -> Callable[[Pen], Text]:
    TEMPLATES[draw.__name__] = draw
    return draw


@dataclass
class Pen:
    """Draws the details of one query."""

    rng: random.Random
    tables: Sequence[Table]

    def table(self, having: Sequence[str] = ()) -> Table:
        """A table, with a column of one of these types if there is one."""
        fitting = [table for table in self.tables if table.of(having)] if having else list(self.tables)
        return self.rng.choice(fitting or list(self.tables))

    def pick(self, *items: str) -> str:
        return self.rng.choice(items)

    def column(self, table: Table, kinds: Sequence[str], otherwise: str = "g") -> str:
        return self.rng.choice(table.of(kinds) or [otherwise])

    def some(self, names: Sequence[str], least: int = 1) -> list[str]:
        return self.rng.sample(list(names), self.rng.randint(min(least, len(names)), len(names)))

    def constant(self, table: Table, name: str) -> str:
        kind = dict(table.columns)[name]
        return f"CAST({self.rng.choice(VALUES[kind])} AS {kind})"

    def condition(self, table: Table, prefix: str = "") -> str:
        name = self.rng.choice(table.names)
        said = f"{prefix}{name}"
        if dict(table.columns)[name] in ("JSON", *NESTED):
            return f"{said} IS {self.pick('', 'NOT ')}NULL"
        value, other = self.constant(table, name), self.constant(table, name)
        return self.pick(
            f"{said} = {value}",
            f"{said} <> {value}",
            f"{said} < {value}",
            f"{said} >= {value}",
            f"{said} IS NULL",
            f"{said} IN ({value}, {other})",
            f"({said} > {value} OR {prefix}g IS NULL)",
            f"{said} BETWEEN {value} AND {other}",
            f"NOT ({said} = {value})",
            f"{said} IS DISTINCT FROM {value}",
        )

    def where(self, table: Table, prefix: str = "") -> str:
        return f" WHERE {self.condition(table, prefix)}" if self.rng.random() < 0.3 else ""

    def columns(self, table: Table, prefix: str = "") -> str:
        return ", ".join(f"{prefix}{name}" for name in self.some(table.names))

    def order(self, table: Table, prefix: str = "", first: Sequence[str] = ()) -> str:
        parts = [*first, *self.rng.sample(table.order, len(table.order))]
        ways = ["", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"]
        return ", ".join(f"{prefix}{name}{self.pick(*ways)}" for name in dict.fromkeys(parts))

    def call(self, table: Table) -> str:
        """Count, sum, average, extremes."""
        number = self.column(table, NUMBERS)
        any_ = self.rng.choice(table.names)
        ordered = self.column(table, ORDERED)
        distinct = "DISTINCT " if self.rng.random() < 0.25 else ""
        moment = self.column(table, ("TIMESTAMP", "TIME", "TIMESTAMP WITH TIME ZONE"))
        call = self.pick(
            "count(*)",
            f"count({distinct}{any_})",
            f"sum({distinct}{number})",
            f"sum({distinct}{number} + 1)"
            if dict(table.columns)[number] in ("INTEGER", "DOUBLE")
            else f"sum({number})",
            f"avg({distinct}{number})",
            f"avg({moment})",
            f"min({distinct}{ordered})",
            f"max({ordered})",
            f"sum(CASE WHEN g = 1 THEN {number} END)",
        )
        return f"{call} FILTER (WHERE {self.condition(table)})" if self.rng.random() < 0.2 else call

    def calls(self, table: Table) -> str:
        return ", ".join(f"{self.call(table)} AS a{n}" for n in range(self.rng.randint(1, 4)))

    def pair(self) -> tuple[Table, Table]:
        return self.table(), self.table()

    def equality(self, one: Table, other: Table) -> str:
        """What two tables, called l and r, are joined by."""
        alike = [
            (name, second)
            for name, kind in one.columns
            for second, another in other.columns
            if kind == another and kind not in ("JSON", *NESTED)
        ]
        parts = [f"l.{a} = r.{b}" for a, b in self.rng.sample(alike, 1)] if self.rng.random() < 0.4 else ["l.g = r.g"]
        if self.rng.random() < 0.2:
            a, b = self.rng.choice(alike)
            parts.append(f"l.{a} {self.pick('=', 'IS NOT DISTINCT FROM')} r.{b}")
        if self.rng.random() < 0.1:
            parts = [part.replace(" = ", " IS NOT DISTINCT FROM ") for part in parts]
        if self.rng.random() < 0.3:
            parts.append(self.pick("l.g > 0", "r.g < 3", "l.g + r.g > 1", "l.g <> 2 OR r.g IS NULL"))
        return " AND ".join(f"({part})" for part in parts)

    def both(self, one: Table, other: Table) -> str:
        """Some columns of both sides, under names of their own."""
        names = [f"l.{name}" for name in self.some(one.names)] + [f"r.{name}" for name in self.some(other.names)]
        return ", ".join(f"{name} AS o{n}" for n, name in enumerate(names))


# ---------------------------------------------------------------- rows by themselves


@template
def projection(pen: Pen) -> Text:
    table = pen.table()
    return f"SELECT {pen.columns(table)}, g + 1 AS more, coalesce(g, 7) AS known FROM {table.name}"


@template
def selection(pen: Pen) -> Text:
    table = pen.table()
    return f"SELECT {pen.columns(table)} FROM {table.name} WHERE {pen.condition(table)} AND {pen.condition(table)}"


@template
def union_all(pen: Pen) -> Text:
    one, other = pen.pair()
    return f"SELECT g FROM {one.name}{pen.where(one)} UNION ALL SELECT g FROM {other.name}{pen.where(other)}"


@template
def unnest(pen: Pen) -> Text:
    table = pen.table(("INTEGER[]",))
    items = pen.column(table, ("INTEGER[]",), "[g, 1, g]")
    join = pen.pick("CROSS JOIN unnest({}) AS u(i)", "LEFT JOIN unnest({}) AS u(i) ON true").format(
        f"t.{items}" if items.isidentifier() else "[t.g, 1, t.g]"
    )
    return f"SELECT t.g, u.i FROM {table.name} AS t {join}"


@template
def values(pen: Pen) -> Text:
    table = pen.table()
    return f"SELECT v.i, t.g FROM (VALUES (0), (1), (1), (NULL)) AS v(i) LEFT JOIN {table.name} AS t ON t.g = v.i"


@template
def series(pen: Pen) -> Text:
    joined = f"generate_series(0, 3) AS s(i) LEFT JOIN {pen.table().name} AS t ON t.g = s.i"
    return f"SELECT s.i, count(t.g) AS n FROM {joined} GROUP BY s.i"


@template
def windows_of_time(pen: Pen) -> Text:
    table = pen.table(("TIMESTAMP",))
    moment = pen.column(table, ("TIMESTAMP",), "")
    if not moment:
        return f"SELECT g FROM {table.name}"
    query = "SELECT window_start, window_end, count(*) AS n, max(g) AS most FROM {} GROUP BY window_start, window_end"
    bucket = f"time_bucket(INTERVAL '1 hour', {moment})"
    plain = f"(SELECT *, {bucket} AS window_start, {bucket} + INTERVAL '1 hour' AS window_end"
    plain += f" FROM {table.name} WHERE {moment} IS NOT NULL)"
    return query.format(f"TUMBLE({table.name}, {moment}, INTERVAL '1 hour')"), query.format(plain)


# ---------------------------------------------------------------- groups


@template
def groups(pen: Pen) -> Text:
    table = pen.table()
    key = ", ".join(pen.some([name for name, kind in table.columns if kind not in NESTED])[:2])
    return f"SELECT {key}, {pen.calls(table)} FROM {table.name}{pen.where(table)} GROUP BY {key}"


@template
def groups_by_expression(pen: Pen) -> Text:
    table = pen.table()
    return f"SELECT g % 2 AS half, {pen.calls(table)} FROM {table.name}{pen.where(table)} GROUP BY g % 2"


@template
def one_group(pen: Pen) -> Text:
    table = pen.table()
    return f"SELECT {pen.calls(table)} FROM {table.name}{pen.where(table)}"


@template
def having(pen: Pen) -> Text:
    table = pen.table()
    test = pen.pick("count(*) > 1", "max(g) IS NOT NULL", "sum(g) > 2", f"count(DISTINCT {table.names[0]}) < 3")
    return f"SELECT g, {pen.calls(table)} FROM {table.name} GROUP BY g HAVING {test}"


@template
def grouping_sets(pen: Pen) -> Text:
    table = pen.table()
    other = pen.column(table, [kind for kind in ORDERED if kind != "BLOB"])
    by = pen.pick(
        f"ROLLUP (g, {other})", f"CUBE (g, {other})", f"GROUPING SETS ((g), ({other}), (), (g, {other}))", "ROLLUP (g)"
    )
    if other == "g":
        by = pen.pick("ROLLUP (g)", "CUBE (g)", "GROUPING SETS ((g), ())")
    other = "" if other == "g" or other not in by else f", {other}"
    return (
        f"SELECT g{other}, grouping(g) AS level, {pen.calls(table)} FROM {table.name}{pen.where(table)} GROUP BY {by}"
    )


@template
def other_aggregates(pen: Pen) -> Text:
    table = pen.table()
    number, any_ = pen.column(table, WHOLE), pen.rng.choice(table.names)
    order = pen.order(table)
    forms = [
        f"list({any_} ORDER BY {order})",
        f"string_agg(CAST({pen.column(table, WHOLE)} AS VARCHAR), '-' ORDER BY {order})",
        f"median({number})",
        "max(g) - min(g)",
        f"quantile_disc({pen.column(table, ORDERED)}, 0.5)",
        "bool_or(g > 1)",
        f"bit_xor({number})",
        f"first({any_} ORDER BY {order})",
        f"last({any_} ORDER BY {order})",
        f"arg_max({any_}, g ORDER BY {order})",
        f"max({pen.column(table, ORDERED)}, 2)",
        "count_if(g > 1)",
        "list(DISTINCT g ORDER BY g)",
        f"approx_count_distinct({any_})" if dict(table.columns)[any_] not in NESTED else "count(g)",
    ]
    calls = ", ".join(f"{call} AS a{n}" for n, call in enumerate(pen.rng.sample(forms, 3)))
    by = pen.pick(" GROUP BY g", " GROUP BY g", "")
    return f"SELECT {'g, ' if by else ''}{calls} FROM {table.name}{pen.where(table)}{by}"


@template
def sums_of_sums(pen: Pen) -> Text:
    table = pen.table()
    inner = f"SELECT g, count(*) AS n, {pen.call(table)} AS a FROM {table.name} GROUP BY g"
    return f"SELECT n, count(*) AS groups, min(a) AS least, max(g) AS last FROM ({inner}) GROUP BY n"


# ---------------------------------------------------------------- joins


@template
def join(pen: Pen) -> Text:
    one, other = pen.pair()
    kind = pen.pick("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
    on = pen.equality(one, other)
    where = pen.where(one, "l.")
    return f"SELECT {pen.both(one, other)} FROM {one.name} AS l {kind} {other.name} AS r ON {on}{where}"


@template
def half_join(pen: Pen) -> Text:
    one, other = pen.pair()
    kind = pen.pick("SEMI JOIN", "ANTI JOIN")
    return f"SELECT l.* FROM {one.name} AS l {kind} {other.name} AS r ON {pen.equality(one, other)}"


@template
def join_using(pen: Pen) -> Text:
    one, other = pen.pair()
    kind = pen.pick("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
    shown = f"g, l.{one.names[0]} AS a, r.{other.names[0]} AS b"
    return f"SELECT {shown} FROM {one.name} AS l {kind} {other.name} AS r USING (g)"


@template
def natural_join(pen: Pen) -> Text:
    one, other = pen.pair()
    kind = pen.pick("JOIN", "LEFT JOIN", "FULL JOIN")
    left, right = f"(SELECT g, x AS a FROM {one.name})", f"(SELECT g, x AS b FROM {other.name})"
    return f"SELECT * FROM {left} AS l NATURAL {kind} {right} AS r"


@template
def many_joins(pen: Pen) -> Text:
    one, other, third = pen.table(), pen.table(), pen.table()
    kinds = [pen.pick("JOIN", "LEFT JOIN", "FULL JOIN") for _ in range(2)]
    shown = f"l.{one.names[0]} AS a, r.{other.names[0]} AS b, m.{third.names[0]} AS c, count(*) AS n"
    return (
        f"SELECT {shown} FROM {one.name} AS l {kinds[0]} {other.name} AS r ON {pen.equality(one, other)}"
        f" {kinds[1]} {third.name} AS m ON m.g = {pen.pick('r.g', 'l.g', 'coalesce(l.g, r.g)')} GROUP BY ALL"
    )


@template
def one_row_join(pen: Pen) -> Text:
    one, other = pen.pair()
    right = f"(SELECT count(*) AS n, max(g) AS m FROM {other.name})"
    return f"SELECT l.g, r.n, l.g = r.m AS most FROM {one.name} AS l CROSS JOIN {right} AS r"


@template
def free_join(pen: Pen) -> Text:
    one, other = pen.pair()
    kind = pen.pick("JOIN", "LEFT JOIN", "FULL JOIN")
    on = pen.pick("l.g < r.g", "l.g <= r.g AND r.g <> 2", "l.g + r.g = 3")
    if kind == "FULL JOIN":
        on = "l.g + 1 = r.g AND l.g < 3"
    return f"SELECT l.g AS a, r.g AS b, l.{one.names[0]} AS c FROM {one.name} AS l {kind} {other.name} AS r ON {on}"


@template
def asof_join(pen: Pen) -> Text:
    one = pen.table()
    other = pen.table()
    kind = pen.pick("ASOF JOIN", "ASOF LEFT JOIN")
    inner = f"(SELECT g, count(*) AS n FROM {other.name} WHERE g IS NOT NULL GROUP BY g)"
    return f"SELECT l.g, l.{one.names[0]} AS a, r.g AS b, r.n FROM {one.name} AS l {kind} {inner} AS r ON l.g >= r.g"


# ---------------------------------------------------------------- bags and sets


@template
def distinct(pen: Pen) -> Text:
    table = pen.table()
    return f"SELECT DISTINCT {pen.columns(table)} FROM {table.name}{pen.where(table)}"


@template
def distinct_on(pen: Pen) -> Text:
    table = pen.table()
    return f"SELECT DISTINCT ON (g) {', '.join(table.names)} FROM {table.name} ORDER BY {pen.order(table, first=['g'])}"


@template
def set_operation(pen: Pen) -> Text:
    one, other = pen.pair()
    words = pen.pick("UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")
    alike = [column[0] for column in one.columns if column in other.columns]
    columns = ", ".join(dict.fromkeys(["g", *pen.some(alike, 0)]))
    left, right = (f"SELECT {columns} FROM {table.name}{pen.where(table)}" for table in (one, other))
    return f"{left} {words} {right}"


# ---------------------------------------------------------------- subqueries


@template
def exists(pen: Pen) -> Text:
    one, other = pen.pair()
    word = pen.pick("EXISTS", "NOT EXISTS")
    more = pen.pick("", " AND r.g > 0", " AND l.g < r.x" if "x" in other.of(WHOLE) else "")
    asked = f"(SELECT 1 FROM {other.name} AS r WHERE r.g = l.g{more})"
    return f"SELECT {pen.columns(one, 'l.')} FROM {one.name} AS l WHERE {word} {asked}"


@template
def contained(pen: Pen) -> Text:
    one, other = pen.pair()
    word = pen.pick("IN", "NOT IN")
    where = pen.pick("", " WHERE r.g IS NOT NULL", " WHERE r.g = l.g")
    asked = f"(SELECT r.g FROM {other.name} AS r{where})"
    return f"SELECT {pen.columns(one, 'l.')} FROM {one.name} AS l WHERE l.g {word} {asked}"


@template
def scalar(pen: Pen) -> Text:
    one, other = pen.pair()
    call = pen.pick("count(*)", "max(r.g)", "sum(r.g)", "min(r.x)" if other.of(NUMBERS) else "min(r.g)")
    where = pen.pick("", " WHERE r.g = l.g", " WHERE r.g <= l.g")
    return f"SELECT l.{one.names[0]} AS a, l.g, (SELECT {call} FROM {other.name} AS r{where}) AS s FROM {one.name} AS l"


@template
def common_table(pen: Pen) -> Text:
    table = pen.table()
    return (
        f"WITH n AS (SELECT g, count(*) AS n FROM {table.name} GROUP BY g), m AS (SELECT max(n) AS most FROM n)"
        " SELECT n.g, n.n FROM n, m WHERE n.n = m.most"
    )


@template
def recursion(pen: Pen) -> Text:
    table = pen.table()
    return (
        f"WITH RECURSIVE r AS (SELECT g, 0 AS step FROM {table.name} WHERE g = 0 UNION "
        f"SELECT t.g, r.step + 1 FROM r JOIN {table.name} AS t ON t.g = r.g + 1 WHERE r.step < 5) SELECT g, step FROM r"
    )


# ---------------------------------------------------------------- order


@template
def window(pen: Pen) -> Text:
    table = pen.table()
    order, number = pen.order(table), pen.column(table, WHOLE)
    by = pen.pick("PARTITION BY g ", "PARTITION BY g % 2 ", "")
    any_ = pen.rng.choice(table.names)
    forms = [
        f"row_number() OVER ({by}ORDER BY {order})",
        f"rank() OVER ({by}ORDER BY g)",
        f"dense_rank() OVER ({by}ORDER BY {pen.column(table, ORDERED)})",
        f"lag({any_}) OVER ({by}ORDER BY {order})",
        f"lead({any_}, 2) OVER ({by}ORDER BY {order})",
        f"first_value({any_}) OVER ({by}ORDER BY {order})",
        f"last_value({any_}) OVER ({by}ORDER BY {order})",
        f"nth_value({any_}, 2) OVER ({by}ORDER BY {order} ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING)",
        f"ntile(3) OVER ({by}ORDER BY {order})",
        f"cume_dist() OVER ({by}ORDER BY g)",
        f"sum({number}) OVER ({by}ORDER BY g)",
        f"sum({number}) OVER ({by}ORDER BY {order} ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
        f"count(*) OVER ({by}ORDER BY g GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        f"count(*) OVER ({by}ORDER BY g RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
        f"count(*) OVER ({by}ORDER BY {order} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW)",
        f"max({number}) OVER ({by})",
        f"avg({number}) OVER ({by})",
    ]
    calls = ", ".join(f"{call} AS w{n}" for n, call in enumerate(pen.rng.sample(forms, 2)))
    return f"SELECT {pen.columns(table)}, {calls} FROM {table.name}{pen.where(table)}"


@template
def qualify(pen: Pen) -> Text:
    table = pen.table()
    test = pen.pick(
        f"row_number() OVER (PARTITION BY g ORDER BY {pen.order(table)}) <= 2",
        "count(*) OVER (PARTITION BY g) > 1",
        "rank() OVER (PARTITION BY g % 2 ORDER BY g DESC) = 1",
        f"lag(g) OVER (ORDER BY {pen.order(table)}) IS DISTINCT FROM g",
    )
    return f"SELECT {pen.columns(table)} FROM {table.name} QUALIFY {test}"


@template
def first_of_each(pen: Pen) -> Text:
    table = pen.table()
    number = f"{pen.pick('row_number() OVER (PARTITION BY g ORDER BY {})', 'rank() OVER (PARTITION BY g ORDER BY {})')}"
    inner = f"SELECT *, {number.format(pen.order(table))} AS n FROM {table.name}"
    return f"SELECT g, n, {table.names[0]} AS a FROM ({inner}) WHERE n <= {pen.rng.randint(1, 3)}"


@template
def top(pen: Pen) -> Text:
    table = pen.table()
    offset = f" OFFSET {pen.rng.randint(1, 3)}" if pen.rng.random() < 0.4 else ""
    first = pen.some(table.of(ORDERED), 0)[:1]
    order = f"ORDER BY {pen.order(table, first=first)} LIMIT {pen.rng.randint(0, 5)}{offset}"
    return f"SELECT {', '.join(table.names)} FROM {table.name}{pen.where(table)} {order}"


@template
def top_with_ties(pen: Pen) -> Text:
    table = pen.table()
    shown, count = ", ".join(table.names), pen.rng.randint(1, 4)
    by = f"{pen.column(table, ORDERED)}{pen.pick('', ' DESC', ' NULLS FIRST')}"
    return (
        f"SELECT {shown} FROM {table.name} ORDER BY {by} LIMIT {count} WITH TIES",
        f"SELECT {shown} FROM {table.name} QUALIFY rank() OVER (ORDER BY {by}) <= {count}",
    )


# ---------------------------------------------------------------- views that differ in constants


def family(pen: Pen, count: int) -> list[Text]:
    """Queries that differ in nothing but constants."""
    table = pen.table()
    name = pen.column(table, [kind for kind in ORDERED if kind not in ("BOOLEAN", "UUID")])
    compared = pen.pick("=", "<", ">=", "<>")
    form = pen.pick(
        "SELECT {columns} FROM {t} WHERE {c}",
        "SELECT g, {calls} FROM {t} WHERE {c} GROUP BY g",
        "SELECT {calls} FROM {t} WHERE {c}",
        "SELECT DISTINCT g FROM {t} WHERE {c}",
        "SELECT l.g, r.x FROM (SELECT * FROM {t} WHERE {c}) AS l LEFT JOIN {u} AS r ON l.g = r.g",
        "SELECT l.g FROM {u} AS l WHERE l.g NOT IN (SELECT g FROM {t} WHERE g IS NOT NULL AND {c})",
        "SELECT g, row_number() OVER (PARTITION BY g ORDER BY {order}) AS n FROM {t} WHERE {c}",
        "SELECT {all} FROM {t} WHERE {c} ORDER BY {order} LIMIT 3",
        "SELECT g, list({any} ORDER BY {order}) AS l FROM {t} WHERE {c} GROUP BY g",
        "SELECT g FROM {t} WHERE {c} EXCEPT SELECT g FROM {u}",
        "SELECT g FROM {t} WHERE {c} UNION ALL SELECT g FROM {u}",
        "SELECT l.g AS a, r.g AS b FROM {u} AS l JOIN (SELECT * FROM {t} WHERE {c}) AS r ON l.g < r.g",
        "SELECT g, count(*) FILTER (WHERE {c}) AS n FROM {t} GROUP BY g",
        "SELECT u.i FROM {t}, unnest([g, 1]) AS u(i) WHERE {c}",
        "SELECT g, grouping(g) AS level, count(*) AS n FROM {t} WHERE {c} GROUP BY ROLLUP (g)",
    )
    said = {
        "t": table.name,
        "u": pen.table().name,
        "columns": pen.columns(table),
        "all": ", ".join(table.names),
        "any": pen.rng.choice(table.names),
        "calls": pen.calls(table),
        "order": pen.order(table),
    }
    return [form.format(c=f"{name} {compared} {pen.constant(table, name)}", **said) for _ in range(count)]
