"""The process that measures: ``python -m bench.report.child MODULE…``, started by the runner.

Experiments run here one after another, and each row goes to the runner, as a line of JSON, at
the moment it is found.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from bench.report.experiment import Setting
from bench.report.registry import load
from bench.report.results import plain


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.report.child")
    parser.add_argument("modules", nargs="+")
    parser.add_argument("--to", type=int, required=True, help="the descriptor to write to")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--install", action="store_true")
    asked = parser.parse_args()
    os.set_inheritable(asked.to, False)
    with os.fdopen(asked.to, "w", encoding="utf-8", buffering=1) as to:
        for module in asked.modules:
            folder = asked.folder / module
            folder.mkdir()
            run(module, Setting(asked.quick, asked.seed, folder, asked.install), to)
            shutil.rmtree(folder, ignore_errors=True)
    if "bench.report.sessions" in sys.modules:
        sys.modules["bench.report.sessions"].close()
    return 0


def run(module: str, setting: Setting, to: TextIO) -> None:
    """One experiment. What it raises ends it, and not the process: the next one may still be measured."""

    def send(**words: object) -> None:
        to.write(json.dumps(words, ensure_ascii=False, allow_nan=False) + "\n")

    try:
        for found in load(module).measure(setting):
            send(found={**asdict(found), "row": plain(found.row), "profile": plain(found.profile)})
    except Exception as error:
        traceback.print_exc()
        send(end=f"{type(error).__name__}: {error}")
    else:
        send(end="")


if __name__ == "__main__":
    sys.exit(main())
