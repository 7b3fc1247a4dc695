"""Random queries: what a grammar of SQL makes of a seeded generator.

:func:`random_query` draws the text of a query that DuckDB accepts and whose answer
is one bag of rows, whatever order rows come in, so it can be compared with anything that claims
to compute the same.

    >>> query = random_query(random.Random(1), frozenset({Feature.JOIN, Feature.AGGREGATE}))
    >>> sorted(query.tables) == sorted(set(query.tables))
    True

``features`` switches parts of the grammar on; a query uses some of those given, and says which
(:attr:`Query.used`). ``text`` may use Everview's own constructs (WITH TIES, TUMBLE); ``plain``
asks for the same in DuckDB's SQL. The tables, and rows for them, are those of
:mod:`tests.queries.random_tables`.

How an answer is made certain: wherever an order decides (LIMIT, row_number, DISTINCT ON, list),
the order ends with every column in sight, so that rows that still tie are equal; subqueries that
stand for a value have one row at most; sums are of numbers that floats hold exactly; nothing is
cast that might not fit.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.queries.random_sources import Sources
from tests.queries.random_words import ALL, NAMES, Atom, Drawn, Feature, Kind, Scope, quoted, reads_column

__all__ = ["ALL", "Feature", "Query", "random_query"]


@dataclass(frozen=True)
class Query:
    """A query that was drawn."""

    text: str
    plain: str
    """The same in DuckDB's SQL."""
    tables: tuple[str, ...]
    """The tables it reads."""
    used: frozenset[Feature]


def random_query(rng: random.Random, features: frozenset[Feature] = ALL, depth: int = 2) -> Query:
    """A query whose subqueries are nested up to ``depth``. The columns have different names."""
    maker = _Maker(rng, features)
    drawn = maker.query(depth, [])
    text, plain = _ours(drawn.text), _plain(drawn.text)
    return Query(text, plain, tuple(sorted(maker.tables)), frozenset(maker.used))


def _ours(text: str) -> str:
    text = re.sub(r"⟦ties (.*?)\|(\d+)⟧", r"ORDER BY \1 LIMIT \2 WITH TIES", text)
    text = re.sub(r"⟦tumble (.*?)\|(.*?)⟧", r"TUMBLE(\1, t, INTERVAL '\2')", text)
    return re.sub(r"⟦hop (.*?)\|(.*?)\|(.*?)⟧", r"HOP(\1, t, INTERVAL '\2', INTERVAL '\3')", text)


def _plain(text: str) -> str:
    text = re.sub(r"⟦ties (.*?)\|(\d+)⟧", r"QUALIFY rank() OVER (ORDER BY \1) <= \2", text)
    start = r"time_bucket(INTERVAL '\2', t)"
    bounds = rf"{start} AS window_start, {start} + INTERVAL '\2' AS window_end"
    text = re.sub(r"⟦tumble (.*?)\|(.*?)⟧", rf"(SELECT *, {bounds} FROM \1 WHERE t IS NOT NULL)", text)
    first = r"time_bucket(INTERVAL '\2', t) - INTERVAL '\3' + INTERVAL '\2'"
    starts = rf"unnest(range({first}, t + INTERVAL '1 microsecond', INTERVAL '\2')) AS window_start"
    started = rf"(SELECT *, {starts} FROM \1 WHERE t IS NOT NULL)"
    hop = rf"(SELECT *, window_start + INTERVAL '\3' AS window_end FROM {started})"
    return re.sub(r"⟦hop (.*?)\|(.*?)\|(.*?)⟧", hop, text)


class _Maker(Sources):
    """Draws one query."""

    def query(self, depth: int, outer: list[Atom], kinds: Sequence[Kind] | None = None) -> Drawn:
        """A query, with columns of these kinds where they are given."""
        if depth > 0 and self.may(Feature.WITH, 0.12):
            inner = self.query(depth - 1, [])
            name = f"w{self.alias()}"
            known = self.named
            self.named = [*known, Drawn(name, inner.columns)]
            body = self.query(depth, outer, kinds)
            self.named = known
            rest = f", {body.text[5:]}" if body.text.startswith("WITH ") else f" {body.text}"
            return replace(body, text=f"WITH {name} AS ({inner.text}){rest}")
        combined = depth > 0 and self.chance(0.15)
        if combined and not outer and self.features & {Feature.UNION_ALL, Feature.SET_OPERATION}:
            return self.combined(depth, kinds)
        if depth > 0 and not outer and self.may(Feature.TIES, 0.06):
            inner = self.select(depth - 1, [], kinds)
            name, by = self.alias(), self.pick(range(len(inner.columns)))
            shown = ", ".join(f"{name}.{quoted(c)}" for c, _ in inner.columns)
            order = f"{name}.{quoted(inner.columns[by][0])}{self.direction()}"
            ties = f"⟦ties {order}|{self.rng.randint(1, 4)}⟧"
            return Drawn(f"SELECT {shown} FROM ({inner.text}) AS {name} {ties}", inner.columns)
        return self.select(depth, outer, kinds)

    def combined(self, depth: int, kinds: Sequence[Kind] | None) -> Drawn:
        left = self.select(depth - 1, [], kinds)
        right = self.select(depth - 1, [], [kind for _, kind in left.columns])
        words = self.one_of(
            (Feature.UNION_ALL, 2, lambda: "UNION ALL"),
            (
                Feature.SET_OPERATION,
                3,
                lambda: self.pick(["UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"]),
            ),
        )
        text = f"({left.text}) {words} ({right.text})"
        if self.may(Feature.TOP_K, 0.15):
            text = f"{text} ORDER BY {', '.join(str(n + 1) for n, _ in enumerate(left.columns))} LIMIT 3"
        return Drawn(text, left.columns)

    def select(self, depth: int, outer: list[Atom], kinds: Sequence[Kind] | None = None) -> Drawn:
        """A SELECT."""
        origin, scope = self.origin(depth, outer)
        where = self.where(scope)
        grouped = self.may(Feature.AGGREGATE, 0.35)
        if grouped:
            rows, after = self.groups(scope)
        else:
            rows, after = scope, ""
        order = [atom.text for atom in rows.atoms]
        nodes: list[Atom] = []
        if (not outer or self.chance(0.2)) and self.may(Feature.WINDOW, 0.2):
            nodes = [self.window(rows) for _ in range(self.rng.randint(1, 2))]
        qualify = self.qualify(rows, nodes, outer)
        shown = replace(rows, atoms=[*rows.atoms, *nodes, *nodes])
        wanted = list(kinds) if kinds is not None else [self.pick("iiiftb") for _ in range(self.rng.randint(1, 4))]
        outputs = [self.expression(shown, kind) for kind in wanted]
        if kinds is None and (grouped or self.chance(0.5)):
            plain = self.rng.sample(rows.atoms, min(len(rows.atoms), self.rng.randint(0, 3)))
            outputs = [*(atom.text for atom in plain), *outputs]
            wanted = [*(atom.kind for atom in plain), *wanted]
        names = self.names(len(outputs))
        columns = ", ".join(f"{text} AS {quoted(name)}" for text, name in zip(outputs, names, strict=True))
        head, tail = self.cut(rows, names, order, outer)
        text = f"SELECT {head}{columns} FROM {origin}{where}{after}{qualify}{tail}"
        return Drawn(text, tuple(zip(names, wanted, strict=True)))

    def names(self, count: int) -> list[str]:
        if self.chance(0.3):
            return self.rng.sample(NAMES, count) if count <= len(NAMES) else [f"c{n}" for n in range(count)]
        return [f"c{n}" for n in range(count)]

    def cut(self, rows: Scope, names: Sequence[str], order: list[str], outer: list[Atom]) -> tuple[str, str]:
        """DISTINCT, DISTINCT ON, ORDER BY and LIMIT."""
        if self.may(Feature.DISTINCT, 0.1):
            tail = ""
            if self.may(Feature.TOP_K, 0.2):
                tail = f" ORDER BY {', '.join(str(n + 1) for n, _ in enumerate(names))} LIMIT {self.rng.randint(1, 4)}"
            return "DISTINCT ", tail
        if order and self.may(Feature.DISTINCT_ON, 0.06):
            keys = [self.expression(replace(rows, depth=0), self.pick("it")) for _ in range(self.rng.randint(1, 2))]
            keys = [key for key in keys if reads_column(key)] or order[:1]
            return f"DISTINCT ON ({', '.join(keys)}) ", f" ORDER BY {', '.join([*keys, *self.total(order)])}"
        if order and self.may(Feature.TOP_K, 0.12):
            return "", self.limit(rows, order)
        if order and not outer and self.chance(0.05):
            return "", f" ORDER BY {', '.join(self.total(order))}"
        return "", ""

    def limit(self, rows: Scope, order: list[str]) -> str:
        first = (
            [self.expression(replace(rows, depth=0), self.pick("it")) + self.direction()] if self.chance(0.5) else []
        )
        first = [one for one in first if reads_column(one)]
        offset = f" OFFSET {self.rng.randint(1, 3)}" if self.chance(0.3) else ""
        return f" ORDER BY {', '.join([*first, *self.total(order)])} LIMIT {self.rng.randint(1, 5)}{offset}"

    def where(self, scope: Scope) -> str:
        parts = [*scope.commas, *(self.condition(scope, 2) for _ in range(self.rng.choice([0, 0, 0, 0, 1, 1, 1, 2])))]
        if scope.outer:
            parts.append(self.link(scope))
            if self.may(Feature.UNEQUAL, 0.25):
                parts.append(self.condition(replace(scope, atoms=[*scope.atoms, *scope.outer], depth=0), 1))
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def link(self, scope: Scope) -> str:
        """What ties a subquery to the rows around it."""
        found = self.equality(scope.outer, scope.atoms)
        return found or "true"

    def groups(self, scope: Scope) -> tuple[Scope, str]:
        """The scope after GROUP BY, and the clause."""
        plain = replace(scope, depth=0)
        keys = [self.key(plain) for _ in range(self.rng.choice([0, 1, 1, 2, 2, 3]))]
        keys = list({key.text: key for key in keys}.values())
        calls = [self.aggregate(scope, self.pick("iiifft")) for _ in range(self.rng.randint(1, 3))]
        texts = [key.text for key in keys]
        clause = f" GROUP BY {', '.join(texts)}" if keys else ""
        more: list[Atom] = []
        if keys and not scope.outer and self.may(Feature.GROUPING_SETS, 0.2):
            sets = [f"({', '.join(self.rng.sample(texts, self.rng.randint(0, len(texts))))})" for _ in range(2)]
            full = ", ".join(texts)
            clause = " GROUP BY " + self.pick(
                [f"ROLLUP ({full})", f"CUBE ({full})", f"GROUPING SETS (({full}), {', '.join(sets)})"]
            )
            more = [Atom(f"grouping({full})", "i", column=False)]
        rows = replace(scope, atoms=[*keys, *calls, *more])
        if self.may(Feature.HAVING, 0.25):
            clause += f" HAVING {self.condition(rows, 1)}"
        return rows, clause
