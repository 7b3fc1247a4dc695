"""Spark's Python daemon with crash points: ``spark.python.daemon.module``."""

from __future__ import annotations

from everview.zones.daemon import main
from tests.faults.points import install

if __name__ == "__main__":
    install("worker")
    install("executor")
    main()
