"""``everview bench``: the benchmarks of a checkout.

Runs ``python -m bench.NAME`` in a checkout of the sources, or ``python -m bench NAME``
if NAME is an experiment of the report.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

import everview
from everview.cli.console import console

_RUNS = '__name__ == "__main__"'
_EXPERIMENT = re.compile(r'^EXPERIMENT\b[^=]*= \w+\(\s*name="([^"]+)"', re.M)


def bench(
    name: Annotated[str | None, typer.Argument(help="Which one.", show_default="lists them")] = None,
    options: Annotated[
        list[str] | None, typer.Argument(metavar="-- OPTIONS...", help="What it is called with.", show_default=False)
    ] = None,
) -> None:
    """Run one of the benchmarks, which are part of the sources and not installed.

    report runs all experiments of the report and writes it; the name of an experiment runs that one. The exit
    code is that of the benchmark.

    [dim]Example:[/dim] everview bench report -- --quick
    """
    root = _checkout()
    if root is None:
        console(sys.stderr).print(
            "error: there are no benchmarks here\n"
            "  why: they are part of Everview's sources, and this is an installed package\n"
            "  do:  run it in a checkout of the sources, or make bench there",
            style="red",
        )
        raise typer.Exit(1)
    known = _known(root)
    experiments = _experiments(root)
    if name is None:
        console().print("\n".join([*known, *experiments]))
        return
    if name not in known and name not in experiments:
        raise typer.BadParameter(f"there is no benchmark {name}; there are {', '.join([*known, *experiments])}")
    command = ["bench", name] if name in experiments else [f"bench.{name}"]
    paths = filter(None, [str(root), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run([sys.executable, "-m", *command, *(options or [])], cwd=root, env=environment, check=False)
    raise typer.Exit(done.returncode if done.returncode >= 0 else 128 - done.returncode)


def _checkout() -> Path | None:
    """The directory of the benchmarks: beside the sources, or in the working directory."""
    for place in (Path(everview.__file__).parents[2], Path.cwd()):
        if (place / "bench" / "__init__.py").is_file() and (place / "src" / "everview").is_dir():
            return place
    return None


def _known(root: Path) -> list[str]:
    """Modules that can be run."""
    files = [file for file in (root / "bench").glob("[a-z]*.py") if _RUNS in file.read_text("utf-8")]
    packages = [file.parent for file in (root / "bench").glob("*/__main__.py")]
    return sorted([*(file.stem for file in files), *(package.name for package in packages)])


def _experiments(root: Path) -> list[str]:
    """Experiments of the report, by their names in their files."""
    files = [file for place in ("figures", "others") for file in (root / "bench" / place).glob("*.py")]
    return sorted(name for file in files for name in _EXPERIMENT.findall(file.read_text("utf-8")))
