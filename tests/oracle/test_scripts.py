"""Scripts that are kept: what views show after every epoch, and that it is what their queries say."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

import pytest

from tests.oracle.maintained import bag
from tests.oracle.played import Played
from tests.oracle.script import Script
from tests.scripts.golden import run_script, scripts


class ScriptPrinter:
    """Plays the inputs of one script, and prints the views after each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.script = Script((), (), ())
        self.played: Played | None = None

    def __call__(self, text: str) -> str:
        before = len(self.script.epochs)
        self.script = self.script.followed_by(text)
        if self.played is None:
            self.played = Played(self.path, self.script)
        assert (self.played.script.views, self.played.script.tables) == (self.script.views, self.script.tables)
        for epoch in self.script.epochs[before:]:
            self.played.epoch(epoch)
        return "\n".join(self._shown(self.played))

    def _shown(self, played: Played) -> list[str]:
        lines: list[str] = []
        for view in self.script.views:
            lines.append(view.name)
            lines += sorted(f"  {row}" for row in bag(played.maintained.view(view.name)).elements())
        for count, unvalued in played.maintained.quarantine():
            lines.append(f"{count} × {unvalued.what} {dict(unvalued.values)} of {', '.join(unvalued.views)}")
            lines.append(f"  {unvalued.reason}")
        return lines


@pytest.mark.parametrize("path", scripts("oracle"), ids=lambda path: path.stem)
def test_script(path: Path) -> None:
    with tempfile.TemporaryDirectory() as directory:
        printer = ScriptPrinter(Path(directory) / "store")
        with contextlib.ExitStack() as stack:
            stack.callback(lambda: printer.played and printer.played.close())
            run_script(path, printer)
