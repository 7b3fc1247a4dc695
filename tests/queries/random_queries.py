"""Random queries: what a grammar of SQL makes of a seeded generator.

One sentence: :func:`random_query` draws the text of a query that DuckDB accepts and whose answer
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

import enum
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from tests.queries.random_tables import TABLES

T = TypeVar("T")


class Feature(enum.Enum):
    """A part of the grammar. Filters, projections and expressions are always on."""

    JOIN = "inner joins by equalities, comma joins"
    OUTER_JOIN = "left, right and full joins"
    SEMI_JOIN = "semi and anti joins"
    USING = "joins with USING"
    FREE_JOIN = "joins without an equality"
    ONE_ROW = "cross joins with one row"
    SUBQUERY = "subqueries in FROM"
    WITH = "WITH queries"
    VALUES = "VALUES, range(…)"
    UNNEST = "unnest of a row's list"
    LATERAL = "LATERAL subqueries"
    TIME_WINDOW = "TUMBLE and HOP"
    AGGREGATE = "count, sum, avg, min, max with GROUP BY or without"
    DISTINCT_AGGREGATE = "aggregates of DISTINCT values"
    FILTERED_AGGREGATE = "aggregates with FILTER"
    GENERAL_AGGREGATE = "other aggregates"
    GROUPING_SETS = "GROUPING SETS, ROLLUP, CUBE, grouping()"
    HAVING = "HAVING"
    WINDOW = "window functions"
    FRAME = "window functions with a frame"
    QUALIFY = "QUALIFY"
    FIRST_ROWS = "row_number(), rank(), dense_rank() compared with a number"
    DISTINCT = "SELECT DISTINCT"
    DISTINCT_ON = "SELECT DISTINCT ON"
    TOP_K = "ORDER BY with LIMIT and OFFSET"
    TIES = "LIMIT WITH TIES"
    UNION_ALL = "UNION ALL"
    SET_OPERATION = "UNION, INTERSECT, EXCEPT, the latter two with ALL"
    EXISTS = "EXISTS"
    IN = "IN with a subquery"
    SCALAR = "subqueries that stand for a value"
    ANY_ALL = "comparisons with ANY and ALL"
    CORRELATED = "subqueries that read the rows around them, by equalities"
    UNEQUAL = "… and by other conditions"


ALL = frozenset(Feature)

Kind = str
"""``i`` whole numbers, ``f`` floats and decimals, ``t`` texts, ``b`` booleans, ``l`` lists, ``d`` timestamps."""

_KINDS = {"INTEGER": "i", "BIGINT": "i", "SMALLINT": "i", "DOUBLE": "f", "DECIMAL(8,2)": "f", "VARCHAR": "t"}
_KINDS |= {"BOOLEAN": "b", "INTEGER[]": "l", "TIMESTAMP": "d"}
_COMPARED = "iftb"
_NAMES = ("id", "k", "x", "s", "v", "count", "order", "group", "set", "copy", "branch", "first", "link", "n", "there")


@dataclass(frozen=True)
class Query:
    """A query that was drawn."""

    text: str
    plain: str
    """The same in DuckDB's SQL."""
    tables: tuple[str, ...]
    """The tables it reads."""
    used: frozenset[Feature]


@dataclass(frozen=True)
class Atom:
    """Something an expression can be made of."""

    text: str
    kind: Kind
    column: bool = True
    """A column that a subquery inside may read."""


@dataclass(frozen=True)
class Drawn:
    """A query and its columns."""

    text: str
    columns: tuple[tuple[str, Kind], ...]


@dataclass
class Scope:
    """What an expression may read."""

    atoms: list[Atom]
    outer: list[Atom] = field(default_factory=list)
    """Columns of the rows around the query."""
    depth: int = 0
    """How deep subqueries inside may be nested."""
    chain: int = 0
    """The first atom after the last comma of FROM: what a join's condition may read."""
    commas: list[str] = field(default_factory=list)
    """Conditions between items that commas separate."""

    def of(self, kinds: str) -> list[Atom]:
        return [atom for atom in self.atoms if atom.kind in kinds]


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


class _Maker:
    """Draws one query."""

    def __init__(self, rng: random.Random, features: frozenset[Feature]) -> None:
        self.rng = rng
        self.features = features
        self.used: set[Feature] = set()
        self.tables: set[str] = set()
        self.aliases = 0
        self.named: list[Drawn] = []
        """WITH queries in sight; the name stands as text."""

    # ------------------------------------------------------------ choices

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def may(self, feature: Feature, share: float) -> bool:
        if feature in self.features and self.chance(share):
            self.used.add(feature)
            return True
        return False

    def pick(self, items: Sequence[T]) -> T:
        return self.rng.choice(items)

    def one_of(self, *choices: tuple[Feature | None, float, Callable[[], T]]) -> T:
        """One of the choices that are switched on, by their weights."""
        there = [choice for choice in choices if choice[0] is None or choice[0] in self.features]
        feature, _, make = self.rng.choices(there, [weight for _, weight, _ in there])[0]
        if feature is not None:
            self.used.add(feature)
        return make()

    def alias(self) -> str:
        self.aliases += 1
        return f"q{self.aliases}"

    # ------------------------------------------------------------ queries

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
            return self.rng.sample(_NAMES, count) if count <= len(_NAMES) else [f"c{n}" for n in range(count)]
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
            keys = [key for key in keys if _reads(key)] or order[:1]
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
        first = [one for one in first if _reads(one)]
        offset = f" OFFSET {self.rng.randint(1, 3)}" if self.chance(0.3) else ""
        return f" ORDER BY {', '.join([*first, *self.total(order)])} LIMIT {self.rng.randint(1, 5)}{offset}"

    def total(self, order: list[str]) -> list[str]:
        """All of these, in some order and direction."""
        return [one + self.direction() for one in self.rng.sample(order, len(order))]

    def direction(self) -> str:
        return self.pick(["", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"])

    # ------------------------------------------------------------ FROM

    def origin(self, depth: int, outer: list[Atom]) -> tuple[str, Scope]:
        text, atoms = self.source(depth)
        scope = Scope(atoms, outer, depth)
        while len(scope.atoms) < 16 and self.chance(0.45):
            joined = self.joined(text, scope)
            if joined is None:
                break
            text = joined
        return text, scope

    def source(self, depth: int) -> tuple[str, list[Atom]]:
        """One item of a FROM with its columns."""
        name = self.alias()
        if self.named and self.chance(0.5):
            found = self.pick(self.named)
            self.used.add(Feature.WITH)
            return f"{found.text} AS {name}", _columns(name, found.columns)
        return self.one_of(
            (None, 12, lambda: self.table(name)),
            (Feature.SUBQUERY, 4 if depth > 0 else 0, lambda: self.subquery(depth, name)),
            (Feature.VALUES, 0.7, lambda: self.values(name)),
            (Feature.TIME_WINDOW, 0.7, lambda: self.time_window(name)),
        )

    def table(self, name: str) -> tuple[str, list[Atom]]:
        found = self.pick(list(TABLES.values()))
        self.tables.add(found.name)
        return f"{found.name} AS {name}", _columns(name, [(column, _KINDS[kind]) for column, kind in found.columns])

    def subquery(self, depth: int, name: str) -> tuple[str, list[Atom]]:
        if depth <= 0:
            return self.table(name)
        found = self.query(depth - 1, [])
        return f"({found.text}) AS {name}", _columns(name, found.columns)

    def values(self, name: str) -> tuple[str, list[Atom]]:
        if self.chance(0.3):
            return f"range({self.rng.randint(0, 4)}) AS {name}(v)", _columns(name, [("v", "i")])
        rows = ", ".join(f"({self.rng.randint(0, 3)}, {self.pick(chr(39))}{self.pick('pq')}')" for _ in range(3))
        return f"(VALUES {rows}, (NULL, 'p')) AS {name}(v, w)", _columns(name, [("v", "i"), ("w", "t")])

    def time_window(self, name: str) -> tuple[str, list[Atom]]:
        self.tables.add("b")
        call = self.pick(["⟦tumble b|1 hour⟧", "⟦tumble b|90 minutes⟧", "⟦hop b|1 hour|2 hours⟧"])
        columns = [(column, _KINDS[kind]) for column, kind in TABLES["b"].columns]
        return f"{call} AS {name}", _columns(name, [*columns, ("window_start", "d"), ("window_end", "d")])

    def joined(self, text: str, scope: Scope) -> str | None:
        """The FROM with one more item; what is in sight grows."""
        kinds = (
            (Feature.JOIN, 5.0, "JOIN"),
            (Feature.JOIN, 2.0, ","),
            (Feature.OUTER_JOIN, 4.0, "OUTER"),
            (Feature.SEMI_JOIN, 1.5, "SEMI"),
            (Feature.USING, 0.7, "USING"),
            (Feature.FREE_JOIN, 0.5, "FREE"),
            (Feature.ONE_ROW, 1.0, "ONE"),
            (Feature.UNNEST, 1.0, "UNNEST"),
            (Feature.LATERAL, 1.5 if scope.depth > 0 else 0.0, "LATERAL"),
        )
        there = [(feature, weight, word) for feature, weight, word in kinds if feature in self.features and weight]
        if not there:
            return None
        feature, _, word = self.rng.choices(there, [weight for _, weight, _ in there])[0]
        if word == "UNNEST":
            return self.unnested(text, scope)
        self.used.add(feature)
        if word == "LATERAL":
            return self.lateral(text, scope)
        if word == "ONE":
            return self.one_row(text, scope)
        item, atoms = self.source(scope.depth - 1)
        if word == "USING":
            return self.using(text, scope, item, atoms)
        near = scope.atoms[scope.chain :]
        both = Scope([*near, *atoms])
        if word == "FREE":
            on = self.condition(both, 1)
            kind = self.pick(["JOIN", "LEFT JOIN", "CROSS JOIN", "FULL JOIN"])
            scope.atoms += atoms
            return f"{text} {kind} {item}" + ("" if kind == "CROSS JOIN" else f" ON {on}")
        on = self.equality(scope.atoms if word == "," else near, atoms)
        if on is None:
            return text
        if word == ",":
            scope.commas.append(on)
            scope.chain = len(scope.atoms)
            scope.atoms += atoms
            return f"{text}, {item}"
        if self.chance(0.3):
            on = f"{on} AND {self.pick([self.condition(both, 1), self.equality(near, atoms) or 'true'])}"
        kind = {"JOIN": "JOIN", "OUTER": self.pick(["LEFT", "RIGHT", "FULL"]) + " JOIN"}.get(word, "")
        if word == "SEMI":
            return f"{text} {self.pick(['SEMI', 'ANTI'])} JOIN {item} ON {on}"
        scope.atoms += atoms
        return f"{text} {kind} {item} ON {on}"

    def equality(self, left: Sequence[Atom], right: Sequence[Atom]) -> str | None:
        pairs = [(one, other) for one in left for other in right if one.kind == other.kind and one.kind in "itd"]
        if not pairs:
            return None
        one, other = self.pick(pairs)
        form = self.rng.random()
        if form < 0.75:
            return f"{one.text} = {other.text}"
        if form < 0.9 or one.kind != "i":
            return f"{other.text} IS NOT DISTINCT FROM {one.text}"
        return f"{one.text} + 1 = {other.text}"

    def using(self, text: str, scope: Scope, item: str, atoms: list[Atom]) -> str:
        """USING where both sides have one column of that name; what it joins is no longer in sight."""
        ours = [atom for atom in scope.atoms if atom.column]
        names = [_name(atom) for atom in ours]
        shared = [
            name
            for other in atoms
            for name in [_name(other)]
            if names.count(name) == 1
            and any(_name(o) == name and o.kind == other.kind and o.kind in "it" for o in ours)
        ]
        if not shared or scope.commas or len({atom.text.partition(".")[0] for atom in scope.atoms}) > 1:
            return text
        name = self.pick(shared)
        scope.atoms[:] = [atom for atom in [*scope.atoms, *atoms] if _name(atom) != name]
        return f"{text} {self.pick(['', 'LEFT ', 'FULL '])}JOIN {item} USING ({name})"

    def one_row(self, text: str, scope: Scope) -> str:
        name = self.alias()
        inner_text, inner = self.source(0)
        calls = [self.aggregate(Scope(inner), self.pick("iif")) for _ in range(self.rng.randint(1, 2))]
        columns = ", ".join(f"{call.text} AS c{n}" for n, call in enumerate(calls))
        scope.atoms += _columns(name, [(f"c{n}", call.kind) for n, call in enumerate(calls)])
        kind = self.pick(["CROSS JOIN", "LEFT JOIN"])
        return f"{text} {kind} (SELECT {columns} FROM {inner_text}) AS {name}" + (" ON true" if kind[0] == "L" else "")

    def unnested(self, text: str, scope: Scope) -> str:
        lists = scope.of("l")
        if not lists:
            return text
        self.used.add(Feature.UNNEST)
        found, name = self.pick(lists).text, self.alias()
        scope.atoms.append(Atom(f"{name}.u", "i"))
        if self.chance(0.3):
            return f"{text} LEFT JOIN unnest({found}) AS {name}(u) ON true"
        return f"{text} CROSS JOIN unnest({found}) AS {name}(u)"

    def lateral(self, text: str, scope: Scope) -> str:
        name = self.alias()
        found = self.correlated(scope, None)
        scope.atoms += _columns(name, found.columns)
        kind = self.pick(["CROSS JOIN LATERAL", "LEFT JOIN LATERAL"])
        return f"{text} {kind} ({found.text}) AS {name}" + (" ON true" if kind[0] == "L" else "")

    # ------------------------------------------------------------ WHERE, GROUP BY, HAVING

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

    def key(self, scope: Scope) -> Atom:
        found = self.pick(scope.atoms)
        if found.kind == "i" and self.chance(0.25):
            return Atom(f"({found.text} % 2)", "i", column=False)
        if found.kind in "it" and self.chance(0.1):
            return Atom(f"({found.text} IS NULL)", "b", column=False)
        return found

    def aggregate(self, scope: Scope, kind: Kind) -> Atom:
        plain = replace(scope, atoms=[atom for atom in scope.atoms if atom.kind != "l"] or scope.atoms)
        number = self.expression(replace(plain, depth=0), "i")
        forms: list[tuple[str, Kind]] = [("count(*)", "i")]
        distinct = "DISTINCT " if self.may(Feature.DISTINCT_AGGREGATE, 0.2) else ""
        any_ = self.pick(plain.atoms)
        if kind == "i":
            forms += [(f"{f}({distinct}{number})", "i") for f in ("count", "sum", "min", "max", "sum")]
            forms += [(f"count({distinct}{any_.text})", "i")]
        elif kind == "f":
            forms = [(f"avg({distinct}{number})", "f")]
            floats = plain.of("f")
            if floats:
                found = self.pick(floats).text
                forms += [(f"{f}({distinct}{found})", "f") for f in ("sum", "avg", "min", "max")]
        elif kind == "t":
            forms = [(f"{f}({self.expression(replace(plain, depth=0), 't')})", "t") for f in ("min", "max")]
        if self.may(Feature.GENERAL_AGGREGATE, 0.15):
            by = ", ".join(self.total([atom.text for atom in scope.atoms]))
            forms = [
                (f"list({number} ORDER BY {by})", "l"),
                (f"median({number})", "f"),
                (f"bool_or({number} > 1)", "b"),
            ]
            forms += [(f"first({number} ORDER BY {by})", "i"), (f"count_if({number} > 1)", "i")]
            forms += [(f"string_agg({self.expression(replace(plain, depth=0), 't')}, ',' ORDER BY {by})", "t")]
        text, made = self.pick(forms)
        if self.may(Feature.FILTERED_AGGREGATE, 0.15):
            text = f"{text} FILTER (WHERE {self.condition(replace(plain, depth=0), 1)})"
        return Atom(text, made, column=False)

    # ------------------------------------------------------------ windows

    def window(self, rows: Scope) -> Atom:
        plain = replace(rows, depth=0)
        by = self.partition(plain)
        total = ", ".join(self.total([atom.text for atom in rows.atoms]))
        some = self.pick([self.pick(rows.atoms).text + self.direction(), total])
        numbers = rows.of("i")
        number = self.pick(numbers).text if numbers else "1"
        forms = [
            f"row_number() OVER ({by}ORDER BY {total})",
            f"rank() OVER ({by}ORDER BY {some})",
            f"dense_rank() OVER ({by}ORDER BY {some})",
            f"count(*) OVER ({by})",
            f"sum({number}) OVER ({by}ORDER BY {some})",
            f"max({number}) OVER ({by})",
            f"lag({number}) OVER ({by}ORDER BY {total})",
            f"lead({number}, 2, -1) OVER ({by}ORDER BY {total})",
            f"ntile(2) OVER ({by}ORDER BY {total})",
            f"first_value({number}) OVER ({by}ORDER BY {total})",
        ]
        if self.may(Feature.FRAME, 0.3):
            start, end = self.pick(["UNBOUNDED", "1", "2"]), self.pick(["CURRENT ROW", "1 FOLLOWING", "1 PRECEDING"])
            forms = [
                f"sum({number}) OVER ({by}ORDER BY {total} ROWS BETWEEN {start} PRECEDING AND {end})",
                f"count(*) OVER ({by}ORDER BY {some} GROUPS BETWEEN {start} PRECEDING AND {end})",
                f"min({number}) OVER ({by}ORDER BY {number} RANGE BETWEEN {start} PRECEDING AND {end})",
                f"last_value({number}) OVER ({by}ORDER BY {total} ROWS BETWEEN {start} PRECEDING AND 1 FOLLOWING)",
            ]
        return Atom(self.pick(forms), "i", column=False)

    def partition(self, scope: Scope) -> str:
        parts = [self.pick(scope.atoms).text for _ in range(self.rng.choice([0, 1, 1, 2]))]
        return f"PARTITION BY {', '.join(dict.fromkeys(parts))} " if parts else ""

    def qualify(self, rows: Scope, nodes: list[Atom], outer: list[Atom]) -> str:
        parts: list[str] = []
        if not outer and self.may(Feature.FIRST_ROWS, 0.1):
            parts.append(self.first_rows(rows, nodes))
        if (parts or not outer) and self.may(Feature.QUALIFY, 0.1):
            parts.append(f"{self.window(rows).text} {self.pick(['>', '<=', '='])} {self.rng.randint(0, 3)}")
            if self.chance(0.3):
                parts.append(self.condition(replace(rows, depth=0), 1))
        self.rng.shuffle(parts)
        return f" QUALIFY {' AND '.join(parts)}" if parts else ""

    def first_rows(self, rows: Scope, nodes: list[Atom]) -> str:
        by = self.partition(replace(rows, depth=0))
        total = ", ".join(self.total([atom.text for atom in rows.atoms]))
        some = self.pick(rows.atoms).text + self.direction()
        call = self.pick(
            [f"row_number() OVER ({by}ORDER BY {total})"]
            + [f"{f}() OVER ({by}ORDER BY {some})" for f in ("rank", "dense_rank")]
        )
        if self.chance(0.5):
            nodes.append(Atom(call, "i", column=False))
        k = self.rng.randint(1, 3)
        forms = [f"{call} <= {k}", f"{k} >= {call}", f"{call} < {k + 1}", f"{call} = 1", f"1 = {call}"]
        return self.pick([*forms, f"{call} BETWEEN 1 AND {k}", f"({call} <= {k})"])

    # ------------------------------------------------------------ conditions

    def condition(self, scope: Scope, depth: int) -> str:
        if depth and self.chance(0.25):
            left, right = self.condition(scope, depth - 1), self.condition(scope, depth - 1)
            return self.pick([f"({left} AND {right})", f"({left} OR {right})", f"NOT ({left})"])
        if scope.depth > 0 and self.chance(0.3):
            found = self.asked(scope)
            if found is not None:
                return found
        kind = self.pick([atom.kind for atom in scope.atoms if atom.kind in _COMPARED] or ["i"])
        one, other = self.expression(scope, kind), self.expression(replace(scope, depth=0), kind)
        if kind == "b":
            return self.pick([one, f"NOT {one}", f"{one} IS NOT TRUE", f"({one} IS NULL)"])
        small = self.constant(kind)
        forms = [
            f"{one} {self.pick(['<', '>=', '<>', '>='])} {small}",
            f"{one} {self.pick(['=', '<', '>=', '<>'])} {small}",
            f"{one} {self.pick(['<', '>=', '<>'])} {other}",
            f"{one} IS NULL",
            f"{one} IS NOT NULL",
            f"{one} IS NOT DISTINCT FROM {other}",
            f"{one} IN ({small}, {self.constant(kind)})",
            f"{one} BETWEEN {small} AND {self.constant(kind)}",
        ]
        return self.pick(forms)

    def asked(self, scope: Scope) -> str | None:
        """A condition with a subquery; None where none is switched on."""
        kinds = [f for f in (Feature.EXISTS, Feature.IN, Feature.SCALAR, Feature.ANY_ALL) if f in self.features]
        if not kinds:
            return None
        found = self.pick(kinds)
        self.used.add(found)
        plain = replace(scope, depth=0)
        kind = self.pick("iit")
        if found is Feature.EXISTS:
            return f"{self.pick(['', 'NOT '])}EXISTS ({self.inner(scope, None).text})"
        if found is Feature.IN:
            return f"{self.expression(plain, kind)} {self.pick(['', 'NOT '])}IN ({self.inner(scope, [kind]).text})"
        compared = self.pick(["=", "<", ">=", "<>", ">"])
        if found is Feature.ANY_ALL:
            every = self.pick(["ANY", "ALL"])
            return f"{self.expression(plain, 'i')} {compared} {every} ({self.inner(scope, ['i']).text})"
        return f"{self.expression(plain, 'i')} {compared} {self.scalar(scope, 'i')}"

    def inner(self, scope: Scope, kinds: Sequence[Kind] | None) -> Drawn:
        if scope.depth > 0 and [atom for atom in scope.atoms if atom.column] and self.may(Feature.CORRELATED, 0.7):
            return self.correlated(scope, kinds)
        return self.query(scope.depth - 1, [], kinds)

    def correlated(self, scope: Scope, kinds: Sequence[Kind] | None) -> Drawn:
        outer = [atom for atom in scope.atoms if atom.column]
        if self.chance(0.3):
            outer += scope.outer
        return self.select(scope.depth - 1, outer, kinds)

    def scalar(self, scope: Scope, kind: Kind) -> str:
        """A subquery with one row at most."""
        self.used.add(Feature.SCALAR)
        outer: list[Atom] = []
        if self.may(Feature.CORRELATED, 0.7):
            outer = [atom for atom in scope.atoms if atom.column]
        origin, rows = self.origin(scope.depth - 1, outer)
        where = self.where(rows)
        if Feature.TOP_K in self.features and not outer and self.chance(0.2):
            order = [atom.text for atom in rows.atoms]
            value = self.expression(replace(rows, depth=0), kind)
            return f"(SELECT {value} AS v FROM {origin}{where} ORDER BY {', '.join(self.total(order))} LIMIT 1)"
        call = self.aggregate(rows, kind)
        while call.kind != kind:
            call = self.aggregate(rows, kind)
        text = self.pick([call.text, call.text, f"({call.text} + 1)" if kind in "if" else call.text])
        return f"(SELECT {text} AS v FROM {origin}{where})"

    # ------------------------------------------------------------ expressions

    def constant(self, kind: Kind) -> str:
        if kind == "i":
            return str(self.rng.randint(0, 4))
        if kind == "f":
            return str(self.rng.randint(0, 8) / 4)
        if kind == "t":
            return self.pick(["'p'", "'q'", "''", "'Q'"])
        return self.pick(["true", "false"])

    def expression(self, scope: Scope, kind: Kind) -> str:
        there = scope.of(kind)
        if scope.depth > 0 and kind in "if" and self.chance(0.1) and Feature.SCALAR in self.features:
            return self.scalar(scope, kind)
        if scope.depth > 0 and kind == "b" and self.chance(0.15):
            found = self.asked(scope)
            if found is not None:
                return f"({found})"
        if there and self.chance(0.7):
            return self.pick(there).text
        simple = self.pick(there).text if there else self.constant(kind)
        numbers = scope.of("i")
        number = self.pick(numbers).text if numbers else "1"
        if kind == "i":
            texts = scope.of("t")
            more = [f"length({self.pick(texts).text})"] if texts else []
            more += [f"({simple} + {number})", f"({simple} - 1)", f"coalesce({simple}, 0)", f"({simple} % 3)"]
            return self.pick(
                [*more, f"(CASE WHEN {simple} > 1 THEN {number} ELSE 0 END)", f"(-{simple})", f"({simple} / 2)"]
            )
        if kind == "f":
            return self.pick([f"({simple} * 2)", f"({simple} + 0.25)", f"coalesce({simple}, 0.5)", f"({number} / 4.0)"])
        if kind == "t":
            return self.pick([f"({simple} || 'z')", f"upper({simple})", f"coalesce({simple}, 'n')", simple])
        if kind == "b":
            return self.pick([f"({number} > 1)", f"(NOT {simple})", f"({number} IS NULL)", f"coalesce({simple}, true)"])
        if kind == "l":
            return f"[{number}, 1]" if not there else simple
        return simple if there else "TIMESTAMP '2024-01-01'"


def quoted(name: str) -> str:
    return f'"{name}"' if name in ("order", "group", "set", "first", "count") else name


def _columns(alias: str, columns: Sequence[tuple[str, Kind]]) -> list[Atom]:
    return [Atom(f"{alias}.{quoted(name)}", kind) for name, kind in columns]


def _name(atom: Atom) -> str:
    return atom.text.partition(".")[2]


def _reads(text: str) -> bool:
    """Whether an expression reads a column: DuckDB refuses to order by a constant."""
    return re.search(r"\bq\d+\.", text) is not None
