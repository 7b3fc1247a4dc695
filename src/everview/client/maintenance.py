"""Where statements hand over to whoever keeps views up to date.

One sentence: a statement that makes a view or an index records it and calls :meth:`created`; a
query that reads a view calls :meth:`rows`; FLUSH calls :meth:`flush`; nothing else of the client
knows how views are maintained.

What holds at the hand-over:

- *created*: the definition is committed in the catalog with the status ``building``, in the group
  its options ask for, without state tables. ``catalog.compiling.compiled_view`` gives the
  relation to plan. Whoever builds it gives it state tables and makes it ``live`` with
  ``draft.alter_view`` and ``draft.alter_index``. The call may return before that.
- *dropped*: state tables of what was dropped are marked in the catalog as discarded, in the same
  commit, and the database removes their rows; there is nothing else to do.
- *rows*: the snapshot is the reader's; rows come in the order of the view's row key, or in the
  order the view says, with exactly the view's columns.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import pyarrow as pa

from everview.catalog import Catalog, Maintained, ViewDefinition, ViewStatus
from everview.errors import DeadlineError, DefinitionError
from everview.store.contract import Snapshot, Store

_POLL = 0.005


class Maintenance:
    """What the client asks of the maintenance of views."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog

    def created(self, found: Maintained) -> None:
        """A view or an index was recorded, or recorded anew under its old id."""

    def rows(
        self, view: ViewDefinition, snapshot: Snapshot, prefixes: Sequence[tuple[object, ...]] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a view as of the last committed epoch of the snapshot; with ``prefixes``
        those whose row key begins with one of them."""
        raise not_built(view)

    def flush(self, timeout: float | None = None) -> None:
        """Return when every view reflects every write that was acknowledged before the call."""
        definitions = self._catalog.definitions()
        for view in definitions.views():
            if view.status is ViewStatus.BUILDING:
                raise not_built(view)
        wanted = self._store.log.latest()
        deadline = None if timeout is None else time.monotonic() + timeout
        for group in sorted({view.group for view in definitions.views()}):
            while not wanted <= self._store.views.committed(group).frontier:
                if deadline is not None and time.monotonic() > deadline:
                    raise DeadlineError(
                        f"the views of group {group} do not reflect every write yet",
                        detail=f"{timeout} s are over",
                        hint="wait longer, or see whether a pipeline maintains them",
                    )
                time.sleep(_POLL)


def not_built(view: ViewDefinition) -> DefinitionError:
    return DefinitionError(
        f"view {view.name} is not built yet",
        detail="it is recorded, and its rows have not been computed",
        hint="it can be read when it is built; until then run its query as a SELECT",
    )
