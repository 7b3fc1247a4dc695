"""The grounds a catalog may stand on; each test runs on every one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from everview.catalog import Catalog
from everview.store.contract import Metadata
from everview.store.embedded.store import EmbeddedStore
from tests.catalog.memory import MemoryMetadata


@contextmanager
def _memory(directory: Path) -> Iterator[Metadata]:
    yield MemoryMetadata()


@contextmanager
def _embedded(directory: Path) -> Iterator[Metadata]:
    store = EmbeddedStore.open(directory / "store", create=True, durability="none")
    try:
        yield store.metadata
    finally:
        store.close()


GROUNDS: dict[str, Callable[[Path], AbstractContextManager[Metadata]]] = {"memory": _memory, "embedded": _embedded}


@pytest.fixture(params=GROUNDS)
def metadata(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Metadata]:
    with GROUNDS[request.param](tmp_path) as ground:
        yield ground


@pytest.fixture
def catalog(metadata: Metadata) -> Catalog:
    return Catalog(metadata, clock=lambda: 1234.5)
