"""The history of the shell.

The last statements are kept in a file that only its user can read. Shells that are open at the
same time append to it one after the other.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

KEPT = 1000
"""Lines that are kept."""


def history_file() -> Path:
    """The file, in the user's directory for program state."""
    home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(home) / "everview" / "sql_history"


class History:
    """The lines that readline offers again."""

    def __init__(self, readline: ModuleType, file: Path, kept: int = KEPT) -> None:
        self._readline = readline
        self._file = file
        self._kept = kept
        self._added = 0
        readline.set_auto_history(False)
        readline.clear_history()
        if file.is_file():
            readline.read_history_file(file)

    def add(self, lines: Sequence[str]) -> None:
        """Remember lines, unless the last one is the same."""
        last = self._readline.get_current_history_length()
        if len(lines) == 1 and last and self._readline.get_history_item(last) == lines[0]:
            return
        for line in lines:
            self._readline.add_history(line)
        self._added += len(lines)

    def save(self) -> None:
        """Append new lines to the file, and cut the file to its last lines."""
        if not self._added:
            return
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file.touch(mode=0o600)
        self._readline.append_history_file(self._added, self._file)
        self._added = 0
        self._readline.clear_history()
        self._readline.read_history_file(self._file)
        if self._readline.get_current_history_length() > self._kept:
            self._cut(self._file.resolve())

    def _cut(self, file: Path) -> None:
        """Keep only the last lines, in a new file that replaces the old one."""
        descriptor, partial = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
        os.close(descriptor)
        try:
            self._readline.set_history_length(self._kept)
            self._readline.write_history_file(partial)
            Path(partial).replace(file)
        except BaseException:
            Path(partial).unlink(missing_ok=True)
            raise
