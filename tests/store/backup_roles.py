"""Processes that use a store while it is backed up: roles of ``tests.faults.zygote``."""

from __future__ import annotations

import itertools
import os
import signal
from pathlib import Path

import everview
from everview.store.embedded import backup
from tests.faults.victims import ROLES, Arguments, Reports


def write_pairs(reports: Reports, arguments: Arguments) -> None:
    """Write rows 1, 2, … of one client, each with a partner in another table, and report each that is acknowledged."""
    db = everview.open(Path(arguments["directory"]), create=False)
    client = arguments["client"]
    for number in itertools.count(1):
        with db.batch() as batch:
            batch.table("left").put({"client": client, "n": number, "text": "x" * (number % 3000)})
            batch.table("right").put({"client": client, "n": number})
        reports.send(str(number))


def keep_views(reports: Reports, arguments: Arguments) -> None:
    """Maintain all views until killed."""
    db = everview.open(Path(arguments["directory"]), create=False)
    with db.maintain(spark=False):
        reports.send("maintaining")
        signal.pause()


def back_up_and_die(reports: Reports, arguments: Arguments) -> None:
    """Die in the middle of a backup: when so many files are copied."""
    copied = itertools.count(1)

    def copy(source: int, path: Path, most: int) -> int:
        size = original(source, path, most)
        if next(copied) == arguments["files"]:
            os.kill(os.getpid(), signal.SIGKILL)
        return size

    original, backup._copy = backup._copy, copy
    everview.open(Path(arguments["directory"]), create=False).backup(arguments["target"])


ROLES |= {"write pairs": write_pairs, "keep views": keep_views, "back up and die": back_up_and_die}
