"""Documents in a dictionary: what the Metadata contract means, in thirty lines."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping

from everview.errors import ConflictError


class MemoryMetadata:
    """Counts its reads, so that tests can say what a cache spares."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counter = 0
        self._documents: dict[str, bytes] = {}
        self.reads: list[str] = []

    def version(self) -> int:
        return self._counter

    def documents(
        self, prefix: str = "", *, after: str = "", limit: int | None = None
    ) -> tuple[int, Mapping[str, bytes]]:
        with self._lock:
            self.reads.append(prefix)
            names = sorted((n for n in self._documents if n.startswith(prefix) and n > after), key=str.encode)
            return self._counter, {name: self._documents[name] for name in names[:limit]}

    def commit(self, expected: int, puts: Mapping[str, bytes], deletes: Collection[str] = ()) -> int:
        with self._lock:
            if expected != self._counter:
                raise ConflictError("the documents were changed by somebody else")
            for name in deletes:
                self._documents.pop(name, None)
            self._documents.update(puts)
            self._counter += 1
            return self._counter
