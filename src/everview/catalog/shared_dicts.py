"""Dictionaries by key that copies share until one of them changes one.

A catalog holds thousands of views in one group, and a change touches one of them: a copy costs as much as there are
keys, and a change as much as the one dictionary that it concerns.
"""

from __future__ import annotations

from collections.abc import KeysView, Mapping
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_NOTHING: Mapping[int, Any] = {}


class SharedDicts(Generic[K, V]):
    """For each key a dictionary by id; without any, there is no key."""

    def __init__(self) -> None:
        self._dicts: dict[K, dict[int, V]] = {}
        self._own: set[K] = set()
        """The keys whose dictionaries no copy has."""

    def copy(self) -> SharedDicts[K, V]:
        found: SharedDicts[K, V] = SharedDicts()
        found._dicts = dict(self._dicts)
        self._own = set()
        return found

    def keys(self) -> KeysView[K]:
        return self._dicts.keys()

    def of(self, key: K) -> Mapping[int, V]:
        """The entries of a key. Of two copies they are the very same until one of them changes them."""
        return self._dicts.get(key, _NOTHING)

    def put(self, key: K, id: int, value: V) -> None:
        self._owned(key)[id] = value

    def remove(self, key: K, id: int) -> None:
        """Remove an entry, if it is there."""
        if id in self.of(key):
            found = self._owned(key)
            del found[id]
            if not found:
                del self._dicts[key]

    def _owned(self, key: K) -> dict[int, V]:
        if key not in self._own:
            self._dicts[key] = dict(self.of(key))
            self._own.add(key)
        return self._dicts.setdefault(key, {})
