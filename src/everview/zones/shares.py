"""Shares: which task reads what of an epoch.

The log slices of an epoch, and the pieces of the rows that a build takes in, are dealt
out among the tasks of its first stage. The driver does that, and a task carries all shares
(:class:`~everview.zones.stage_task.StageTask`): some numbers for each log.
"""

from __future__ import annotations

from dataclasses import dataclass

from everview.change.frontier import Slice
from everview.maintain.tasks import EpochTask
from everview.store.contract import Begun

WORTH_A_TASK = 10_000
"""Log entries below which another task costs more than it saves."""


@dataclass(frozen=True)
class Share:
    """What one task of the first stage reads: log slices, and pieces of a chunk by number."""

    slices: tuple[Slice, ...] = ()
    pieces: tuple[int, ...] = ()
    leads: bool = False
    """Whether the task reports what belongs to no key."""


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
    return [Share(tuple(dealt[number]), tuple(pieces[number::count]), leads=number == 0) for number in range(count)]
