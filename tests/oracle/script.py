"""Scripts: tables, views and a history of writes in epochs, as text that people read.

What a random test draws is a :class:`Script`, and a script is its text, so a failure
prints what can be kept as a golden test.

    >>> script = Script.parse('''
    ... CREATE TABLE a (id INTEGER PRIMARY KEY, k INTEGER);
    ... CREATE MATERIALIZED VIEW v AS SELECT k, count(*) AS n FROM a GROUP BY k;
    ... INSERT INTO a (id, k) VALUES (1, 7);
    ... epoch
    ... DELETE FROM a WHERE id = 1;
    ... epoch
    ... ''')
    >>> [view.name for view in script.views], len(script.epochs)
    (['v'], 2)
    >>> Script.parse(str(script)) == script
    True

``INSERT`` sets the columns it names and leaves the others as they are. For a table without a
primary key it names the row's id (``__row``). ``epoch`` takes all that was written, ``epoch 3`` about three writes.
``RECOMPUTED v AS …`` gives the query of a view in DuckDB's own words, where it has others.
``NODES 2`` is how many logs there are, and ``LOGS WITHOUT OLD ROWS`` what it says. The values of a
write are literals and stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

NODES = 4
"""Logs of a store, where a script does not say."""
BARE = "LOGS WITHOUT OLD ROWS"


@dataclass(frozen=True)
class View:
    """A view, and its query as DuckDB is asked it."""

    name: str
    query: str
    plain: str

    def __str__(self) -> str:
        text = f"CREATE MATERIALIZED VIEW {self.name} AS {self.query};"
        return text if self.plain == self.query else f"{text}\nRECOMPUTED {self.name} AS {self.plain};"


@dataclass(frozen=True)
class Write:
    """A put of some columns, or a delete of a key."""

    table: str
    values: tuple[tuple[str, str], ...]
    """Columns and literals."""
    deletes: bool = False

    def __str__(self) -> str:
        if self.deletes:
            return f"DELETE FROM {self.table} WHERE {' AND '.join(f'{name} = {value}' for name, value in self.values)};"
        names, values = zip(*self.values, strict=True)
        return f"INSERT INTO {self.table} ({', '.join(names)}) VALUES ({', '.join(values)});"


@dataclass(frozen=True)
class Epoch:
    """Writes, and then an epoch that takes all of them, or about so many of those that wait."""

    writes: tuple[Write, ...]
    most: int | None = None

    def __str__(self) -> str:
        end = "epoch" if self.most is None else f"epoch {self.most}"
        return "\n".join([*map(str, self.writes), end])


@dataclass(frozen=True)
class Script:
    tables: tuple[str, ...]
    """CREATE TABLE statements."""
    views: tuple[View, ...]
    epochs: tuple[Epoch, ...]
    nodes: int = NODES
    before_images: bool = True

    def __str__(self) -> str:
        head = [f"NODES {self.nodes};"] if self.nodes != NODES else []
        head += [] if self.before_images else [f"{BARE};"]
        return "\n".join([*head, *(f"{text};" for text in self.tables), *map(str, self.views), *map(str, self.epochs)])

    @property
    def golden(self) -> str:
        """The text as a golden script that has no outputs yet: one input for each epoch."""
        return re.sub(r"^(epoch.*)$", r"\1\n---\n", str(self), flags=re.MULTILINE)

    @staticmethod
    def parse(text: str) -> Script:
        return Script((), (), ()).followed_by(text)

    def followed_by(self, text: str) -> Script:
        """With what a text defines, and its epochs."""
        nodes, before_images, tables, epochs = self.nodes, self.before_images, list(self.tables), list(self.epochs)
        views = {view.name: view for view in self.views}
        writes: list[Write] = []
        for said in _statements(text):
            if found := re.fullmatch(r"NODES (\d+)", said):
                nodes = int(found[1])
            elif said == BARE:
                before_images = False
            elif said.startswith("CREATE TABLE "):
                tables.append(said)
            elif found := re.fullmatch(r"CREATE MATERIALIZED VIEW (\w+) AS (.*)", said, re.DOTALL):
                views[found[1]] = View(found[1], found[2], found[2])
            elif found := re.fullmatch(r"RECOMPUTED (\w+) AS (.*)", said, re.DOTALL):
                views[found[1]] = replace(views[found[1]], plain=found[2])
            elif found := re.fullmatch(r"epoch(?: (\d+))?", said):
                epochs.append(Epoch(tuple(writes), int(found[1]) if found[1] else None))
                writes = []
            else:
                writes.append(_write(said))
        if writes:
            epochs.append(Epoch(tuple(writes)))
        return Script(tuple(tables), tuple(views.values()), tuple(epochs), nodes, before_images)


def _statements(text: str) -> Iterator[str]:
    """Statements end with a semicolon at the end of a line; ``epoch`` is a line."""
    held: list[str] = []
    for line in text.splitlines():
        if not held and (not line.strip() or line.startswith("#")):
            continue
        held.append(line)
        if line.startswith("epoch") or line.rstrip().endswith(";"):
            yield "\n".join(held).strip().removesuffix(";")
            held = []
    assert not held, f"a statement ends with a semicolon: {held}"


def _write(said: str) -> Write:
    if found := re.fullmatch(r"INSERT INTO (\w+) \((.*?)\) VALUES \((.*)\)", said, re.DOTALL):
        return Write(found[1], tuple(zip(found[2].split(", "), split(found[3]), strict=True)))
    found = re.fullmatch(r"DELETE FROM (\w+) WHERE (.*)", said, re.DOTALL)
    assert found, f"this is no statement of a script: {said}"
    parts = [part.strip().partition(" = ") for part in split(found[2], " AND ")]
    return Write(found[1], tuple((name, value) for name, _, value in parts), deletes=True)


def split(text: str, by: str = ", ") -> list[str]:
    """Literals one by one: what stands in quotes, brackets, braces or parentheses is not cut."""
    found: list[str] = []
    start = at = depth = 0
    quoted = False
    while at < len(text):
        char = text[at]
        quoted ^= char == "'"
        if not quoted:
            depth += (char in "([{") - (char in ")]}")
            if not depth and text.startswith(by, at):
                found.append(text[start:at])
                at = start = at + len(by)
                continue
        at += 1
    return [*found, text[start:]]
