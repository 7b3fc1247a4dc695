"""What is killed, when, and what else goes wrong then: drawn from a seed.

The n-th kill of a seed is always the same, whatever the number of kills, and all named
points come early.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tests.faults.points import POINTS, split

NAMED = 0.4
"""The share of kills at points that have not had their turn, while there are any."""
COUNTS = {"transaction": 15, "documents": 6, "commit": 5, "join": 8, "trim": 8}
"""How often a point is passed at most before it kills, where that is more than …"""
FEW = 2
LONGEST = 60
"""Ticks before a kill at a random moment."""
SECTIONS: dict[str, dict[str, float]] = {
    "local": {"worker": 0.58, "writer": 0.39, "source": 0.02, "driver": 0.01},
    "cluster": {"executor": 0.35, "worker": 0.35, "writer": 0.25, "driver": 0.05},
}
"""Who is killed, and how often, where Spark runs in one process and where it runs in many."""


@dataclass(frozen=True)
class Kill:
    """One kill. Of a driver it also says what else is lost, left and written before the next one."""

    number: int
    who: str
    point: str | None
    """None: at a random moment, so many ticks from now."""
    count: int
    checkpoint_lost: bool
    workers_left: bool
    steps_before_retry: int
    servers: int

    def __str__(self) -> str:
        where = f"{self.point}, time {self.count}" if self.point else f"{self.who} after {self.count} ticks"
        said = [f"{self.number:4} {where}"]
        if self.who == "driver":
            said.append("checkpoint lost" if self.checkpoint_lost else "checkpoint kept")
            said.append("its workers live on" if self.workers_left else "its workers die")
            said.append(f"{self.steps_before_retry} steps before the next")
        return "; ".join(said)


def points_of(section: str) -> tuple[str, ...]:
    """The points that have their turn there."""
    return tuple(point for point in POINTS if (split(point)[0] == "executor") == (section == "cluster"))


def kills(seed: int, section: str) -> Iterator[Kill]:
    """All kills of a seed, one after another, without end."""
    rng = random.Random(f"{seed}/{section}")
    shares = SECTIONS[section]
    left = list(points_of(section))
    rng.shuffle(left)
    number = 0
    while True:
        number += 1
        point: str | None
        if left and rng.random() < NAMED:
            point = left.pop()
            who = split(point)[0]
        else:
            (who,) = rng.choices(list(shares), list(shares.values()))
            named = [point for point in POINTS if split(point)[0] == who]
            point = rng.choice(named) if named and rng.random() < 0.7 else None
        yield Kill(
            number,
            who,
            point,
            rng.randint(1, COUNTS.get(split(point)[2], FEW)) if point else rng.randrange(LONGEST),
            rng.random() < 0.4,
            rng.random() < 0.4,
            rng.choice([0, 0, 10, 40]),
            rng.choice([1, 2, 2, 3]),
        )
