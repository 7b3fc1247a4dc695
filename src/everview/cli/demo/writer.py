"""The writer of the demonstration: ``python -m everview.cli.demo.writer <store> <seed>``.

It writes batch after batch until its standard input is closed, which also happens when its
parent process is gone.
"""

from __future__ import annotations

import select
import sys

from everview.cli.demo.shop import ORDERS, Clerk
from everview.client.database import open as open_database

PAUSE = 0.01
"""Seconds of rest after a batch, so that two cores have time for the pipeline."""


def write(place: str, seed: int) -> None:
    with open_database(place, create=False) as db:
        clerk = Clerk(db, seed, ORDERS)
        while not select.select([sys.stdin], [], [], PAUSE)[0]:
            clerk.work()


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]))
