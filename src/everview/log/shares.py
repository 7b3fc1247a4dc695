"""Shares: who reads what of an epoch.

The log slices of an epoch, and the pieces of the rows that a build takes in, are dealt
out among the tasks of its first stage.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from everview.change.frontier import Slice
from everview.maintain.tasks import EpochTask
from everview.store.contract import Begun

_DESCRIPTOR = pa.schema(
    [
        ("epoch", pa.int64()),
        ("node", pa.int32()),
        ("after", pa.int64()),
        ("upto", pa.int64()),
        ("piece", pa.int32()),
        ("leads", pa.bool_()),
    ]
)

WORTH_A_TASK = 10_000
"""Log entries below which another task costs more than it saves."""


@dataclass(frozen=True)
class Share:
    """What one task of the first stage reads."""

    epoch: int
    slices: tuple[Slice, ...] = ()
    pieces: tuple[int, ...] = ()
    leads: bool = False
    """Whether the task tells what belongs to no key."""


def share_out(begun: Begun, task: EpochTask, tasks: int) -> list[Share]:
    """Shares for at most so many tasks. A log is read in one place, so that a key is: the largest
    slices are dealt out first, each to the task that has least."""
    slices = begun.start.slices_to(begun.frontier) if task.chunk is None or task.chunk.reads_log else ()
    pieces = range(len(task.chunk.pieces())) if task.chunk is not None and task.chunk.table is not None else range(0)
    worth = min(len(slices), sum(map(len, slices)) // WORTH_A_TASK)
    count = 1 if task.alone else max(1, min(tasks, max(worth, len(pieces))))
    dealt: list[list[Slice]] = [[] for _ in range(count)]
    load = [0] * count
    for piece in sorted(slices, key=len, reverse=True):
        least = load.index(min(load))
        dealt[least].append(piece)
        load[least] += len(piece)
    return [
        Share(begun.epoch, tuple(dealt[number]), tuple(pieces[number::count]), leads=number == 0)
        for number in range(count)
    ]


def described(share: Share) -> pa.RecordBatch:
    """A share as rows for a task."""
    rows: list[tuple[object, ...]] = [
        (share.epoch, piece.node, piece.after, piece.upto, None, share.leads) for piece in share.slices
    ]
    rows += [(share.epoch, None, None, None, piece, share.leads) for piece in share.pieces]
    rows = rows or [(share.epoch, None, None, None, None, share.leads)]
    return pa.record_batch([list(column) for column in zip(*rows, strict=True)], schema=_DESCRIPTOR)
