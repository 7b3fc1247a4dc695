"""``everview explain`` and ``everview bench``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import everview
from bench.report import registry
from everview.cli.commands import bench
from tests.cli.conftest import Call


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with everview.open(tmp_path / "store", durability="none") as db:
        db.sql("""
            CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INTEGER);
            CREATE MATERIALIZED VIEW counts AS SELECT customer, count(*) AS n FROM orders GROUP BY customer;
            CREATE VIEW some AS SELECT id FROM orders WHERE id > 5;
            CREATE INDEX by_customer ON orders (customer);
        """)
    return tmp_path / "store"


def test_queries_and_names_are_explained(call: Call, store: Path, tmp_path: Path) -> None:
    said = call("explain", store, "SELECT customer, max(id) FROM orders GROUP BY customer")
    assert said.code == 0 and "orders" in said.out and said.err == ""
    for name in ("counts", "some", "by_customer", "COUNTS"):
        assert "orders" in call("explain", store, name).out
    assert isinstance(json.loads(call("explain", store, "counts", "--format", "json").out), dict)
    file = tmp_path / "plan.svg"
    said = call("explain", store, "counts", "--format", "svg", "-o", file)
    assert (said.code, said.out) == (0, "") and file.read_text("utf-8").startswith("<svg")


@pytest.mark.parametrize(
    ("what", "message"),
    [("orders", "orders is a table"), ("count", "there is no view count"), ("SELECT x FROM orders", "no column x")],
)
def test_what_cannot_be_explained(call: Call, store: Path, what: str, message: str) -> None:
    said = call("explain", store, what)
    assert said.code == 1 and message in said.err and "Traceback" not in said.err


def test_benchmarks_of_the_checkout(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    known = call("bench").out.split()
    assert {"operators", "pipeline", "store", "report"} <= set(known) and "measure" not in known
    assert set(registry.known()) <= set(known) and len(known) == len(set(known))
    said = call("bench", "operators", "--", "--help")
    assert said.code == 0 and "usage" in said.out
    assert call("bench", "operators", "--", "--no-such-option").code == 2
    said = call("bench", next(iter(registry.known())), "--", "--help")
    assert said.code == 0 and "python -m bench" in said.out
    said = call("bench", "nothing")
    assert said.code == 2 and "there is no benchmark nothing" in said.err
    monkeypatch.setattr(bench, "_checkout", lambda: None)
    said = call("bench", "operators")
    assert said.code == 1 and "part of Everview's sources" in said.err
