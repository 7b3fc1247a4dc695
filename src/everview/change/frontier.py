"""Positions and frontiers: how far each log has been read.

A :class:`Position` is one entry of one node's log, a :class:`Frontier` is
one sequence number per node, and frontiers form a lattice under "has seen at least".

Sequence numbers begin at 1; a node that a frontier does not name stands at 0: nothing of
its log has been taken. The text form is short, sorted and can be pasted::

    >>> Frontier.parse("f:1=250,3=17")
    Frontier.parse('f:1=250,3=17')
    >>> Frontier({1: 5}) <= Frontier({1: 5, 2: 1}), Frontier({1: 5}) <= Frontier({2: 9})
    (True, False)
    >>> Frontier({1: 5, 2: 3}) | Frontier({1: 2, 2: 8})
    Frontier.parse('f:1=5,2=8')
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from everview.boundary import public_constructors
from everview.errors import InputError

_FORM = re.compile(r"f:(?:\d+=\d+(?:,\d+=\d+)*)?")


@dataclass(frozen=True, order=True)
class Position:
    """One entry of one log: (node, sequence number)."""

    node: int
    sequence: int

    def __str__(self) -> str:
        return f"{self.node}:{self.sequence}"

    @staticmethod
    def parse(text: str) -> Position:
        match = re.fullmatch(r"(\d+):(\d+)", text.strip())
        if match is None:
            raise InputError(f"{text!r} is not a position", hint="a position looks like 3:1705 (node, sequence number)")
        return Position(int(match[1]), int(match[2]))


@dataclass(frozen=True)
class Slice:
    """The entries of one node's log with ``after < sequence <= upto``."""

    node: int
    after: int
    upto: int

    def __len__(self) -> int:
        return self.upto - self.after

    def __str__(self) -> str:
        return f"{self.node}:({self.after},{self.upto}]"


@public_constructors
class Frontier(Mapping[int, int]):
    """One sequence number per node: a prefix of every log. Immutable and hashable."""

    __slots__ = ("_marks",)

    def __init__(self, marks: Mapping[int, int] | None = None) -> None:
        items = sorted((marks or {}).items())
        for node, sequence in items:
            if node < 0 or sequence < 0:
                raise InputError(f"a frontier has no negative numbers: {node}={sequence}")
        self._marks = {node: sequence for node, sequence in items if sequence}

    def __getitem__(self, node: int) -> int:
        return self._marks.get(node, 0)

    def __iter__(self) -> Iterator[int]:
        return iter(self._marks)

    def __len__(self) -> int:
        return len(self._marks)

    def __contains__(self, node: object) -> bool:
        return node in self._marks

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frontier) and self._marks == other._marks

    def __hash__(self) -> int:
        return hash(tuple(self._marks.items()))

    def __le__(self, other: Frontier) -> bool:
        return all(sequence <= other[node] for node, sequence in self._marks.items())

    def __lt__(self, other: Frontier) -> bool:
        return self <= other and self != other

    def __ge__(self, other: Frontier) -> bool:
        return other <= self

    def __gt__(self, other: Frontier) -> bool:
        return other < self

    def __or__(self, other: Frontier) -> Frontier:
        """The join: the least frontier that has seen what either has."""
        return Frontier({node: max(self[node], other[node]) for node in self._marks.keys() | other._marks.keys()})

    def __and__(self, other: Frontier) -> Frontier:
        """The meet: what both have seen."""
        return Frontier({node: min(self[node], other[node]) for node in self._marks.keys() & other._marks.keys()})

    def covers(self, position: Position) -> bool:
        return position.sequence <= self[position.node]

    def slices_to(self, target: Frontier) -> tuple[Slice, ...]:
        """The entries between this frontier and a later one, a slice for each log that grew."""
        if not self <= target:
            raise InputError(f"{target} is not at or after {self}")
        return tuple(
            Slice(node, self[node], sequence) for node, sequence in target._marks.items() if sequence > self[node]
        )

    def operations_to(self, target: Frontier) -> int:
        """How many log entries lie between this frontier and a later one."""
        return sum(len(piece) for piece in self.slices_to(target))

    def __str__(self) -> str:
        return "f:" + ",".join(f"{node}={sequence}" for node, sequence in self._marks.items())

    def __repr__(self) -> str:
        return f"Frontier.parse({str(self)!r})"

    @staticmethod
    def parse(text: str) -> Frontier:
        stripped = text.strip()
        if not _FORM.fullmatch(stripped):
            raise InputError(
                f"{text!r} is not a frontier", hint="a frontier looks like f:1=250,3=17 (node=sequence number)"
            )
        marks = [part.split("=") for part in stripped[2:].split(",") if part]
        nodes = [int(node) for node, _ in marks]
        if len(set(nodes)) != len(nodes):
            raise InputError(f"{text!r} names a node twice")
        return Frontier({int(node): int(sequence) for node, sequence in marks})
