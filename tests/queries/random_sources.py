"""Random sources: what stands after FROM.

Tables, subqueries, rows and time windows, joined in every way that the features allow.
"""

from __future__ import annotations

from tests.queries.random_expressions import Expressions
from tests.queries.random_tables import TABLES
from tests.queries.random_words import KINDS, Atom, Feature, Scope, column_name, columns_of


class Sources(Expressions):
    """Draws what stands after FROM."""

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
            return f"{found.text} AS {name}", columns_of(name, found.columns)
        return self.one_of(
            (None, 12, lambda: self.table(name)),
            (Feature.SUBQUERY, 4 if depth > 0 else 0, lambda: self.subquery(depth, name)),
            (Feature.VALUES, 0.7, lambda: self.values(name)),
            (Feature.TIME_WINDOW, 0.7, lambda: self.time_window(name)),
        )

    def table(self, name: str) -> tuple[str, list[Atom]]:
        found = self.pick(list(TABLES.values()))
        self.tables.add(found.name)
        return f"{found.name} AS {name}", columns_of(name, [(column, KINDS[kind]) for column, kind in found.columns])

    def subquery(self, depth: int, name: str) -> tuple[str, list[Atom]]:
        if depth <= 0:
            return self.table(name)
        found = self.query(depth - 1, [])
        return f"({found.text}) AS {name}", columns_of(name, found.columns)

    def values(self, name: str) -> tuple[str, list[Atom]]:
        if self.chance(0.3):
            return f"range({self.rng.randint(0, 4)}) AS {name}(v)", columns_of(name, [("v", "i")])
        rows = ", ".join(f"({self.rng.randint(0, 3)}, {self.pick(chr(39))}{self.pick('pq')}')" for _ in range(3))
        return f"(VALUES {rows}, (NULL, 'p')) AS {name}(v, w)", columns_of(name, [("v", "i"), ("w", "t")])

    def time_window(self, name: str) -> tuple[str, list[Atom]]:
        self.tables.add("b")
        call = self.pick(["⟦tumble b|1 hour⟧", "⟦tumble b|90 minutes⟧", "⟦hop b|1 hour|2 hours⟧"])
        columns = [(column, KINDS[kind]) for column, kind in TABLES["b"].columns]
        return f"{call} AS {name}", columns_of(name, [*columns, ("window_start", "d"), ("window_end", "d")])

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
        equality = self.equality(scope.atoms if word == "," else near, atoms)
        if equality is None:
            return text
        on = equality
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

    def using(self, text: str, scope: Scope, item: str, atoms: list[Atom]) -> str:
        """USING where both sides have one column of that name; what it joins is no longer in sight."""
        ours = [atom for atom in scope.atoms if atom.column]
        names = [column_name(atom) for atom in ours]
        shared = [
            name
            for other in atoms
            for name in [column_name(other)]
            if names.count(name) == 1
            and any(column_name(o) == name and o.kind == other.kind and o.kind in "it" for o in ours)
        ]
        if not shared or scope.commas or len({atom.text.partition(".")[0] for atom in scope.atoms}) > 1:
            return text
        name = self.pick(shared)
        scope.atoms[:] = [atom for atom in [*scope.atoms, *atoms] if column_name(atom) != name]
        return f"{text} {self.pick(['', 'LEFT ', 'FULL '])}JOIN {item} USING ({name})"

    def one_row(self, text: str, scope: Scope) -> str:
        name = self.alias()
        inner_text, inner = self.source(0)
        calls = [self.aggregate(Scope(inner), self.pick("iif")) for _ in range(self.rng.randint(1, 2))]
        columns = ", ".join(f"{call.text} AS c{n}" for n, call in enumerate(calls))
        scope.atoms += columns_of(name, [(f"c{n}", call.kind) for n, call in enumerate(calls)])
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
        scope.atoms += columns_of(name, found.columns)
        kind = self.pick(["CROSS JOIN LATERAL", "LEFT JOIN LATERAL"])
        return f"{text} {kind} ({found.text}) AS {name}" + (" ON true" if kind[0] == "L" else "")
