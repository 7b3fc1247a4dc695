"""Names that are free.

One sentence: whatever a query calls things twice, the plan calls them apart: ``o``, ``o#2``, …
"""

from __future__ import annotations


class Names:
    """The names given so far, upper and lower case alike."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def fresh(self, wanted: str) -> str:
        """The wanted name, or the first of its kind that is free."""
        name, number = wanted, 1
        while name.lower() in self._given:
            number += 1
            name = f"{wanted}#{number}"
        self._given.add(name.lower())
        return name

    def mark(self) -> frozenset[str]:
        return frozenset(self._given)

    def back_to(self, mark: frozenset[str]) -> None:
        """Forget the names given since."""
        self._given = set(mark)
