"""Names that are free.

What a query calls by one name twice, the plan calls apart: ``o``, ``o#2``, …
"""

from __future__ import annotations

from collections.abc import Iterable


class FreeNames:
    """The names given so far, upper and lower case alike."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def fresh(self, wanted: str) -> str:
        """The wanted name for a field, or the first of its kind that is free."""
        return self._free(wanted, "")

    def source(self, wanted: str, columns: Iterable[str] = ()) -> str:
        """A free name for what stands in a FROM. Its columns, where they are told, are the fields
        ``source.column``, which are given too."""
        columns = list(columns)
        name = self._free(wanted, ".")
        while any(f"{name}.{column}".lower() in self._given for column in columns):
            name = self._free(wanted, ".")
        self._given |= {f"{name}.{column}".lower() for column in columns}
        return name

    def _free(self, wanted: str, end: str) -> str:
        """Names of sources are kept with a dot at their end: they are apart from those of fields."""
        name, number = wanted, 1
        while f"{name}{end}".lower() in self._given:
            number += 1
            name = f"{wanted}#{number}"
        self._given.add(f"{name}{end}".lower())
        return name

    def mark(self) -> frozenset[str]:
        return frozenset(self._given)

    def back_to(self, mark: frozenset[str]) -> None:
        """Forget the names given since."""
        self._given = set(mark)
