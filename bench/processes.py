"""What a process and all that it has started cost: the Java machine, daemons, workers."""

from __future__ import annotations

import os
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Memory:
    """Megabytes that processes have in memory, what they share counted once."""

    own: float
    """What only they can hold: heaps, stacks."""
    files: float
    """Pages of files that are mapped, of the store above all: the system takes them back when it
    needs them."""

    @property
    def all(self) -> float:
        return self.own + self.files


def memory(process: int) -> Memory:
    """The memory of a family."""
    total = {"Pss_Anon": 0, "Pss_Shmem": 0, "Pss_File": 0}
    for one in family(process):
        try:
            lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            name, _, value = line.partition(":")
            if name in total:
                total[name] += int(value.split()[0])
    return Memory((total["Pss_Anon"] + total["Pss_Shmem"]) / 1024, total["Pss_File"] / 1024)
