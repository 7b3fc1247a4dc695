"""Changes of a view, epoch by epoch, from any earlier epoch on.

The changes of an epoch are computed from the logs on request, by running the view's steps
backwards from the current rows, so nothing is kept for subscribers.

Let V(f) be the rows of a view at the frontier f, and C where its group is now. The steps of the view,
run over the writes between f and C with their signs turned, give the way back, B(f) = V(f) − V(C).
Then what the epoch from f to g has changed is ::

    V(g) − V(f)  =  B(g) − B(f)

and for the last epoch B(g) is empty, so a subscriber that follows closely pays for one run of one view
over one epoch's writes. The result is exact, since maintenance is: an epoch's changes come once, in order,
and are the same on every request, also in another process, after a restart, and for epochs that were
committed before the first subscription.

Keeping every view's changes in the store instead would cost every epoch of every view twice as much
as writing the view itself.

A subscription can start as far back as the logs and the list of commits (the last thousands) reach.
Before that it raises :class:`~everview.errors.SnapshotExpiredError`; ``snapshot=True`` starts with
all rows. It needs logs with before-images (``before_images=True``, the default).
"""

from __future__ import annotations

import functools
import re
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from everview.boundary import public
from everview.change.condense import condense
from everview.change.entries import WEIGHT
from everview.change.frontier import Frontier
from everview.client.exported_arrow import exported_table
from everview.client.freshness import Freshness
from everview.client.result import Result, ResultColumn
from everview.client.view_rows import ViewRows
from everview.errors import DefinitionError, InputError, LogTrimmedError, SnapshotExpiredError
from everview.operators.flow import empty, repeated, weighted
from everview.store.contract import Commit, TableSnapshot

if TYPE_CHECKING:
    from everview.client.view_handles import ViewHandle

POLL = 0.005
WINDOW = 16
"""Epochs whose changes are computed at a time, from one snapshot."""
MOST = 2_000_000
"""Log entries that a subscriber may be behind."""

_TOKEN = re.compile(r"(\d+):([0-9a-f]+)")


@public
@dataclass(frozen=True)
class ViewChange:
    """The changes of one epoch in a view: rows that came and rows that went, with the view's columns. A
    row that changed is in both. Epochs that changed nothing in the view have neither."""

    view: str
    epoch: int
    frontier: Frontier
    """The frontier that the view reflects from this epoch on."""
    stored_came: pa.Table = field(repr=False)
    stored_went: pa.Table = field(repr=False)
    columns: tuple[ResultColumn, ...] = field(repr=False)
    token: str
    """The token that continues after this epoch: ``view.subscribe(since=token)``."""
    whole: bool = False
    """Whether these are all rows as of the epoch, and not only its changes."""

    @functools.cached_property
    def came(self) -> pa.Table:
        """The rows that came, in the types of :meth:`everview.Result.arrow`."""
        return exported_table(self.stored_came, self.columns)

    @functools.cached_property
    def went(self) -> pa.Table:
        """The rows that went."""
        return exported_table(self.stored_went, self.columns)

    def rows(self) -> list[tuple[int, dict[str, Any]]]:
        """The rows as Python values, each with −1 if it went and +1 if it came; those that went first."""
        found: list[tuple[int, dict[str, Any]]] = []
        for weight, side in ((-1, self.stored_went), (1, self.stored_came)):
            found += [(weight, row) for row in Result(self.columns, side.to_batches()).dicts()]
        return found

    def __str__(self) -> str:
        what = "all" if self.whole else f"+{len(self.stored_came)} −{len(self.stored_went)}"
        return f"{self.view} epoch {self.epoch}: {what} rows"


@public
class Subscription:
    """The changes of a view, as an iterator that waits for the next epoch. It ends when nothing was
    committed for ``timeout`` seconds; without one, never."""

    def __init__(
        self,
        freshness: Freshness,
        view: ViewHandle,
        since: str | ViewChange | None = None,
        *,
        snapshot: bool = False,
        timeout: float | None = None,
    ) -> None:
        self._freshness = freshness
        self._store = freshness.store
        self._view = view
        self._timeout = timeout
        self._ready: deque[ViewChange] = deque()
        if not self._store.log.guarantees.before_images:
            raise DefinitionError(
                f"view {view.name} cannot be subscribed to",
                detail="the logs of this store have no before-images",
                hint="create the store with before_images=True",
            )
        self._means = self._meaning()
        self._at = self._begin(since.token if isinstance(since, ViewChange) else since, snapshot)
        self.token = self._token(self._at.epoch)
        """The position of the subscription: after the last change that was taken from it."""

    # -------------------------------------------------------------- where to begin

    def _begin(self, since: str | None, snapshot: bool) -> Commit:
        """The commit after which changes are returned."""
        if since is None:
            return self._whole() if snapshot else self._store.views.committed(self._group)
        match = _TOKEN.fullmatch(since)
        if match is None:
            raise InputError(f"{since!r} is not the position of a subscription", hint="give the token of a change")
        try:
            return self._known(int(match[1]), match[2])
        except SnapshotExpiredError:
            if not snapshot:
                raise
            return self._whole()

    def _known(self, epoch: int, means: str) -> Commit:
        if means != self._means:
            raise SnapshotExpiredError(
                f"view {self._view.name} is another one since epoch {epoch}",
                hint="subscribe with snapshot=True to start with all rows",
            )
        found = self._since(epoch)[0]
        self._check_reach(found)
        return found

    def _since(self, epoch: int) -> list[Commit]:
        """The commits from an epoch on, the oldest first."""
        limit = WINDOW
        while True:
            known = self._store.views.history(self._group, limit)
            found = [commit for commit in reversed(known) if commit.epoch >= epoch]
            if found and found[0].epoch == epoch:
                return found
            if len(known) < limit or len(found) < len(known):
                break
            limit *= 8
        raise self._too_old(epoch)

    def _whole(self) -> Commit:
        """Start with all rows."""
        with self._view.version(Frontier(), None).snapshot as snapshot:
            commit = snapshot.committed(self._group)
            rows = self._view.rows_in(snapshot)
            found = rows.reader.rows(snapshot, commit.epoch)
            self._ready.append(self._change(commit, found, empty(rows.reader.schema), whole=True))
        return commit

    # -------------------------------------------------------------- going on

    def __iter__(self) -> Iterator[ViewChange]:
        return self

    def __next__(self) -> ViewChange:
        ends = None if self._timeout is None else time.monotonic() + self._timeout
        while not self._ready:
            if self._store.views.committed(self._group).epoch > self._at.epoch:
                self._compute()
            elif ends is not None and time.monotonic() >= ends:
                raise StopIteration
            else:
                time.sleep(POLL)
        found = self._ready.popleft()
        self.token = found.token
        return found

    def _compute(self) -> None:
        """Compute the changes of the next epochs."""
        if self._meaning() != self._means:
            raise SnapshotExpiredError(
                f"view {self._view.name} is another one since epoch {self._at.epoch}",
                hint="subscribe with snapshot=True to start with all rows",
            )
        with self._view.version(Frontier(), None).snapshot as snapshot:
            now = snapshot.committed(self._group)
            rows = self._view.rows_in(snapshot)
            known = [commit for commit in self._since(self._at.epoch) if commit.epoch <= now.epoch]
            self._check_reach(self._at)
            back = self._back(rows, snapshot, self._at.frontier, now.frontier)
            for commit in known[1 : WINDOW + 1]:
                further = self._back(rows, snapshot, commit.frontier, now.frontier)
                self._ready.append(self._change(commit, *_difference(rows, back, further)))
                back, self._at = further, commit

    def _back(self, rows: ViewRows, snapshot: TableSnapshot, frontier: Frontier, now: Frontier) -> pa.Table | None:
        """The changes from the current rows back to those at a frontier; None if there are none."""
        if frontier == now:
            return None
        try:
            return self._freshness.pending.moved_back(rows.view.group, rows.view.name, snapshot, frontier)
        except LogTrimmedError as error:
            raise self._too_old(self._at.epoch) from error

    def _change(self, commit: Commit, came: pa.Table, went: pa.Table, *, whole: bool = False) -> ViewChange:
        columns = self._view.result_columns
        token = self._token(commit.epoch)
        return ViewChange(self._view.name, commit.epoch, commit.frontier, came, went, columns, token, whole)

    # -------------------------------------------------------------- what is known of the view

    @property
    def _group(self) -> str:
        return self._view.definition.group

    def _meaning(self) -> str:
        """A value that changes when the view is redefined."""
        found = self._freshness.views.last(self._view.definition)
        return found.reader.bound.plan.view_fingerprint(found.view.name)[:16]

    def _token(self, epoch: int) -> str:
        return f"{epoch}:{self._means}"

    def _check_reach(self, commit: Commit) -> None:
        latest = self._store.views.committed(self._group).frontier
        if not self._store.log.oldest() <= commit.frontier or commit.frontier.operations_to(latest) > MOST:
            raise self._too_old(commit.epoch)

    def _too_old(self, epoch: int) -> SnapshotExpiredError:
        return SnapshotExpiredError(
            f"what has changed in view {self._view.name} since epoch {epoch} is not known any more",
            detail="the logs, or the list of commits, do not reach back that far",
            hint="subscribe with snapshot=True to start with all rows",
        )


def _difference(rows: ViewRows, before: pa.Table | None, after: pa.Table | None) -> tuple[pa.Table, pa.Table]:
    """Rows that came and rows that went, as a reader sees them, from the changes back to both frontiers."""
    parts = [
        rows.reader.shown(way).append_column(WEIGHT, way[WEIGHT] if sign > 0 else pc.negate(way[WEIGHT]))
        for sign, way in ((-1, before), (1, after))
        if way is not None
    ]
    if not parts:
        return empty(rows.reader.schema), empty(rows.reader.schema)
    changes = condense(pa.concat_tables(parts))
    found = []
    for sign in (1, -1):
        side = weighted(changes, sign)
        found.append(repeated(side.drop_columns([WEIGHT]), pc.abs(side[WEIGHT])))
    return found[0], found[1]
