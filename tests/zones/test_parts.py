"""The parts between source and server: shares, owners, blocks, reports, errors in words."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.change.frontier import Frontier, Position, Slice
from everview.errors import DefinitionError, EpochError, EverviewError, StaleEpochError
from everview.log import source
from everview.log.source import share_out
from everview.store.contract import Begun, Damage
from everview.zones import blocks
from everview.zones.pipeline import told
from everview.zones.reports import Report, require_whole, total
from everview.zones.servers import owners

slices_of_nodes = st.lists(st.integers(1, 200_000), min_size=1, max_size=6).map(
    lambda sizes: [Slice(node, 100 * node, 100 * node + size) for node, size in enumerate(sizes, 1)]
)
some_keys = st.lists(st.binary(min_size=1, max_size=8), min_size=1, max_size=200).map(
    lambda keys: pa.array(keys, pa.large_binary())
)


@given(slices_of_nodes, st.integers(1, 8))
def test_shares_cover_every_entry_once_and_are_of_one_size(slices: list[Slice], tasks: int) -> None:
    shares = share_out(slices, tasks)
    covered = [(p.node, n) for share in shares for p in share for n in (p.after, p.upto)]
    assert len(shares) <= tasks
    begun = _begun(Frontier({p.node: p.after for p in slices}), Frontier({p.node: p.upto for p in slices}))
    require_whole(begun, itertools.chain(*shares))
    sizes = [sum(map(len, share)) for share in shares]
    assert max(sizes) - min(sizes) <= 1 and covered
    assert len(shares) == 1 or min(sizes) >= source.WORTH_A_TASK


@given(some_keys, st.integers(1, 8), st.integers(1, 20))
def test_a_part_of_the_store_is_written_by_as_few_servers_as_possible(keys: pa.Array, parts: int, servers: int) -> None:
    found = owners(keys, parts, servers)
    part = owners(keys, parts, parts)
    assert found.min() >= 0 and found.max() < servers
    assert (owners(keys.take(pa.array(np.arange(len(keys))[::-1])), parts, servers) == found[::-1]).all()
    if servers <= parts:
        assert all(len(set(found[part == number])) <= 1 for number in range(parts))
    else:
        assert (found % parts == part).all()


def test_every_server_owns_something() -> None:
    keys = pa.array([number.to_bytes(4, "big") for number in range(10_000)], pa.large_binary())
    for servers in range(1, 12):
        assert set(owners(keys, 4, servers).tolist()) == set(range(servers))


def test_no_server_is_refused() -> None:
    with pytest.raises(DefinitionError):
        owners(pa.array([b"a"], pa.large_binary()), 4, 0)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers())), st.integers(1, 5))
def test_blocks_bring_each_row_to_its_server(rows: list[tuple[int, int]], size: int) -> None:
    table = pa.table({"value": pa.array([str(value) for _, value in rows], pa.string())})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "ROWS", size)
        made = list(blocks.cut(table, np.array([server for server, _ in rows], np.int64), 7))
    arrived = blocks.from_spark(blocks.to_spark(made))
    assert arrived == made
    assert all(block.subject == 7 and 0 < len(block.table) <= size for block in arrived)
    for server in range(4):
        values = [value for block in arrived if block.server == server for value in block.table["value"].to_pylist()]
        assert values == [str(value) for owner, value in rows if owner == server]


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
    require_whole(begun, [Slice(2, 0, 3), Slice(1, 7, 9), Slice(1, 5, 7)])
    with pytest.raises(EpochError, match="epoch 3 of group main"):
        require_whole(begun, slices)


def test_reports_travel_as_text_and_add_up() -> None:
    damage = Damage(Position(1, 5), None, "broken")
    aside = {"ab": [1, ["row", {"x": "seven"}, "no number", "cast", 0, None]]}
    first = Report((Slice(1, 0, 9),), (damage,), {"entries": 9}, {"read log": 0.5}, aside)
    second = Report((Slice(2, 0, 1),), (), {"entries": 1, "groups": 2}, {"read log": 0.25})
    assert Report.from_json(first.to_json()) == first
    assert total([first, second]) == Report(
        (Slice(1, 0, 9), Slice(2, 0, 1)), (damage,), {"entries": 10, "groups": 2}, {"read log": 0.75}
    )


def test_an_error_of_a_task_keeps_its_kind_and_its_words() -> None:
    raised = StaleEpochError("epoch 4 is closed", detail="epoch 5 is committed", hint="stop")
    text = f"Job aborted: Traceback (most recent call last):\neverview.errors.StaleEpochError: {raised}\n\tat java"
    found = told(Exception(text), "an epoch failed")
    assert isinstance(found, StaleEpochError) and str(found) == str(raised)


def test_a_foreign_error_is_told_without_a_java_stack() -> None:
    text = "Job aborted: Traceback (most recent call last):\n  File x\nValueError: seven\n\n\tat java.lang\n\tat org.x"
    found = told(Exception(text), "an epoch of group main failed")
    assert type(found) is EverviewError
    assert str(found) == "an epoch of group main failed\n  why: ValueError: seven"
