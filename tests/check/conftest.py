"""A database whose views can be damaged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import everview


@pytest.fixture
def db(tmp_path: Path) -> Iterator[everview.Database]:
    with everview.open(tmp_path / "store", durability="none", map_size=1 << 30) as found:
        yield found
