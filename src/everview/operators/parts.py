"""Parts of an aggregate: what a step that puts them together asks of each.

A part emits the values of the groups that its own input changed, and can be asked
for those of any other group, as of the last epoch.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.operators.evaluation import one_array
from everview.operators.limbs import Groups
from everview.operators.members import MEMBER
from everview.operators.work import Work
from everview.store.contract import Bytes
from everview.store.ragged import column_of, glue


class AggregatePart(Protocol):
    """A worker of a part."""

    key_names: tuple[str, ...]
    """The fields that hold the key of a group."""

    def values(self, work: Work, groups: pa.Table) -> pa.Table:
        """The part's columns for given groups as of the last epoch, row by row; null in all where
        the part has nothing. ``groups`` holds the key columns under the part's ``key_names``, and
        the number of the part's own member where it has members."""


def numbered(rows: pa.Table, keys: Bytes) -> tuple[Groups, pa.Array]:
    """The group of each row, numbered from 0, and a row of each group: rows of one key, and of one
    member where there are members, are one group."""
    if MEMBER in rows.column_names:
        keys = glue(member_bytes(rows[MEMBER]), keys)
    codes = pc.dictionary_encode(keys)
    groups = codes.indices.to_numpy().astype(np.int64)
    first = np.empty(len(codes.dictionary), np.int64)
    first[groups[::-1]] = np.arange(len(groups))[::-1]
    return groups, pa.array(first)


def member_bytes(members: pa.ChunkedArray) -> Bytes:
    """Numbers of members as bytes in front of keys."""
    numbers = one_array(members).to_numpy().astype(">u4")
    return column_of(numbers.tobytes(), 4 * np.arange(len(numbers) + 1))
