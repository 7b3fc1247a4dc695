"""What is known of a system before it is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.others.views import ROUND


@dataclass(frozen=True)
class System:
    """A system that is measured: how it is run, what it reads, what it leaves, and over how many operations."""

    name: str
    module: str
    reads: str
    """The form of the stream (:mod:`bench.others.stream`)."""
    left: str
    """The form of what it leaves (:mod:`bench.others.judge`)."""
    leaves: str
    """What a user has in the end."""
    operations: Mapping[str, int]
    """By view: as many as it can take in some ten seconds, and a million at most."""
    batch: int = ROUND
    """Operations that it takes at once. A short run is of whole batches, so that what each of them costs besides its
    operations is in the difference of two runs."""
    needs: str | None = None
    """What :mod:`bench.others.setup` installs for it."""
    foreign: bool = False
    """Whether it runs in an environment of its own."""
    ours: bool = False

    def short(self, count: int) -> int:
        """Operations of a short run: a tenth, or a batch where that is more."""
        return max(count // 10 // self.batch, 1) * self.batch
