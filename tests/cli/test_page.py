"""The examples of the page on the command line, in the part on files."""

from __future__ import annotations

import gzip
import re
import shlex
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import everview
from tests.cli.conftest import Call
from tests.cli.served import ROOT


def test_load_and_dump_as_the_page_shows_them(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "cli.md").read_text("utf-8").partition("## everview load and dump")[2]
    block = re.search(r"```sh\n(.*?)```", page, re.S)
    assert block is not None
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"id": [1, 2], "customer": [7, 8], "amount": [120.5, 3.0]}), "orders.parquet")
    Path("more.csv").write_text("id,amount\n3,200\n", "utf-8")
    with gzip.open("latest.jsonl.gz", "wt", encoding="utf-8") as latest:
        latest.write('{"id": 4, "customer": 7, "amount": 1}\n')
    for part in (5, 6):
        Path(f"part-{part}.csv").write_text(f"id,amount\n{part},0\n", "utf-8")
    first, *others = block[1].splitlines()
    assert call(*shlex.split(first)[1:]).code == 0
    with everview.open("shop") as db:
        db.sql("CREATE MATERIALIZED VIEW totals AS SELECT customer, sum(amount) AS total FROM orders GROUP BY customer")
        for line in others:
            ended = call(*shlex.split(line)[1:])
            assert ended.code == 0, (line, ended.err)
        assert len(ended.out.splitlines()) == 6 == db.table("orders").count()
    assert Path("large.csv").read_text("utf-8") == "id,customer,amount\n1,7,120.5\n3,,200.0\n"
    assert pq.read_table("totals.parquet").column_names == ["customer", "total"]
