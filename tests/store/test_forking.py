"""Children that are forked off a process with views: they open stores, also those of
the parent, and end as they should.

As with multiprocessing's default start method, gunicorn's preload_app and Celery's prefork.
"""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("forking_parent.py")


@pytest.mark.parametrize(
    ("what", "children"),
    [
        ("with_the_store_open", 15),
        ("with_a_store_each", 3),
        ("with_the_store_closed", 7),
        ("while_others_work", 8),
        ("lease_is_given_back", 1),
    ],
)
def test_forked_children(tmp_path: Path, what: str, children: int) -> None:
    ended = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path / "store"), what], capture_output=True, text=True, check=False
    )
    lines = ended.stdout.splitlines()
    assert [line for line in lines if not line.endswith(" 0")] == [], ended.stderr
    assert (ended.returncode, len(lines)) == (0, children), ended.stderr
    if what != "while_others_work":
        assert ended.stderr == "", "nothing is printed when a child ends"
