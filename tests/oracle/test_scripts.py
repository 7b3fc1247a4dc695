"""Scripts that are kept: what views show after every epoch, and that it is what their queries say."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pytest

from tests.oracle import places, trials
from tests.oracle.maintained import bag
from tests.oracle.played import Played
from tests.oracle.script import Epoch, Script
from tests.scripts.golden import read_script, run_script, scripts

Shown = dict[str, Counter[tuple[object, ...]]]


class ScriptPrinter:
    """Plays the inputs of one script, and prints after each how many changes its writes are, and the
    rows of the views: + before those that came, - before those that went."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.script = Script((), (), ())
        self.played: Played | None = None
        self.before: Shown = {}

    def __call__(self, text: str) -> str:
        before = len(self.script.epochs)
        self.script = self.script.followed_by(text)
        if self.played is None:
            self.played = Played(self.path, self.script)
        assert (self.played.script.views, self.played.script.tables) == (self.script.views, self.script.tables)
        lines: list[str] = []
        for epoch in self.script.epochs[before:]:
            lines += self._taken(epoch, self.played)
        return "\n".join([*lines, *self._shown(self.played), *self._quarantined(self.played)])

    def _taken(self, epoch: Epoch, played: Played) -> list[str]:
        counts = played.epoch(epoch).counts
        written = Counter(write.table for write in epoch.writes)
        steps = {use.name: use.step for use in played.maintained.plan.tables}
        return [
            f"{name}: {_many(number, 'write')}, {_many(counts.get(steps[name], 0), 'change')}"
            for name, number in written.items()
            if name in steps
        ]

    def _shown(self, played: Played) -> list[str]:
        lines: list[str] = []
        for view in self.script.views:
            lines.append(view.name)
            now = bag(played.maintained.view(view.name))
            before = self.before.get(view.name, Counter())
            marked = [(row, " ") for row in (now & before).elements()]
            marked += [(row, "+") for row in (now - before).elements()]
            marked += [(row, "-") for row in (before - now).elements()]
            lines += [f"  {mark} {row}" for row, mark in sorted(marked, key=str)]
            self.before[view.name] = now
        return lines

    def _quarantined(self, played: Played) -> list[str]:
        lines: list[str] = []
        for count, said in played.maintained.quarantine():
            lines.append(
                f"quarantined for {', '.join(said.views)}: {said.what} {dict(said.values)}, {_many(count, 'time')}"
            )
            lines.append(f"  {said.reason}")
        return lines


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


@pytest.mark.parametrize("path", scripts("oracle"), ids=lambda path: path.stem)
def test_script(path: Path) -> None:
    with tempfile.TemporaryDirectory() as directory:
        printer = ScriptPrinter(Path(directory) / "store")
        try:
            run_script(path, printer)
        finally:
            if printer.played is not None:
                printer.played.close()


def whole(path: Path) -> Script:
    cases, _ = read_script(path.read_text(encoding="utf-8"))
    return Script.parse("\n".join(case.input for case in cases))


@pytest.mark.parametrize("path", scripts("oracle"), ids=lambda path: path.stem)
def test_script_with_mishaps(path: Path) -> None:
    trials.play(whole(path))


@pytest.mark.parametrize("path", scripts("oracle"), ids=lambda path: path.stem)
def test_script_in_several_places(path: Path) -> None:
    places.play(whole(path))
