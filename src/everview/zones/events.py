"""What happens in a store that is being maintained, in words and in figures.

A watch reads a store now and then and returns what is new: epochs, builds,
what was quarantined.

All of it is read from the store, so it is the same whichever process does the work. An event is one line for
people, and one record for each thing that happened for programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from everview.catalog import Catalog, GroupKind, ViewDefinition, ViewStatus
from everview.errors import EverviewError
from everview.maintain.builds import Build, builds_of
from everview.maintain.plans import Plans
from everview.maintain.quarantined import QuarantinedItem, quarantined_items
from everview.store.contract import Commit, Store

QUARANTINED = 1000
"""Of what is quarantined, so many of each kind are watched."""
FIRST = 3
"""So many of them are described in words."""

Record = Mapping[str, object]


@dataclass(frozen=True)
class Event:
    """Something that happened."""

    name: str
    text: str
    records: tuple[Record, ...] = ({},)
    wrong: bool = False
    """Whether an operator should look at it."""


def failed(error: EverviewError, again: float | None = None) -> Event:
    """An error, and in how many seconds it is tried again, if it is."""
    record = {"error": type(error).__name__, "message": error.message, "why": error.detail, "do": error.hint}
    text = f"error: {error}" if again is None else f"error: {error}\n  now: it is tried again in {again:g} s"
    return Event("error", text, ({**record, "retry_in": again},), wrong=True)


class Watch:
    """Watches a store; the first look returns what came after the watch began."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog
        self._plans = Plans(store, catalog)
        self._commits = {group: store.views.committed(group) for group in self._groups()}
        self._builds = {build.group: (build, self._names(build)) for build in builds_of(store)}
        self._lived = self._live()
        self._looked: dict[str, int] = {}
        """Of each group the epoch after which it was last seen what is quarantined."""
        self._seen: set[tuple[object, ...]] = set()
        for _ in self._quarantined():
            pass

    def look(self) -> Iterator[Event]:
        """What has happened since the last look."""
        yield from self._built()
        yield from self._epochs()
        yield from self._quarantined()

    # -------------------------------------------------------------- epochs

    def _groups(self) -> list[str]:
        return [group.name for group in self._catalog.groups() if group.kind is not GroupKind.BUILDING]

    def _epochs(self) -> Iterator[Event]:
        latest = self._store.log.latest()
        for group in self._groups():
            last = self._commits.get(group, Commit(group, 0, latest, 0.0))
            now = self._store.views.committed(group)
            if now.epoch <= last.epoch:
                continue
            self._commits[group] = now
            behind = now.frontier.operations_to(latest | now.frontier)
            records = list(self._since(group, last))
            done = sum(int(str(record["operations"])) for record in records)
            many = f"epoch {now.epoch}" if len(records) == 1 else f"{len(records):,} epochs up to {now.epoch}"
            lag = f"{behind:,} operations behind" if behind else "up to date"
            yield Event("epoch", f"{group}: {many}, {done:,} operations, {lag}", tuple(records))

    def _since(self, group: str, last: Commit) -> Iterator[Record]:
        """The commits after one, the oldest first, as far as they are remembered."""
        limit = 16
        while True:
            found = self._store.views.history(group, limit)
            if len(found) < limit or found[-1].epoch <= last.epoch:
                break
            limit *= 8
        new = [commit for commit in reversed(found) if commit.epoch > last.epoch]
        known = next((commit for commit in found if commit.epoch == last.epoch), None)
        before = known or new[0]
        for commit in new:
            yield {
                "group": group,
                "epoch": commit.epoch,
                "operations": before.frontier.operations_to(commit.frontier),
                "frontier": str(commit.frontier),
                "committed": commit.time,
            }
            before = commit

    # -------------------------------------------------------------- builds

    def _names(self, build: Build) -> list[str]:
        return [one.name for one in build.views_of(self._catalog.definitions())]

    def _live(self) -> dict[tuple[int, object], tuple[str, str]]:
        """Name and group of everything that can be read, by what it is."""
        found = [one for one in self._catalog.definitions().maintained() if one.status is ViewStatus.LIVE]
        return {
            (one.id, one.sql if isinstance(one, ViewDefinition) else one.columns): (one.name, one.group)
            for one in found
        }

    def _built(self) -> Iterator[Event]:
        """A small build may have come and gone since the last look: its views are live."""
        now = {build.group: build for build in builds_of(self._store)}
        for group in now.keys() - self._builds.keys():
            build = now[group]
            names = self._names(build)
            self._builds[group] = build, names
            text = f"building {', '.join(names)} for {build.target}"
            yield Event("build", text, ({"views": names, "group": build.target},))
        live = self._live()
        fresh: dict[str, list[str]] = {}
        for which in live.keys() - self._lived.keys():
            name, group = live[which]
            fresh.setdefault(group, []).append(name)
        self._lived = live
        for group, names in sorted(fresh.items()):
            text = f"built {', '.join(sorted(names))}: maintained with {group} from now on"
            yield Event("built", text, ({"views": sorted(names), "group": group},))
        for group in self._builds.keys() - now.keys():
            build, names = self._builds.pop(group)
            if not {id for id, _ in live} >= {id for id, _ in build.views}:
                text = f"the build of {', '.join(names)} is given up: something of it was dropped or replaced"
                yield Event("given up", text, ({"views": names, "group": build.target},))

    # -------------------------------------------------------------- what is quarantined

    def _quarantined(self) -> Iterator[Event]:
        for group in self._groups():
            epoch = self._store.views.committed(group).epoch
            if self._looked.get(group) == epoch:
                continue
            self._looked[group] = epoch
            with self._store.snapshot() as snapshot:
                found = quarantined_items(self._catalog, self._plans, group, snapshot, QUARANTINED)
            new = [one for one in found if (group, *_which(one)) not in self._seen]
            self._seen = {one for one in self._seen if one[0] != group} | {(group, *_which(one)) for one in found}
            if new:
                more = f"; and {len(new) - FIRST:,} more" if len(new) > FIRST else ""
                text = f"quarantined: {'; '.join(map(_described, new[:FIRST]))}{more}"
                yield Event("quarantined", text, tuple(map(_recorded, new)), wrong=True)


def _which(one: QuarantinedItem) -> tuple[object, ...]:
    return one.what, one.construct, tuple(one.values.items()), one.position


def _described(one: QuarantinedItem) -> str:
    values = ", ".join(f"{name} {value}" for name, value in one.values.items())
    place = values or str(one.position or "")
    return f"{one.what} {place} of {', '.join(one.views) or one.construct}: {one.reason}"


def _recorded(one: QuarantinedItem) -> Record:
    return {
        "views": list(one.views),
        "what": one.what,
        "values": {name: str(value) for name, value in one.values.items()},
        "reason": one.reason,
        "construct": one.construct,
        "position": None if one.position is None else str(one.position),
    }
