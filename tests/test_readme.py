"""What the README shows works when pasted, and shows what the README says."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


def test_the_tour_runs_as_it_stands_and_shows_what_it_promises(capsys: pytest.CaptureFixture[str]) -> None:
    pieces = re.findall(r"^```python\n(.*?)^```", README.read_text("utf-8"), re.M | re.S)
    assert len(pieces) >= 6
    names: dict[str, object] = {}
    kept = 0
    for piece in pieces:
        lines = piece.splitlines()
        for statement in ast.parse(piece).body:
            _run(statement, names)
            shown = capsys.readouterr().out.rstrip().splitlines()
            promised = _promised(lines[statement.end_lineno :])
            assert _matches(promised, shown), "\n".join([ast.unparse(statement), "shows", *shown])
            kept += bool(promised)
    assert kept >= 5


def _run(statement: ast.stmt, names: dict[str, object]) -> None:
    """As a person at the prompt sees it: the value of an expression is printed."""
    if isinstance(statement, ast.Expr):
        value = eval(compile(ast.Expression(statement.value), str(README), "eval"), names)
        if value is not None:
            print(repr(value))
    else:
        exec(compile(ast.Module([statement], []), str(README), "exec"), names)


def _promised(lines: list[str]) -> list[str]:
    """The comment lines right below a statement."""
    found = []
    for line in lines:
        if not line.startswith("#"):
            break
        found.append(line.removeprefix("#").removeprefix(" "))
    return found


def _matches(promised: list[str], shown: list[str]) -> bool:
    """… at the end stands for whatever follows."""
    if promised and promised[-1].strip() == "…":
        return shown[: len(promised) - 1] == promised[:-1]
    return not promised or shown[: len(promised)] == promised


@pytest.mark.parametrize(
    ("promised", "shown", "matches"),
    [
        ([], ["anything"], True),
        (["a"], ["a", "1 row"], True),
        (["a"], ["b"], False),
        (["a", "…"], ["a", "b"], True),
        (["a", "…"], ["c", "b"], False),
    ],
)
def test_promises_are_compared(promised: list[str], shown: list[str], matches: bool) -> None:
    assert _matches(promised, shown) is matches
