"""An installation in which Everview cannot work says so, and what to do."""

from __future__ import annotations

import subprocess
import sys

COMPILED = """
import everview, sqlglot.parser
sqlglot.parser.__file__ = "parser.cpython-311-x86_64-linux-gnu.so"
everview.open
"""


def test_the_compiled_sqlglot_is_named() -> None:
    found = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert found.stderr.splitlines()[-1].startswith("ImportError: Everview extends sqlglot's parsers")
    assert "pip uninstall sqlglotc" in found.stderr
