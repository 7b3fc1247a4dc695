"""When log entries were written, as far as a store knows."""

from __future__ import annotations

import time

from everview.change.schema import Schema
from everview.store.contract import Store
from tests.adapters.under_test import define


def test_the_log_returns_when_the_first_entry_after_a_frontier_was_written(store: Store) -> None:
    table = store.table(define(store, "events", Schema.of({"id": "BIGINT"}, key=["id"])))
    start = store.log.latest()
    assert store.log.written_after(start) is None
    before = time.time()
    table.put({"id": 1})
    between = store.log.latest()
    table.put_many([{"id": 2}, {"id": 3}])
    first, second = store.log.written_after(start), store.log.written_after(between)
    if first is not None and second is not None:
        assert before - 0.1 <= first <= second <= time.time()
    assert store.log.written_after(store.log.latest()) is None


def test_it_returns_nothing_for_trimmed_entries(store: Store) -> None:
    table = store.table(define(store, "events", Schema.of({"id": "BIGINT"}, key=["id"])))
    start = store.log.latest()
    for id in range(20):
        table.put({"id": id})
    middle = store.log.latest()
    table.put_many([{"id": id} for id in range(30)])
    store.log.trim(middle)
    assert store.log.written_after(start) == store.log.written_after(store.log.oldest())
    store.log.trim(store.log.latest())
    assert store.log.written_after(start) is None
