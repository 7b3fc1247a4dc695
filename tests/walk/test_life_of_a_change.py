"""The page about the life of a change is the way that a change takes, and the way stays short."""

from __future__ import annotations

import pytest

from tests.walk.page import PAGE, PARTS, rendered, trace
from tests.walk.walk import Walk

IN_PROCESS = ("update", "flush", "get")
FILES, FUNCTIONS, HOPS = 130, 770, 62
"""The budget of the way in process."""


@pytest.fixture(scope="module")
def walk() -> Walk:
    return trace()


def test_the_page_is_the_way_that_a_change_takes(walk: Walk) -> None:
    assert walk.keys() == PARTS.keys()
    assert PAGE.read_text() == rendered(walk), "the path has changed: python -m tests.walk rewrites the page"


def test_the_way_in_process_keeps_to_its_budget(walk: Walk) -> None:
    functions = {function for part in IN_PROCESS for function in walk[part].functions}
    hops = {hop for part in IN_PROCESS for hop in walk[part].hops}
    files = {function.file for function in functions}
    assert (len(files) <= FILES, len(functions) <= FUNCTIONS, len(hops) <= HOPS) == (True, True, True), (
        len(files),
        len(functions),
        len(hops),
    )


def test_every_hop_has_a_sentence(walk: Walk) -> None:
    assert sorted(hop.name for trace in walk.values() for hop in trace.hops if not hop.summary()) == []
