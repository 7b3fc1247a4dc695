"""What maintenance remembers, against the same rebuilt.

Every state of a group is compared with the one that its own steps leave over the base rows
of the same frontier (:mod:`everview.maintain.shadow`), in a store beside that is thrown away.

This shares the steps with maintenance, for nothing else defines what a state should hold: it is an addition
to recomputing views, not a part of it. It finds damage before it shows in a view.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from everview.catalog import Catalog
from everview.check.base_rows import BaseRows
from everview.check.report import Difference, Report, Verdict, ViewReport
from everview.check.verify import ATTEMPTS, SAMPLES, ShownViews, chosen
from everview.errors import SnapshotExpiredError
from everview.maintain import Plans
from everview.maintain.shadow import Oddity, Shadow, StateFound
from everview.scratch import scratch
from everview.store.contract import Commit, TableSnapshot


def verify_states(kept: ShownViews, names: Sequence[str] = (), samples: int = SAMPLES) -> Report:
    """Compare the states that the views with these names need, or all. Each group is rebuilt in this
    process: that takes as long as building its views."""
    for attempt in range(ATTEMPTS):
        snapshot, definitions = kept.opened()
        with snapshot:
            asked = chosen(definitions, names)
            try:
                found: list[ViewReport] = []
                for group in dict.fromkeys(one.group for one in asked):
                    wanted = {one.name for one in asked if one.group == group}
                    found += _of_group(kept, snapshot, group, wanted, samples)
                return Report(tuple(found))
            except SnapshotExpiredError:
                if attempt == ATTEMPTS - 1:
                    raise
    raise AssertionError("the last attempt has returned or raised")


def _of_group(
    kept: ShownViews, snapshot: TableSnapshot, group: str, wanted: set[str], samples: int
) -> Iterator[ViewReport]:
    store = kept.store
    commit = snapshot.committed(group)
    bound = Plans(store, Catalog(store.metadata, store.views)).at(group, commit.epoch)
    if bound is None:
        raise SnapshotExpiredError(f"the plan of group {group} is another one meanwhile", hint="try again")
    before_images = store.log.guarantees.before_images
    with (
        scratch() as folder,
        Shadow(bound, folder / "states", before_images) as shadow,
    ):
        shadow.build(lambda table: BaseRows(store, snapshot, commit.frontier, table).scan())
        for found in shadow.compared(snapshot, samples):
            if wanted.intersection(found.views):
                yield _view_report(found, commit)


def _view_report(found: StateFound, commit: Commit) -> ViewReport:
    wrong = found.missing or found.extra or found.differing
    return ViewReport(
        found.name,
        "state",
        commit.group,
        commit.epoch,
        commit.frontier,
        Verdict.WRONG if wrong else Verdict.RIGHT,
        found.rows,
        found.missing,
        found.extra,
        found.differing,
        tuple(map(_difference, found.first)),
        views=found.views,
    )


def _difference(one: Oddity) -> Difference:
    shown, expected = one.shown, one.expected
    if shown is not None and expected is not None:
        other = [name for name in {**shown, **expected} if shown.get(name) != expected.get(name)]
        shown = {name: shown.get(name) for name in other}
        expected = {name: expected.get(name) for name in other}
    return Difference(one.kind, one.key, shown, expected)
