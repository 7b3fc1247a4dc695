"""``everview verify`` and ``everview rebuild``: what they print, and how they end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import everview
from everview.cli import app
from tests.check.damage import Damage, damage_by, held, plan_of

SHOP = """
    CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INTEGER, amount DECIMAL(10, 2));
    CREATE MATERIALIZED VIEW totals AS SELECT customer, sum(amount) AS total FROM orders GROUP BY customer;
    CREATE MATERIALIZED VIEW many AS SELECT id FROM orders WHERE amount > 5;
    INSERT INTO orders VALUES (1, 10, 5.50), (2, 20, 7); FLUSH;
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with everview.open(tmp_path / "store", durability="none") as db:
        db.sql(SHOP)
    return tmp_path / "store"


def called(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    capsys.readouterr()
    try:
        code = app.app([str(word) for word in words], standalone_mode=False)
    except SystemExit as ended:
        code = ended.code
    said = capsys.readouterr()
    return code or 0, said.out, said.err


def spoil(store: Path) -> None:
    """The first row of totals goes, the second shows another total."""
    with everview.open(store, durability="none") as db:
        _, bound = plan_of(db)
        state = bound.plan.step(bound.plan.view("totals").step).states[0].fingerprint
        (first, _), (second, _) = sorted(held(db)[state].items())
        db.sql("UPDATE orders SET amount = 8 WHERE id = 2; FLUSH")
        other = held(db)[state][second]
        db.sql("UPDATE orders SET amount = 7 WHERE id = 2; FLUSH")
        damage_by(db, {state: Damage(missing={first: b""}, changed={second: other})})


def test_what_is_wrong_is_named_and_repaired(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = called(capsys, "verify", store)
    assert code == 0 and out.count("right at epoch") == 2
    spoil(store)
    code, out, _ = called(capsys, "verify", store)
    assert code == 1
    assert "missing customer=10: total=5.50" in out
    assert "differing customer=20: shows total=8.00, should be total=7.00" in out
    assert out.endswith("to repair: everview rebuild … totals\n")
    code, out, _ = called(capsys, "verify", store, "totals", "--json", "--state", "--samples", 0)
    printed = json.loads(out)
    assert code == 1 and not printed["right"]
    assert [view["name"] for view in printed["views"] if view["kind"] == "view"] == ["totals"]
    assert (
        printed["views"][0]["missing"] == printed["views"][0]["differing"] == 1 and printed["views"][0]["first"] == []
    )
    assert called(capsys, "verify", store, "many")[0] == 0
    assert called(capsys, "rebuild", store, "--wrong")[:2] == (0, "rebuilt: totals\n")
    assert called(capsys, "rebuild", store, "--wrong")[:2] == (0, "nothing is wrong\n")
    assert called(capsys, "rebuild", store, "--all")[:2] == (0, "rebuilt: all views\n")
    assert called(capsys, "rebuild", store, "many")[:2] == (0, "rebuilt: many\n")
    assert called(capsys, "verify", store, "--state")[0] == 0


def test_what_cannot_be_judged(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with everview.open(store) as db:
        db.sql("CREATE TABLE texts (id INTEGER PRIMARY KEY, s VARCHAR); INSERT INTO texts VALUES (1, '9'), (2, 'x')")
        db.sql("CREATE MATERIALIZED VIEW most AS SELECT CAST(string_agg(s, '') AS INTEGER) AS n FROM texts")
    code, out, _ = called(capsys, "verify", store)
    assert code == 3 and "view most: undecided" in out and "its query has no answer over these rows" in out
