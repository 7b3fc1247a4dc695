"""What a disk may hold after the power went: images of a store put together from its past.

One sentence: since the last sync every sector of every file may or may not have reached the
disk, so an image takes each from a random moment between that sync and the end.

A :class:`Film` is a row of copies of the directory taken while work went on. Each copy
reads the file of durable points first: that file is written and synced only after all others
have been, so whoever finds durable point P in an image knows that every sector is at least as new
as the first copy that shows P. The slot of the next point may be caught half-written.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

SECTOR = 512
DURABLE = "durable"
SLOT = 32 * 1024
"""The file of durable points has two slots, written in turn, each synced before the next."""


@dataclass
class Film:
    """Copies of a store's files, in the order they were taken."""

    directory: Path
    frames: list[dict[str, bytes]] = field(default_factory=list)

    def take(self) -> int:
        """Copy everything; returns the number of the frame."""
        durable = (self.directory / DURABLE).read_bytes()
        names = sorted(path.name for path in self.directory.iterdir() if path.is_file())
        frame = {name: (self.directory / name).read_bytes() for name in names if name != DURABLE}
        self.frames.append({DURABLE: durable} | frame)
        return len(self.frames) - 1

    def points(self) -> list[int]:
        """The frames in which a durable point shows for the first time."""
        durables = [frame[DURABLE] for frame in self.frames]
        return [n for n, content in enumerate(durables) if n == 0 or content != durables[n - 1]]

    def develop(self, target: Path, point: int, rng: random.Random) -> None:
        """Write an image of a crash at the end of the film, with the durable point of this
        frame on disk and perhaps a torn piece of the next."""
        later = [n for n in self.points() if n > point]
        durable = self.frames[point][DURABLE]
        first = point
        if later and rng.random() < 0.5:
            following = self.frames[later[0]][DURABLE]
            if durable[:SLOT] == following[:SLOT] or durable[SLOT:] == following[SLOT:]:
                durable, first = _mix([durable, following], rng), later[0]
        target.mkdir(mode=0o700)
        (target / DURABLE).write_bytes(durable)
        for name in self.frames[first]:
            if name != DURABLE:
                versions = [frame[name] for frame in self.frames[first:]]
                (target / name).write_bytes(_mix(versions, rng))


def _mix(versions: list[bytes], rng: random.Random) -> bytes:
    """Each sector from some version; where the version was shorter, nothing was written yet."""
    size = rng.choice([len(versions[0]), len(versions[-1]), len(rng.choice(versions))])
    oldest = versions[0]
    image = bytearray(max(size, len(oldest)))
    image[: len(oldest)] = oldest
    for at in range(0, len(image), SECTOR):
        choices = {version[at : at + SECTOR] for version in versions}
        if len(choices) > 1:
            sector = rng.choice(versions)[at : at + SECTOR]
            image[at : at + SECTOR] = sector.ljust(min(SECTOR, len(image) - at), b"\0")[: len(image) - at]
    return bytes(image)
