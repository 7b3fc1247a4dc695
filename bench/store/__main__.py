"""The embedded store against raw LMDB: ``python -m bench.store``.

Every figure is a ratio of two times taken in turns in one run, best of several rounds, with
the results checked in the same run. The bar beside it is the ratio, or the rate, that the
store is meant to keep.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from pathlib import Path

import lmdb

from bench.store import state, tables

RATIOS = {
    "get": 3.0,
    "put": 4.0,
    "put_many, first load": 3.0,
    "put_many, updates in no order": 3.0,
    "read-modify-write": 4.0,
}
RATES = {"read(slice), batches of 1,000": 1e6, "read(slice), single puts": 1e6, "bags": 7e5}
SLICE_RATIO = 3.0
"""A slice may also be read within this ratio of reading its raw bytes."""


def verdict(name: str, figures: dict[str, float]) -> tuple[str, bool]:
    """The bar of a figure, and whether it is kept."""
    if name in RATIOS:
        return f"within {RATIOS[name]:.0f}×", figures["ratio"] <= RATIOS[name]
    rate = figures.get("rows/s", figures.get("operations/s", 0.0))
    near = name.startswith("read") and figures["ratio"] <= SLICE_RATIO
    return f"{RATES[name]:,.0f}/s" + (f" or within {SLICE_RATIO:.0f}×" if "ratio" in figures else ""), rate >= RATES[
        name
    ] or near


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.store", description=__doc__)
    parser.add_argument("--json", type=Path, default=Path("build/bench/store.json"))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="everview-bench-") as folder:
        figures = tables.run(Path(folder) / "tables") | state.run(Path(folder) / "state")
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, LMDB {lmdb.version()}"
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    asked.json.write_text(json.dumps({"machine": machine, "figures": figures}, indent=2, ensure_ascii=False))
    print(machine)
    print(f"{'':32}{'Everview':>12}{'raw LMDB':>12}{'ratio':>8}{'rate':>14}  bar")
    missed = 0
    for name, found in figures.items():
        bar, kept = verdict(name, found)
        missed += not kept
        rate = found.get("rows/s", found.get("operations/s"))
        raw = f"{found['raw µs']:.2f} µs" if "raw µs" in found else ""
        ratio = f"{found['ratio']:.2f}×" if "ratio" in found else ""
        shown = f"{rate:,.0f}/s" if rate else ""
        print(f"{name:32}{found['µs']:>9.2f} µs{raw:>12}{ratio:>8}{shown:>14}  {bar}{'' if kept else '  MISSED'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
