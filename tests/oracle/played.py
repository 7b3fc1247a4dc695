"""A script played: its writes go to a store, its epochs run, and after each all views are compared.

A :class:`Played` is a :class:`~tests.oracle.maintained.Maintained` that follows a
script, beside the base tables as the script's own text makes them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from everview.change.frontier import Position
from everview.operators.runner import Outcome
from tests.oracle.base import Base
from tests.oracle.maintained import GROUP, Maintained, database, difference
from tests.oracle.script import Epoch, Script, Write


class Wrong(AssertionError):
    """A view is not what its query says."""


class Played:
    """The tables and views of a script, and as much of its history as was played."""

    def __init__(self, path: Path, script: Script) -> None:
        self.script = script
        self.base = Base(script.tables)
        queries = {view.name: view.query for view in script.views}
        self.maintained = Maintained(
            path, self.base.schemas, queries, nodes=script.nodes, before_images=script.before_images
        )

    def write(self, write: Write) -> None:
        """Do a write, and remember where it stands in the logs."""
        store = self.maintained.store
        before = store.log.latest()
        table = self.maintained.table(write.table)
        (table.delete_many if write.deletes else table.put_many)(self._row(write))
        for piece in before.slices_to(store.log.latest()):
            self.base.written.append((Position(piece.node, piece.upto), write))

    def _row(self, write: Write) -> pa.Table:
        kinds = {column.name: column.type for column in self.base.schemas[write.table].columns}
        texts = [f"CAST({value} AS {kinds[name]}) AS {name}" for name, value in write.values]
        return database().sql(f"SELECT {', '.join(texts)}").to_arrow_table()

    def epoch(self, epoch: Epoch) -> Outcome:
        """Do the writes, run the epoch, compare."""
        for write in epoch.writes:
            self.write(write)
        outcome = self.step(epoch.most)
        self.check()
        return outcome

    def step(self, most: int | None) -> Outcome:
        """Run an epoch and commit it."""
        log = self.maintained.store.log
        start = self.maintained.store.views.committed(GROUP).frontier
        return self.maintained.epoch(log.latest() if most is None else log.advance(start, most))

    def recomputed(self) -> dict[str, pa.Table]:
        """What the views should be at the frontier of the last epoch."""
        queries = [(view.name, view.plain) for view in self.script.views]
        frontier = self.maintained.store.views.committed(GROUP).frontier
        return self.base.recomputed(queries, frontier)

    def check(self) -> None:
        for name, expected in self.recomputed().items():
            said = difference(expected, self.maintained.view(name))
            if said:
                aside = [f"{one.what} {dict(one.values)}: {one.reason}" for _, one in self.maintained.quarantine()]
                raise Wrong("\n".join([f"view {name}", said, *aside]))

    def close(self) -> None:
        self.maintained.close()


@contextmanager
def played(script: Script) -> Iterator[Played]:
    with tempfile.TemporaryDirectory() as path:
        found = Played(Path(path) / "store", script)
        try:
            yield found
        finally:
            found.close()


def play(script: Script) -> None:
    """Play a whole script. Raises where a view is wrong, or a step fails."""
    with played(script) as found:
        for epoch in script.epochs:
            found.epoch(epoch)
