"""``everview init``: a store where nothing was."""

from __future__ import annotations

import json
from pathlib import Path

import everview
from tests.cli.conftest import Call


def test_a_store_is_made_once(call: Call, tmp_path: Path) -> None:
    said = call("init", tmp_path / "shop", "--nodes", "2", "--shards", "1")
    assert (said.code, said.out) == (0, f"made a store in {tmp_path / 'shop'}, with 2 logs and 1 shard\n")
    with everview.open(tmp_path / "shop", create=False) as db:
        assert len(db.topology.nodes()) == 2 and db.store.log.guarantees.before_images
    said = call("init", tmp_path / "shop")
    assert said.code == 1 and "there is a store in" in said.err
    made = json.loads(call("init", tmp_path / "other", "--no-before-images", "--json").out)
    assert made == {"store": str(tmp_path / "other"), "nodes": 4, "shards": 4, "before_images": False}
    with everview.open(tmp_path / "other", create=False) as db:
        assert not db.store.log.guarantees.before_images


def test_what_is_there_is_left_alone(call: Call, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", "utf-8")
    said = call("init", tmp_path)
    assert said.code == 1 and "Traceback" not in said.err
    assert [one.name for one in tmp_path.iterdir()] == ["file"]
    assert call("init", tmp_path / "x", "--shards", "0").code == 2
