"""A pipeline that is stopped in an epoch, and a process that ends: ``python -m tests.zones.quiet <store>``."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from everview.maintain.tasks import EpochTask
from everview.operators.runner import Outcome
from everview.store.contract import Begun, TableSnapshot
from everview.zones.pipeline import Pipeline
from everview.zones.session import new_session
from everview.zones.spark_executor import SparkExecutor
from tests.zones.shop import open_shop, trade


class Watched(Pipeline):
    """Says when an epoch has begun its work."""

    class EXECUTOR(SparkExecutor):
        inside = threading.Event()

        def work(self, begun: Begun, task: EpochTask, snapshot: TableSnapshot | None = None) -> Outcome:
            self.inside.set()
            return super().work(begun, task, snapshot)


def main(path: Path) -> None:
    spark = new_session()
    db = open_shop(path)  # and never closed
    for seed in range(2):
        trade(db, 5, seed)
        pipeline = Watched(path, spark=spark, in_driver=0).start()
        pipeline.drain()
        Watched.EXECUTOR.inside.clear()
        trade(db, 5, seed)
        Watched.EXECUTOR.inside.wait(60)
        pipeline.stop(finish=False)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
