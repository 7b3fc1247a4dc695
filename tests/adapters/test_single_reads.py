"""Single records: as reads of many give them, and always as of the last committed epoch."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from everview.change.frontier import Frontier
from everview.errors import StaleEpochError
from everview.store.contract import Deletes, Puts, StateTable, Store
from everview.store.encoding.ragged import Bytes

TABLE = StateTable(1, "totals", "main")
KEYS = [b"", b"a", b"b", b"a\0", bytes(400)]


def column(*items: bytes | None) -> Bytes:
    return pa.array(items, pa.large_binary())


def run(store: Store, value: bytes, keys: list[bytes] = KEYS, gone: list[bytes] | None = None) -> int:
    begun = store.views.begin("main", store.log.latest(), b"")
    puts = Puts(column(*keys), column(*[value] * len(keys)))
    store.views.write(TABLE, begun.epoch, puts, Deletes(column(*(gone or []))))
    store.views.commit("main", begun.epoch)
    store.views.sweep("main")
    return begun.epoch


def test_one_record_is_what_many_reads_give(store: Store) -> None:
    views = store.views
    find = views.lookup(TABLE)
    assert find(b"a")[1:] == (0, None)
    first = run(store, b"1")
    with store.snapshot() as snapshot:
        second = run(store, b"2", [b"a"], gone=[b"b"])
        for key in [*KEYS, b"c", bytes(2000)]:
            read = views.read(TABLE, column(key), second)[0].as_py() if len(key) < 500 else None
            assert views.get(TABLE, key, second) == read
            assert find(key) == (store.metadata.version(), second, read)
            assert snapshot.get(TABLE, key, first) == (b"1" if key in KEYS else None)
    with pytest.raises(StaleEpochError):
        views.get(TABLE, b"a", first)


def test_a_half_written_epoch_is_not_found(store: Store) -> None:
    first = run(store, b"1")
    find = store.views.lookup(TABLE)
    begun = store.views.begin("main", Frontier(), b"")
    store.views.write(TABLE, begun.epoch, Puts(column(b"a"), column(b"2")), Deletes(column(b"b")))
    assert [find(key)[1:] for key in (b"a", b"b")] == [(first, b"1")] * 2
    store.views.commit("main", begun.epoch)
    assert [find(key)[1:] for key in (b"a", b"b")] == [(begun.epoch, b"2"), (begun.epoch, None)]


def test_the_counter_of_documents_comes_along(store: Store) -> None:
    find = store.views.lookup(TABLE)
    before = find(b"a")[0]
    store.metadata.commit(store.metadata.version(), {"x": b"1"})
    assert find(b"a")[0] == store.metadata.version() == before + 1


def test_epoch_and_value_belong_together(store: Store) -> None:
    """Every epoch writes its number; a reader finds the two equal while epochs pass."""
    find = store.views.lookup(TABLE)
    over = threading.Event()
    wrong: list[object] = []

    def look() -> None:
        while not over.is_set():
            for key in (b"a", b"b"):
                _, epoch, value = find(key)
                if value != (str(epoch).encode() if epoch else None):
                    wrong.append((epoch, value))

    reader = threading.Thread(target=look)
    reader.start()
    for _ in range(150):
        begun = store.views.begin("main", Frontier(), b"")
        value = str(begun.epoch).encode()
        store.views.write(TABLE, begun.epoch, Puts(column(b"a", b"b"), column(value, value)))
        store.views.commit("main", begun.epoch)
    over.set()
    reader.join()
    assert not wrong


def test_who_holds_a_lease(store: Store) -> None:
    assert store.holder("work") is None
    with store.lease("work"):
        assert store.holder("work") is not None
        assert store.holder("other") is None
    assert store.holder("work") is None
