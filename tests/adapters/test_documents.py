"""Documents under one counter: what the catalog stands on."""

from __future__ import annotations

import pytest

from everview.errors import ConflictError
from everview.store.contract import Store
from tests.adapters.under_test import StoreUnderTest


def test_every_commit_adds_one_to_the_counter(store: Store) -> None:
    start = store.metadata.version()
    assert store.metadata.commit(start, {"a": b"1"}) == start + 1
    assert store.metadata.commit(start + 1, {}, ["a"]) == start + 2
    assert store.metadata.version() == start + 2


def test_documents_are_found_by_the_beginning_of_their_names(store: Store) -> None:
    version = store.metadata.commit(store.metadata.version(), {"x/a": b"1", "x/b": b"", "x": b"3", "y": b"4"})
    assert store.metadata.documents("x/") == (version, {"x/a": b"1", "x/b": b""})
    assert store.metadata.documents("x") == (version, {"x": b"3", "x/a": b"1", "x/b": b""})
    assert store.metadata.documents("z") == (version, {})
    assert {"x/a", "x/b", "x", "y"} <= store.metadata.documents()[1].keys()


def test_a_commit_on_an_older_counter_changes_nothing(store: Store) -> None:
    start = store.metadata.version()
    version = store.metadata.commit(start, {"a": b"1"})
    for stale in (start, version + 1):
        with pytest.raises(ConflictError) as caught:
            store.metadata.commit(stale, {"a": b"2", "b": b"3"}, ["a"])
        assert caught.value.retryable
    assert store.metadata.documents("a") == (version, {"a": b"1"})
    assert store.metadata.documents("b") == (version, {})


def test_documents_outlive_the_process(under_test: StoreUnderTest) -> None:
    store = under_test.open()
    version = store.metadata.commit(store.metadata.version(), {"long": b"x" * 100_000, "gone": b""})
    version = store.metadata.commit(version, {}, ["gone", "never there"])
    store.close()
    store = under_test.open()
    assert store.metadata.documents() == (version, {"long": b"x" * 100_000})
    store.close()
