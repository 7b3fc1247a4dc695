"""Shares: which task reads what of an epoch.

The log slices of an epoch, and the pieces of the rows that a build takes in, are dealt
out among the tasks of its first stage. A share travels as rows of descriptors, so that no log byte passes through
the JVM.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from everview.change.frontier import Slice
from everview.errors import StaleEpochError
from everview.maintain.tasks import EpochTask
from everview.store.contract import Begun
from everview.zones.source import DESCRIPTOR

WORTH_A_TASK = 10_000
"""Log entries below which another task costs more than it saves."""


@dataclass(frozen=True)
class Share:
    """What one task of the first stage reads: log slices, and pieces of a chunk by number."""

    epoch: int
    slices: tuple[Slice, ...] = ()
    pieces: tuple[int, ...] = ()
    leads: bool = False
    """Whether the task reports what belongs to no key."""

    def to_descriptors(self) -> pa.RecordBatch:
        """The share as rows for a task."""
        rows: list[tuple[object, ...]] = [
            (self.epoch, piece.node, piece.after, piece.upto, None, self.leads) for piece in self.slices
        ]
        rows += [(self.epoch, None, None, None, piece, self.leads) for piece in self.pieces]
        rows = rows or [(self.epoch, None, None, None, None, self.leads)]
        return pa.record_batch([list(column) for column in zip(*rows, strict=True)], schema=_arrow_schema())

    @staticmethod
    def from_descriptors(epoch: int, batches: Iterable[pa.RecordBatch]) -> Share:
        """What a task of an epoch was handed, of one share or of several."""
        slices: list[Slice] = []
        pieces: list[int] = []
        leads = False
        for batch in batches:
            epochs, nodes, afters, uptos, numbers, leading = (column.to_pylist() for column in batch.columns)
            if set(epochs) - {epoch}:
                raise StaleEpochError(
                    f"a task of epoch {epoch} was handed slices of epoch {max(epochs)}",
                    hint="is another pipeline maintaining the same group? one of them must stop",
                )
            leads = leads or any(leading)
            for node, after, upto, number in zip(nodes, afters, uptos, numbers, strict=True):
                if number is not None:
                    pieces.append(number)
                elif node is not None:
                    slices.append(Slice(node, after, upto))
        return Share(epoch, tuple(slices), tuple(pieces), leads)


@functools.cache
def _arrow_schema() -> pa.Schema:
    return to_arrow_schema(DESCRIPTOR)


def share_out(begun: Begun, task: EpochTask, tasks: int) -> list[Share]:
    """Shares for at most so many tasks. A log is read in one place, so that a key is: the largest
    slices are dealt out first, each to the task that has least."""
    slices = begun.start.slices_to(begun.frontier) if task.reads_log else ()
    worth = min(len(slices), sum(map(len, slices)) // WORTH_A_TASK)
    count = 1 if task.alone else max(1, min(tasks, max(worth, task.pieces)))
    dealt: list[list[Slice]] = [[] for _ in range(count)]
    load = [0] * count
    for piece in sorted(slices, key=len, reverse=True):
        least = load.index(min(load))
        dealt[least].append(piece)
        load[least] += len(piece)
    pieces = range(task.pieces)
    return [
        Share(begun.epoch, tuple(dealt[number]), tuple(pieces[number::count]), leads=number == 0)
        for number in range(count)
    ]
