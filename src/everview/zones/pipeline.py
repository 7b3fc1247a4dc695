"""The pipeline: a streaming query that keeps a group's views up to date.

One sentence: a pipeline is the source, the function that runs epochs, and Spark between
them; it can be killed and started again anywhere, with or without its checkpoint, because
what has been done stands in the store.

    >>> with Pipeline(path, spark=new_session()) as pipeline:    # doctest: +SKIP
    ...     orders.put({"id": 1, "customer": 7, "amount": 10})
    ...     pipeline.drain()
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from everview import errors
from everview.catalog.objects import MAIN
from everview.change.frontier import Frontier
from everview.errors import DeadlineError, DefinitionError, EpochError, EverviewError
from everview.log.source import NAME
from everview.store.contract import Store
from everview.store.opened import open_store
from everview.zones.epoch import EpochRunner
from everview.zones.reports import EpochReport
from everview.zones.session import prepared

POLL = 0.005
KEPT_REPORTS = 1000


class Pipeline:
    """Maintains the views of one group of a store, with Spark's ``foreachBatch``.

    ``servers`` is the number of view servers, ``operations`` the most log entries of an
    epoch (a batch is never cut, so one larger batch is an epoch of its own). ``checkpoint``
    is where Spark keeps its offsets; without one they are forgotten at the end.
    """

    def __init__(
        self,
        place: str | Path,
        *,
        spark: SparkSession,
        group: str = MAIN,
        servers: int = 2,
        operations: int = 250_000,
        checkpoint: str | Path | None = None,
        runner: Callable[[str, str, int], EpochRunner] = EpochRunner,
    ) -> None:
        self.place = str(Path(place).absolute())
        self.group = group
        self.reports: deque[EpochReport] = deque(maxlen=KEPT_REPORTS)
        """What the last epochs did, the newest at the end."""
        self._spark = prepared(spark)
        self._runner = runner(self.place, group, servers)
        self._options = {
            "path": self.place,
            "group": group,
            "operations": str(operations),
            "tasks": str(servers),
        }
        self._checkpoint = None if checkpoint is None else str(checkpoint)
        self._disposable: str | None = None
        self._store: Store | None = None
        self._epoch = threading.Lock()
        """Held while an epoch uses the store: Spark gives up waiting for us, we still run."""
        self._query: StreamingQuery | None = None
        self._failure: EverviewError | None = None

    # -------------------------------------------------------------- life

    def start(self) -> Pipeline:
        """Maintain the views until :meth:`stop`."""
        self._start(processingTime="0 seconds")
        return self

    def catch_up(self) -> None:
        """Maintain the views until they reflect what is in the logs now, then stop."""
        query = self._start(availableNow=True)
        try:
            with contextlib.suppress(StreamingQueryException):
                query.awaitTermination()
            self.check()
        finally:
            self.stop()

    def _start(self, **trigger: Any) -> StreamingQuery:
        if self._query is not None:
            raise DefinitionError(f"the pipeline of group {self.group} runs already")
        self._failure = None
        self._store = self._open()
        checkpoint = self._checkpoint
        if checkpoint is None:
            checkpoint = self._disposable = tempfile.mkdtemp(prefix="everview-checkpoint-")
        try:
            source = self._spark.readStream.format(NAME).options(**self._options).load()
            sink = source.writeStream.foreachBatch(self._run).option("checkpointLocation", checkpoint)
            self._query = sink.trigger(**trigger).start()
        except Exception as error:
            self.stop()
            raise told(error, f"the pipeline of group {self.group} cannot start") from error
        return self._query

    def _open(self) -> Store:
        store = open_store(self.place)
        if not store.log.guarantees.before_images:
            store.close()
            raise DefinitionError(
                f"the views of {self.place} cannot be maintained",
                detail="its log has no before-images",
                hint="make the store with before_images=True",
            )
        return store

    def stop(self) -> None:
        """Stop; an epoch that is under way is given up, and resumed by the next start."""
        query, self._query = self._query, None
        if query is not None:
            query.stop()
        with self._epoch:
            store, self._store = self._store, None
        if store is not None:
            store.close()
        if self._disposable is not None:
            shutil.rmtree(self._disposable, ignore_errors=True)
            self._disposable = None

    def __enter__(self) -> Pipeline:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -------------------------------------------------------------- progress

    def drain(self, frontier: Frontier | None = None, timeout: float | None = None) -> Frontier:
        """Wait until the views reflect a frontier, by default everything written so far."""
        store = self._store
        if store is None:
            raise DefinitionError(f"the pipeline of group {self.group} does not run", hint="start it first")
        wanted = store.log.latest() if frontier is None else frontier
        deadline = None if timeout is None else time.monotonic() + timeout
        while not (reached := store.views.committed(self.group).frontier) >= wanted:
            self.check()
            if self._query is None or not self._query.isActive:
                raise EpochError(f"the pipeline of group {self.group} was stopped at {reached}, before {wanted}")
            if deadline is not None and time.monotonic() > deadline:
                raise DeadlineError(f"group {self.group} has reached {reached}, not {wanted}, after {timeout} s")
            time.sleep(POLL)
        return reached

    def check(self) -> None:
        """Raise what made the pipeline fail, if it has failed."""
        if self._query is None or self._query.isActive:
            return
        problem = self._query.exception()
        if problem is not None:
            raise self._failure or told(problem, f"the pipeline of group {self.group} has stopped")

    def _run(self, batch: DataFrame, batch_id: int) -> None:
        """Called by Spark, in this process. Spark's number of the batch says nothing: where the
        store has no epoch under way, it has committed this batch already. An error keeps its
        type on the way to the caller."""
        try:
            with self._epoch:
                store = self._store
                begun = None if store is None else store.views.begun(self.group)
                if store is not None and begun is not None:
                    self.reports.append(self._runner.run(store, begun, batch))
        except EverviewError as error:
            self._failure = error
            raise
        except Exception as error:
            self._failure = told(error, f"an epoch of group {self.group} failed")
            raise


_RAISED = re.compile(
    r"^(?:[a-z_]\w*\.)*([A-Z]\w*(?:Error|Exception|Interrupt)): ([^\n]*(?:\n  (?:why|do): [^\n]*)*)", re.M
)
_DETAIL = re.compile(r"^  why: (.*)$", re.M)
_HINT = re.compile(r"^  do:  (.*)$", re.M)


def told(error: Exception, what: str) -> EverviewError:
    """An error that comes back from a task or from the source as text, as what it was there:
    nobody should have to read a Java stack for it."""
    raised = _RAISED.findall(str(error))
    for name, text in reversed(raised):
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, EverviewError):
            detail, hint = _DETAIL.search(text), _HINT.search(text)
            return kind(text.splitlines()[0], detail=detail and detail[1], hint=hint and hint[1])
    told_last = ": ".join(raised[-1]) if raised else str(error).strip().partition("\n")[0]
    return EverviewError(what, detail=told_last)
