"""The plan that describes a view's rows, for every epoch that can still be read.

The plan of an epoch names the table of a view's rows. It stays the same until views
join the view's group, so codecs made from it are cached with the plan.
"""

from __future__ import annotations

from collections import OrderedDict

from everview.catalog import Catalog, ViewDefinition, ViewStatus
from everview.client.view_rows import ViewRows
from everview.errors import DefinitionError, SnapshotExpiredError
from everview.maintain import Plans
from everview.maintain.metrics import Metrics
from everview.operators.bound import BoundPlan
from everview.store.contract import Store

KEPT = 1_000
"""Views whose codecs are kept ready."""


class KnownViews:
    """The views of a store, ready to be read."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self.store = store
        self.catalog = catalog
        self.plans = Plans(store, catalog)
        self.metrics = Metrics(store, catalog, self.plans)
        self._made: OrderedDict[tuple[int, int, int], tuple[BoundPlan, ViewRows]] = OrderedDict()

    def last(self, view: ViewDefinition) -> ViewRows:
        """The view under the group's last plan, which is valid from the last commit on."""
        return self.under(view, self._last(view))

    def at(self, view: ViewDefinition, epoch: int) -> ViewRows:
        """The view as of an epoch, under the plan of that epoch."""
        last = self._last(view)
        found = self.plans.at(view.group, epoch)
        if found is last:
            return self.under(view, last)
        means = last.plan.view_fingerprint(view.name)
        if found is None or view.name not in found.plan.by_name or found.plan.view_fingerprint(view.name) != means:
            raise SnapshotExpiredError(
                f"the rows of view {view.name} are in other tables since epoch {epoch}",
                hint="read it again from a new snapshot",
            )
        return self.under(view, found)

    def _last(self, view: ViewDefinition) -> BoundPlan:
        last = self.plans.last(view.group) if view.status is ViewStatus.LIVE else None
        if last is None or view.name not in last[1].plan.by_name:
            raise not_built(view)
        return last[1]

    def under(self, view: ViewDefinition, bound: BoundPlan) -> ViewRows:
        """The view under a plan."""
        asked = (view.id, view.version, id(bound))
        known = self._made.get(asked)
        if known is None:
            known = self._made[asked] = (bound, ViewRows(view, bound))  # keeps the plan alive, so that its id is unique
            while len(self._made) > KEPT:
                self._made.popitem(last=False)
        return known[1]


def not_built(view: ViewDefinition) -> DefinitionError:
    return DefinitionError(
        f"view {view.name} is not built yet",
        detail="it is recorded, and its rows have not been computed",
        hint="it can be read when it is built; until then run its query as a SELECT",
    )
