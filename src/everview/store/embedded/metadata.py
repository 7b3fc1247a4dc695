"""Documents of the embedded store: the catalog's ground."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from everview.boundary import fast, public
from everview.errors import ConflictError
from everview.store.embedded.core import Handle
from everview.store.embedded.environment import Transaction
from everview.store.embedded.layout import DOCUMENT


@public
@fast
class EmbeddedMetadata:
    """Named documents under one counter, in base.mdb."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def version(self) -> int:
        """The counter that every change of a document raises."""
        with self._handle.base.read() as transaction:
            return _counter(transaction)

    def documents(
        self, prefix: str = "", *, after: str = "", limit: int | None = None
    ) -> tuple[int, Mapping[str, bytes]]:
        shared, past = document_key(prefix), document_key(after)
        found: dict[str, bytes] = {}
        with self._handle.base.read() as transaction:
            cursor = transaction.cursor()
            if limit != 0 and cursor.set_range(max(shared, past)):
                for key, value in cursor:
                    if not key.startswith(shared):
                        break
                    if key in (past, DOCUMENT):
                        continue
                    found[key[len(DOCUMENT) :].decode()] = value
                    if len(found) == limit:
                        break
            return _counter(transaction), found

    def commit(self, expected: int, puts: Mapping[str, bytes], deletes: Collection[str] = ()) -> int:
        return self._handle.update(self._handle.base, _change(expected, puts, deletes))


def _change(expected: int, puts: Mapping[str, bytes], deletes: Collection[str]) -> Callable[[Transaction], int]:
    def work(transaction: Transaction) -> int:
        found = _counter(transaction)
        if found != expected:
            raise ConflictError(
                "the catalog was changed by somebody else",
                detail=f"it is at version {found}, the change was made at {expected}",
                hint="read it again and retry",
            )
        for name in deletes:
            transaction.delete(document_key(name))
        for name, document in puts.items():
            transaction.put(document_key(name), document)
        transaction.put(DOCUMENT, (expected + 1).to_bytes(8, "big"))
        return expected + 1

    return work


def document_key(name: str) -> bytes:
    """Where a document lies in base.mdb."""
    return DOCUMENT + name.encode()


def _counter(transaction: Transaction) -> int:
    return int.from_bytes(transaction.get(DOCUMENT) or b"", "big")
