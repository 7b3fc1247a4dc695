"""Keeping views up to date during a ``with`` block.

The same epochs are run here or on Spark, and the process that starts them holds the store's lease, so there is one of
them at a time. Nobody waits for Spark to start: until it is there, all epochs are done here.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from everview.boundary import public
from everview.change.frontier import Frontier
from everview.errors import DefinitionError
from everview.maintain.epoch_sizes import CEILING
from everview.maintain.local_pipeline import LocalPipeline, RunningPipeline
from everview.store.opened import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
        in_driver: int | None = None,
        checkpoint: str | Path | None = None,
        wait: float | None = 0,
    ) -> None:
        self._place = str(place)
        self._spark = spark
        self._servers = servers
        self._operations = operations
        self._in_driver = in_driver
        self._checkpoint = checkpoint
        self._wait = wait
        self._held = ExitStack()
        self._sessions = ExitStack()
        """The session that a thread of the pipeline has started."""
        self._running: RunningPipeline | None = None

    def __enter__(self) -> Maintaining:
        try:
            self._held.callback(self._sessions.close)
            self._running = self._local_pipeline() if self._spark is False else self._pipeline()
            self._held.enter_context(self._running)
        except BaseException:
            self._held.close()
            raise
        return self

    def _local_pipeline(self) -> RunningPipeline:
        return LocalPipeline(lambda: open_store(self._place), operations=self._operations or CEILING, wait=self._wait)

    def _pipeline(self) -> RunningPipeline:
        """Spark is imported here: that takes a second, and maintenance without Spark does not need it."""
        from everview.zones.pipeline import Pipeline

        return Pipeline(
            self._place,
            spark=self._spark or self._new_session,
            servers=self._servers,
            operations=self._operations or CEILING,
            in_driver=self._in_driver,
            checkpoint=self._checkpoint,
            wait=self._wait,
        )

    def _new_session(self) -> SparkSession:
        """Start Spark; it ends with the block."""
        from everview.zones.session import new_session

        session = new_session()
        self._sessions.callback(session.stop)
        return session

    def drain(self, timeout: float | None = None) -> Frontier:
        """Wait until all views are built and reflect everything written so far."""
        return self.running.drain(timeout=timeout)

    def check(self) -> None:
        """Raise the error of the maintenance, if it has failed."""
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
        """The end of the block finishes the epoch under way, and raises the error if maintenance has failed; on
        Spark, an error that ends the block leaves the epoch under way to the next maintainer."""
        self._held.__exit__(kind, error, trace)
