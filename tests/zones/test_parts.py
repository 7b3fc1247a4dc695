"""The parts between source and server: shares, owners, blocks, reports, errors in words."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.change.frontier import Frontier, Position, Slice
from everview.errors import DefinitionError, EpochError, EverviewError, StaleEpochError
from everview.maintain.tasks import Chunk, EpochTask
from everview.operators.routing import REGIONS, dealt_out, owners
from everview.store.contract import Begun, Damage
from everview.zones import shares as zone_shares
from everview.zones.failures import error_of
from everview.zones.reports import TaskReport, require_whole, total
from everview.zones.shares import share_out
from everview.zones.shuffle_blocks import BATCH, BLOCK, Block, blocks_of, from_spark, in_batches, table_bytes, to_spark
from everview.zones.workers import end_quietly

slices_of_nodes = st.lists(st.integers(1, 200_000), min_size=1, max_size=6).map(
    lambda sizes: [Slice(node, 100 * node, 100 * node + size) for node, size in enumerate(sizes, 1)]
)
zones = st.text(min_size=1, max_size=5)


@given(slices_of_nodes, st.integers(1, 8))
def test_shares_are_whole_logs_dealt_out_evenly(slices: list[Slice], tasks: int) -> None:
    begun = _begun(Frontier({p.node: p.after for p in slices}), Frontier({p.node: p.upto for p in slices}))
    shares = share_out(begun, EpochTask("plan"), tasks)
    given_out = list(itertools.chain(*(share.slices for share in shares)))
    require_whole(begun, EpochTask("plan"), TaskReport(tuple(given_out)))
    assert len(given_out) == len(slices)
    assert [share.leads for share in shares] == [True] + [False] * (len(shares) - 1)
    sizes = [sum(map(len, share.slices)) for share in shares]
    assert len(shares) <= tasks and max(sizes) - min(sizes) <= max(map(len, slices))
    assert len(shares) == 1 or sum(sizes) // len(shares) >= zone_shares.WORTH_A_TASK


def test_logs_of_an_epoch_that_must_be_read_in_one_place_are() -> None:
    begun = _begun(Frontier(), Frontier({1: 50_000, 2: 60_000}))
    assert len(share_out(begun, EpochTask("plan"), 4)) == 2
    (share,) = share_out(begun, EpochTask("plan", alone=True), 4)
    assert set(share.slices) == {Slice(1, 0, 50_000), Slice(2, 0, 60_000)} and share.leads


def test_a_build_shares_out_pieces_of_its_chunk_and_the_logs_once_it_has_rows() -> None:
    begun = _begun(Frontier(), Frontier({1: 5, 2: 6}))
    first = Chunk("orders", cuts=(b"c", b"f"))
    shares = share_out(begun, EpochTask("plan", chunk=first), 2)
    assert [(share.slices, share.pieces) for share in shares] == [((), (0, 2)), ((), (1,))]
    later = Chunk("orders", after=b"k")
    (share,) = share_out(begun, EpochTask("plan", chunk=later), 2)
    assert len(share.slices) == 2 and share.pieces == (0,)


@given(zones, st.integers(1, 20))
def test_servers_own_equally_many_regions(zone: str, servers: int) -> None:
    dealt = dealt_out(zone, servers)
    counts = np.bincount(dealt, minlength=servers)
    assert len(dealt) == REGIONS and counts.min() > 0 and counts.max() <= -(-REGIONS // servers)


@given(zones, st.integers(1, 12))
def test_a_server_that_comes_moves_little_more_than_its_share(zone: str, servers: int) -> None:
    moved = np.count_nonzero(dealt_out(zone, servers) != dealt_out(zone, servers + 1))
    assert moved <= 2.5 * REGIONS / (servers + 1)


@given(st.lists(st.binary(min_size=1, max_size=8), min_size=1, max_size=200), zones, st.integers(1, 20))
def test_a_key_has_one_owner_wherever_it_comes_from(keys: list[bytes], zone: str, servers: int) -> None:
    found = owners(pa.array(keys, pa.large_binary()), zone, servers)
    assert found.min() >= 0 and found.max() < servers
    assert (owners(pa.array(keys[::-1], pa.large_binary()), zone, servers) == found[::-1]).all()


def test_zones_are_dealt_out_differently() -> None:
    assert (dealt_out("customer", 4) != dealt_out("note", 4)).any()


def test_no_server_is_refused() -> None:
    with pytest.raises(DefinitionError):
        owners(pa.array([b"a", b"b"], pa.large_binary()), "zone", 0)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 9), st.lists(st.integers(0, 9)))))
def test_blocks_travel_as_spark_rows(made: list[tuple[int, int, list[int]]]) -> None:
    sent = [Block(server, subject, table_bytes(pa.table({"v": values}))) for server, subject, values in made]
    arrived = from_spark(to_spark(sent))
    assert arrived == sent
    assert [block.table["v"].to_pylist() for block in arrived] == [values for _, _, values in made]


@pytest.mark.parametrize("rows", [0, 1, 7, 5_000])
def test_large_tables_travel_in_several_blocks(rows: int) -> None:
    table = pa.table({"v": range(rows), "w": ["x" * 10_000] * rows}, pa.schema([("v", pa.int64()), ("w", pa.string())]))
    batches = list(in_batches(blocks_of(3, 1, table)))
    arrived = [block for batch in batches for block in from_spark(batch)]
    assert pa.concat_tables(block.table for block in arrived).combine_chunks() == table
    assert {(block.server, block.subject) for block in arrived} == {(3, 1)}
    assert max(len(block.content) for block in arrived) < 1.1 * BLOCK
    assert max(batch.nbytes for batch in batches) < BATCH + 2 * BLOCK
    assert len(arrived) == max(1, -(-table.nbytes // BLOCK))


def test_a_worker_whose_connection_is_closed_ends_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr("os._exit", ended.append)

    def hung_up(connection: object, authenticated: bool) -> int:
        raise BrokenPipeError

    daemon = SimpleNamespace(worker=hung_up)
    end_quietly(daemon)
    daemon.worker(None, True)
    assert ended == [1]
    daemon = SimpleNamespace(worker=lambda connection, authenticated: 7)
    end_quietly(daemon)
    assert daemon.worker(None, True) == 7


def _begun(start: Frontier, frontier: Frontier) -> Begun:
    return Begun("main", 3, 2, start, frontier, b"", resumed=False)


@pytest.mark.parametrize(
    "slices",
    [
        [],
        [Slice(1, 5, 9)],
        [Slice(1, 5, 9), Slice(2, 0, 3), Slice(2, 0, 3)],
        [Slice(1, 5, 7), Slice(1, 8, 9), Slice(2, 0, 3)],
        [Slice(1, 5, 9), Slice(2, 0, 3), Slice(3, 0, 1)],
        [Slice(1, 4, 9), Slice(2, 0, 3)],
    ],
    ids=["nothing read", "a node left out", "read twice", "a gap", "too much", "begun too early"],
)
def test_an_epoch_that_was_not_read_exactly_once_is_not_committed(slices: list[Slice]) -> None:
    begun = _begun(Frontier({1: 5}), Frontier({1: 9, 2: 3}))
    task = EpochTask("plan")
    require_whole(begun, task, TaskReport((Slice(2, 0, 3), Slice(1, 7, 9), Slice(1, 5, 7))))
    with pytest.raises(EpochError, match="epoch 3 of group main"):
        require_whole(begun, task, TaskReport(tuple(slices)))


@pytest.mark.parametrize("pieces", [(), (0, 2), (0, 1, 1, 2), (0, 1, 2, 3)])
def test_a_chunk_of_which_a_piece_was_not_taken_in_exactly_once_is_not_committed(pieces: tuple[int, ...]) -> None:
    begun = _begun(Frontier({1: 5}), Frontier({1: 9}))
    task = EpochTask("plan", first=True, chunk=Chunk("orders", cuts=(b"g", b"p")))
    require_whole(begun, task, total([TaskReport(pieces=(0, 2)), TaskReport(pieces=(1,))]))
    with pytest.raises(EpochError, match=r"of the pieces \[0, 1, 2\] of table orders"):
        require_whole(begun, task, TaskReport(pieces=pieces))


def test_reports_travel_as_text_and_add_up() -> None:
    damage = Damage(Position(1, 5), None, "broken")
    aside = {"ab": [1, ["row", {"x": "seven"}, "no number", "cast", 0, None]]}
    first = TaskReport((Slice(1, 0, 9),), (damage,), {"entries": 9}, {"read log": 0.5}, aside, pieces=(0, 1))
    second = TaskReport((Slice(2, 0, 1),), (), {"entries": 1, "groups": 2}, {"read log": 0.25})
    assert TaskReport.from_json(first.to_json()) == first
    assert total([first, second]) == TaskReport(
        (Slice(1, 0, 9), Slice(2, 0, 1)), (damage,), {"entries": 10, "groups": 2}, {"read log": 0.75}, pieces=(0, 1)
    )


def test_an_error_of_a_task_keeps_its_kind_and_its_words() -> None:
    raised = StaleEpochError("epoch 4 is closed", detail="epoch 5 is committed", hint="stop")
    text = f"Job aborted: Traceback (most recent call last):\neverview.errors.StaleEpochError: {raised}\n\tat java"
    found = error_of(Exception(text), "an epoch failed")
    assert isinstance(found, StaleEpochError) and str(found) == str(raised)


def test_a_foreign_error_is_reported_without_a_java_stack() -> None:
    text = "Job aborted: Traceback (most recent call last):\n  File x\nValueError: seven\n\n\tat java.lang\n\tat org.x"
    found = error_of(Exception(text), "an epoch of group main failed")
    assert type(found) is EverviewError
    assert str(found) == "an epoch of group main failed\n  why: ValueError: seven"


def test_an_error_of_spark_itself_is_reported_without_a_java_stack() -> None:
    text = "An error occurred while calling o1.collect.\n: org.apache.spark.SparkException: no worker\n\tat org.x"
    assert str(error_of(Exception(text), "an epoch failed")) == "an epoch failed\n  why: SparkException: no worker"
