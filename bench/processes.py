"""What a process and all that it has started cost: the Java machine, daemons, workers."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def family(process: int) -> list[int]:
    """A process and its descendants."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            parents.setdefault(_parent(entry), []).append(int(entry.name))
    found = [process]
    for one in found:
        found += parents.get(one, [])
    return found


def _parent(entry: Path) -> int:
    try:
        return int(entry.joinpath("stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return -1


def processor_seconds(process: int) -> float:
    """The processor time of a family so far. What processes that are gone used is left out."""
    total = 0
    for one in family(process):
        try:
            parts = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += int(parts[11]) + int(parts[12])
    return total / _TICKS


def resident_megabytes(process: int) -> float:
    """The memory of a family, what its processes share counted once."""
    total = 0
    for one in family(process):
        try:
            lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
    return total / 1024
