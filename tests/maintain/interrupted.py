"""Stores as killed maintainers leave them, and work in them that must come to an end.

Before each call of a maintainer that changes the store, a backup is what it would leave if it died
there, and a process that works in a copy may make so many calls of the store and no more.

States in which the documents, the epochs and the definitions are the same count once.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from everview.catalog import Catalog
from everview.client.database import Database
from everview.maintain.epoch_sizes import EpochSizes
from everview.maintain.maintainer import Maintainer
from everview.maintain.trimming import Trimmer
from everview.store.embedded.store import EmbeddedStore
from tests.maintain.kept import Kept
from tests.maintain.lagging import Gated

CHANGING = frozenset(
    {"begin", "write", "write_bags", "add_to_bags", "commit", "sweep", "drop", "drop_bags", "drop_table", "trim"}
)
"""Calls that change a store."""
MOST = 4_000
"""Calls of a store that any work takes at most; it takes some hundred, a loop without an end any number."""
CHUNK, OPERATIONS = 6, 5


class Endless(BaseException):
    """Work that does not end."""


class Bound:
    """Ends work that makes too many calls of a store; does something before one of those that change it."""

    def __init__(self, moment: int = 0, meanwhile: Callable[[], object] = bool) -> None:
        self.calls: list[str] = []
        self.changes = 0
        self._moment = moment
        self._meanwhile = meanwhile

    def __call__(self, name: str) -> None:
        self.calls.append(name)
        self.changes += name in CHANGING
        if len(self.calls) > MOST:
            raise Endless(f"{MOST} calls of the store, the last {self.calls[-40:]}")
        if self._moment and self.changes == self._moment:
            self._moment = 0
            self._meanwhile()


def maintainer_of(store: EmbeddedStore, announce: Callable[[str], None]) -> Maintainer:
    """A maintainer whose calls are announced, which takes in a few rows at a time."""
    gated: Any = Gated(store, announce)
    found = Maintainer(gated, Catalog(gated.metadata, gated.views), EpochSizes(OPERATIONS), CHUNK)
    found.trimmer = Trimmer(gated, found.catalog, every=0)
    return found


def database_of(store: EmbeddedStore, announce: Callable[[str], None]) -> Database:
    gated: Any = Gated(store, announce)
    return Database(gated)


@contextmanager
def copied(path: Path, to: Path) -> Iterator[Kept]:
    """A copy of a store that nobody has open."""
    shutil.copytree(path, to)
    found = Kept(to, chunk=CHUNK, operations=OPERATIONS, tables="")
    try:
        yield found
    finally:
        found.close()
        shutil.rmtree(to)


def killed(path: Path, to: Path, prepare: Callable[[Kept], object]) -> Iterator[Path]:
    """Copies of a store in each state in which a maintainer can leave it that is killed while it catches up.
    The last one came to its end."""
    moments: list[Path] = []
    seen: set[object] = set()
    with copied(path, to / "worked on") as k:
        prepare(k)

        def keep() -> None:
            state = standing(k)
            if state not in seen:
                seen.add(state)
                moments.append(to / str(len(moments)))
                k.store.backup(moments[-1])

        with k.store.lease("maintenance"):
            maintainer_of(k.store, lambda name: keep() if name in CHANGING else None).catch_up()
        keep()
    for left in moments:
        yield left
        shutil.rmtree(left)


def standing(k: Kept) -> object:
    """Where the maintenance of a store is: what it goes on with."""
    documents = {name: said for name, said in k.documents().items() if name.startswith(("maintenance/", "discard/"))}
    groups: list[object] = []
    for group in sorted(one.name for one in k.db.catalog.groups()):
        begun = k.store.views.begun(group)
        task = None if begun is None else {**json.loads(begun.plan), "begun": None}
        groups.append((group, str(k.store.views.committed(group).frontier), str(task)))
    views = [(one.name, one.version, one.status) for one in k.db.catalog.definitions().maintained()]
    return frozenset(documents.items()), tuple(groups), tuple(views)
