"""What was found, and where and of what: one JSON file for each experiment.

A file says enough to judge and to repeat its figures, and rendering needs nothing else.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import everview
from bench.report.experiment import Found, Row, Value
from bench.report.registry import ROOT

PACKAGES = ("pyspark", "pyarrow", "duckdb", "lmdb", "sqlglot", "numpy")
RENAMED = {"DuckDB, anew every 10,000": "DuckDB, again every 10,000"}
"""Names in results that were stored before, and what they are called now."""


@dataclass(frozen=True)
class Result:
    """One run of one experiment."""

    experiment: str
    machine: dict[str, Value]
    versions: dict[str, str]
    seed: int
    quick: bool
    began: str
    """In UTC."""
    seconds: float
    load: float
    """The load average of the minute before."""
    found: tuple[Found, ...]
    failed: str = ""
    """Why there are not all rows; nothing where there are."""

    @property
    def right(self) -> list[Row]:
        """The rows whose results were right: those that may be shown with figures."""
        return [found.row for found in self.found if not found.wrong]

    @property
    def wrong(self) -> int:
        return sum(bool(found.wrong) for found in self.found)

    @property
    def sound(self) -> bool:
        """Whether all rows are there, and ours are right."""
        return not self.failed and not any(found.wrong and found.ours for found in self.found)

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(asdict(self), indent=1, ensure_ascii=False, allow_nan=False)
        (folder / f"{self.experiment}.json").write_text(text + "\n", "utf-8")

    @staticmethod
    def read(file: Path) -> Result:
        text = file.read_text("utf-8")
        for name, now in RENAMED.items():
            text = text.replace(json.dumps(name), json.dumps(now))
        parts = json.loads(text)
        return Result(**{**parts, "found": tuple(Found(**one) for one in parts["found"])})


def stored(folder: Path) -> dict[str, Result]:
    """The results of a folder by the names of their experiments."""
    return {file.stem: Result.read(file) for file in sorted(folder.glob("*.json"))}


def plain(values: Mapping[str, object]) -> Row:
    """Values as JSON has them: numbers of numpy become Python's, and what is no number is left out."""
    found: Row = {}
    for name, value in values.items():
        if hasattr(value, "item"):
            value = value.item()
        if isinstance(value, float) and not math.isfinite(value):
            value = None
        if value is not None and not isinstance(value, (str, int, float, bool)):
            raise TypeError(f"{name} is a {type(value).__name__}: rows have texts, numbers, booleans and None")
        found[name] = value
    return found


# ------------------------------------------------------------------ the machine and what runs on it


def machine() -> dict[str, Value]:
    cpu = _first(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo")) or platform.processor() or platform.machine()
    memory = _first(r"^MemTotal:\s*(\d+) kB$", Path("/proc/meminfo"))
    return {
        "processor": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "memory, GB": round(int(memory) / (1 << 20), 1) if memory else None,
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
    }


def versions() -> dict[str, str]:
    found = {"everview": f"{everview.__version__}{_commit()}", "python": platform.python_version(), "java": _java()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _first(pattern: str, file: Path) -> str:
    try:
        match = re.search(pattern, file.read_text("utf-8"), re.M)
    except OSError:
        return ""
    return match[1].strip() if match else ""


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    command = f"{home}/bin/java" if home else shutil.which("java")
    if command is None:
        return "not installed"
    shown = subprocess.run([command, "-version"], capture_output=True, text=True, check=False)
    match = re.search(r'"([^"]+)"', shown.stderr + shown.stdout)
    return match[1] if match else "unknown"


def _commit() -> str:
    """The commit that is checked out, and whether sources differ from it."""
    shown = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if shown.returncode:
        return ""
    changed = subprocess.run(
        ["git", "status", "--porcelain", "--", "src", "bench"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return f", commit {shown.stdout.strip()}" + (" with changes" if changed.stdout.strip() else "")
