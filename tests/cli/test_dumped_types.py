"""Every type, alone and nested, comes back from a file as it went in."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import everview
from tests.cli.conftest import Call
from tests.client.every_type import INSERTS, NAMES, TABLE, stored_texts


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a table of all types."""
    path = tmp_path_factory.mktemp("every")
    with everview.open(path, durability="none") as db:
        for statement in (TABLE, *INSERTS):
            db.sql(statement)
    return path


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
def test_a_dump_can_be_loaded(form: str, every: Path, tmp_path: Path, call: Call) -> None:
    file = tmp_path / f"every.{form}"
    said = call("dump", every, "every", file)
    assert said.code == 0, said.err
    with everview.open(tmp_path / "copy", durability="none") as copy:
        if form != "parquet":  # which holds the types
            copy.sql(TABLE)
    said = call("load", tmp_path / "copy", "every", file, *(["--create", "--key", "id"] if form == "parquet" else []))
    assert said.code == 0, said.err
    with everview.open(tmp_path / "copy") as copy, everview.open(every) as original:
        kinds = {column.name: column.type for column in copy.table("every").schema.columns}
        assert {name: kinds[name] for name in NAMES} == NAMES
        for ours, wanted in zip(stored_texts(copy), stored_texts(original), strict=True):
            assert ours == wanted


def test_other_programs_read_a_parquet_file(every: Path, tmp_path: Path, call: Call) -> None:
    file = tmp_path / "sums.parquet"
    query = "SELECT sum(id) AS s, ['00000000-0000-0000-0000-000000000001'::UUID] AS u FROM every"
    said = call("dump", every, file, "--query", query)
    assert said.code == 0, said.err
    with duckdb.connect() as other:
        ((total, ids),) = other.execute(f"SELECT s, u FROM '{file}'").fetchall()
    assert total == 10
    assert [str(one) for one in ids] == ["00000000-0000-0000-0000-000000000001"]
