"""Keeping views up to date for as long as a ``with`` block lasts.

The same epochs are run by a pipeline on Spark or by a thread of this process, and
the process that starts one holds the store's lease, so there is one of them at a time.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from everview.boundary import public
from everview.change.frontier import Frontier
from everview.errors import DefinitionError
from everview.maintain.epochs import OPERATIONS
from everview.maintain.local_pipeline import LocalPipeline, RunningPipeline
from everview.store.opened import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


ON_SPARK = 250_000
"""Log entries of an epoch on Spark, by default."""


@public
class Maintaining(AbstractContextManager["Maintaining"]):
    """Views are kept up to date from the beginning of the ``with`` block to its end."""

    def __init__(
        self,
        place: str | Path,
        spark: SparkSession | Literal[False] | None = None,
        *,
        servers: int = 2,
        operations: int | None = None,
        checkpoint: str | Path | None = None,
        wait: float | None = 0,
    ) -> None:
        self._place = str(place)
        self._spark = spark
        self._servers = servers
        self._operations = operations
        self._checkpoint = checkpoint
        self._wait = wait
        self._held = ExitStack()
        self._running: RunningPipeline | None = None

    def __enter__(self) -> Maintaining:
        try:
            self._running = self._local_pipeline() if self._spark is False else self._pipeline()
            self._held.enter_context(self._running)
        except BaseException:
            self._held.close()
            raise
        return self

    def _local_pipeline(self) -> RunningPipeline:
        return LocalPipeline(
            lambda: open_store(self._place), operations=self._operations or OPERATIONS, wait=self._wait
        )

    def _pipeline(self) -> RunningPipeline:
        """Spark is imported here: it takes a second, and who maintains without it need not have it."""
        from everview.zones.pipeline import Pipeline
        from everview.zones.session import new_session

        session = self._spark
        if session is None:
            session = new_session()
            self._held.callback(session.stop)
        assert session is not False
        return Pipeline(
            self._place,
            spark=session,
            servers=self._servers,
            operations=self._operations or ON_SPARK,
            checkpoint=self._checkpoint,
            wait=self._wait,
        )

    def drain(self, timeout: float | None = None) -> Frontier:
        """Wait until all views are built and reflect everything written so far."""
        return self.running.drain(timeout=timeout)

    def check(self) -> None:
        """Raise what made it fail, if it has failed."""
        self.running.check()

    @property
    def running(self) -> RunningPipeline:
        """The pipeline, or the thread."""
        if self._running is None:
            raise DefinitionError(
                "nothing is maintained yet", hint="use it inside its with block: with db.maintain(): …"
            )
        return self._running

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What is under way is finished at the end of the block, and what has failed is raised; on Spark,
        an error that ends the block leaves an epoch that is under way to the next who maintains."""
        self._held.__exit__(kind, error, trace)
