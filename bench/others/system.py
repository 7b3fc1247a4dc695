"""What is known of a system before it is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


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
    needs: str | None = None
    """What :mod:`bench.others.setup` installs for it."""
    foreign: bool = False
    """Whether it runs in an environment of its own."""
