"""Entries of touched chunks and the changes to them, added up.

The entries of every chunk are sorted already, so only the changes are sorted,
each is looked up in its chunk, all of them at once, and either changes a count there or is
put in between.

Entries are codes (see entries.py), and runs of rows belong to regions: run r is the rows
``edges[r]:edges[r + 1]``. Two regions, of which the second is new::

    edges   0 2 2                  edges   0 2 3                edges   0 1 2
    codes   5 9        and the     codes   5 9 4     make       codes   9 4
    counts  1 1        changes     counts −1 1 1                counts  2 1
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from everview.store.embedded.bag_entries import sort_rows
from everview.store.encoding.ragged import Ints, Words, offsets_of


@dataclass(frozen=True)
class Sums:
    """Runs of distinct codes in ascending order, and how often each stands there."""

    edges: Ints
    codes: Words
    counts: Ints


def add_up(regions: Ints, codes: Words, counts: Ints, region_count: int) -> Sums:
    """Rows in any order, equal ones added up."""
    order = sort_rows(regions, codes, region_count)
    regions, codes = regions[order], codes[order]
    fresh = np.ones(len(order), np.bool_)
    np.logical_or(regions[1:] != regions[:-1], codes[1:] != codes[:-1], out=fresh[1:])
    starts = np.flatnonzero(fresh)
    size = np.bincount(regions[starts], minlength=region_count)
    return Sums(offsets_of(size), codes[starts], np.add.reduceat(counts[order], starts) if len(starts) else counts)


def merge(old: Sums, change: Sums) -> Sums:
    """Both together, without the codes that come to nothing."""
    regions = len(old.edges) - 1
    region = np.repeat(np.arange(regions), np.diff(change.edges))
    place = _places(old, region, change.codes)
    known = place < old.edges[region + 1]
    known[known] = old.codes[place[known]] == change.codes[known]
    counts = old.counts.copy()
    counts[place[known]] += change.counts[known]
    new = np.flatnonzero(~known)
    codes = np.insert(old.codes, place[new], change.codes[new])
    counts = np.insert(counts, place[new], change.counts[new])
    edges = old.edges + offsets_of(np.bincount(region[new], minlength=regions))
    gone = counts == 0
    if not gone.any():
        return Sums(edges, codes, counts)
    left_out = offsets_of(gone)
    return Sums(edges - left_out[edges], codes[~gone], counts[~gone])


def _places(old: Sums, region: Ints, codes: Words) -> Ints:
    """The row of the first code in its region that is not smaller; the region's end if all are.
    A binary search in all regions at once: as many steps as the largest one needs."""
    low, high = old.edges[region], old.edges[region + 1]
    for _ in range(int(np.diff(old.edges).max(initial=0)).bit_length()):
        middle = (low + high) >> 1
        smaller = (low < high) & (old.codes[np.minimum(middle, len(old.codes) - 1)] < codes)
        low = np.where(smaller, middle + 1, low)
        high = np.where(smaller, high, middle)
    return low
