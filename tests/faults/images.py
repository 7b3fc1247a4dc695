"""What a disk may hold after the power went: images of a store put together from its past.

Since the last sync every sector of every file may or may not have reached the
disk, so an image takes each from a random moment between that sync and the end.

A :class:`Film` is a row of copies of the directory taken while work went on, each of a
time in which the durable point did not change. The file of durable points is written and
synced only after all others have been synced, so if an image holds point P, every sector is
at least as new as the first copy that shows P; and no sector is newer than the last one, for
nothing that P needs may be overwritten before the next point is on disk. That point's slot
may be caught half-written.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from everview.store.embedded import durability, points
from everview.store.embedded.environment import Environment

SECTOR = 512
ATTEMPTS = 1000
DURABLE = "durable"
SLOT = 32 * 1024
"""The file of durable points has two slots, written in turn, each synced before the next."""


@dataclass
class Film:
    """Copies of a store's files, in the order they were taken."""

    directory: Path
    frames: list[dict[str, bytes]] = field(default_factory=list)
    floors: dict[bytes, dict[str, bytes]] = field(default_factory=dict)
    """By the content of the file of durable points: what was synced when it was written."""

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """From now on remember what this process syncs: a sector that no sync covered may be
        missing even in an image that holds a later durable point."""
        on_disk = {path.name: path.read_bytes() for path in self.directory.iterdir()}
        sync, write_point = Environment.sync, points.write_point

        def watched_sync(environment: Environment) -> None:
            content = environment.path.read_bytes()
            sync(environment)
            if environment.path.parent == self.directory:
                on_disk[environment.path.name] = content

        def watched_write(directory: Path, point: points.Point) -> None:
            floor = dict(on_disk)
            write_point(directory, point)
            if directory == self.directory:
                self.floors[(directory / DURABLE).read_bytes()] = floor

        monkeypatch.setattr(Environment, "sync", watched_sync)
        monkeypatch.setattr(durability, "write_point", watched_write)

    def take(self) -> int:
        """Copy everything; returns the number of the frame."""
        for _ in range(ATTEMPTS):
            durable = (self.directory / DURABLE).read_bytes()
            names = sorted(path.name for path in self.directory.iterdir() if path.is_file())
            frame = {name: (self.directory / name).read_bytes() for name in names}
            if frame[DURABLE] == durable == (self.directory / DURABLE).read_bytes():
                self.frames.append(frame)
                return len(self.frames) - 1
        raise AssertionError("the durable point never stands still")

    def points(self) -> list[int]:
        """The frames in which a durable point shows for the first time."""
        durables = [frame[DURABLE] for frame in self.frames]
        return [n for n, content in enumerate(durables) if n == 0 or content != durables[n - 1]]

    def develop(self, target: Path, point: int, rng: random.Random) -> None:
        """Write an image of a crash with the durable point of this frame on disk, and perhaps
        a torn piece of the next."""
        end = min([n for n in self.points() if n > point], default=len(self.frames))
        durable = self.frames[point][DURABLE]
        if end < len(self.frames):
            following = self.frames[end][DURABLE]
            torn = _mix([durable, following], rng)
            one_slot = durable[:SLOT] == following[:SLOT] or durable[SLOT:] == following[SLOT:]
            if one_slot and torn != following:
                durable = torn
        target.mkdir(mode=0o700)
        (target / DURABLE).write_bytes(durable)
        for name in self.frames[point]:
            if name != DURABLE:
                versions = [frame[name] for frame in self.frames[point:end]]
                floor = self.floors.get(self.frames[point][DURABLE], {}).get(name)
                (target / name).write_bytes(_mix(versions if floor is None else [floor, *versions], rng))


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
