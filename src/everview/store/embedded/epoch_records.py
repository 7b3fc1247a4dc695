"""Epochs of groups, and the fences that keep zombies out.

The base file says which epoch of a group is committed and which one is
begun, and every shard file carries a fence, the highest committed epoch it knows of,
which a write is compared with in its own transaction.

Why fences: the base file and the shards are separate files, so a task can find its epoch
begun in the base file, sleep, and write to a shard long after the epoch was committed and
its tombstones were swept. The fence F of a group in a shard closes that gap:

- a write of E needs ``E > F``, else the writer is a zombie;
- a read as of C needs ``F <= C``, else the version it asks for may be gone;
- a sweep removes only what is at or below F;
- F is raised after each commit, and ``begin`` makes sure of it in every shard before it
  returns. So when records of a new epoch come in, the fence is at the epoch before it, and
  given ``F <= C`` at most one epoch later than C has written: two versions are enough.

A life, with groups ``main`` and ``lazy`` (numbers come from one counter)::

    begin(main)  -> 1                  main: begun 1
    begin(lazy)  -> 2                  lazy: begun 2
    begin(main)  -> 1, resumed         the frontier and the plan are those of the first call
    commit(main, 1)                    main: committed 1, fence 1 in every shard
    begin(main)  -> 3, base 1          main: begun 3
    write(…, epoch=1)                  StaleEpochError

Keys in the base file (``<group>`` is the name in UTF-8, without zero bytes)::

    E#              counts begins and commits (see snapshots.py)
    EN              the last epoch number given to any group
    EC <group>      the last commit: epoch, serial, time, frontier
    EB <group>      the epoch under way: epoch, base, start, frontier, plan
    EH <group> 00 <serial>    the last commits, for status
"""

from __future__ import annotations

import struct
import time

from everview.change.frontier import Frontier
from everview.errors import ConflictError, EpochOrderError, InputError, StaleEpochError
from everview.store.contract import Begun, Commit
from everview.store.embedded.environment import Transaction
from everview.store.embedded.snapshots import EVENTS, StoreFiles

HISTORY = 10_000
"""Commits kept per group."""

RESERVED = bytes(4)
"""Where a shard keeps what is no record: the space of table 0, which no table has."""

LONGEST_NAME = 200

_COUNTER = b"EN"
_NUMBER = struct.Struct("<Q")
_SERIAL = struct.Struct(">Q")
_COMMIT = struct.Struct("<QQd")
_BEGUN = struct.Struct("<QQII")


class EmbeddedEpochs:
    """Begins and commits epochs; one for all groups of a store."""

    def __init__(self, core: StoreFiles) -> None:
        self._core = core

    def begin(
        self, group: str, frontier: Frontier, plan: bytes, epoch: int | None = None, base: int | None = None
    ) -> Begun:
        name = group_name(group)

        def work(txn: Transaction) -> Begun:
            under_way = begun_in(txn, group)
            if under_way is not None:
                if epoch is not None and epoch != under_way.epoch:
                    raise EpochOrderError(
                        f"group {group} cannot begin epoch {epoch}",
                        detail=f"epoch {under_way.epoch} has begun and is not committed",
                        hint="finish that epoch first: begin without a number resumes it",
                    )
                return under_way
            last = committed_in(txn, group)
            if base is not None and base != last.epoch:
                raise ConflictError(
                    f"group {group} is at epoch {last.epoch}, not at {base} any more",
                    hint="see what the group does now, and begin again",
                )
            if not frontier >= last.frontier:
                raise EpochOrderError(
                    f"group {group} cannot go from {last.frontier} to {frontier}",
                    detail="the new frontier is not at or after the committed one",
                )
            used = _number(txn, _COUNTER)
            if epoch is not None and epoch <= used:
                raise EpochOrderError(
                    f"group {group} cannot begin epoch {epoch}",
                    detail=f"epoch {used} was begun before, and numbers only rise",
                    hint="begin without a number to be given the next one",
                )
            number = used + 1 if epoch is None else epoch
            start, end = str(last.frontier).encode(), str(frontier).encode()
            txn.put(b"EB" + name, _BEGUN.pack(number, last.epoch, len(start), len(end)) + start + end + plan)
            txn.put(_COUNTER, _NUMBER.pack(number))
            _count_event(txn)
            return Begun(group, number, last.epoch, last.frontier, frontier, plan, resumed=False)

        begun = self._core.update(self._core.base, work)
        raise_fences(self._core, group, begun.base)
        return begun

    def commit(self, group: str, epoch: int) -> Commit:
        name = group_name(group)
        now = time.time()

        def work(txn: Transaction) -> Commit:
            last = committed_in(txn, group)
            under_way = begun_in(txn, group)
            if under_way is None or epoch != under_way.epoch:
                if epoch == last.epoch and epoch:
                    return last
                raise _out_of_order(group, epoch, last, under_way)
            found = txn.get(b"EC" + name)
            serial = _COMMIT.unpack_from(found)[1] + 1 if found else 1
            record = _COMMIT.pack(epoch, serial, now) + str(under_way.frontier).encode()
            txn.put(b"EC" + name, record)
            txn.put(_history_key(name, serial), record)
            if serial > HISTORY:
                txn.delete(_history_key(name, serial - HISTORY))
            txn.delete(b"EB" + name)
            _count_event(txn)
            return Commit(group, epoch, under_way.frontier, now)

        commit = self._core.update(self._core.base, work)
        raise_fences(self._core, group, commit.epoch)
        return commit

    def close_committed(self, group: str) -> None:
        """Make sure that no shard takes a write of a committed epoch any more, also where the
        process that committed died before it had raised all fences."""
        with self._core.base.read() as txn:
            last = committed_in(txn, group)
        raise_fences(self._core, group, last.epoch)

    def begun(self, group: str) -> Begun | None:
        with self._core.base.read() as txn:
            return begun_in(txn, group)

    def history(self, group: str, limit: int = HISTORY) -> tuple[Commit, ...]:
        """The last commits, newest first."""
        name = group_name(group)
        with self._core.base.read() as txn:
            found = txn.get(b"EC" + name)
            serial = _COMMIT.unpack_from(found)[1] if found else 0
            serials = range(serial, max(0, serial - min(limit, HISTORY)), -1)
            records = [txn.get(_history_key(name, number)) for number in serials]
        return tuple(_commit(group, record) for record in records if record is not None)

    def require_begun(self, group: str, epoch: int) -> Begun:
        """The epoch under way, which must be this one."""
        with self._core.base.read() as txn:
            under_way = begun_in(txn, group)
            if under_way is not None and under_way.epoch == epoch:
                return under_way
            last = committed_in(txn, group)
        raise StaleEpochError(
            f"epoch {epoch} of group {group} is not open for writing",
            detail=_standing(last, under_way),
            hint="the task that wrote is out of date and must stop",
        )


# ------------------------------------------------------------------ in a base transaction


def committed_key(group: str) -> bytes:
    """Where the base file keeps the last commit of a group."""
    return b"EC" + group_name(group)


def committed_epoch(record: bytes | None) -> int:
    """The epoch of what stands there."""
    return 0 if record is None else int(_COMMIT.unpack_from(record)[0])


def committed_in(txn: Transaction, group: str) -> Commit:
    found = txn.get(committed_key(group))
    return Commit(group, 0, Frontier(), 0.0) if found is None else _commit(group, found)


def begun_in(txn: Transaction, group: str) -> Begun | None:
    """The epoch under way: the process that reads it resumes it."""
    found = txn.get(b"EB" + group_name(group))
    if found is None:
        return None
    epoch, base, start, end = _BEGUN.unpack_from(found)
    middle = _BEGUN.size + start
    return Begun(
        group,
        epoch,
        base,
        Frontier.parse(found[_BEGUN.size : middle].decode()),
        Frontier.parse(found[middle : middle + end].decode()),
        found[middle + end :],
        resumed=True,
    )


def group_name(group: str) -> bytes:
    name = group.encode()
    if not name or b"\0" in name or len(name) > LONGEST_NAME:
        raise InputError(
            f"{group!r} is not a name for a group", hint=f"use 1 to {LONGEST_NAME} bytes of UTF-8 without zero bytes"
        )
    return name


def _commit(group: str, record: bytes) -> Commit:
    epoch, _, moment = _COMMIT.unpack_from(record)
    return Commit(group, epoch, Frontier.parse(record[_COMMIT.size :].decode()), moment)


def _history_key(name: bytes, serial: int) -> bytes:
    return b"EH" + name + b"\0" + _SERIAL.pack(serial)


def number_of(found: bytes | None) -> int:
    return int(_NUMBER.unpack(found)[0]) if found else 0


def _number(txn: Transaction, key: bytes) -> int:
    return number_of(txn.get(key))


def _count_event(txn: Transaction) -> None:
    txn.put(EVENTS, _NUMBER.pack(_number(txn, EVENTS) + 1))


def _standing(last: Commit, under_way: Begun | None) -> str:
    opened = f"epoch {under_way.epoch} is under way" if under_way else "no epoch is under way"
    return f"{opened}, the last committed epoch is {last.epoch}"


def _out_of_order(group: str, epoch: int, last: Commit, under_way: Begun | None) -> EpochOrderError | StaleEpochError:
    kind = StaleEpochError if epoch < last.epoch else EpochOrderError
    return kind(f"epoch {epoch} of group {group} cannot be committed", detail=_standing(last, under_way))


# ------------------------------------------------------------------ in a shard's transaction


def fence_key(group: str) -> bytes:
    """Where a shard keeps the fence of a group."""
    return RESERVED + b"F" + group_name(group)


def fence_in(txn: Transaction, group: str) -> int:
    """The highest committed epoch of the group that this shard knows of."""
    return _number(txn, fence_key(group))


def raise_fences(core: StoreFiles, group: str, epoch: int) -> None:
    """Make sure that every shard's fence stands at the epoch or later."""
    key = fence_key(group)

    def work(txn: Transaction) -> None:
        if _number(txn, key) < epoch:
            txn.put(key, _NUMBER.pack(epoch))

    for shard in core.shards:
        with shard.read() as txn:
            known = _number(txn, key)
        if known < epoch:
            core.update(shard, work)


def require_open(txn: Transaction, group: str, epoch: int) -> None:
    """Refuse the write of an epoch that is committed."""
    fence = fence_in(txn, group)
    if epoch <= fence:
        raise StaleEpochError(
            f"epoch {epoch} of group {group} is closed",
            detail=f"epoch {fence} is committed",
            hint="the task that wrote is out of date and must stop",
        )


def require_kept(txn: Transaction, group: str, as_of: int) -> None:
    """Refuse a read of a version that later epochs may have replaced twice."""
    fence = fence_in(txn, group)
    if as_of < fence:
        raise StaleEpochError(
            f"group {group} can no longer be read as of epoch {as_of}",
            detail=f"epoch {fence} is committed",
            hint="read as of the last committed epoch, or take a snapshot and read that",
        )
