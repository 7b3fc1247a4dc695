"""Sums over all epochs of a group, in one record.

The record is the group's :class:`~everview.maintain.figures.Totals` followed by a column of
views, each with the rows that were inserted, updated and deleted in it, so that an epoch adds to all of
them at once.

::

    u32 length | totals (JSON) | plan (32 bytes) | per view: digest of its name, since, inserted, updated, deleted

The plan is the last one for which it was looked whether all views are still there.
"""

from __future__ import annotations

import functools
import hashlib
import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from everview.maintain.figures import Totals
from everview.operators.tally import Three

_LENGTH = struct.Struct("<I")
_PLAN = 32
_ROW = np.dtype([("view", "<u8"), ("since", "<i8"), ("updates", "<i8", 3)])

Rows = npt.NDArray[np.void]


@dataclass(frozen=True)
class OneView:
    """The sums of one view."""

    since: int
    """The epoch from which on it is counted; 0: it was never changed."""
    updates: Three


@dataclass(frozen=True, eq=False)
class ViewSums:
    """The sums of views, in the order of their digests."""

    rows: Rows = field(default_factory=lambda: np.zeros(0, _ROW))
    plan: str = ""

    def __getitem__(self, name: str) -> OneView:
        place = int(np.searchsorted(self.rows["view"], _digest(name)))
        if place == len(self.rows) or self.rows["view"][place] != _digest(name):
            return OneView(0, (0, 0, 0))
        inserted, updated, deleted = self.rows["updates"][place].tolist()
        return OneView(int(self.rows["since"][place]), (inserted, updated, deleted))

    def after(self, changed: Mapping[str, Three], epoch: int) -> ViewSums:
        """With what an epoch did to views."""
        if not changed:
            return self
        wanted = np.fromiter(map(_digest, changed), np.uint64, len(changed))
        rows = self.rows
        places = np.searchsorted(rows["view"], wanted)
        known = rows["view"][np.minimum(places, len(rows) - 1)] == wanted if len(rows) else np.zeros(len(wanted), bool)
        if known.all():
            rows = rows.copy()
        else:
            added = np.zeros(len(wanted) - int(known.sum()), _ROW)
            added["view"], added["since"] = wanted[~known], epoch
            added = added[np.argsort(added["view"])]
            rows = np.insert(rows, np.searchsorted(rows["view"], added["view"]), added)
            places = np.searchsorted(rows["view"], wanted)
        rows["updates"][places] += np.array(list(changed.values()), np.int64)
        return ViewSums(rows, self.plan)

    def adopted(self, brought: Mapping[str, Three], epoch: int) -> ViewSums:
        """With views that become the group's own, and what was done to them before."""
        wanted = np.fromiter(map(_digest, brought), np.uint64, len(brought))
        places = np.searchsorted(self.rows["view"], wanted)
        places = places[places < len(self.rows)]
        known = places[np.isin(self.rows["view"][places], wanted)]
        kept = ViewSums(np.delete(self.rows, known) if len(known) else self.rows, self.plan)
        return kept.after(brought, epoch)

    def of(self, names: Collection[str], plan: str) -> ViewSums:
        """Of these views only."""
        there = np.fromiter(map(_digest, names), np.uint64, len(names))
        return ViewSums(self.rows[np.isin(self.rows["view"], there)], plan)


@dataclass(frozen=True, eq=False)
class EpochSums:
    """Everything since a group's first epoch."""

    totals: Totals = field(default_factory=Totals)
    views: ViewSums = field(default_factory=ViewSums)

    def to_bytes(self) -> bytes:
        totals = self.totals.to_json()
        plan = self.views.plan.encode().ljust(_PLAN, b"\0")
        return _LENGTH.pack(len(totals)) + totals + plan + self.views.rows.tobytes()

    @staticmethod
    def from_bytes(recorded: bytes | None) -> EpochSums:
        """What stands in the record; nothing, where there is none."""
        if recorded is None:
            return EpochSums()
        end = _LENGTH.size + _LENGTH.unpack_from(recorded)[0]
        plan = recorded[end : end + _PLAN].rstrip(b"\0").decode()
        rows = np.frombuffer(recorded, _ROW, offset=end + _PLAN)
        return EpochSums(Totals.from_json(recorded[_LENGTH.size : end]), ViewSums(rows, plan))


@functools.lru_cache(1 << 15)
def _digest(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
