"""The logs of the embedded store: where they end, cuts between batches, slices, trimming.

A slice is a run of blocks found by one seek, decoded together and handed out
as one Arrow table per base table.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection
from functools import partial
from itertools import compress, islice
from operator import itemgetter

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.boundary import fast, public
from everview.change import entries as names
from everview.change.frontier import Frontier, Position, Slice
from everview.errors import DamagedEntryError, InputError, LogTrimmedError
from everview.store.contract import Damage, LogBatch, LogGuarantees, SliceContent, Table
from everview.store.embedded import blocks
from everview.store.embedded.codecs import TableCodecs
from everview.store.embedded.core import Handle
from everview.store.embedded.environment import Transaction
from everview.store.embedded.layout import LOG
from everview.store.embedded.times import time_of
from everview.store.embedded.topology import EmbeddedTopology, ends, log_key, sequence_of

TRIM_BLOCKS = 2_000
"""Blocks that are removed in one transaction: a writer waits for some milliseconds at most."""
READ_BLOCKS = 4096


@public
@fast
class EmbeddedLog:
    """The logs of all nodes."""

    def __init__(self, handle: Handle, topology: EmbeddedTopology, codecs: Callable[[Table], TableCodecs]) -> None:
        self._handle = handle
        self._topology = topology
        self._codecs = codecs

    @property
    def guarantees(self) -> LogGuarantees:
        """What the log promises: before-images, order, repetitions."""
        return LogGuarantees(
            before_images=self._handle.settings.before_images,
            atomic_batches=True,
            per_key_order=True,
            duplicates=False,
            retention="until trimmed",
        )

    def latest(self) -> Frontier:
        """The end of every log: one read transaction, so no batch is cut."""
        with self._handle.base.read() as transaction:
            return ends(transaction, self._topology.current(transaction))

    def oldest(self) -> Frontier:
        with self._handle.base.read() as transaction:
            return self._topology.current(transaction).trimmed

    def written_after(self, start: Frontier) -> float | None:
        with self._handle.base.read() as transaction:
            map_ = self._topology.current(transaction)
            latest, start = ends(transaction, map_), start | map_.trimmed
            growing = [piece.node for piece in start.slices_to(start | latest)]
            if not growing:
                return None
            return time_of(transaction, min(self._batch_at(transaction, node, start[node] + 1) for node in growing))

    # -------------------------------------------------------------- cuts

    def advance(self, start: Frontier, max_operations: int, max_bytes: int | None = None) -> Frontier:
        """The furthest cut between batches at most so many entries and bytes after ``start``, or one
        batch if that is larger."""
        if max_operations < 1:
            raise InputError(f"an epoch takes at least one operation, not {max_operations}")
        with self._handle.base.read() as transaction:
            map_ = self._topology.current(transaction)
            latest = ends(transaction, map_)
            self._check_reach(start, map_.trimmed)
            if not start <= latest:
                raise InputError(f"the frontier {start} lies beyond the end of the log {latest}")
            growing = [piece.node for piece in start.slices_to(latest)]

            def fits(cut: Frontier) -> bool:
                return start.operations_to(cut) <= max_operations and (
                    max_bytes is None or self._bytes(transaction, start, cut) <= max_bytes
                )

            if fits(latest):
                return latest
            first = min(self._batch_at(transaction, node, start[node] + 1) for node in growing)
            last = transaction.id()
            best = self._cut(transaction, growing, start, latest, first)
            while first < last:
                middle = (first + last + 1) // 2
                cut = self._cut(transaction, growing, start, latest, middle)
                if fits(cut):
                    first, best = middle, cut
                else:
                    last = middle - 1
            return best

    def _cut(
        self, transaction: Transaction, nodes: list[int], start: Frontier, latest: Frontier, batch: int
    ) -> Frontier:
        """Every log up to and including this batch."""
        return start | Frontier({n: self._end_of(transaction, n, start[n], latest[n], batch) for n in nodes})

    def _end_of(self, transaction: Transaction, node: int, low: int, high: int, batch: int) -> int:
        """The last sequence number in (low, high] whose batch is not later; low if there is none."""
        while low < high:
            middle = (low + high + 1) // 2
            if self._batch_at(transaction, node, middle) <= batch:
                low = middle
            else:
                high = middle - 1
        return low

    def _batch_at(self, transaction: Transaction, node: int, sequence: int) -> int:
        return blocks.batch_of(self._block_of(transaction, node, sequence))

    def _block_of(self, transaction: Transaction, node: int, sequence: int) -> bytes:
        cursor = transaction.cursor()
        if not cursor.set_range(log_key(LOG, node, sequence)):
            raise DamagedEntryError(f"the log of node {node} has no entry {sequence}")
        return cursor.value()

    def _bytes(self, transaction: Transaction, start: Frontier, cut: Frontier) -> int:
        """What the blocks between two cuts hold."""
        total = 0
        for piece in start.slices_to(cut):
            first = self._block_of(transaction, piece.node, piece.after + 1)
            last = self._block_of(transaction, piece.node, piece.upto)
            total += blocks.end_of(last) - blocks.end_of(first) + len(first)
        return total

    # -------------------------------------------------------------- slices

    def read(self, piece: Slice, tables: Collection[Table]) -> SliceContent:
        """The entries of a slice, one batch of columns per table and kind of log."""
        with self._handle.base.read() as transaction:
            trimmed = self._topology.current(transaction).trimmed[piece.node]
            self._check_reach(Frontier({piece.node: piece.after}), Frontier({piece.node: trimmed}))
            found = self._blocks(transaction, piece)
        sound = blocks.sound(found)
        damaged = [] if sound.all() else [self._damage(piece.node, block) for block in compress(found, ~sound)]
        decoded = blocks.decode(list(compress(found, sound.tolist())) if damaged else found)
        inside = (decoded.sequence > piece.after) & (decoded.sequence <= piece.upto)
        batches: list[LogBatch] = []
        for table in tables:
            for images in (True, False):
                chosen = np.flatnonzero(inside & (decoded.table == table.id) & (decoded.images == images))
                if len(chosen):
                    batches += self._decode(table, piece.node, images, decoded, chosen, damaged)
        return SliceContent(tuple(batches), tuple(damaged))

    def _blocks(self, transaction: Transaction, piece: Slice) -> list[bytes]:
        cursor = transaction.cursor()
        if piece.upto <= piece.after or not cursor.set_range(log_key(LOG, piece.node, piece.after + 1)):
            return []
        last = self._last_block(transaction, piece)
        if last is None:
            return []
        found: list[bytes] = []
        blocks_ahead = cursor.iternext()
        expected = 1
        while chunk := list(islice(blocks_ahead, min(expected, READ_BLOCKS))):
            wanted = bisect_right(chunk, last, key=itemgetter(0))
            found += map(itemgetter(1), chunk[:wanted])
            if chunk[-1][0] >= last:
                break
            # as many more as there will be, if they are as large as those so far: blocks hold one entry
            # or thousands, and what is read beyond the slice is copied in vain
            reached = sequence_of(chunk[-1][0])
            expected = 1 + (piece.upto - reached) * len(found) // (reached - piece.after)
        return found

    def _last_block(self, transaction: Transaction, piece: Slice) -> bytes | None:
        """The key of the block that holds the slice's last entry."""
        cursor = transaction.cursor()
        if cursor.set_range(log_key(LOG, piece.node, piece.upto)):
            key = cursor.key()
            if key.startswith(log_key(LOG, piece.node, 0)[:5]):
                return key
        raise InputError(f"the log of node {piece.node} ends before the slice {piece}")

    def _decode(
        self,
        table: Table,
        node: int,
        images: bool,
        decoded: blocks.Decoded,
        chosen: npt.NDArray[np.int64],
        damaged: list[Damage],
    ) -> list[LogBatch]:
        codecs = self._codecs(table)
        try:
            return [LogBatch(table, node, _entries(codecs, images, decoded, chosen), images)]
        except DamagedEntryError as error:
            if len(chosen) == 1:
                position = Position(node, int(decoded.sequence[chosen[0]]))
                damaged.append(Damage(position, table.id, error.message))
                return []
            middle = len(chosen) // 2
            halves = (chosen[:middle], chosen[middle:])
            return [b for half in halves for b in self._decode(table, node, images, decoded, half, damaged)]

    def _damage(self, node: int, block: bytes) -> Damage:
        """What can still be said of a block whose checksum is wrong."""
        sequence = int(blocks.HEADER.unpack_from(block)[5]) if len(block) >= blocks.HEADER.size else 0
        return Damage(Position(node, sequence), None, "the checksum of the log block is wrong")

    def _check_reach(self, start: Frontier, trimmed: Frontier) -> None:
        for node, gone in trimmed.items():
            if start[node] < gone:
                raise LogTrimmedError(
                    f"the log of node {node} begins after {gone}, but {start[node] + 1} was asked for",
                    hint="ask for what came later, or rebuild the views that still need it; SET GLOBAL "
                    "log_retention_age = '1 day' keeps logs for longer from now on",
                )

    # -------------------------------------------------------------- trimming

    def trim(self, frontier: Frontier) -> int:
        """Forget the entries at or before the frontier, in bounded transactions. First it is
        written down that they are gone, so no reader meets a gap."""
        latest = self.latest()
        if not frontier <= latest:
            raise InputError(f"the frontier {frontier} lies beyond the end of the log {latest}")
        before = self.oldest()
        if not frontier <= before:
            self._handle.update(self._handle.base, lambda t: self._topology.mark_trimmed(t, frontier))
        for node in frontier:
            while self._reaches(node, frontier[node]):
                self._handle.update(self._handle.base, partial(_trim_some, node, frontier[node]))
        return before.operations_to(before | frontier)

    def _reaches(self, node: int, upto: int) -> bool:
        """Whether there is a block of the node at or before a sequence number; also one that is marked
        as trimmed already, by somebody who was killed."""
        with self._handle.base.read() as transaction:
            cursor = transaction.cursor()
            return cursor.set_range(log_key(LOG, node, 0)) and cursor.key() <= log_key(LOG, node, upto)


def _trim_some(node: int, upto: int, transaction: Transaction) -> None:
    cursor = transaction.cursor()
    stop = log_key(LOG, node, upto)
    if cursor.set_range(log_key(LOG, node, 0)):
        for _ in range(TRIM_BLOCKS):
            if not b"" < cursor.key() <= stop:  # it is empty where nothing follows
                return
            cursor.delete()  # the cursor stands on the next one then


def _entries(codecs: TableCodecs, images: bool, decoded: blocks.Decoded, chosen: npt.NDArray[np.int64]) -> pa.Table:
    """The columns a :class:`LogBatch` promises."""
    schema = codecs.table.schema
    keys = decoded.keys(chosen)
    columns: dict[str, pa.Array] = {
        names.SEQ: pa.array(decoded.sequence[chosen]),
        names.INCARNATION: pa.array(decoded.incarnation[chosen]),
        names.KIND: pa.array(decoded.kind[chosen]),
        names.KEY: keys,
    }
    by_name = dict(zip(schema.key, codecs.keys.decode_columns(keys), strict=True))
    if images:
        by_name |= zip(codecs.names, codecs.rows.decode_columns(decoded.new(chosen)), strict=True)
        columns |= {name: by_name[name] for name in schema.names}
        columns[names.HAD] = pa.array((decoded.parts[chosen] & blocks.HAD_OLD) != 0)
        old = codecs.rows.decode_columns(decoded.old(chosen))
        columns |= {names.OLD + name: column for name, column in zip(codecs.names, old, strict=True)}
    else:
        values, given = codecs.rows.decode_patch_columns(decoded.new(chosen))
        by_name |= zip(codecs.names, values, strict=True)
        columns |= {name: by_name[name] for name in schema.names}
        columns |= {names.SET + name: pa.array(mask) for name, mask in zip(codecs.names, given, strict=True)}
    return pa.table(columns)
