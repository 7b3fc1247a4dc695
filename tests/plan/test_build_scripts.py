"""Golden scripts of what the builder makes of queries."""

from __future__ import annotations

from pathlib import Path

import pytest

from everview.plan.relations import outline
from tests.plan.shop import built
from tests.scripts.golden import run_script, scripts


def printed(text: str) -> str:
    found = built(text)
    order = [f"read by {', '.join(map(str, found.order))}"] if found.order else []
    return "\n".join([outline(found.relation), *order, *(f"notice: {notice}" for notice in found.notices)])


@pytest.mark.parametrize("path", scripts("build"), ids=lambda path: path.stem)
def test_a_script_prints_what_it_printed(path: Path) -> None:
    run_script(path, printed)
