"""Golden scripts: inputs, and below each what was printed for it.

A script is its own expected output, so running one means printing it again and
comparing texts. The format is described in README.md beside this file::

    # A comment stays where it is.
    SELECT a FROM t
    ---
    Select at 1:1
      query: SELECT a FROM t
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from everview.errors import EverviewError

REWRITE = "EVERVIEW_REWRITE_SCRIPTS"
"""Set to 1, scripts are rewritten with what is printed now instead of compared."""

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """One input with the comments above it; ``line`` is where its input begins."""

    above: str
    input: str
    line: int


def scripts(folder: str, pattern: str = "*.txt") -> list[Path]:
    """The scripts of a folder beside this file, in order of their names."""
    found = sorted((HERE / folder).glob(pattern))
    assert found, f"there are no scripts {folder}/{pattern}"
    return found


def run_script(path: Path, runner: Callable[[str], str]) -> None:
    """Print the script again, one input after another through the same runner, and compare.

    An :class:`EverviewError` is output like any other; every other exception fails the test.
    """
    old = path.read_text(encoding="utf-8")
    cases, below = read_script(old)
    printed = [f"{case.above}{case.input}\n---\n{_printed(case, path, runner)}" for case in cases]
    new = "\n".join([*printed, below] if below else printed)
    if os.environ.get(REWRITE) == "1":
        path.write_text(new, encoding="utf-8")
        return
    assert new == old, f"{path.name} prints something else now; where the new text is right, set {REWRITE}=1"


def read_script(text: str) -> tuple[list[Case], str]:
    """The cases of a script, and the comments below the last one."""
    cases: list[Case] = []
    above: list[str] = []
    lines = iter(enumerate(text.splitlines(), start=1))
    for number, line in lines:
        if not line.strip() or line.startswith("#"):
            above.append(f"{line}\n")
            continue
        cases.append(Case("".join(above), _input(line, lines), number))
        above = []
        for _, printed in lines:
            if not printed.strip():
                break
    return cases, "".join(above) if any(line.strip() for line in above) else ""


def _input(first: str, lines: Iterator[tuple[int, str]]) -> str:
    kept = [first]
    for _, line in lines:
        if line == "---":
            break
        kept.append(line)
    return "\n".join(kept).rstrip("\n")


def _printed(case: Case, path: Path, runner: Callable[[str], str]) -> str:
    try:
        output = runner(case.input)
    except EverviewError as error:
        output = f"{type(error).__name__}: {error}"
    except Exception as error:
        raise AssertionError(f"{path.name}, line {case.line}: {type(error).__name__} instead of an answer") from error
    lines = [line.rstrip() for line in output.rstrip().splitlines()]
    if any(not line or line.startswith(">") for line in lines):
        lines = [f"> {line}".rstrip() for line in lines]
    return "".join(f"{line}\n" for line in lines)
