"""Members of families: whose change a change is.

The changes of a step that stands for many views carry the number of the member
they belong to, and a step first translates its inputs' numbers into its own.

A member is a row of constants (:class:`~everview.plan.maintenance.Constants`), and a step's
constants are those of its inputs, one input after another, and then its own::

    filter  amount > $1                     members (10), (20), (30)        0, 1, 2
    filter  amount > $1 AND region = $2     members (10,'n'), (10,'s')      0, 1      from 0, 0
    view    over the first filter           members (20)                    0         from 1

So one member of an input may be several of the step's (all those with the same beginning), or
none. The step's own state holds each member's records under a tag of its own, eight bytes made
of the constants: it does not change when members come and go.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.errors import DefinitionError
from everview.plan.maintenance import MaintenancePlan, Step
from everview.plan.maintenance.fingerprint import member_fingerprint
from everview.store.encoding.ragged import BINARY, Bytes, glue

MEMBER = "__member"
"""The column of changes that holds the number of the member, int32."""

TAG = 8
"""Bytes before the keys of a member's state."""

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Members:
    """The members of one step."""

    tags: Bytes
    """Of each member, in order."""
    from_inputs: tuple[Numbers | None, ...]
    """For each input, the input's member of each of the step's; None where the input has no members."""

    def __len__(self) -> int:
        return len(self.tags)

    @functools.cached_property
    def _spread(self) -> tuple[tuple[Numbers, Numbers] | None, ...]:
        """For each input: the step's members in the order of the input's, and where each begins."""
        found: list[tuple[Numbers, Numbers] | None] = []
        for numbers in self.from_inputs:
            if numbers is None:
                found.append(None)
                continue
            order = np.argsort(numbers, kind="stable").astype(np.int64)
            edges = np.searchsorted(numbers[order], np.arange(int(numbers.max(initial=-1)) + 2))
            found.append((order, edges.astype(np.int64)))
        return tuple(found)

    def translated(self, number: int, changes: pa.Table) -> pa.Table:
        """Changes of an input as changes of the step's members: a row for each of them."""
        spread = self._spread[number]
        if spread is None:  # an input without members concerns all of them
            rows = np.tile(np.arange(len(changes)), len(self))
            members = np.repeat(np.arange(len(self), dtype=np.int32), len(changes))
            return changes.take(pa.array(rows)).append_column(MEMBER, pa.array(members))
        order, edges = spread
        given = changes[MEMBER].to_numpy().astype(np.int64)
        known = given < len(edges) - 1
        start = np.where(known, edges[np.minimum(given, len(edges) - 1)], 0)
        count = np.where(known, edges[np.minimum(given + 1, len(edges) - 1)] - start, 0)
        rows = np.repeat(np.arange(len(given)), count)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
        members = order[np.repeat(start, count) + within].astype(np.int32)
        same = len(rows) == len(given) and bool((count == 1).all())
        found = changes.drop_columns([MEMBER]) if same else changes.drop_columns([MEMBER]).take(pa.array(rows))
        return found.append_column(MEMBER, pa.array(members))

    def before(self, keys: Bytes, members: npt.NDArray[np.int32]) -> Bytes:
        """Keys under the tags of their members."""
        return glue(self.tags.take(pa.array(members)), keys)


def members_of(step: Step, plan: MaintenancePlan) -> Members | None:
    """The members of a step; None where it stands for itself alone."""
    if step.constants is None:
        return None
    rows = step.constants.members
    tags = tags_of(step)
    if len(set(tags)) != len(tags):
        raise DefinitionError(f"two members of {step.operator.name} {step.title} have the same tag")
    found: list[Numbers | None] = []
    at = 0
    for one in step.inputs:
        source = plan.step(one.step).constants
        if source is None:
            found.append(None)
            continue
        numbers = {row: number for number, row in enumerate(source.members)}
        width = len(source.types)
        found.append(np.array([numbers[row[at : at + width]] for row in rows], np.int64))
        at += width
    return Members(pa.array(tags, BINARY), tuple(found))


def tags_of(step: Step) -> list[bytes]:
    """The tags of a step's members, in order."""
    rows = step.constants.members if step.constants is not None else ()
    return [_tag(step.fingerprint, row) for row in rows]


def tags_gone(step: Step, now: Step | None) -> set[bytes]:
    """The tags of a step's members that it has not any more."""
    if step.constants is None:
        return set()
    gone: Sequence[tuple[str, ...]] = step.constants.members
    if now is not None and now.constants is not None:
        gone = now.constants.gone_since(step.constants)
    return {_tag(step.fingerprint, row) for row in gone}


@functools.lru_cache(1 << 18)
def _tag(fingerprint: str, constants: tuple[str, ...]) -> bytes:
    return bytes.fromhex(member_fingerprint(fingerprint, constants))[:TAG]


def own_constants(step: Step, plan: MaintenancePlan) -> Sequence[tuple[str, ...]]:
    """Of each member the constants that are the step's own, behind those of its inputs."""
    if step.constants is None:
        return ()
    sources = [plan.step(one.step).constants for one in step.inputs]
    inherited = sum(len(source.types) for source in sources if source is not None)
    return [row[inherited:] for row in step.constants.members]
