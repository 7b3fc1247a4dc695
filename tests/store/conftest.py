"""The files of a store without the rest of it, for tests of state tables."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from everview.store.embedded.views import EmbeddedViews
from tests.store.state_files import Files


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Files]:
    opened = Files(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def views(files: Files) -> EmbeddedViews:
    return EmbeddedViews(files)
