"""``everview`` called in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import pytest

from everview.cli import app


@dataclass(frozen=True)
class Said:
    """What a command that came to its end printed."""

    code: int
    out: str
    err: str


Call: TypeAlias = Callable[..., Said]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Call:
    """Runs ``everview`` with these words."""

    def called(*words: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["everview", *map(str, words)])
        capfd.readouterr()
        code: object = 0
        try:
            app.main()
        except SystemExit as ended:
            code = ended.code
        sys.stdout.flush()
        said = capfd.readouterr()
        return Said(code if isinstance(code, int) else 0, said.out, said.err)

    return called
