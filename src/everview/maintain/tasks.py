"""What an epoch has to do, as it is recorded with its begin.

An :class:`EpochTask` names a recorded plan and what the epoch takes in: the log
up to its frontier, and of a view that is being built also the next rows of a table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from everview.errors import DamagedEntryError
from everview.store.contract import StateTable

_FORMAT = 1


@dataclass(frozen=True)
class Chunk:
    """Rows of a base table that a build takes in: those whose encoded keys are after ``after`` and
    not after ``upto``. Of the log the build takes only what concerns rows it has taken in before:
    all of the tables in ``loaded``, and of this one up to ``after``."""

    table: str | None
    """None: no rows are taken in."""
    after: bytes | None = None
    """None: from the beginning."""
    upto: bytes | None = None
    """None: to the end."""
    loaded: tuple[str, ...] = ()
    cuts: tuple[bytes, ...] = ()
    """Keys at which it is cut into pieces that are taken in side by side."""
    rows: int = field(default=0, compare=False)
    """How many rows it had when its end was chosen: what it costs."""

    @property
    def pieces(self) -> int:
        """How many pieces it has."""
        return len(self.cuts) + 1

    def ranges(self, pieces: Iterable[int]) -> tuple[Chunk, ...]:
        """The rows of pieces, by number; pieces that follow each other are read as one range."""
        ends = (self.after, *self.cuts, self.upto)
        runs: list[tuple[int, int]] = []
        for piece in sorted(pieces):
            if runs and runs[-1][1] == piece:
                runs[-1] = runs[-1][0], piece + 1
            else:
                runs.append((piece, piece + 1))
        return tuple(replace(self, after=ends[low], upto=ends[high], cuts=()) for low, high in runs)

    @property
    def reads_log(self) -> bool:
        """Whether any rows were taken in before."""
        return bool(self.loaded) or (self.table is not None and self.after is not None)


@dataclass(frozen=True)
class EpochTask:
    """The plan by its name, whether its steps have kept nothing yet, and the chunk of a build."""

    plan: str
    first: bool = False
    chunk: Chunk | None = None
    alone: bool = False
    """Whether the logs are read in one place: keys may stand in several of them."""
    adopted: StateTable | None = None
    """The quarantine of a build whose views become the group's own in this epoch."""
    begun: float | None = None
    """When it was begun, as a time of :func:`time.time`: for its figures."""
    built: str | None = None
    """The plan of that build."""
    streamed: bool = False
    """Whether the one that moves its group does it, here or with a stream of Spark; if not, another part of the
    maintainer has begun it, and does it."""
    here: bool = False
    """Whether it is done in the process that has begun it, and the stream has nothing of it."""

    @property
    def reads_log(self) -> bool:
        """Whether it takes in anything of the logs."""
        return self.chunk is None or self.chunk.reads_log

    @property
    def is_empty(self) -> bool:
        """Whether it takes in nothing, and nothing follows from there being nothing: the group gets another plan,
        or its older epochs are refused."""
        return self.chunk == Chunk(None) and not self.first

    @property
    def pieces(self) -> int:
        """How many pieces of a table's rows it takes in."""
        return 0 if self.chunk is None or self.chunk.table is None else self.chunk.pieces

    def to_bytes(self) -> bytes:
        recorded: dict[str, object] = {"format": _FORMAT, "plan": self.plan, "first": self.first, "alone": self.alone}
        if self.chunk is not None:
            recorded["chunk"] = chunk_to_json(self.chunk)
        if self.adopted is not None:
            recorded["adopted"] = [self.adopted.id, self.adopted.name, self.adopted.group]
        if self.begun is not None:
            recorded["begun"] = self.begun
        if self.built is not None:
            recorded["built"] = self.built
        if self.streamed:
            recorded["streamed"] = True
        if self.here:
            recorded["here"] = True
        return json.dumps(recorded).encode()

    @staticmethod
    def from_bytes(recorded: bytes) -> EpochTask:
        """The task as it was recorded when its epoch began."""
        try:
            found = json.loads(recorded)
            chunk = found.get("chunk")
            return EpochTask(
                found["plan"],
                found["first"],
                None if chunk is None else chunk_from_json(chunk),
                found["alone"],
                StateTable(*found["adopted"]) if "adopted" in found else None,
                found.get("begun"),
                found.get("built"),
                found.get("streamed", False),
                found.get("here", False),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedEntryError(
                "what an epoch has to do cannot be read",
                detail=f"recorded: {recorded[:80]!r}",
                hint="another version of Everview began the epoch: finish it with that one",
            ) from error


def chunk_to_json(chunk: Chunk) -> list[object]:
    cuts = [cut.hex() for cut in chunk.cuts]
    return [chunk.table, _hex(chunk.after), _hex(chunk.upto), list(chunk.loaded), cuts, chunk.rows]


def chunk_from_json(recorded: list[object]) -> Chunk:
    table, after, upto, loaded, cuts, rows = recorded
    assert (table is None or isinstance(table, str)) and isinstance(loaded, list) and isinstance(cuts, list)
    assert isinstance(rows, int)
    return Chunk(table, _bytes(after), _bytes(upto), tuple(loaded), tuple(map(bytes.fromhex, cuts)), rows)


def _hex(key: bytes | None) -> str | None:
    return None if key is None else key.hex()


def _bytes(text: object) -> bytes | None:
    return bytes.fromhex(text) if isinstance(text, str) else None
