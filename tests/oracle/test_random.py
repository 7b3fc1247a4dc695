"""Random schemas, views and histories: after every epoch every view equals recomputation.

A failure prints a small script that fails, to be kept in ``tests/scripts/oracle``. Longer runs:
``python -m tests.oracle --seconds 600 --seed 1``.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable

import pytest

from tests.oracle import places, trials
from tests.oracle.played import play
from tests.oracle.random_scripts import by_grammar, by_template, random_script
from tests.oracle.script import Script
from tests.oracle.shrink import failure, refusal, shrunk
from tests.oracle.templates import TEMPLATES


def hold(script: Script, played: Callable[[Script], object] = play) -> None:
    """Play a script that must not fail."""
    assert refusal(script) is None
    how = failure(script, played)
    if how is not None:
        pytest.fail(f"{how}\n{shrunk(script, played=played).golden}", pytrace=False)


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_kind_of_view(name: str) -> None:
    hold(by_template(hash_of(name), views=4, names=[name]))


@pytest.mark.parametrize("seed", range(10))
def test_views_of_many_kinds_together(seed: int) -> None:
    hold(by_template(seed))


@pytest.mark.parametrize("seed", range(8))
def test_queries_of_a_grammar(seed: int) -> None:
    hold(by_grammar(seed))


def test_epochs_that_fail_are_repeated_or_come_back_from_the_dead_change_nothing() -> None:
    seen: Counter[str] = Counter()
    for seed in range(300, 305):
        hold(random_script(seed, views=4), functools.partial(disturbed, seen, seed))
    assert min(seen[mishap] for mishap in ("twice", "half", "died", "refused")) > 0


@pytest.mark.parametrize("seed", range(500, 508))
def test_several_places_make_what_one_makes(seed: int) -> None:
    hold(random_script(seed), places.play)


def disturbed(seen: Counter[str], seed: int, script: Script) -> None:
    seen.update(trials.play(script, seed))


def hash_of(name: str) -> int:
    """A seed that stays the same whatever templates there are."""
    return sum(ord(char) * (at + 1) for at, char in enumerate(name))
