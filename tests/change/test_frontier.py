"""Frontiers are a lattice whose text form can be pasted."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.change.frontier import Frontier, Position, Slice
from everview.errors import InputError

frontiers = st.dictionaries(st.integers(1, 5), st.integers(0, 9)).map(Frontier)


@given(frontiers)
def test_the_text_form_reads_back(frontier: Frontier) -> None:
    assert Frontier.parse(str(frontier)) == frontier
    assert Frontier.parse(f"  {frontier}\n") == frontier
    assert eval(repr(frontier)) == frontier
    assert pickle.loads(pickle.dumps(frontier)) == frontier


@given(frontiers, frontiers, frontiers)
def test_join_and_meet_are_the_bounds_of_the_order(a: Frontier, b: Frontier, c: Frontier) -> None:
    join, meet = a | b, a & b
    assert meet <= a <= join
    assert meet <= b <= join
    assert (a <= c and b <= c) == (join <= c)
    assert (c <= a and c <= b) == (c <= meet)
    assert (a < b) == (a <= b and a != b)
    assert (a >= b) == (b <= a)
    assert (a > b) == (b < a)


@given(frontiers, frontiers)
def test_equal_frontiers_have_equal_hashes(a: Frontier, b: Frontier) -> None:
    assert (a == b) == (dict(a) == dict(b))
    if a == b:
        assert hash(a) == hash(b)


def test_a_node_that_is_not_named_stands_at_zero() -> None:
    assert Frontier({1: 0}) == Frontier()
    assert Frontier({2: 7})[1] == 0
    assert 1 not in Frontier({1: 0})


@given(frontiers, frontiers)
def test_slices_cover_what_lies_between(a: Frontier, b: Frontier) -> None:
    target = a | b
    slices = a.slices_to(target)
    assert {piece.node for piece in slices} == {node for node in target if target[node] > a[node]}
    assert all((piece.after, piece.upto) == (a[piece.node], target[piece.node]) for piece in slices)
    assert a.operations_to(target) == sum(target.values()) - sum(a.values())
    if not b <= a:
        with pytest.raises(InputError):
            target.slices_to(a)


def test_covers_says_whether_a_position_was_taken() -> None:
    frontier = Frontier({3: 5})
    assert frontier.covers(Position(3, 5))
    assert not frontier.covers(Position(3, 6))
    assert not frontier.covers(Position(1, 1))


@pytest.mark.parametrize("text", ["", "1=2", "f:1", "f:1=", "f:1=2,", "f:-1=2", "f:1=2,1=3", "f:1=2;2=3", "f:a=1"])
def test_text_that_is_no_frontier_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        Frontier.parse(text)


def test_negative_numbers_are_refused() -> None:
    with pytest.raises(InputError):
        Frontier({1: -1})


def test_positions_and_slices_read_as_text() -> None:
    assert Position.parse(" 3:1705 ") == Position(3, 1705)
    assert str(Position(3, 1705)) == "3:1705"
    assert str(Slice(2, 5, 9)) == "2:(5,9]"
    assert len(Slice(2, 5, 9)) == 4
    with pytest.raises(InputError):
        Position.parse("3-1")
