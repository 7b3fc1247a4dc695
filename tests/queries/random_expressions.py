"""Random expressions: values, conditions, aggregates and window functions over what is in sight.

An expression of a wanted kind is an atom in sight, something computed of atoms, or a
subquery, which is drawn by what stands above this class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from tests.queries.random_words import COMPARED, Atom, Choices, Drawn, Feature, Kind, Scope


class Expressions(Choices, ABC):
    """Draws expressions."""

    @abstractmethod
    def query(self, depth: int, outer: list[Atom], kinds: Sequence[Kind] | None = None) -> Drawn:
        """A query, with columns of these kinds where they are given."""

    @abstractmethod
    def select(self, depth: int, outer: list[Atom], kinds: Sequence[Kind] | None = None) -> Drawn:
        """A SELECT."""

    @abstractmethod
    def origin(self, depth: int, outer: list[Atom]) -> tuple[str, Scope]:
        """What stands after FROM, and what is in sight then."""

    @abstractmethod
    def where(self, scope: Scope) -> str:
        """The WHERE clause."""

    # ------------------------------------------------------------ values

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

    # ------------------------------------------------------------ conditions

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

    def condition(self, scope: Scope, depth: int) -> str:
        if depth and self.chance(0.25):
            left, right = self.condition(scope, depth - 1), self.condition(scope, depth - 1)
            return self.pick([f"({left} AND {right})", f"({left} OR {right})", f"NOT ({left})"])
        if scope.depth > 0 and self.chance(0.3):
            found = self.asked(scope)
            if found is not None:
                return found
        kind = self.pick([atom.kind for atom in scope.atoms if atom.kind in COMPARED] or ["i"])
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

    # ------------------------------------------------------------ aggregates and windows

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

    def window(self, rows: Scope) -> Atom:
        plain = replace(rows, depth=0)
        by = self.partition(plain)
        over = self.one_by_one(rows)
        some = self.pick(rows.atoms).text + self.direction()
        numbers = rows.of("i")
        number = self.pick(numbers).text if numbers else "1"
        forms = [
            f"row_number() OVER ({over})",
            f"rank() OVER ({by}ORDER BY {some})",
            f"dense_rank() OVER ({by}ORDER BY {some})",
            f"count(*) OVER ({by})",
            f"sum({number}) OVER ({by}ORDER BY {some})",
            f"max({number}) OVER ({by})",
            f"lag({number}) OVER ({over})",
            f"lead({number}, 2, -1) OVER ({over})",
            f"ntile(2) OVER ({over})",
            f"first_value({number}) OVER ({over})",
        ]
        if self.may(Feature.FRAME, 0.3):
            start, end = self.pick(["UNBOUNDED", "1", "2"]), self.pick(["CURRENT ROW", "1 FOLLOWING", "1 PRECEDING"])
            forms = [
                f"sum({number}) OVER ({over} ROWS BETWEEN {start} PRECEDING AND {end})",
                f"count(*) OVER ({by}ORDER BY {some} GROUPS BETWEEN {start} PRECEDING AND {end})",
                f"min({number}) OVER ({by}ORDER BY {number} RANGE BETWEEN {start} PRECEDING AND {end})",
                f"last_value({number}) OVER ({over} ROWS BETWEEN {start} PRECEDING AND 1 FOLLOWING)",
            ]
        return Atom(self.pick(forms), "i", column=False)

    def one_by_one(self, rows: Scope) -> str:
        """The window in which the rows of this SELECT are counted."""
        if not rows.over:
            total = ", ".join(self.total([atom.text for atom in rows.atoms]))
            rows.over.append(f"{self.partition(rows)}ORDER BY {total}")
        return rows.over[0]

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
        some = self.pick(rows.atoms).text + self.direction()
        call = self.pick(
            [f"row_number() OVER ({self.one_by_one(rows)})"]
            + [f"{f}() OVER ({by}ORDER BY {some})" for f in ("rank", "dense_rank")]
        )
        if self.chance(0.5):
            nodes.append(Atom(call, "i", column=False))
        k = self.rng.randint(1, 3)
        forms = [f"{call} <= {k}", f"{k} >= {call}", f"{call} < {k + 1}", f"{call} = 1", f"1 = {call}"]
        return self.pick([*forms, f"{call} BETWEEN 1 AND {k}", f"({call} <= {k})"])
