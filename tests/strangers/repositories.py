"""Repositories that are read where they lie: a git directory without a work tree, or a plain directory.

A :class:`Repository` is the list of its files and their text, and nothing of it is copied.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

LARGEST = 20 * 1024 * 1024
"""Files of more bytes are not read."""


class NotARepositoryError(Exception):
    """A directory that is neither there nor readable by git."""


@dataclass(frozen=True)
class Repository:
    """Files by path, at the newest commit where it is a git directory."""

    place: Path
    _texts: dict[str, str] = field(default_factory=dict, compare=False)

    @cached_property
    def _bare(self) -> bool:
        return (self.place / "objects").is_dir() and (self.place / "HEAD").is_file()

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The size of every file, by path."""
        if not self.place.is_dir():
            raise NotARepositoryError(f"{self.place} is no directory")
        if not self._bare:
            files = (path for path in self.place.rglob("*") if path.is_file() and ".git" not in path.parts)
            return {str(path.relative_to(self.place)): path.stat().st_size for path in files}
        sizes: dict[str, int] = {}
        for entry in self._git("ls-tree", "-r", "--long", "-z", "HEAD").split("\0"):
            described, _, path = entry.partition("\t")
            words = described.split()
            if len(words) == 4 and words[1] == "blob" and words[3].isdigit():
                sizes[path] = int(words[3])
        return sizes

    def files(self, pattern: str) -> list[str]:
        """Paths that match a regular expression as a whole, sorted, without those that are too large."""
        wanted = re.compile(pattern)
        return sorted(path for path, size in self.sizes.items() if size <= LARGEST and wanted.fullmatch(path))

    def read(self, path: str) -> str:
        """The text of a file; what is not UTF-8 in it is replaced."""
        if path not in self._texts:
            if self._bare:
                self._texts[path] = self._git("show", f"HEAD:{path}")
            else:
                self._texts[path] = (self.place / path).read_text(encoding="utf-8", errors="replace")
        return self._texts[path]

    def _git(self, *words: str) -> str:
        done = subprocess.run(["git", f"--git-dir={self.place}", *words], capture_output=True, check=False)
        if done.returncode:
            raise NotARepositoryError(f"{self.place}: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout.decode("utf-8", errors="replace")
