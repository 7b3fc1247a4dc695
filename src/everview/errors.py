"""Every error a user can meet, and what it promises.

::

    EverviewError
    ├── DefinitionError            a schema, table or view is not well defined
    │   ├── UnknownObjectError     no table, view, group or column of that name
    │   ├── DuplicateObjectError   the name is taken
    │   └── SqlError               a statement is wrong at a line and column
    │       ├── SqlSyntaxError     it cannot be read
    │       ├── SqlTypeError       its types do not fit
    │       └── SqlRefusedError    Everview does not support what it asks for
    ├── InputError                 an argument is not valid; nothing was written
    │   ├── ValueTypeError         wrong type, out of range, not UTF-8, NaN in a key
    │   ├── MissingColumnError     a key column, or a NOT NULL column, has no value
    │   ├── UnknownColumnError     a column the table does not have
    │   └── KeyTooLongError        the encoded key is longer than the store takes
    ├── StoreError                 the store cannot do what it is asked to do
    │   ├── NotAStoreError         the directory has other files, or is damaged
    │   ├── UnsupportedFormatError another version of Everview wrote it
    │   ├── StoreFullError         the map or the disk is full            (retryable)
    │   ├── ConflictError          another process changed it first       (retryable)
    │   ├── LeaseTakenError        another process does this already      (retryable)
    │   ├── LogTrimmedError        the log no longer reaches back that far
    │   ├── DamagedEntryError      a log entry or record cannot be decoded
    │   └── TopologyError          an invalid change of nodes or regions
    ├── InternalError              a mistake in Everview itself: please report it
    ├── DeadlineError              a wait took longer than its deadline  (retryable)
    ├── StalledError               maintenance makes no progress          (retryable)
    └── EpochError                 the rules of epochs
        ├── StaleEpochError        a write or read of an epoch that is closed (a zombie)
        ├── SnapshotExpiredError   the asked version is no longer kept     (retryable)
        └── EpochOrderError        begin or commit out of order

Each carries four parts: ``message`` (what happened, to which table, column and key),
``detail`` (why), ``hint`` (what to do) and ``retryable`` (whether the same call may
succeed later without a change of its arguments).
"""

from __future__ import annotations

from typing import ClassVar


class EverviewError(Exception):
    """The root of all errors raised on purpose."""

    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, detail: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint

    def __str__(self) -> str:
        parts = [self.message]
        if self.detail:
            parts.append(f"  why: {self.detail}")
        if self.hint:
            parts.append(f"  do:  {self.hint}")
        return "\n".join(parts)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.message, self.detail, self.hint)


def _rebuild(kind: type[EverviewError], message: str, detail: str | None, hint: str | None) -> EverviewError:
    return kind(message, detail=detail, hint=hint)


class DefinitionError(EverviewError):
    """A schema, table or view is not well defined."""


class UnknownObjectError(DefinitionError):
    """There is no table, view, group or column of that name."""


class DuplicateObjectError(DefinitionError):
    """The name is taken already."""


class SqlError(DefinitionError):
    """A statement is wrong. ``line`` and ``column`` are the place in its text, from 1; 0 if there
    is none."""

    def __init__(
        self, message: str, *, detail: str | None = None, hint: str | None = None, line: int = 0, column: int = 0
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.line = line
        self.column = column

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_placed, (type(self), self.message, self.detail, self.hint, self.line, self.column)


def _rebuild_placed(
    kind: type[SqlError], message: str, detail: str | None, hint: str | None, line: int, column: int
) -> SqlError:
    return kind(message, detail=detail, hint=hint, line=line, column=column)


class SqlSyntaxError(SqlError):
    """A statement cannot be read."""


class SqlTypeError(SqlError):
    """The types in a statement do not fit."""


class SqlRefusedError(SqlError):
    """A statement asks for something that Everview does not support."""


class InputError(EverviewError):
    """An argument is not valid. Nothing was written."""


class ValueTypeError(InputError):
    """A value has the wrong type, is out of range, is not UTF-8, or is NaN in a key."""


class MissingColumnError(InputError):
    """A key column or a NOT NULL column has no value."""


class UnknownColumnError(InputError):
    """The table has no such column."""


class KeyTooLongError(InputError):
    """The encoded key is longer than the store takes."""


class StoreError(EverviewError):
    """The store cannot do what it is asked to do."""


class NotAStoreError(StoreError):
    """The directory has other files, or a store that is damaged."""


class UnsupportedFormatError(StoreError):
    """Another version of Everview wrote this store, in a format that this one does not read."""


class StoreFullError(StoreError):
    """The map or the disk is full."""

    retryable = True


class ConflictError(StoreError):
    """Another process changed it first. Read again and retry."""

    retryable = True


class LeaseTakenError(StoreError):
    """Another process does what only one may do."""

    retryable: ClassVar[bool] = True


class LogTrimmedError(StoreError):
    """The log no longer reaches back that far."""


class DamagedEntryError(StoreError):
    """A log entry or a record cannot be decoded."""


class TopologyError(StoreError):
    """An invalid change of nodes or regions."""


class InternalError(EverviewError):
    """An unexpected error: a mistake in Everview. The original error is its cause."""

    @classmethod
    def of(cls, error: BaseException) -> InternalError:
        """The InternalError for an unexpected error."""
        return cls(
            f"something unexpected happened: {type(error).__name__}: {error}",
            detail="this is a mistake in Everview, and not in how it was called",
            hint="please report it, with the traceback",
        )


class DeadlineError(EverviewError):
    """A wait took longer than its deadline."""

    retryable = True


class StalledError(EverviewError):
    """Maintenance makes no progress: it waits for something that no process does."""

    retryable = True


class EpochError(EverviewError):
    """The rules of epochs were not kept."""


class StaleEpochError(EpochError):
    """A read or write of an epoch that is closed: the caller is a zombie."""


class SnapshotExpiredError(EpochError):
    """The asked version is no longer kept. Take a new snapshot."""

    retryable = True


class EpochOrderError(EpochError):
    """An epoch was begun or committed out of order."""
