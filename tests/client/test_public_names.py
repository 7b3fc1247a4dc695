"""What users hold: these names and these methods, and no Spark unless it is used."""

from __future__ import annotations

import subprocess
import sys

import everview


def methods(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_the_names_of_the_package() -> None:
    assert everview.__all__ == sorted(everview.__all__)
    assert set(everview.__all__) == {
        *("Column", "Database", "EverviewError", "Frontier", "Maintaining", "Result", "Schema", "Session"),
        *("Snapshot", "Status", "Subscription", "Type", "ViewChange", "open"),
    }
    assert all(getattr(everview, name).__doc__ for name in everview.__all__)


def test_what_a_database_does() -> None:
    public = {"sql", "table", "view", "batch", "session", "snapshot", "maintain", "flush", "status", "close"}
    assert public <= methods(everview.Database)
    assert {"view", "table", "sql", "batch", "token"} <= methods(everview.Session)
    assert {"view", "table", "sql", "frontier", "close"} <= methods(everview.Snapshot)


def test_spark_is_imported_when_it_is_used() -> None:
    code = "import everview, sys; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
