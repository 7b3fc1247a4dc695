"""Install the systems that Everview is compared with: ``python -m bench.others.setup [flink] [pathway] [postgres]``.

Each one that comes as a Python package gets a virtual environment of its own in ``.bench``, made when
it is first needed from the ranges of ``versions.toml``; PostgreSQL comes with the system's packages.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from bench.others.postgres import binaries
from bench.report.registry import ROOT

PLACE = ROOT / ".bench"
VERSIONS: dict[str, dict[str, list[str]]] = tomllib.loads(Path(__file__).with_name("versions.toml").read_text())
POSTGRES = "postgres"
LIMIT = 900
"""Seconds an installation may take."""


class NotInstalled(Exception):
    """A system is not there: why, and what to do."""


def python_of(name: str) -> Path:
    """The Python of a system's environment."""
    return PLACE / name / "bin" / "python"


def installed(name: str) -> bool:
    return binaries() is not None if name == POSTGRES else (PLACE / name / ".installed").exists()


def install(name: str) -> None:
    """Install a system unless it is there, or say why that cannot be done."""
    if installed(name):
        return
    if name == POSTGRES:
        _run(name, [str(ROOT / "scripts" / "system-packages"), "PostgreSQL", "postgresql"])
        return
    print(f"installing {name} into {PLACE / name}", file=sys.stderr, flush=True)
    shutil.rmtree(PLACE / name, ignore_errors=True)
    _run(name, [_interpreter(name), "-m", "venv", str(PLACE / name)])
    pip = [str(python_of(name)), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    _run(name, [*pip, *VERSIONS[name]["packages"]])
    (PLACE / name / ".installed").touch()


def _interpreter(name: str) -> str:
    """A Python that the system runs on; ours, where it does."""
    wanted = VERSIONS[name]["python"]
    if f"{sys.version_info.major}.{sys.version_info.minor}" in wanted:
        return sys.executable
    for version in wanted:
        found = shutil.which(f"python{version}")
        if found is not None:
            return found
    raise NotInstalled(f"{name} needs Python {', '.join(sorted(wanted))}, and none of them is here")


def _run(name: str, command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(f"{name} could not be installed: {error}") from error
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise NotInstalled(f"{name} could not be installed: {lines[-1] if lines else f'exit code {done.returncode}'}")


def main() -> int:
    every = [*VERSIONS, POSTGRES]
    parser = argparse.ArgumentParser(prog="python -m bench.others.setup", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(every)}; all of them by default")
    asked = parser.parse_args()
    for name in asked.names or every:
        if name not in every:
            parser.error(f"there is no system {name}; there are {', '.join(every)}")
        try:
            install(name)
        except NotInstalled as error:
            print(f"{error}\nIs there a network, and a package index to install from?", file=sys.stderr)
            return 1
        print(f"{name} is installed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
