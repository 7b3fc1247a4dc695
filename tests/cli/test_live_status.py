"""The live status: in a terminal that is as before when it ends, and its screen by itself."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

import everview
from everview.change.frontier import Frontier
from everview.cli.live import _count, screen
from everview.client.status import BuildState, GroupState, Status, ViewState
from tests.cli.conftest import Call
from tests.cli.terminal import CTRL_C, terminal


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop"
    with everview.open(path, durability="none") as db:
        db.sql("""
            CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INTEGER, amount INTEGER);
            CREATE MATERIALIZED VIEW totals AS SELECT customer, sum(amount) AS total FROM orders GROUP BY customer;
            CREATE MATERIALIZED VIEW shares AS SELECT id, 100 / amount AS share FROM orders WHERE amount <> 3;
        """)
    return path


def test_it_follows_the_store_and_leaves_the_terminal_clean(shop: Path) -> None:
    with terminal("status", shop, "--watch", lines=30, columns=120) as shown, everview.open(shop) as db:
        shown.until("is maintained by nobody at the moment")
        listed = shown.until("Ctrl-C ends this")
        assert "totals" in listed and "shares" in listed and "up to date" in listed
        db.sql("INSERT INTO orders VALUES (1, 10, 5), (2, 10, 7), (3, 20, 1)")
        shown.until("s behind")
        with db.maintain(spark=False):
            shown.until("is maintained by process ")
        shown.until("up to date")
        shown.type(CTRL_C)
        assert shown.end() == 0 and shown.is_as_before()
        assert "\x1b[?1049l" in shown.raw[-40:], "the screen before it is back"
        assert "Traceback" not in shown.raw and "\x1b[?25h" in shown.raw[-40:], "the cursor is shown again"


def test_it_needs_a_terminal(call: Call, shop: Path) -> None:
    for words in (("--watch",), ("--watch", "--json")):
        said = call("status", shop, *words)
        assert said.code == 2 and "Usage: everview status" in said.err


# ------------------------------------------------------------------ the screen


def group(views: tuple[ViewState, ...], lag: int = 0) -> GroupState:
    return GroupState(
        "main",
        "continuous",
        1234,
        Frontier(),
        time.time(),
        lag,
        2.5 if lag else 0.0,
        1235 if lag else None,
        views,
        throughput=1500.4,
        arrival=2000,
        max_throughput=90_000,
        staleness=0.25,
        predicted=0.125,
    )


@pytest.fixture
def quiet(shop: Path) -> Iterator[Status]:
    with everview.open(shop) as db:
        yield db.status()


def drawn(found: Status, height: int, width: int = 140) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, height=height).print(screen(found, "shop", width, height))
    return out.getvalue().splitlines()


def test_figures_of_groups_views_and_builds(quiet: Status) -> None:
    views = (ViewState("v", "view", "live", 7, 100, 20, 3, 12.4), ViewState("w", "view", "building", 0))
    build = BuildState("main", ("w",), "takes in orders", (1, 3), 42)
    found = Status((group(views, 5000),), (build,), (), Frontier(), 9, "process 17", quiet.log)
    lines = drawn(found, 40)
    text = "\n".join(lines)
    assert lines[0].startswith("shop is maintained by process 17")
    assert "1,234…" in text and "9 log entries cannot be read" in text
    row = next(line for line in lines if line.startswith("main"))
    assert row.split()[2:] == ["5,000", "2.5", "s", "1,500/s", "2,000/s", "90,000/s", "0.25", "s", "0.12", "s"]
    assert next(line for line in lines if line.startswith("w for main")).split()[-1] == "42"
    assert "takes in orders" in text and "1 of 3" in text
    rows = [line.split() for line in lines if line.split()[1:2] == ["view"]]
    assert [row[0] for row in rows] == ["w", "v"], "what is being built comes first"
    assert rows[0][3:6] == ["building", "not", "yet"]
    assert rows[1][3:] == ["live", "2.5", "s", "behind", "12/s", "100", "20", "3", "7"]
    narrow = "\n".join(drawn(found, 40, 80))
    assert "90,000/s" in narrow and "came" not in narrow and "…" not in narrow.replace("1,234…", "")


def test_views_that_do_not_fit_are_counted(quiet: Status) -> None:
    views = tuple(ViewState(f"v{at}", "view", "live", 0, rate=float(at)) for at in range(100))
    found = Status((group(views),), (), (), Frontier(), 0, None, quiet.log)
    for height in (12, 24):
        lines = drawn(found, height)
        assert len(lines) <= height
        shown = sum(line.startswith("v") and "live" in line for line in lines)
        assert f"… {100 - shown} more" in "\n".join(lines) and any(line.startswith("v99 ") for line in lines)


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0"), (99_999, "99,999"), (123_456, "123 k"), (999_600, "1,000 k"), (1_234_567, "1.23 M"), (4e9, "4 G")],
)
def test_numbers_in_little_room(number: float, shown: str) -> None:
    assert _count(number) == shown
