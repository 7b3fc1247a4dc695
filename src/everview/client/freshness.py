"""How fresh a read has to be, and how that is reached.

A read that asks for more than the last epoch shows has a goal, a frontier. If few log
entries are missing to it, their effect is laid over the committed rows; if many, the read waits.

====================  ======================================================================
asked                 goal
====================  ======================================================================
nothing               the last committed epoch
``fresh=True``        the end of the logs when the call was made
``max_staleness=s``   the end of the logs s seconds ago, or later
a session             what the session has written and seen
====================  ======================================================================

If many are missing and no process maintains the store's views, the reader does: it takes the lease
and runs the epochs. If there is a maintainer, a lazy group is asked to move. ``deadline`` bounds all of it.

Log entries carry no time, so a bound on staleness relies on what this process has seen: the end of
the logs at each earlier read. The first read with a bound, and one
after a long pause, is therefore as fresh as one with ``fresh=True``.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from everview.catalog import GroupKind, ViewDefinition
from everview.change.frontier import Frontier
from everview.client.known_views import KnownViews
from everview.client.view_rows import ViewRows
from everview.errors import DeadlineError, InputError, LeaseTakenError, LogTrimmedError, UnknownObjectError
from everview.maintain import Maintainer
from everview.maintain.coordination import ask
from everview.maintain.demand import ReadCounts
from everview.maintain.laid import Laid, Moved
from everview.maintain.pending import Pending
from everview.maintain.rounds import Rounds
from everview.maintain.unfinished import standing
from everview.operators.sought import SoughtRows
from everview.store.contract import TableSnapshot

LITTLE = 10_000
"""Pending log entries up to which a reader computes what they change."""
SAMPLES = 1_000
POLL = 0.002


Seek: TypeAlias = Callable[[ViewRows], SoughtRows | None]
"""Returns the rows of a view that a reader asks for by values of their key; None: all."""


def everything(rows: ViewRows) -> SoughtRows | None:
    """All rows."""
    return None


@dataclass(frozen=True)
class Asked:
    """How fresh a read has to be."""

    fresh: bool = False
    max_staleness: float | None = None
    deadline: float | None = None

    def __post_init__(self) -> None:
        if self.max_staleness is not None and not self.max_staleness >= 0:
            raise InputError(f"views cannot be {self.max_staleness} s behind", hint="give 0 or more seconds")
        if self.deadline is not None and not self.deadline >= 0:
            raise InputError(f"a deadline cannot be in {self.deadline} s", hint="give 0 or more seconds")

    @property
    def ends(self) -> float | None:
        """The deadline as a time of :func:`time.monotonic`, from now."""
        return None if self.deadline is None else time.monotonic() + self.deadline


@dataclass(frozen=True)
class Version:
    """A snapshot in which some views are as fresh as asked for, and their frontier in it."""

    snapshot: TableSnapshot
    shown: Frontier


class Freshness:
    """Brings views to where readers want them."""

    def __init__(self, views: KnownViews) -> None:
        self.views = views
        self.store = views.store
        self.pending = Pending(views.store, views.catalog, views.plans)
        self._maintainer = Maintainer(views.store, views.catalog)
        self._reads = ReadCounts(views.store)
        self._seen: deque[tuple[float, Frontier]] = deque(maxlen=SAMPLES)

    def goal(self, asked: Asked) -> Frontier:
        """The frontier that a view has to reflect."""
        self._reads.record()  # of earlier reads: later, what this one has looked up would be looked up again
        if not asked.fresh and asked.max_staleness is None:
            return Frontier()
        latest = self.store.log.latest()
        if asked.fresh:
            return latest
        assert asked.max_staleness is not None
        now = time.monotonic()
        self._seen.append((now, latest))
        return next(frontier for moment, frontier in self._seen if moment >= now - asked.max_staleness)

    def reached(self, group: str, goal: Frontier) -> bool:
        return goal <= self.store.views.committed(group).frontier

    # -------------------------------------------------------------- versions

    def version(
        self,
        views: Sequence[ViewDefinition],
        goal: Frontier,
        ends: float | None = None,
        *,
        newest: bool = False,
        seek: Seek = everything,
    ) -> Version:
        """A snapshot in which all of the views reflect the goal; views that must be computed for it
        are at one frontier with all others. With ``newest`` that is where the snapshot's tables are,
        if it is near. With ``seek`` only the rows that it returns are sure to reflect it."""
        rounds = Rounds(lambda: f"views {', '.join(view.name for view in views)} cannot be read at {goal} yet", ends)
        while True:
            snapshot = self.store.snapshot()
            epochs = {view.group: snapshot.committed(view.group).epoch for view in views}
            try:
                found = self._laid(views, goal, snapshot, newest, seek)
            except BaseException as error:
                snapshot.close()
                if isinstance(error, LogTrimmedError) and self._moved_on(epochs):
                    rounds.changed(tuple(sorted(epochs.items())))
                    continue  # log entries that the groups passed since the snapshot were trimmed
                raise
            if found is not None:
                return found
            snapshot.close()
            for group in sorted({view.group for view in views}):
                self.wait(group, goal, ends)

    def _moved_on(self, epochs: Mapping[str, int]) -> bool:
        """Whether a group has committed another epoch than these."""
        return any(self.store.views.committed(group).epoch != epoch for group, epoch in epochs.items())

    def _laid(
        self, views: Sequence[ViewDefinition], goal: Frontier, snapshot: TableSnapshot, newest: bool, seek: Seek
    ) -> Version | None:
        """The snapshot with pending changes laid over it; None if there are too many."""
        commits = {view.group: snapshot.committed(view.group) for view in views}
        if not newest and all(goal <= commit.frontier for commit in commits.values()):
            shown = Frontier()
            for commit in commits.values():
                shown |= commit.frontier
            return Version(snapshot, shown)
        target = snapshot.frontier if newest else goal
        for commit in commits.values():
            target |= commit.frontier
        if sum(commit.frontier.operations_to(target) for commit in commits.values()) > LITTLE:
            return None if not newest else self._laid(views, goal, snapshot, newest=False, seek=seek)
        for group in {view.group for view in views}:
            if commits[group].frontier != target and self.views.catalog.group(group).kind is GroupKind.LAZY:
                self._reads.add(group)
        over: list[Moved] = []
        for view in views:
            if commits[view.group].frontier != target:
                rows = self.views.at(view, commits[view.group].epoch)
                over.append(self.pending.moved(view.group, view.name, snapshot, target, seek(rows)))
        return Version(Laid(snapshot, over) if over else snapshot, target)

    # -------------------------------------------------------------- waiting

    def wait(self, group: str, goal: Frontier, ends: float | None = None) -> None:
        """Return when an epoch has brought the group to the goal."""
        if self.reached(group, goal):
            return
        if self.views.catalog.group(group).kind is GroupKind.LAZY:
            self._reads.add(group)
            self._reads.record(at_once=True)  # before the maintainer chooses between groups that are asked for
            ask(self.store, group, goal)
        late = f"the views of group {group} are not as fresh as asked for in time"
        rounds = Rounds(late, ends, lambda: self._missing(group, goal))
        while not self.reached(group, goal):
            try:
                with self._maintainer.lease():
                    self._maintainer.recover(ends)
                    self._maintainer.advance(group, goal | self.store.views.committed(group).frontier, ends)
                    if not self.reached(group, goal):
                        self._require_views(group)
                        rounds.changed(standing(self.store, [group]))
            except LeaseTakenError:
                rounds.pause(POLL)
            except DeadlineError:
                if not self.reached(group, goal):
                    rounds.check()

    def _missing(self, group: str, goal: Frontier) -> str:
        reached = self.store.views.committed(group).frontier
        return (
            f"they have reached {reached}, and {reached.operations_to(reached | goal)} operations are missing to {goal}"
        )

    def _require_views(self, group: str) -> None:
        """Refuse to wait for a group that no maintainer moves any more."""
        if group not in self._maintainer.groups():
            raise UnknownObjectError(
                f"group {group} has no views any more",
                detail="they were dropped, or are being rebuilt, while a reader waited for them",
                hint="db.status() lists the views",
            )
