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
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from everview import errors
from everview.catalog import MAIN, Catalog, ViewStatus
from everview.change.frontier import Frontier
from everview.errors import DeadlineError, DefinitionError, EpochError, EverviewError
from everview.log.source import NAME
from everview.maintain import EpochTask, Maintainer, Plans
from everview.maintain.maintainer import LEASE
from everview.store.contract import Begun, Store
from everview.store.opened import open_store
from everview.zones.epoch import SparkEpochs
from everview.zones.reports import EpochReport
from everview.zones.session import prepared
from everview.zones.steward import Steward

POLL = 0.005
KEPT_REPORTS = 1000


class Pipeline:
    """Maintains the views of a store on Spark: one group with ``foreachBatch``, the others beside it.

    ``servers`` is the number of view servers, which may be changed while the pipeline runs;
    ``operations`` the most log entries of an epoch (a batch is never cut, so one larger batch is
    an epoch of its own). ``checkpoint`` is where Spark keeps its offsets; without one they are
    forgotten at the end. ``wait`` is how long to wait for another pipeline of the store to end.
    """

    EPOCHS = SparkEpochs
    """What does the work of epochs."""

    def __init__(
        self,
        place: str | Path,
        *,
        spark: SparkSession,
        group: str = MAIN,
        servers: int = 2,
        operations: int = 250_000,
        checkpoint: str | Path | None = None,
        wait: float | None = 0,
    ) -> None:
        self.place = str(Path(place).absolute())
        self.group = group
        self.servers = servers
        self.reports: deque[EpochReport] = deque(maxlen=KEPT_REPORTS)
        """What the last epochs did, the newest at the end."""
        self._spark = prepared(spark)
        self._options = {"path": self.place, "group": group, "operations": str(operations), "tasks": str(servers)}
        self._operations = operations
        self._checkpoint = None if checkpoint is None else str(checkpoint)
        self._wait = wait
        self._held = contextlib.ExitStack()
        """What is given back at the end: the store, the lease, a checkpoint that nobody keeps."""
        self._maintainer: Maintainer | None = None
        self._epoch = threading.Lock()
        """Held while an epoch uses the store: Spark gives up waiting for us, we still run."""
        self._query: StreamingQuery | None = None
        self._steward: Steward | None = None
        self._failure: EverviewError | None = None
        self._stopping = False

    # -------------------------------------------------------------- life

    def start(self) -> Pipeline:
        """Maintain the views until :meth:`stop`."""
        maintainer = self._open()
        try:
            self._stream(processingTime="0 seconds")
            self._steward = Steward(maintainer, self.group, self._fail)
            self._steward.start()
        except BaseException:
            self.stop()
            raise
        return self

    def catch_up(self) -> None:
        """Maintain the views until they reflect what is in the logs now, then stop."""
        maintainer = self._open()
        try:
            target = maintainer.store.log.latest()
            maintainer.build()
            query = self._stream(availableNow=True)
            with contextlib.suppress(StreamingQueryException):
                query.awaitTermination()
            self.check()
            for group in maintainer.groups():
                maintainer.advance(group, target)
            maintainer.tidy()
        finally:
            self.stop()

    def _open(self) -> Maintainer:
        if self._maintainer is not None:
            raise DefinitionError(f"the pipeline of {self.place} runs already")
        self._failure = None
        self._stopping = False
        try:
            store = open_store(self.place)
            self._held.callback(store.close)
            self._held.enter_context(store.lease(LEASE, self._wait))
            maintainer = Maintainer(store, Catalog(store.metadata, store.views), self._operations, epochs=self._epochs)
            maintainer.plans.resume()
            maintainer.recover()
        except BaseException:
            self._held.close()
            raise
        self._maintainer = maintainer
        return maintainer

    def _epochs(self, store: Store, catalog: Catalog, plans: Plans) -> SparkEpochs:
        found = self.EPOCHS(store, catalog, plans, self._spark, self.place, lambda: self.servers)
        found.reported = self.reports.append
        return found

    def _stream(self, **trigger: Any) -> StreamingQuery:
        checkpoint = self._checkpoint
        if checkpoint is None:
            checkpoint = tempfile.mkdtemp(prefix="everview-checkpoint-")
            self._held.callback(shutil.rmtree, checkpoint, ignore_errors=True)
        try:
            source = self._spark.readStream.format(NAME).options(**self._options).load()
            sink = source.writeStream.foreachBatch(self._run).option("checkpointLocation", checkpoint)
            self._query = sink.trigger(**trigger).start()
        except Exception as error:
            raise told(error, f"the pipeline of group {self.group} cannot start") from error
        return self._query

    def stop(self) -> None:
        """Stop; an epoch that is under way is given up, and resumed by the next start."""
        self._stopping = True
        steward, self._steward = self._steward, None
        if steward is not None:
            steward.stop()
        query, self._query = self._query, None
        if query is not None:
            query.stop()
        with self._epoch:
            self._maintainer = None
            self._held.close()

    def __enter__(self) -> Pipeline:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -------------------------------------------------------------- progress

    def drain(self, frontier: Frontier | None = None, timeout: float | None = None) -> Frontier:
        """Wait until all views are built and reflect a frontier, by default everything written so
        far."""
        maintainer = self._maintainer
        if maintainer is None:
            raise DefinitionError(f"the pipeline of group {self.group} does not run", hint="start it first")
        store = maintainer.store
        wanted = store.log.latest() if frontier is None else frontier
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._drained(maintainer, wanted):
            self.check()
            if self._query is None or not self._query.isActive:
                raise EpochError(f"the pipeline of group {self.group} was stopped before it reached {wanted}")
            if deadline is not None and time.monotonic() > deadline:
                reached = store.views.committed(self.group).frontier
                raise DeadlineError(f"group {self.group} has reached {reached}, not {wanted}, after {timeout} s")
            time.sleep(POLL)
        return store.views.committed(self.group).frontier

    def _drained(self, maintainer: Maintainer, wanted: Frontier) -> bool:
        found = maintainer.catalog.definitions().maintained()
        if any(one.status is ViewStatus.BUILDING for one in found):
            return False
        streamed = [one for one in found if one.group == self.group]
        return not streamed or maintainer.store.views.committed(self.group).frontier >= wanted

    def check(self) -> None:
        """Raise what made the pipeline fail, if it has failed."""
        if self._failure is not None and self._steward is not None and self._query is not None and self._query.isActive:
            raise self._failure
        if self._query is None or self._query.isActive:
            return
        problem = self._query.exception()
        if problem is not None:
            raise self._failure or told(problem, f"the pipeline of group {self.group} has stopped")

    def _fail(self, error: EverviewError) -> None:
        self._failure = error

    def _run(self, batch: DataFrame, batch_id: int) -> None:
        """Called by Spark, in this process. Spark's number of the batch says nothing: where the
        store has no epoch under way, it has committed this batch already. An error keeps its
        type on the way to the caller."""
        try:
            with self._epoch:
                maintainer = self._maintainer
                begun = None if maintainer is None else maintainer.store.views.begun(self.group)
                if maintainer is not None and begun is not None:
                    self._do(maintainer, begun, batch)
        except Exception as error:
            if self._stopping:
                return  # it was given up; the next start resumes it
            what = f"an epoch of group {self.group} failed"
            self._failure = error if isinstance(error, EverviewError) else told(error, what)
            raise self._failure from None  # Spark chokes on the long texts of Java's errors

    def _do(self, maintainer: Maintainer, begun: Begun, batch: DataFrame) -> None:
        epochs = maintainer.epochs
        assert isinstance(epochs, SparkEpochs)
        task = EpochTask.from_bytes(begun.plan)
        try:
            epochs.ended(begun, task, epochs.over(begun, task, batch))
        except Exception:
            # where the steward has done the same epoch meanwhile, there is nothing left to do
            if maintainer.store.views.committed(self.group).epoch < begun.epoch:
                raise


_RAISED = re.compile(
    r"^(?:[a-z_]\w*\.)*([A-Z]\w*(?:Error|Exception|Interrupt)): ([^\n]*(?:\n  (?:why|do): [^\n]*)*)", re.M
)
_JAVA = re.compile(r"^(?:: |Caused by: )(?:[a-z_]\w*\.)*([A-Z]\w*(?:Error|Exception)): ([^\n]*)", re.M)
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
    known = raised[-1:] or _JAVA.findall(str(error))[:1]
    return EverviewError(what, detail=": ".join(known[0]) if known else str(error).strip().partition("\n")[0])
