"""Log entries that could not be decoded, with position and reason.

Every entry is a document of its own, named by the object it concerns and
its position in the log, so that adding one twice changes nothing, pages come in log
order, and ten million of them slow down no process that does not read them.

::

    quarantine/00000000000000000007/0000000003/00000000000000001705
               the table or view    node       sequence number

An epoch that is retried quarantines the same entries again, under the same names.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from everview.catalog import documents
from everview.change.frontier import Position
from everview.errors import ConflictError, InputError
from everview.store.contract import Metadata

ROOT = "quarantine/"
UNKNOWN = 0
"""The subject of entries of which not even the table is known."""

AT_ONCE = 1000
"""Entries per commit and per read; a writer waits for one commit at most."""
ATTEMPTS = 100
_LAST = "\U0010ffff"


@dataclass(frozen=True)
class QuarantineEntry:
    """One quarantined log entry. ``subject`` is the id of the table or view it concerns."""

    subject: int
    position: Position
    reason: str
    time: float
    key: bytes | None = None


class Quarantine:
    """The quarantined entries, by subject and in log order."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata

    def add(self, entries: Iterable[QuarantineEntry]) -> None:
        """Quarantine entries. An entry with the same subject and position is replaced."""
        for part in _parts(entries):
            self._commit({_name(entry.subject, entry.position): _encode(entry) for entry in part}, ())

    def page(self, subject: int, after: Position | None = None, limit: int = 100) -> tuple[QuarantineEntry, ...]:
        """The first entries of a subject past a position, in log order."""
        if limit < 0:
            raise InputError(f"a page cannot have {limit} entries")
        start = "" if after is None else _name(subject, after)
        _, found = self._metadata.documents(_prefix(subject), after=start, limit=limit)
        return tuple(documents.decode(name, found[name], _read) for name in sorted(found))

    def subjects(self) -> tuple[int, ...]:
        """The tables and views that have entries."""
        found = []
        after = ""
        while page := self._metadata.documents(ROOT, after=after, limit=1)[1]:
            subject = int(next(iter(page)).split("/")[1])
            found.append(subject)
            after = _prefix(subject) + _LAST
        return tuple(found)

    def count(self, subject: int) -> int:
        """How many entries a subject has."""
        return sum(len(page) for page in self._names(subject))

    def clear(self, subject: int, upto: Position | None = None) -> int:
        """Remove the entries of a subject, or those up to and with a position (in the order
        of pages); returns how many."""
        last = _prefix(subject) + _LAST if upto is None else _name(subject, upto)
        removed = 0
        for page in self._names(subject):
            gone = [name for name in page if name <= last]
            if gone:
                self._commit({}, gone)
            removed += len(gone)
            if len(gone) < len(page):
                break
        return removed

    def _names(self, subject: int) -> Iterator[list[str]]:
        after = ""
        while page := sorted(self._metadata.documents(_prefix(subject), after=after, limit=AT_ONCE)[1]):
            yield page
            after = page[-1]

    def _commit(self, puts: Mapping[str, bytes], deletes: Iterable[str]) -> None:
        """Entries depend on nothing else, so a conflict only means: once more."""
        names = tuple(deletes)
        for attempt in itertools.count(1):
            try:
                self._metadata.commit(self._metadata.version(), puts, names)
                return
            except ConflictError:
                if attempt == ATTEMPTS:
                    raise


def _parts(entries: Iterable[QuarantineEntry]) -> Iterator[list[QuarantineEntry]]:
    rest = iter(entries)
    while part := list(itertools.islice(rest, AT_ONCE)):
        yield part


def _prefix(subject: int) -> str:
    return f"{ROOT}{subject:020d}/"


def _name(subject: int, position: Position) -> str:
    return f"{_prefix(subject)}{position.node:010d}/{position.sequence:020d}"


def _encode(entry: QuarantineEntry) -> bytes:
    return documents.encode(
        "quarantine",
        {
            "subject": entry.subject,
            "position": str(entry.position),
            "reason": entry.reason,
            "time": entry.time,
            "key": None if entry.key is None else base64.b64encode(entry.key).decode(),
        },
    )


def _read(plain: documents.Json) -> QuarantineEntry:
    key = plain["key"]
    return QuarantineEntry(
        int(plain["subject"]),
        Position.parse(plain["position"]),
        plain["reason"],
        float(plain["time"]),
        None if key is None else base64.b64decode(key, validate=True),
    )
