"""A view's changes as they commit: whole epochs, and where to go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import everview
from tests.cli.conftest import Call
from tests.cli.served import PATIENCE, ROOT


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def db(store: Path) -> Iterator[everview.Database]:
    with everview.open(store, durability="none") as found:
        found.sql("""
            CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INTEGER, amount DECIMAL(10, 2));
            CREATE MATERIALIZED VIEW totals AS SELECT customer, sum(amount) AS total FROM orders GROUP BY customer;
            INSERT INTO orders VALUES (1, 10, 5), (2, NULL, 7);
            FLUSH
        """)
        yield found


def token_in(text: str) -> str:
    return text.split("go on with --since ")[1].split()[0]


def test_all_rows_and_then_changes(call: Call, db: everview.Database, store: Path) -> None:
    said = call("tail", store, "totals", "--timeout", "0")
    assert sorted(said.out.splitlines()) == ["+ customer 10, total 5.00", "+ customer NULL, total 7.00"]
    token = token_in(said.err)
    db.sql("INSERT INTO orders VALUES (3, 10, 1.25); FLUSH")
    db.sql("DELETE FROM orders WHERE id = 2; FLUSH")
    said = call("tail", store, "totals", "--since", token, "--timeout", "0")
    assert said.out.splitlines() == [
        "− customer 10, total 5.00",
        "+ customer 10, total 6.25",
        "− customer NULL, total 7.00",
    ]
    assert call("tail", store, "totals", "--since", token_in(said.err), "--timeout", "0").out == ""
    said = call("tail", store, "totals", "--from-now", "--timeout", "0")
    assert said.out == "" and "go on with --since" in said.err


def test_json_has_a_token_after_every_epoch(call: Call, db: everview.Database, store: Path) -> None:
    said = call("tail", store, "totals", "--json", "--timeout", "0")
    *rows, last = map(json.loads, said.out.splitlines())
    assert sorted(row["row"]["total"] for row in rows) == ["5.00", "7.00"] and {row["weight"] for row in rows} == {1}
    assert said.err == "" and set(last) == {"token"}
    said = call("tail", store, "totals", "--json", "--timeout", "0", "--since", last["token"])
    assert [json.loads(line) for line in said.out.splitlines()] == [last]


def test_an_epoch_that_the_limit_cuts_comes_again(call: Call, db: everview.Database, store: Path) -> None:
    token = token_in(call("tail", store, "totals", "--from-now", "--timeout", "0").err)
    db.sql("UPDATE orders SET amount = amount + 1; FLUSH")
    said = call("tail", store, "totals", "--since", token, "--limit", "3")
    assert len(said.out.splitlines()) == 3 and token_in(said.err) == token
    said = call("tail", store, "totals", "--since", token, "--limit", "4")
    assert len(said.out.splitlines()) == 4 and token_in(said.err) != token
    said = call("tail", store, "totals", "--limit", "1")
    assert len(said.out.splitlines()) == 1 and said.err == ""


def test_changes_come_as_they_commit_until_a_signal(db: everview.Database, store: Path) -> None:
    tail = subprocess.Popen(
        [sys.executable, "-m", "everview.cli", "tail", str(store), "totals", "--json"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert tail.stdout is not None
        begun = [json.loads(tail.stdout.readline()) for _ in range(3)]
        assert "token" in begun[-1]
        db.sql("DELETE FROM orders; FLUSH")
        went = [json.loads(tail.stdout.readline()) for _ in range(3)]
        assert [one.get("weight") for one in went] == [-1, -1, None]
        tail.send_signal(signal.SIGINT)
        assert tail.wait(PATIENCE) == 0 and tail.stdout.read() == ""
    finally:
        tail.kill()
        tail.wait(PATIENCE)
        if tail.stdout is not None:
            tail.stdout.close()


def test_what_cannot_be_followed(call: Call, db: everview.Database, store: Path) -> None:
    for words, message in ((("total",), "total"), (("totals", "--since", "x"), "'x' is not where")):
        said = call("tail", store, *words)
        assert said.code == 1 and message in said.err and "Traceback" not in said.err
    db.sql("CREATE OR REPLACE MATERIALIZED VIEW totals AS SELECT customer, 1 AS total FROM orders; FLUSH")
    said = call("tail", store, "totals", "--since", "1:0000000000000000")
    assert said.code == 1 and "leave out --since" in said.err
    said = call("tail", store, "totals", "--since", "1:00", "--from-now")
    assert said.code == 2 and "Usage: everview tail" in said.err
