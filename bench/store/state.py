"""Versioned tables and bags.

Records against raw LMDB: the very keys and records that Everview wrote, read out of its
shard files, got and put back in the same number of environments with the same flags by the
shortest Python there is.

Bags by operations a second: a million writes of a hundred thousand keys that belong to ten
thousand groups, 15 % of them deletes, in batches of a hundred thousand. An operation is a
write; each batch is condensed to the last write of every key, which takes the key's old
value out of its group's bag and puts the new one in. First and last entry of each bag are
the group's minimum and maximum.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import lmdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.measure import seconds
from everview.change.frontier import Frontier
from everview.store.contract import BagEnds, BagRows, Puts, StateTable
from everview.store.embedded import EmbeddedStore
from everview.store.embedded.environment import FULL_SIZE
from everview.store.encoding.ragged import Bytes

TABLE = StateTable(1, "bench", "main")
RECORDS = 100_000
ROUNDS = 7
KEYS, GROUPS, OPERATIONS, BATCH = 100_000, 10_000, 1_000_000, 100_000

Floats = npt.NDArray[np.float64]


def run(directory: Path) -> dict[str, dict[str, float]]:
    """All figures of versioned tables."""
    return {
        "read-modify-write": read_modify_write(directory / "records"),
        "bags": bags(directory / "bags"),
    }


# ------------------------------------------------------------------ records


def read_modify_write(directory: Path) -> dict[str, float]:
    """Sorted keys read as of the last epoch and written with what was read as previous."""
    rng = np.random.default_rng(1)
    keys = _column(np.sort(rng.choice(2**40, RECORDS, replace=False)).astype(">u8"))
    values = [_column(rng.integers(0, 2**62, 3 * RECORDS), 24) for _ in range(ROUNDS + 1)]
    best_of_ours, best_of_raw = float("inf"), float("inf")
    environments: list[lmdb.Environment] = []
    with EmbeddedStore.open(directory / "store", create=True) as store:
        views = store.views
        for number, value in enumerate(values):
            begun = views.begin("main", Frontier({1: number + 1}), b"")

            def ours(epoch: int = begun.epoch, value: Bytes = value) -> None:
                previous = views.read(TABLE, keys, epoch - 1)
                views.write(TABLE, epoch, Puts(keys, value, previous))

            taken = seconds(ours)
            views.commit("main", begun.epoch)
            shards = [_records(shard.lmdb) for shard in store._handle.shards]
            if number:
                best_of_ours = min(best_of_ours, taken)
                best_of_raw = min(best_of_raw, seconds(partial(_raw_round, environments, shards)))
            else:
                environments += [_raw(directory / f"raw-{place}") for place in range(len(shards))]
                _raw_round(environments, shards)
        assert views.read(TABLE, keys, begun.epoch).equals(values[-1]), "a record has another value"
    return {
        "µs": best_of_ours / RECORDS * 1e6,
        "raw µs": best_of_raw / RECORDS * 1e6,
        "ratio": best_of_ours / best_of_raw,
    }


def _raw_round(environments: list[lmdb.Environment], shards: list[tuple[list[bytes], list[bytes]]]) -> None:
    for environment, (keys, records) in zip(environments, shards, strict=True):
        with environment.begin() as transaction:
            list(map(transaction.get, keys))
        with environment.begin(write=True) as transaction:
            transaction.cursor().putmulti(zip(keys, records, strict=True))


def _records(environment: lmdb.Environment) -> tuple[list[bytes], list[bytes]]:
    with environment.begin() as transaction:
        pairs = [(bytes(key), bytes(value)) for key, value in transaction.cursor() if key[:4] == b"\0\0\0\1"]
    return [key for key, _ in pairs], [value for _, value in pairs]


def _raw(path: Path) -> lmdb.Environment:
    return lmdb.open(str(path), map_size=FULL_SIZE, subdir=False, sync=False, metasync=False, max_readers=2048)


# ------------------------------------------------------------------ bags


def bags(directory: Path) -> dict[str, float]:
    """Operations a second, from the writes of a batch to its minima and maxima."""
    rng = np.random.default_rng(1)
    value = np.full(KEYS, np.nan)
    group = rng.integers(0, GROUPS, KEYS)
    total = 0.0
    results: list[BagEnds] = []
    with EmbeddedStore.open(directory, create=True) as store:
        views = store.views
        for number in range(OPERATIONS // BATCH):
            key = rng.integers(0, KEYS, BATCH)
            new = np.round(rng.random(BATCH) * 1000, 2)
            new[rng.random(BATCH) < 0.15] = np.nan

            def batch(number: int = number, key: npt.NDArray[np.int64] = key, new: Floats = new) -> None:
                begun = views.begin("main", Frontier({1: (number + 1) * BATCH}), b"")
                ends = views.write_bags(TABLE, begun.epoch, _condensed(key, new, value, group))
                views.commit("main", begun.epoch)
                results.append(ends)

            total += seconds(batch)
            _check_ends(results[-1], value, group)
        every = views.read_bags(TABLE, _column(np.arange(GROUPS).astype(">u4")), views.committed("main").epoch)
    present = ~np.isnan(value)
    order = np.lexsort((value[present], group[present]))
    assert np.array_equal(np.repeat(_groups(every.keys), every.counts), group[present][order]), (
        "a bag has other entries"
    )
    held = np.repeat(_decoded(every.entries), every.counts)
    assert np.array_equal(held, value[present][order]), "a bag has other entries"
    return {"operations/s": OPERATIONS / total, "µs": total / OPERATIONS * 1e6}


def _condensed(key: npt.NDArray[np.int64], new: Floats, value: Floats, group: npt.NDArray[np.int64]) -> BagRows:
    """The last write of each key: the old value goes, the new one comes. Brings ``value`` up
    to date."""
    last = np.full(KEYS, -1)
    last[key] = np.arange(len(key))
    touched = np.flatnonzero(last >= 0)
    after, before = new[last[touched]], value[touched]
    value[touched] = after
    goes, comes = ~np.isnan(before), ~np.isnan(after)
    groups = np.concatenate([group[touched][goes], group[touched][comes]])
    counts = np.concatenate([np.full(goes.sum(), -1), np.full(comes.sum(), 1)])
    entries = np.concatenate([before[goes], after[comes]])
    return BagRows(_column(groups.astype(">u4")), _column(_encoded(entries)), pa.array(counts))


def _check_ends(ends: BagEnds, value: Floats, group: npt.NDArray[np.int64]) -> None:
    lowest, highest = np.full(GROUPS, np.inf), np.full(GROUPS, -np.inf)
    present = ~np.isnan(value)
    np.minimum.at(lowest, group[present], value[present])
    np.maximum.at(highest, group[present], value[present])
    filled = np.array(ends.first_after.is_valid())
    touched = _groups(ends.keys)
    assert np.array_equal(filled, np.isfinite(lowest[touched])), "a bag is empty that should not be"
    assert np.array_equal(_decoded(ends.first_after.drop_null()), lowest[touched][filled]), "a minimum is wrong"
    assert np.array_equal(_decoded(ends.last_after.drop_null()), highest[touched][filled]), "a maximum is wrong"


# ------------------------------------------------------------------ columns


def _column(numbers: npt.NDArray, width: int | None = None) -> Bytes:
    """Numbers as byte strings, of their own width or several together."""
    width = width or numbers.itemsize
    count = numbers.nbytes // width
    places = pa.py_buffer(np.arange(count + 1) * width)
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), count, [None, places, pa.py_buffer(numbers)])


def _encoded(values: Floats) -> npt.NDArray:
    """Doubles that are not negative as bytes that order like them."""
    return (values.view(np.uint64) | np.uint64(1 << 63)).astype(">u8")


def _decoded(entries: Bytes) -> Floats:
    numbers = np.array(entries.to_pylist(), "S8").view(">u8") if len(entries) else np.zeros(0, ">u8")
    return (numbers.astype(np.uint64) & np.uint64((1 << 63) - 1)).view(np.float64)


def _groups(keys: Bytes) -> npt.NDArray[np.int64]:
    return np.array(keys.to_pylist(), "S4").view(">u4").astype(np.int64)
