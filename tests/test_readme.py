"""What the README shows works when pasted."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


def test_the_tour_runs_as_it_stands(capsys: pytest.CaptureFixture[str]) -> None:
    pieces = re.findall(r"^```python\n(.*?)^```", README.read_text("utf-8"), re.M | re.S)
    assert len(pieces) == 3
    names: dict[str, object] = {}
    for piece in pieces:
        exec(compile(piece, str(README), "exec"), names)
    shown = capsys.readouterr().out
    promised = re.findall(r"^# (table orders, .*|  why: .*)$", pieces[1], re.M)
    assert len(promised) == 2
    for line in promised:
        assert line in shown
    promise = re.search(r"^# (\{'id': 1.*\})$", pieces[0], re.M)
    assert promise is not None
    assert "__old_amount" in shown


def test_the_row_the_tour_promises_is_the_row_it_gets() -> None:
    piece = re.findall(r"^```python\n(.*?)^```", README.read_text("utf-8"), re.M | re.S)[0]
    promise = re.search(r"^orders\.get\(1\)\n# (\{'id': 1.*\})$", piece, re.M)
    assert promise is not None
    names: dict[str, object] = {}
    exec(piece.partition("orders.get(1)")[0] + "found = repr(orders.get(1))\ndb.close()", names)
    assert names["found"] == promise[1]
