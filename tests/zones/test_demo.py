"""The demonstration: it ends well, it can be ended, and it fails when a row differs."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from everview.cli import demo
from everview.cli.recompute import differences, recomputed


def test_the_demo_ends_with_a_view_that_is_right(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo.run(str(tmp_path / "store"), 60, 400, spark) == 0
    shown = capsys.readouterr().out
    assert ": 0 differences" in shown and "0 operations behind" in shown and "customer None" in shown


def test_a_signal_ends_the_writing_and_the_view_is_still_compared(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(demo, "show", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    assert demo.run(str(tmp_path / "store"), 600, None, spark) == 0
    assert "0 differences" in capsys.readouterr().out
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_row_that_differs_fails_the_demo(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "recomputed", lambda *asked: recomputed(*asked).slice(1))
    assert demo.run(str(tmp_path / "store"), 60, 5, spark) == 1
    assert "1 differences\n  wrong: (" in capsys.readouterr().out


def test_differences_name_what_is_missing_and_what_is_wrong() -> None:
    expected = pa.table({"customer": [1, 2, None], "orders": [1, 1, 4]})
    shown = pa.table({"customer": [1, 2, None], "orders": [1, 3, 4]})
    assert differences(expected, expected) == []
    assert differences(expected, shown) == ["missing: (2, 1)", "wrong: (2, 3)"]
