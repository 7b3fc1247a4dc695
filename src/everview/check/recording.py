"""A history recorded while it happens, to be judged afterwards.

The recorder notes where the logs end after the writes that matter and what the view
shows when it is looked at; what the query returns over every base state is recomputed in the end, from the
rows of then with all later writes undone.

    >>> import everview, tempfile
    >>> from everview.check.levels import judge
    >>> db = everview.open(tempfile.mkdtemp())
    >>> _ = db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
    >>> _ = db.sql("CREATE MATERIALIZED VIEW total AS SELECT sum(n) AS n FROM t")
    >>> with db.recording("total") as history:
    ...     for number in range(3):
    ...         db.table("t").put({"id": number, "n": number})
    ...         history.wrote()
    ...         db.flush()
    ...         history.look()
    >>> print(history.judgement.level)
    complete
    >>> db.close()
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from types import TracebackType

from everview.boundary import public
from everview.catalog import Definitions, Maintained
from everview.change.frontier import Frontier
from everview.check.base_rows import BaseRows
from everview.check.levels import BaseState, Judgement, ObservedState, judge
from everview.check.recompute import Workspace
from everview.check.user_queries import ViewQuery
from everview.check.verify import ShownViews, chosen
from everview.errors import DefinitionError
from everview.scratch import scratch
from everview.sql.result_values import fetched
from everview.sql.settings import connect
from everview.store.contract import TableSnapshot
from everview.store.encoding.registering import register


@public
class Recording:
    """The history of one view, from the beginning of a ``with`` block to its end. The logs must reach
    back to its beginning when it ends."""

    def __init__(self, kept: ShownViews, name: str) -> None:
        self._kept = kept
        self._name = name
        self._frontiers: list[Frontier] = []
        self._seen: list[tuple[int, Frontier, dict[object, object]]] = []
        self._judgement: Judgement | None = None

    def __enter__(self) -> Recording:
        self.look()
        self._frontiers.append(self._seen[0][1])
        return self

    def wrote(self) -> None:
        """Note that the base tables are in a state that counts: as they are now."""
        frontier = self._kept.store.log.latest()
        if frontier not in self._frontiers:
            self._frontiers.append(frontier)

    def look(self) -> None:
        """Note what the view shows: as of the last committed epoch."""
        snapshot, definitions = self._kept.opened()
        with snapshot:
            one = self._one(definitions)
            commit = snapshot.committed(one.group)
            if not self._seen or self._seen[-1][0] != commit.epoch:
                with connect() as connection:
                    register(connection, "shown", self._kept.rows(one, snapshot))
                    rows = fetched(connection, "FROM shown")
                shown = by_key(ViewQuery(one, definitions), rows)
                self._seen.append((commit.epoch, commit.frontier, shown))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.wrote()
            self.look()
            self._judgement = judge(self.base_states(), self.view_states())

    @property
    def judgement(self) -> Judgement:
        """Of the whole history, once it has ended."""
        if self._judgement is None:
            raise DefinitionError("a history is judged when it has ended", hint="leave the with block first")
        return self._judgement

    def view_states(self) -> list[ObservedState]:
        """What was seen, with the frontiers of the epochs."""
        return [ObservedState(rows, frontier) for _, frontier, rows in self._seen]

    def base_states(self) -> list[BaseState]:
        """What the query returns over every base state that was noted, and of those that epochs claim."""
        found = dict.fromkeys([*self._frontiers, *(frontier for _, frontier, _ in self._seen)])
        ordered = sorted(found, key=lambda frontier: sum(frontier.values()))
        snapshot, definitions = self._kept.opened()
        with snapshot:
            return [BaseState(frontier, self._said(snapshot, definitions, frontier)) for frontier in ordered]

    def _said(self, snapshot: TableSnapshot, definitions: Definitions, frontier: Frontier) -> dict[object, object]:
        one = self._one(definitions)
        base = partial(BaseRows, self._kept.store, snapshot, frontier)
        with scratch() as folder, Workspace(definitions, base, folder) as workspace:
            recomputed = workspace.recomputed(one)
            return by_key(recomputed.query, workspace.rows(recomputed))

    def _one(self, definitions: Definitions) -> Maintained:
        (one,) = chosen(definitions, [self._name])
        return one


def by_key(query: ViewQuery, rows: Sequence[tuple[object, ...]]) -> dict[object, object]:
    """Rows by their key; where a view shows no key, how often each row stands there."""
    plain = [tuple(map(_hashable, row)) for row in rows]
    if query.key is None:
        return dict(Counter(plain))
    names = [column.name for column in query.columns]
    places = [names.index(name) for name in query.key]
    return {tuple(row[place] for place in places): row for row in plain}


def _hashable(value: object) -> object:
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    if isinstance(value, dict):
        return tuple((name, _hashable(inner)) for name, inner in value.items())
    return "NaN" if isinstance(value, float) and value != value else value
