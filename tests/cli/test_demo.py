"""The demonstration: it ends well, it can be ended, it leaves no process, and it fails when a row is wrong."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import everview
from everview.check.report import Report, Verdict
from everview.cli.app import app
from everview.cli.demo import shop
from everview.cli.demo.children import Child, members
from everview.cli.demo.ending import Ending, Interrupted
from everview.cli.demo.outcome import Crash, DemoOutcome, proven, summary, verified
from everview.cli.demo.screen import Look, Screen
from everview.cli.demo.story import Story
from everview.errors import EverviewError
from tests.check.damage import Damage, damage_by, held, plan_of

ROOT = Path(__file__).parents[2]
PATIENCE = 900.0
MARK = "EVERVIEW_TEST_MARK"


class Demo:
    """``everview demo`` as a process whose descendants can be found, whatever process is their parent."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._mark = uuid.uuid4().hex
        path = os.pathsep.join(filter(None, sys.path))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "everview.cli", "demo", *options],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(folder), MARK: self._mark},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def until(self, text: str) -> None:
        assert self.process.stdout is not None
        said = []
        for line in self.process.stdout:
            said.append(line)
            if text in line:
                return
        raise AssertionError("".join(said))

    def end(self) -> tuple[int, str]:
        said, _ = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, said

    def left(self) -> list[str]:
        """The processes that carry its mark."""
        found = []
        for environment in Path("/proc").glob("[0-9]*/environ"):
            try:
                if f"{MARK}={self._mark}".encode() in environment.read_bytes().split(b"\0"):
                    found.append(environment.with_name("cmdline").read_bytes().decode("utf-8", "replace"))
            except OSError:
                continue
        return found


def test_the_pipeline_is_killed_and_every_row_is_right(tmp_path: Path) -> None:
    demo = Demo(tmp_path, "--seconds", "0", "--path", str(tmp_path / "shop"))
    code, said = demo.end()
    assert code == 0, said
    assert "SIGKILL for the pipeline" in said and "first commit" in said
    assert "5 views recomputed" in said and ", 0 differences\nevery row is right" in said
    assert f"status {tmp_path / 'shop' / 'store'}" in said
    assert demo.left() == []
    with everview.open(tmp_path / "shop" / "store", create=False) as db:
        assert db.store.views.begun("main") is None, "the second pipeline was ended between two epochs"
        assert db.status().groups[0].lag == 0


def test_ctrl_c_ends_all_processes_and_removes_what_is_temporary(tmp_path: Path) -> None:
    demo = Demo(tmp_path)
    demo.until("Spark starts")
    demo.process.send_signal(signal.SIGINT)
    code, said = demo.end()
    assert code == 128 + signal.SIGINT, said
    assert "all processes are gone" in said
    assert demo.left() == []
    assert not list(tmp_path.glob("everview-demo-*"))


def test_a_directory_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("dear all")
    found = CliRunner().invoke(app, ["demo", "--path", str(tmp_path)])
    said = " ".join(found.output.replace("│", " ").split())  # a long path makes several lines of it
    assert found.exit_code == 2 and "is not empty" in said
    assert [one.name for one in tmp_path.iterdir()] == ["letter"]


# ------------------------------------------------------------------ the verdict


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[everview.Database]:
    """A small shop with its views, and without Spark."""
    monkeypatch.setattr(shop, "ORDERS", 30)
    monkeypatch.setattr(shop, "LOADED", 15)
    with everview.open(tmp_path / "store") as db:
        db.sql(shop.TABLES)
        shop.Clerk(db, 1).fill()
        db.sql(";".join(view.statement for view in shop.VIEWS))
        clerk = shop.Clerk(db, 2, 30)
        for _ in range(40):
            clerk.work()
        db.flush()
        yield db


def outcome(report: Report) -> DemoOutcome:
    return DemoOutcome(1.0, 1, 1, Crash(1, True, 1.0, 1.0, 1), snapshots=3, disagreed=0, report=report)


def test_one_damaged_row_in_any_view_fails_the_demo(
    filled: everview.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = outcome(verified(filled))
    assert good.right and {view.name for view in good.report.views} == {view.name for view in shop.VIEWS}
    _, bound = plan_of(filled)
    rows = held(filled)
    states = {view.name: bound.plan.step(view.step).states[0].fingerprint for view in bound.plan.views}
    for name, state in states.items():
        (key, value), *_ = rows[state].items()
        damage_by(filled, {state: Damage(missing={key: value})})
        bad = outcome(verified(filled))
        assert not bad.right and bad.report.view(name).missing == 1
        assert any("missing" in line and name in line for line in summary(bad))
        filled.rebuild(name)
    assert outcome(verified(filled)).right
    for found, code in ((good, 0), (bad, 1)):
        monkeypatch.setattr(Story, "play", lambda _, found=found: found)
        ended = CliRunner().invoke(app, ["demo", "--path", str(tmp_path / "new")])
        assert ended.exit_code == code, ended.output
        assert ("every row is right" in ended.output) is (code == 0)
        assert ("THIS IS WRONG" in ended.output) is (code == 1)


def test_what_is_not_proven_is_not_right(filled: everview.Database) -> None:
    found = verified(filled)
    assert proven(found) and not proven(Report(()))
    doubtful = replace(found.views[0], verdict=Verdict.UNDECIDED, reason="nobody knows")
    assert not proven(Report((doubtful, *found.views[1:])))
    assert not replace(outcome(found), disagreed=1).right


def test_the_views_of_the_shop_agree_after_every_batch(filled: everview.Database) -> None:
    clerk = shop.Clerk(filled, 3, 30)
    for _ in range(20):
        clerk.work()
        assert filled.sql(shop.AGREEMENT, fresh=True).rows() == [(True,)]
    assert filled.sql(shop.AGREEMENT.replace("sum(sold)", "sum(sold) + 1")).rows() == [(False,)]


# ------------------------------------------------------------------ processes

PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
print(child.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Child:
    """A process that has started another, which would outlive it."""
    (tmp_path / "parent_of_one.py").write_text(PARENT)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    child = Child("parent", tmp_path / "log", "parent_of_one")
    while not (tmp_path / "log").read_text().endswith("\n"):
        child.check()
    assert len(members(child.id)) == 2
    return child


@pytest.mark.parametrize("end", ["crash", "kill"])
def test_what_a_child_has_started_goes_with_it(parent: Child, end: str) -> None:
    parent.crash(patience=0) if end == "crash" else parent.kill()
    assert members(parent.id) == []


def test_a_child_ends_when_its_input_ends(parent: Child) -> None:
    parent.finish(patience=1)
    assert members(parent.id) == []


def test_a_child_that_fails_says_why(tmp_path: Path) -> None:
    child = Child("writer", tmp_path / "log", "everview.cli.demo.writer", str(tmp_path / "none"), "1")
    with pytest.raises(EverviewError, match=r"(?s)the writer has ended by itself with 1\n.*none") as error:
        child.finish()
    assert str(tmp_path / "log") in (error.value.hint or "")
    with pytest.raises(EverviewError, match="ended by itself"):
        child.check()


def test_a_signal_waits_until_a_process_is_known() -> None:
    reached = []
    with Ending() as ending:
        with pytest.raises(Interrupted), ending.later():
            os.kill(os.getpid(), signal.SIGTERM)
            reached.append("the end of the block")
        os.kill(os.getpid(), signal.SIGTERM)
    assert reached
    with Ending(), pytest.raises(Interrupted, match="SIGHUP"):
        os.kill(os.getpid(), signal.SIGHUP)


# ------------------------------------------------------------------ what is shown


def test_a_look_in_a_line_and_in_a_terminal(
    filled: everview.Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("everview.cli.demo.screen.EVERY", math.inf)
    rows = {view.name: filled.view(view.name).count() for view in shop.VIEWS}
    filled.table("orders").put({"id": 1, "customer": 2})
    (group,) = filled.status().groups
    look = Look(7.0, "the shop is open", 120, group, rows, snapshots=3, disagreed=1)
    for terminal in (False, True):
        monkeypatch.setattr(sys.stdout, "isatty", lambda terminal=terminal: terminal)
        with Screen() as screen:
            screen.say("it begins")
            screen.show(look)
            screen.show(look)
        shown = capsys.readouterr().out
        assert "it begins" in shown and "the shop is open" in shown and "1 operations" in shown
        assert all(view.name in shown and f"{rows[view.name]:,}" in shown for view in shop.VIEWS)
        assert ("2 of 3" in shown) is terminal, "the table shows more than a line"
        assert (shown.count("120 ") == 1) is not terminal, "lines come every few seconds"
