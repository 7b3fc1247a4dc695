"""What the functions that compile relations are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from everview.plan.maintenance.sketch import Sketch, Slot, Stream
from everview.plan.relations import Relation


@dataclass
class CompileContext:
    """What is shared while one relation is compiled."""

    sketch: Sketch
    compiled_by: Mapping[type[Relation], Callable[[Any, frozenset[str], CompileContext], Stream]]
    views: Callable[[str], Stream | None]
    """The stream of a view of the same group, by its shown columns; None: a base table."""
    slots: Iterator[Slot]
    """The constants of the relation's conditions, in the order in which it is compiled."""

    def stream(self, relation: Relation, needed: frozenset[str]) -> Stream:
        """Compile a relation of which these fields are needed."""
        return self.compiled_by[type(relation)](relation, needed, self)
