"""Files that do not belong together are found when a store is opened, before anything is read or written."""

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

import everview
from everview.errors import NotAStoreError
from everview.store.embedded import durability
from tests.store.test_creation import contents

ROWS = 500


def fill(directory: Path, start: int = 0) -> Path:
    """Some rows and a view of them, closed."""
    with everview.open(directory) as db:
        if not db.tables():
            db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, g BIGINT, v VARCHAR)")
            db.sql("CREATE MATERIALIZED VIEW n AS SELECT g, count(*) AS n FROM t GROUP BY g")
        rows = [{"k": start + at, "g": at % 50, "v": "x" * 100} for at in range(ROWS)]
        db.table("t").put_many(rows)
        db.flush()
    return directory


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A store, what it was earlier, and another one."""
    root = tmp_path_factory.mktemp("stores")
    fill(root / "now")
    shutil.copytree(root / "now", root / "earlier")
    fill(root / "now", ROWS)
    fill(root / "other")
    fill(root / "other", ROWS)
    shutil.copytree(root / "earlier", root / "branch")
    for start in range(7):
        fill(root / "branch", start)
    shutil.copytree(root / "earlier", root / "twig")
    fill(root / "twig", 7)
    return {path.name: path for path in root.iterdir()}


Change = Callable[[Path, dict[str, Path]], object]


def copy(name: str, source: str) -> Change:
    return lambda store, stores: shutil.copy(stores[source] / name, store / name)


def swap(one: str, two: str) -> Change:
    def change(store: Path, _: dict[str, Path]) -> None:
        (store / one).rename(store / "aside")
        (store / two).rename(store / one)
        (store / "aside").rename(store / two)

    return change


def remove(name: str) -> Change:
    return lambda store, _: (store / name).unlink()


def cut(name: str, pages: int) -> Change:
    return lambda store, _: os.truncate(store / name, (store / name).stat().st_size - 4096 * pages)


def cut_to(name: str, size: int) -> Change:
    return lambda store, _: os.truncate(store / name, size)


def set_to(**settings: object) -> Change:
    def change(store: Path, _: dict[str, Path]) -> None:
        marker = json.loads((store / "everview.json").read_text())
        marker["settings"] |= settings
        (store / "everview.json").write_text(json.dumps(marker))

    return change


CHANGES = {
    "missing shard": (remove("state-1.mdb"), r"state-1\.mdb is missing"),
    "missing base": (remove("base.mdb"), r"base\.mdb is missing"),
    "missing durable": (remove("durable"), "no durable point"),
    "older shard": (copy("state-2.mdb", "earlier"), r"state-2\.mdb is an older copy"),
    "older base": (copy("base.mdb", "earlier"), r"base\.mdb is an older copy"),
    "older durable": (copy("durable", "earlier"), r"durable is an older copy"),
    "shard of another": (copy("state-2.mdb", "other"), r"state-2\.mdb belongs to another store"),
    "base of another": (copy("base.mdb", "other"), r"base\.mdb belongs to another store"),
    "durable of another": (copy("durable", "other"), r"durable belongs to another store"),
    "marker of another": (copy("everview.json", "other"), "belongs to another store"),
    "shard of a copy": (copy("state-0.mdb", "branch"), r"state-0\.mdb comes from another copy"),
    "shard of another copy": (copy("state-0.mdb", "twig"), r"state-0\.mdb (comes from another copy|is an older copy)"),
    "swapped shards": (swap("state-0.mdb", "state-3.mdb"), r"state-0\.mdb is the file state-3\.mdb"),
    "base and shard": (swap("base.mdb", "state-3.mdb"), r"base\.mdb is the file state-3\.mdb"),
    "fewer shards": (set_to(shards=2), r"everview\.json was changed: it has 2 shards, but the store has 4"),
    "more shards": (set_to(shards=5), r"everview\.json was changed: it has 5 shards, but the store has 4"),
    "before-images": (set_to(before_images=False), r"was changed: before_images was True and is False"),
    "nodes": (set_to(nodes=9), r"was changed: nodes was 4 and is 9"),
    "last page cut": (cut("base.mdb", 1), r"base\.mdb is cut short"),
    "shard cut": (cut("state-1.mdb", 2), r"state-1\.mdb is cut short"),
    "cut to a page": (cut_to("state-1.mdb", 4096), r"state-1\.mdb is cut short"),
    "emptied": (cut_to("state-1.mdb", 0), r"state-1\.mdb is cut short"),
}


@pytest.mark.parametrize("rebooted", [False, True], ids=["same boot", "after a reboot"])
@pytest.mark.parametrize("name", CHANGES)
def test_files_that_do_not_belong_together(
    stores: dict[str, Path], tmp_path: Path, name: str, rebooted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, expected = CHANGES[name]
    store = tmp_path / "store"
    shutil.copytree(stores["now"], store)
    change(store, stores)
    if rebooted:
        monkeypatch.setattr(durability, "boot_id", lambda: "another boot")
    before = contents(store)
    with pytest.raises(NotAStoreError, match=expected) as caught:
        everview.open(store)
    assert caught.value.hint
    assert contents(store) == before


def test_a_whole_copy_is_a_store(stores: dict[str, Path], tmp_path: Path) -> None:
    for name, rows in (("now", 2 * ROWS), ("earlier", ROWS)):
        store = tmp_path / name
        shutil.copytree(stores[name], store)
        with everview.open(store) as db:
            assert db.sql("SELECT sum(n) FROM n").rows() == [(rows,)]


def test_a_killed_process_leaves_files_that_belong_together(stores: dict[str, Path], tmp_path: Path) -> None:
    """Ahead of the durable point, and so the size is judged by the pages in use."""
    store = tmp_path / "store"
    shutil.copytree(stores["now"], store)
    process = os.fork()
    if process == 0:
        opened = everview.open(store, durability="none")
        opened.table("t").put_many([{"k": -at, "g": 0, "v": "y" * 3000} for at in range(1, 2000)])
        opened.table("t").delete_many([(-at,) for at in range(1000, 2000)])
        os.kill(os.getpid(), signal.SIGKILL)
    assert os.WTERMSIG(os.waitpid(process, 0)[1]) == signal.SIGKILL
    cut_short = tmp_path / "cut"
    shutil.copytree(store, cut_short)
    with everview.open(store) as db:
        assert db.table("t").count() == 2 * ROWS + 999
    os.truncate(cut_short / "base.mdb", (cut_short / "base.mdb").stat().st_size // 8192 * 4096)
    with pytest.raises(NotAStoreError, match="is cut short"):
        everview.open(cut_short)
