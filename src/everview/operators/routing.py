"""Where changes go: the key by which they are redistributed, and the place that owns it.

Rows that agree in the key of a zone have equal bytes here, whatever step and whatever
side of a join they come from, and a place is chosen by these bytes alone.

The space of tokens (hashes of those bytes) is cut into regions, and regions are dealt out to view
servers by consistent hashing: every server has many points on a ring, a region belongs to the first
server after its own point that has room for one more. So servers have equally many regions, and one
that comes or goes moves little more than its share. Each zone has a ring of its own: the regions of
one are not the regions of another, so a server that is busy with one zone is not so with all.
"""

from __future__ import annotations

import bisect
import functools
import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from everview.change.schema import KeyPart
from everview.change.types import Type
from everview.errors import DefinitionError
from everview.operators.evaluation import Evaluator
from everview.operators.stored import Keys
from everview.operators.work import Changes
from everview.plan.maintenance import Step
from everview.store.encoding.ragged import Bytes
from everview.store.encoding.tokens import tokens_of

REGIONS = 256
POINTS = 64
"""Of each server on a ring."""

Numbers = npt.NDArray[np.int64]


class Route:
    """The way of a step's changes to a zone: by the values of expressions over its fields."""

    def __init__(self, source: Step, key: tuple[str, ...], evaluator: Evaluator) -> None:
        kinds = {field.name: field.type for field in source.fields}
        types = evaluator.types(key, kinds)
        self._expressions = list(zip(key, types, strict=True))
        self._keys = routing_keys(types)

    def keys(self, evaluator: Evaluator, changes: Changes) -> Bytes:
        """The bytes by which changes are redistributed. A change whose key has no value goes
        anywhere: where it arrives it is quarantined."""
        found = evaluator.columns(self._expressions, changes)
        return self._keys.encode(found.columns, len(changes))


def routing_keys(types: Sequence[Type]) -> Keys:
    """Encodes the values of a zone's key, null or not, as every route to the zone does."""
    return Keys(tuple(KeyPart(f"k{n}", kind, nullable=True) for n, kind in enumerate(types)), "a zone's key")


@functools.lru_cache(maxsize=4096)
def dealt_out(zone: str, servers: int) -> Numbers:
    """The server of each region of a zone."""
    if servers < 1:
        raise DefinitionError(f"{servers} view servers cannot maintain anything", hint="use one or more")
    ring = sorted((_point(f"{zone} {server} {point}"), server) for server in range(servers) for point in range(POINTS))
    places = [place for place, _ in ring]
    room = [-(-REGIONS // servers)] * servers
    found = np.zeros(REGIONS, np.int64)
    for region in range(REGIONS):
        at = bisect.bisect(places, _point(f"{zone} region {region}"))
        while room[ring[at % len(ring)][1]] == 0:
            at += 1
        found[region] = ring[at % len(ring)][1]
        room[found[region]] -= 1
    return found


def _point(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")


def owners(keys: Bytes, zone: str, servers: int) -> Numbers:
    """The server of each key."""
    if servers == 1:
        return np.zeros(len(keys), np.int64)
    regions = (tokens_of(keys) >> np.uint32(24)).astype(np.int64)
    return dealt_out(zone, servers)[regions]
