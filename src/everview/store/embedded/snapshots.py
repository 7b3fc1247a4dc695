"""One cut through all files of a store.

Read transactions on every file form one consistent version of the store if
no epoch began or was committed while they were being opened.

Each file has versions of its own, and nothing in LMDB ties a version of one file to a
version of another. But the files are tied by what is written to them: records of epoch E
enter a shard only after ``begin`` of E is in the base file, and the tombstones of E leave
it only after ``commit`` of E is. Between two such events all that happens to the shards is
that E's records come in, and as-of reads do not see those. So the rule is optimistic:

1. read the counter of begins and commits in the base file;
2. open a read transaction on every shard;
3. open one on the base file and read the counter again: if it stands where it stood, this
   is the cut; else close the shards and start over.

Opened in this order, the base file is never older than a shard: every epoch that has
records in the cut has its begin record in it too. Where events follow so fast that no
attempt succeeds, the last one holds the base file's write lock, which stops them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from everview.store.embedded.environment import Environment, Transaction

T = TypeVar("T")

EVENTS = b"E#"
"""Where the base file counts begins and commits."""

OPTIMISTIC_ATTEMPTS = 8


class StoreFiles(Protocol):
    """The files of a store, and the only way to write to them."""

    @property
    def base(self) -> Environment: ...

    @property
    def shards(self) -> tuple[Environment, ...]: ...

    def update(self, environment: Environment, work: Callable[[Transaction], T], /) -> T:
        """Run ``work`` in a write transaction; it may be run again."""


def open_everywhere(core: StoreFiles) -> tuple[Transaction, tuple[Transaction, ...]]:
    """Read transactions on the base file and on every shard that show one state of the
    store. To be handed to :func:`close_everywhere`."""
    for _ in range(OPTIMISTIC_ATTEMPTS):
        with core.base.read() as transaction:
            before = transaction.get(EVENTS)
        base, shards = _open(core)
        if base.get(EVENTS) == before:
            return base, shards
        close_everywhere(core, base, shards)
    return core.base.update(lambda _: _open(core))


def close_everywhere(core: StoreFiles, base: Transaction, shards: tuple[Transaction, ...]) -> None:
    core.base.end_read(base)
    _close_shards(core, shards)


def _open(core: StoreFiles) -> tuple[Transaction, tuple[Transaction, ...]]:
    """The shards first, so that the base file is never older than one of them."""
    shards: list[Transaction] = []
    try:
        for environment in core.shards:
            shards.append(environment.begin_read())
        return core.base.begin_read(), tuple(shards)
    except BaseException:
        _close_shards(core, shards)
        raise


def _close_shards(core: StoreFiles, shards: Sequence[Transaction]) -> None:
    for environment, transaction in zip(core.shards, shards, strict=False):
        environment.end_read(transaction)
