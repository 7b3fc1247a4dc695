"""One version of every file, and the meta pages that lead to it.

A cut is taken between two epoch events (snapshots.py), with the write lock of each file held for a
moment, so that the meta page that is read belongs to the version that is pinned.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from everview.store.embedded.environment import Environment, Transaction
from everview.store.embedded.meta_pages import read_meta
from everview.store.embedded.snapshots import EVENTS


class Cut:
    """Takes one version of every file, between epoch events, with its meta page."""

    def __init__(self, base: Environment, shards: Mapping[str, Environment], base_name: str) -> None:
        self._base = base
        self._shards = shards
        self._base_name = base_name

    def take(self) -> tuple[dict[str, Transaction], dict[str, tuple[int, bytes]]]:
        """Pins and meta pages. The shards first, then the base: if no epoch began or was
        committed meanwhile, they fit. A shard may be busy with a long write, so the base is
        locked throughout only after optimism has failed three times."""
        for patient in (True, True, True, False):
            pins: dict[str, Transaction] = {}
            metas: dict[str, tuple[int, bytes]] = {}
            with contextlib.nullcontext() if patient else self._base.writing() as held:
                try:
                    with contextlib.nullcontext(held) if held else self._base.begin_uncounted() as view:
                        before = view.get(EVENTS)
                    for name, environment in self._shards.items():
                        with environment.writing():
                            pins[name], metas[name] = _pin(environment)
                    with contextlib.nullcontext(held) if held else self._base.writing() as view:
                        if view.get(EVENTS) == before:
                            pins[self._base_name], metas[self._base_name] = _pin(self._base)
                            return pins, metas
                    abort(pins)
                except BaseException:
                    abort(pins)
                    raise
        raise AssertionError("the locked round always succeeds")


def _pin(environment: Environment) -> tuple[Transaction, tuple[int, bytes]]:
    """A read transaction and its meta page; the caller holds the write lock, so the last
    commit is the one that both show."""
    transaction = environment.begin_uncounted()
    try:
        number = transaction.id()
        return transaction, (number, read_meta(environment.path, number, environment.lmdb.stat()["psize"]))
    except BaseException:
        transaction.abort()
        raise


def abort(pins: Mapping[str, Transaction]) -> None:
    """Let go of pins."""
    for transaction in pins.values():
        transaction.abort()
