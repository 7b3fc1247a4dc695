"""How large epochs are and where they are done, by what they have cost."""

from __future__ import annotations

import pytest

from everview.errors import DefinitionError
from everview.maintain import epoch_costs
from everview.maintain.epoch_costs import EpochCosts
from everview.maintain.epoch_sizes import (
    FIRST,
    GROWTH,
    LONGEST,
    LONGEST_OF_MANY,
    EpochSize,
    EpochSizes,
    GroupSizes,
    require_border,
)

CEILING = 1_000_000


class Clock:
    """A time that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def costs(clock: Clock | None = None) -> EpochCosts:
    return EpochCosts(0.01, lambda: 1e-6, clock or Clock())


def sizes(in_driver: int | None = None) -> GroupSizes:
    return GroupSizes(CEILING, lambda: 2, in_driver)


def test_costs_that_were_not_measured_are_a_line() -> None:
    assert costs().seconds(0) == 0.01
    assert costs().seconds(100_000) == pytest.approx(0.11)


def test_costs_between_two_measured_sizes_lie_between_theirs() -> None:
    known = costs()
    known.measured(1_000, 0.02)
    known.measured(101_000, 0.22)
    assert known.seconds(51_000) == pytest.approx(0.12)
    assert known.seconds(201_000) == pytest.approx(0.42), "beyond the largest, as much for each operation"
    assert known.slope == pytest.approx(2e-6)
    assert known.most_within(0.12, CEILING) == pytest.approx(51_000, abs=1)


def test_a_slow_first_epoch_is_bounded_by_a_larger_one() -> None:
    known = costs()
    known.measured(1, 3.0)
    known.measured(10_000, 0.05)
    assert known.seconds(1) <= 0.05


def test_what_was_measured_long_ago_is_forgotten() -> None:
    clock = Clock()
    known = costs(clock)
    known.measured(100_000, 5.0)
    clock.now = epoch_costs.REMEMBERED / 2
    assert known.seconds(100_000) == 5.0 and known.largest == 100_000
    clock.now = epoch_costs.REMEMBERED + 1
    assert known.seconds(100_000) == pytest.approx(0.11) and known.largest == 0
    known.measured(100_000, 0.3)
    assert known.seconds(100_000) == 0.3, "not mixed with what was forgotten"


def test_epochs_grow_in_steps_while_much_waits_and_take_what_there_is_where_little_waits() -> None:
    group = sizes()
    assert group.next(7, spark=False) == EpochSize(7, here=True)
    size, grown = group.next(10_000_000, spark=False).operations, []
    assert size == FIRST
    for _ in range(10):
        group.measured(size, 0.001 + size * 1e-6 / 2, here=True)
        size = group.next(10_000_000, spark=False).operations
        grown.append(size)
    assert grown[0] == GROWTH * FIRST and grown == sorted(grown) and grown[-1] == CEILING
    assert group.next(7, spark=False).operations == 7


def test_an_epoch_takes_no_longer_than_it_should() -> None:
    group = sizes()
    for operations in (1, 1_000, 50_000):
        group.measured(operations, 0.005 + operations * 1e-5, here=True)
    size = group.next(200_000, spark=False).operations
    assert 0.9 * LONGEST < 0.005 + size * 1e-5 <= LONGEST


def test_epochs_of_a_long_backlog_may_take_longer() -> None:
    group = sizes()
    for operations in (1, 1_000, 50_000, 200_000):
        group.measured(operations, 0.005 + operations * 1e-5, here=True)
    took = [0.005 + group.next(pending, spark=False).operations * 1e-5 for pending in (1_200_000, 10_000_000)]
    assert LONGEST < took[0] < 0.9 * LONGEST_OF_MANY < took[1] <= LONGEST_OF_MANY


def test_an_epoch_of_a_plan_that_costs_much_without_any_operation_may_take_longer() -> None:
    group = sizes()
    group.measured(1, 2.0, here=True)
    group.measured(20_000, 2.2, here=True)
    assert group.next(10_000_000, spark=False).operations > 20_000


def learned(spark_rest: float) -> GroupSizes:
    """Here an operation takes a microsecond, on Spark half of that and a rest."""
    group = sizes()
    for operations in (1, 1_000, 100_000, 1_000_000):
        group.measured(operations, 0.004 + operations * 1e-6, here=True)
        group.measured(operations, spark_rest + operations * 5e-7, here=False)
    return group


def test_the_border_is_where_both_take_equally_long() -> None:
    group = learned(0.1)
    assert group.next(1, spark=True).here and group.next(150_000, spark=True).here
    assert not group.next(250_000, spark=True).here and not group.next(900_000, spark=True).here
    assert group.fits_here(150_000) and not group.fits_here(250_000)
    assert learned(0.4).next(600_000, spark=True).here, "the border moves with what Spark costs"


def test_where_spark_is_slower_nothing_is_done_there() -> None:
    group = sizes()
    for operations in (1, 1_000, 100_000, 1_000_000):
        group.measured(operations, 0.004 + operations * 1e-6, here=True)
        group.measured(operations, 0.1 + operations * 2e-6, here=False)
    assert all(group.next(pending, spark=True).here for pending in (1, 10_000, 10_000_000))


def test_spark_is_tried_before_it_was_measured() -> None:
    group = sizes()
    for operations in (1, 10_000, 400_000):
        group.measured(operations, 0.004 + operations * 1e-6, here=True)
    assert not group.next(10_000_000, spark=True).here


def test_a_first_epoch_on_spark_that_is_slow_does_not_count() -> None:
    group = sizes()
    for operations in (1, 10_000, 400_000):
        group.measured(operations, 0.004 + operations * 1e-6, here=True)
    group.measured(400_000, 3.0, here=False)
    assert not group.next(10_000_000, spark=True).here
    group.measured(400_000, 0.25, here=False)
    assert not group.next(10_000_000, spark=True).here


def test_where_spark_is_slow_twice_it_is_left() -> None:
    group = sizes()
    for operations in (1, 10_000, 400_000):
        group.measured(operations, 0.004 + operations * 1e-6, here=True)
    for _ in range(2):
        assert not group.next(10_000_000, spark=True).here
        group.measured(400_000, 3.0, here=False)
    assert group.next(10_000_000, spark=True).here


def test_a_border_that_is_given_holds() -> None:
    group = sizes(in_driver=100)
    assert group.next(100, spark=True).here and not group.next(101, spark=True).here
    assert not sizes(in_driver=0).next(1, spark=True).here
    assert require_border(None) is None and require_border(0) == 0
    with pytest.raises(DefinitionError, match="-1 operations"):
        require_border(-1)


def test_groups_have_sizes_of_their_own() -> None:
    all_groups = EpochSizes(CEILING)
    all_groups.of("a").measured(1_000, 1.0, here=True)
    assert all_groups.of("a") is all_groups.of("a")
    assert all_groups.of("b").here.largest == 0
