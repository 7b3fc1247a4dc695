"""Dictionaries by key that copies share until one of them changes one.

A catalog holds thousands of views in one group, and a change touches one of them: a copy costs as much as there are
keys, and a change as much as the one dictionary that it concerns.
"""

from __future__ import annotations

from collections.abc import KeysView, Mapping
from typing import Any, Generic, TypeVar

K = TypeVar("K")
Id = TypeVar("Id")
V = TypeVar("V")

_NOTHING: Mapping[Any, Any] = {}


class SharedDicts(Generic[K, Id, V]):
    """For each key a dictionary; without any entries, there is no key."""

    def __init__(self) -> None:
        self._dicts: dict[K, dict[Id, V]] = {}
        self._own: set[K] = set()
        """The keys whose dictionaries no copy has."""

    def copy(self) -> SharedDicts[K, Id, V]:
        found: SharedDicts[K, Id, V] = SharedDicts()
        found._dicts = dict(self._dicts)
        self._own = set()
        return found

    def keys(self) -> KeysView[K]:
        return self._dicts.keys()

    def of(self, key: K) -> Mapping[Id, V]:
        """The entries of a key. Of two copies they are the very same until one of them changes them."""
        return self._dicts.get(key, _NOTHING)

    def put(self, key: K, id: Id, value: V) -> None:
        self._owned(key)[id] = value

    def remove(self, key: K, id: Id) -> None:
        """Remove an entry, if it is there."""
        if id in self.of(key):
            found = self._owned(key)
            del found[id]
            if not found:
                del self._dicts[key]

    def _owned(self, key: K) -> dict[Id, V]:
        if key not in self._own:
            self._dicts[key] = dict(self.of(key))
            self._own.add(key)
        return self._dicts.setdefault(key, {})
