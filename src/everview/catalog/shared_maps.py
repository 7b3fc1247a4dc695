"""Maps by key that copies share: a copy, and a change of one entry, cost the same however many entries there are.

A catalog holds thousands of views in one group, and a change touches one of them. What was changed between two copies
is known, if not too many changes lie between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Generic, TypeVar

from immutables import Map

K = TypeVar("K")
Id = TypeVar("Id")
V = TypeVar("V")

KNOWN = 32
"""So many changes back it is known what was changed under a key."""


@dataclass(frozen=True)
class _MapUnderKey(Generic[Id, V]):
    """The entries of one key, and how they came about."""

    entries: Map[Id, V] = field(default_factory=Map)
    version: int = 0
    """Another one after every change; 0: there are none."""
    past: tuple[tuple[int, Id], ...] = ()
    """Versions before this one, the last one first, each with the entry that was changed then."""

    def after(self, id: Id, entries: Map[Id, V]) -> _MapUnderKey[Id, V]:
        return _MapUnderKey(entries, next(_versions), ((self.version, id), *self.past[: KNOWN - 1]))


class SharedMaps(Generic[K, Id, V]):
    """For each key a map; without any entries, there is no key. Entries have no order."""

    def __init__(self, maps: Map[K, _MapUnderKey[Id, V]] | None = None) -> None:
        self._maps: Map[K, _MapUnderKey[Id, V]] = Map() if maps is None else maps

    def copy(self) -> SharedMaps[K, Id, V]:
        return SharedMaps(self._maps)

    def keys(self) -> Iterable[K]:
        return self._maps.keys()

    def of(self, key: K) -> Mapping[Id, V]:
        """The entries of a key."""
        found = self._maps.get(key)
        return Map() if found is None else found.entries

    def changed(self, before: SharedMaps[K, Id, V], key: K) -> set[Id] | None:
        """What was put under a key, or removed, since another copy was as this one is now; None where that is not
        known."""
        version, now, found = before._of(key).version, self._of(key), set[Id]()
        if now.version == version:
            return found
        for past, id in now.past:
            found.add(id)
            if past == version:
                return found
        return None

    def put(self, key: K, id: Id, value: V) -> None:
        known = self._of(key)
        self._maps = self._maps.set(key, known.after(id, known.entries.set(id, value)))

    def remove(self, key: K, id: Id) -> None:
        """Remove an entry, if it is there."""
        known = self._of(key)
        if id in known.entries:
            left = known.after(id, known.entries.delete(id))
            self._maps = self._maps.set(key, left) if left.entries else self._maps.delete(key)

    def _of(self, key: K) -> _MapUnderKey[Id, V]:
        return self._maps.get(key) or _MapUnderKey()


_versions = count(1)
