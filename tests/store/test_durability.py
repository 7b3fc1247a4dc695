"""Durable points: what they hold, when they are made, and what a reboot takes back."""

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from everview.errors import NotAStoreError
from everview.store.embedded import EmbeddedStore, durability
from everview.store.embedded.points import TAG, Point, Stamp, read_point, write_point


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedStore]:
    with EmbeddedStore.open(tmp_path / "store", create=True, durability="none") as opened:
        yield opened


def reboot(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on this process believes to run after another boot."""
    boots = iter(range(1_000_000))
    name = f"another boot {next(boots)}"
    monkeypatch.setattr(durability, "boot_id", lambda: name)


def write(store: EmbeddedStore, count: int = 1) -> int:
    """Some commits of documents; returns the counter."""
    version = store.metadata.version()
    for _ in range(count):
        version = store.metadata.commit(version, {f"d{version}": b"x" * 100})
    return version


def copied(store: EmbeddedStore, to: Path) -> Path:
    """The files as the page cache has them: what a killed process leaves."""
    shutil.copytree(store.directory, to)
    return to


def test_without_a_reboot_nothing_is_lost(store: EmbeddedStore, tmp_path: Path) -> None:
    store.sync()
    version = write(store, 20)
    with EmbeddedStore.open(copied(store, tmp_path / "copy")) as other:
        assert other.metadata.version() == version


def test_a_reboot_goes_back_to_the_last_durable_point(
    store: EmbeddedStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    durable = write(store, 20)
    store.sync()
    write(store, 20)
    copy = copied(store, tmp_path / "copy")
    reboot(monkeypatch)
    with EmbeddedStore.open(copy) as other:
        assert other.metadata.version() == durable
        assert write(other) == durable + 1
    with EmbeddedStore.open(copy) as again:
        assert again.metadata.version() == durable + 1


def test_close_makes_everything_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store"
    with EmbeddedStore.open(path, create=True, durability="none") as store:
        version = write(store, 5)
    reboot(monkeypatch)
    with EmbeddedStore.open(path) as store:
        assert store.metadata.version() == version


def test_fsync_makes_every_acknowledged_write_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddedStore.open(tmp_path / "store", create=True, durability="fsync") as store:
        version = write(store, 5)
        copy = copied(store, tmp_path / "copy")
    reboot(monkeypatch)
    with EmbeddedStore.open(copy) as other:
        assert other.metadata.version() == version


def test_group_makes_a_write_durable_by_itself(tmp_path: Path) -> None:
    with EmbeddedStore.open(tmp_path / "store", create=True, durability="group") as store:
        written = threading.Event()
        real = write_point

        def watched(directory: Path, point: Point) -> None:
            real(directory, point)
            written.set()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(durability, "write_point", watched)
            write(store)
            before = store._handle.base.lmdb.info()["last_txnid"]
            assert written.wait(30)
        point = read_point(store.directory)
        assert point is not None
        assert point.metas["base.mdb"][0] == before


def test_garbage_alone_makes_a_durable_point(store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durability, "GARBAGE", 1 << 20)
    first = read_point(store.directory)
    write(store, 400)
    last = read_point(store.directory)
    assert first is not None
    assert last is not None
    assert last.number > first.number
    size = (store.directory / "base.mdb").stat().st_size
    write(store, 2000)
    assert (store.directory / "base.mdb").stat().st_size < size + (8 << 20), "freed pages are used again"


def test_a_torn_slot_falls_back_to_the_other(tmp_path: Path) -> None:
    def point(number: int) -> Point:
        stamps = Stamp(number, bytes([number] * TAG)), Stamp(number - 1, bytes(TAG))
        metas = {"base.mdb": (6 + number, bytes(256))}
        return Point(number, "boot", metas, {"base.mdb": 4096 * number}, "store", {"base.mdb": stamps})

    write_point(tmp_path, point(1))
    write_point(tmp_path, point(2))
    assert read_point(tmp_path) == point(2)
    content = bytearray((tmp_path / "durable").read_bytes())
    content[60] ^= 1
    (tmp_path / "durable").write_bytes(content)
    assert read_point(tmp_path) == point(1)


def test_a_store_without_its_durable_point_is_refused(store: EmbeddedStore, tmp_path: Path) -> None:
    copy = copied(store, tmp_path / "copy")
    (copy / "durable").unlink()
    with pytest.raises(NotAStoreError, match="durable point"):
        EmbeddedStore.open(copy)


def test_a_missing_file_is_named_after_a_reboot(
    store: EmbeddedStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = copied(store, tmp_path / "copy")
    (copy / "state-1.mdb").unlink()
    reboot(monkeypatch)
    with pytest.raises(NotAStoreError, match=r"state-1\.mdb is missing"):
        EmbeddedStore.open(copy)


def test_pages_of_the_durable_point_are_never_overwritten(store: EmbeddedStore, tmp_path: Path) -> None:
    """The heart of it: after a durable point, every page that its version can reach keeps its
    content however much is written."""
    write(store, 300)
    store.sync()
    before = (store.directory / "base.mdb").read_bytes()
    write(store, 300)
    after = (store.directory / "base.mdb").read_bytes()
    free = _free_pages(store)
    changed = [
        number
        for number in range(2, len(before) // 4096)
        if before[number * 4096 : (number + 1) * 4096] != after[number * 4096 : (number + 1) * 4096]
    ]
    assert changed, "pages that were free at the durable point are used"
    assert set(changed) <= free


def _free_pages(store: EmbeddedStore) -> set[int]:
    """Pages the pinned version does not reach: whatever is not in its tree."""
    pin = store._handle.core.durability._pins["base.mdb"]
    reached: set[int] = set()
    data = (store.directory / "base.mdb").read_bytes()
    point = read_point(store.directory)
    assert point is not None
    meta = point.metas["base.mdb"][1]
    roots = [int.from_bytes(meta[40 + 48 * db + 40 : 40 + 48 * db + 48], "little") for db in (0, 1)]
    pending = [root for root in roots if root != 0xFFFFFFFFFFFFFFFF]
    while pending:
        number = pending.pop()
        page = data[number * 4096 : (number + 1) * 4096]
        flags = int.from_bytes(page[10:12], "little")
        lower = int.from_bytes(page[12:14], "little")
        nodes = [int.from_bytes(page[at : at + 2], "little") for at in range(16, lower, 2)]
        reached.add(number)
        for node in nodes:
            low, high, node_flags, key_size = (
                int.from_bytes(page[node + i : node + i + 2], "little") for i in (0, 2, 4, 6)
            )
            if flags & 1:
                pending.append(low | high << 16 | node_flags << 32)
            elif node_flags & 1:
                start = node + 8 + key_size
                first = int.from_bytes(page[start : start + 8], "little")
                count = -(-((low | high << 16) + 16) // 4096)
                reached.update(range(first, first + count))
    assert pin.id() == point.metas["base.mdb"][0]
    return set(range(len(data) // 4096)) - reached


@pytest.mark.parametrize("mode", durability.MODES)
def test_a_process_that_is_idle_lets_go_of_its_pins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setattr(durability, "INTERVAL", 0.01)
    with EmbeddedStore.open(tmp_path / "store", create=True, durability=mode) as store:
        version = write(store, 3)
        flusher = store._handle.core.durability._flusher
        if flusher is not None:
            flusher.join(30)
        assert store._handle.base.lmdb.readers().count("\n") <= 2, "only the heading and spare readers"
        assert not store._handle.core.durability._pins
        assert write(store) == version + 1
        assert store._handle.core.durability._pins
