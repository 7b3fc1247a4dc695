"""``everview backup``: what it makes, what it prints, and how it ends."""

import json
from pathlib import Path

import everview
from tests.cli.conftest import Call


def test_a_backup_of_a_store_that_is_open(tmp_path: Path, call: Call) -> None:
    with everview.open(tmp_path / "shop") as db:
        db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY); CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM t")
        db.sql("INSERT INTO t SELECT * FROM range(10)")
        db.flush()
        said = call("backup", tmp_path / "shop", tmp_path / "copy")
        assert (said.code, said.err) == (0, "") and f"{tmp_path / 'copy'} is a copy of {tmp_path / 'shop'}" in said.out
        said = call("backup", tmp_path / "shop", tmp_path / "other", "--json")
        assert json.loads(said.out)["target"] == str(tmp_path / "other")
    assert call("check", tmp_path / "copy").code == 0
    assert call("verify", tmp_path / "copy").code == 0
    with everview.open(tmp_path / "other") as db:
        assert db.sql("SELECT n FROM n").rows() == [(10,)]


def test_nothing_is_made_where_there_is_no_store(tmp_path: Path, call: Call) -> None:
    said = call("backup", tmp_path / "nowhere", tmp_path / "copy")
    assert said.code == 1 and "there is no store" in said.err
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_left_alone(tmp_path: Path, call: Call) -> None:
    everview.open(tmp_path / "shop").close()
    (tmp_path / "copy").mkdir()
    said = call("backup", tmp_path / "shop", tmp_path / "copy")
    assert said.code == 1 and "is there already" in said.err
    assert list((tmp_path / "copy").iterdir()) == []
