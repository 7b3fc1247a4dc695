"""The pipeline: a streaming query that keeps a group's views up to date.

A pipeline is the source, the function that runs epochs, and Spark between
them; it can be killed and started again anywhere, with or without its checkpoint, because
what has been done stands in the store.

    >>> with Pipeline(path, spark=new_session()) as pipeline:    # doctest: +SKIP
    ...     orders.put({"id": 1, "customer": 7, "amount": 10})
    ...     pipeline.drain()
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from everview.catalog import MAIN, Catalog, ViewStatus
from everview.change.frontier import Frontier
from everview.errors import DefinitionError, EpochError, EverviewError
from everview.maintain import Maintainer, Plans
from everview.maintain.coordination import SERVERS, holder_of, require_servers, set_servers
from everview.maintain.epochs import streamed
from everview.maintain.maintainer import LEASE
from everview.maintain.rounds import Rounds, deadline_in
from everview.maintain.scheduler import Scheduler
from everview.scratch import scratch
from everview.store.contract import Store
from everview.store.opened import machine, open_store
from everview.zones.batches import RemoteBatches
from everview.zones.failures import error_of
from everview.zones.protection import is_remote, require_secret
from everview.zones.reports import EpochReport
from everview.zones.session import gone, prepared
from everview.zones.source import NAME
from everview.zones.spark_executor import SparkExecutor

POLL = 0.005
BESIDE = 0.05
"""Seconds between two turns of the scheduler beside the stream in which there was nothing to do."""
LOOK = 0.1
"""Seconds after which Spark is asked again whether the stream still runs: through Spark Connect that takes
some milliseconds."""
KEPT_REPORTS = 1000


class Pipeline:
    """Maintains the views of a store on Spark: one group with ``foreachBatch``, the others beside it.

    ``spark`` is a session of this process, on any master, or one of Spark Connect. ``servers`` is the
    number of view servers, which may be changed while the pipeline runs; ``operations`` the most log
    entries of an epoch (a batch is never cut, so one larger batch is an epoch of its own).
    ``checkpoint`` is where Spark keeps its offsets; without one they are forgotten at the end. ``wait``
    is how long to wait for another pipeline of the store to end.
    """

    EXECUTOR = SparkExecutor
    """What does the work of epochs."""

    def __init__(
        self,
        place: str | Path,
        *,
        spark: SparkSession,
        group: str = MAIN,
        servers: int = SERVERS,
        operations: int = 250_000,
        checkpoint: str | Path | None = None,
        wait: float | None = 0,
    ) -> None:
        self.place = str(Path(place).absolute())
        self.group = group
        self._servers = require_servers(servers)
        self.reports: deque[EpochReport] = deque(maxlen=KEPT_REPORTS)
        """What the last epochs did, the newest at the end; through Spark Connect only those that this
        process did beside the stream."""
        self._given = spark
        self._spark = spark
        """The session beside it that is ours, while the pipeline runs."""
        self._operations = operations
        self._checkpoint = None if checkpoint is None else str(checkpoint)
        self._wait = wait
        self._held = contextlib.ExitStack()
        """What is given back at the end: the store, the lease, a checkpoint that is not kept."""
        self._maintainer: Maintainer | None = None
        self._epoch = threading.Lock()
        """Held while an epoch uses the store: Spark gives up waiting for us, we still run."""
        self._query: StreamingQuery | None = None
        self._scheduler: Scheduler | None = None
        self._failure: EverviewError | None = None
        self._stopping = False

    # -------------------------------------------------------------- life

    def start(self) -> Pipeline:
        """Maintain the views until :meth:`stop`."""
        maintainer = self._open()
        try:
            self._stream(maintainer, processingTime="0 seconds")
            self._scheduler = Scheduler(maintainer, self._failed, self.group, BESIDE)
            self._scheduler.start()
        except BaseException:
            self.stop(finish=False)
            raise
        return self

    def catch_up(self) -> None:
        """Maintain the views until they reflect what is in the logs now, then stop."""
        maintainer = self._open()
        try:
            target = maintainer.store.log.latest()
            maintainer.build()
            query = self._stream(maintainer, availableNow=True)
            with contextlib.suppress(StreamingQueryException):
                query.awaitTermination()
            self.check()
            for group in maintainer.groups():
                maintainer.advance(group, target)
            maintainer.tidy()
            maintainer.trim()
        finally:
            self.stop(finish=False)

    def _open(self) -> Maintainer:
        if self._maintainer is not None:
            raise DefinitionError(f"the pipeline of {self.place} runs already")
        self._failure = None
        self._stopping = False
        try:
            store = open_store(self.place)
            self._held.callback(store.close)
            self._held.enter_context(store.lease(LEASE, self._wait))
            set_servers(store, self._servers)
            self._spark = prepared(self._given)
            if is_remote(self._spark):
                self._held.callback(self._spark.stop)  # of a session of this process it would end Spark
            maintainer = Maintainer(
                store, Catalog(store.metadata, store.views), self._operations, executor=self._executor
            )
            maintainer.plans.resume()
            maintainer.recover()
            if store.views.begun(self.group) is not None:
                maintainer.build()  # the epoch fails, so the stream would: all views of the group are to be rebuilt
        except BaseException as error:
            self._held.close()
            if isinstance(error, EverviewError) or not isinstance(error, Exception):
                raise
            raise error_of(error, f"the pipeline of group {self.group} cannot start") from error
        self._maintainer = maintainer
        return maintainer

    def _executor(self, store: Store, plans: Plans) -> SparkExecutor:
        executor = self.EXECUTOR(store, plans, self._spark, self.place, lambda: self.servers)
        executor.report = self.reports.append
        return executor

    @property
    def servers(self) -> int:
        """How many view servers there are; a new number holds from the next epoch on."""
        return self._servers

    @servers.setter
    def servers(self, servers: int) -> None:
        self._servers = require_servers(servers)
        if self._maintainer is not None:
            set_servers(self._maintainer.store, servers)

    def _stream(self, maintainer: Maintainer, **trigger: Any) -> StreamingQuery:
        checkpoint = self._checkpoint_folder()
        try:
            options = {"path": self.place, "group": self.group, "operations": str(self._operations)}
            options["machine"] = machine()
            run: Callable[[DataFrame, int], None] = self._run
            if not is_remote(self._spark):
                require_secret()
            else:
                options["holder"] = holder_of(maintainer.store)
                run = RemoteBatches(self.place, machine(), self.group, options["holder"], self.EXECUTOR)
            source = self._spark.readStream.format(NAME).options(**options).load()
            sink = source.writeStream.foreachBatch(run).option("checkpointLocation", checkpoint)
            self._query = sink.trigger(**trigger).start()
        except Exception as error:
            raise error_of(error, f"the pipeline of group {self.group} cannot start") from error
        return self._query

    def _checkpoint_folder(self) -> str:
        """Where Spark keeps its offsets: a directory for this user only, unless it is there already."""
        if self._checkpoint is None:
            return str(self._held.enter_context(scratch()))
        if "://" not in self._checkpoint:
            Path(self._checkpoint).mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._checkpoint

    def stop(self, *, finish: bool = True) -> None:
        """Stop between two epochs: what is under way is finished and committed, and nothing new is
        begun. Without ``finish`` an epoch that is under way is given up, and resumed by the next start."""
        try:
            scheduler, self._scheduler = self._scheduler, None
            if scheduler is not None:
                scheduler.stop()
            if finish and self._maintainer is not None and self._query is not None:
                self._finish(self._maintainer, self._query)
        finally:
            self._give_up()

    def _finish(self, maintainer: Maintainer, query: StreamingQuery) -> None:
        """Let the stream come to the end of its epoch, and begin no other. One that the source began
        in the very moment is done here. Where the stream has failed, its epoch is left as it is."""
        maintainer.plans.pause(self.group)
        try:
            while self._active(query) and streamed(maintainer.store, self.group) is not None:
                time.sleep(POLL)
            with self._epoch:  # after the commit it still cleans up
                self._stopping = True
            active = self._active(query)
            self._end(query)
            if active:
                maintainer.finish(self.group)
        finally:
            maintainer.plans.resume(self.group)

    def _give_up(self) -> None:
        self._stopping = True
        query, self._query = self._query, None
        if query is not None:
            self._active(query)
            self._end(query)
        with self._epoch:
            self._maintainer = None
            self._held.close()

    def __enter__(self) -> Pipeline:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """At the end of the block what is under way is finished, and what has failed is raised; where
        an error ends the block, all is given up at once."""
        self.stop(finish=kind is None)
        if kind is None:
            self.check()

    # -------------------------------------------------------------- progress

    def drain(self, frontier: Frontier | None = None, timeout: float | None = None) -> Frontier:
        """Wait until all views are built and reflect a frontier, by default everything written so
        far."""
        maintainer = self._maintainer
        if maintainer is None:
            raise DefinitionError(f"the pipeline of group {self.group} does not run", hint="start it first")
        store = maintainer.store
        wanted = store.log.latest() if frontier is None else frontier
        rounds = Rounds(
            f"the views do not reflect {wanted} after {timeout} s",
            deadline_in(timeout),
            lambda: f"group {self.group} has reached {store.views.committed(self.group).frontier}",
        )
        looked = 0.0
        while not self._drained(maintainer, wanted):
            now = time.monotonic()
            if now > looked + LOOK:
                active = self._query is not None and self._active(self._query)
                if self._failure is not None:
                    raise self._failure
                if not active:
                    raise EpochError(f"the pipeline of group {self.group} was stopped before it reached {wanted}")
                looked = now
            rounds.pause(POLL)
        return store.views.committed(self.group).frontier

    def _drained(self, maintainer: Maintainer, wanted: Frontier) -> bool:
        found = maintainer.catalog.definitions().maintained()
        if any(one.status is ViewStatus.BUILDING for one in found):
            return False
        streamed = [one for one in found if one.group == self.group]
        return not streamed or maintainer.store.views.committed(self.group).frontier >= wanted

    def check(self) -> None:
        """Raise what made the pipeline fail, if it has failed."""
        if self._query is not None:
            self._active(self._query)
        if self._failure is not None:
            raise self._failure

    def _active(self, query: StreamingQuery) -> bool:
        """Whether the stream runs. Where it does not, what went wrong is remembered, also if Spark alone
        knows of it, or is itself gone."""
        problem: Exception | None
        try:
            if query.isActive:
                return True
            problem = query.exception()
        except Exception as error:
            gone(self._spark)
            problem = error
        if problem is not None and self._failure is None:
            self._failure = error_of(problem, f"the pipeline of group {self.group} has stopped")
        return False

    def _end(self, query: StreamingQuery) -> None:
        try:
            query.stop()
        except Exception as error:
            self._failure = self._failure or error_of(error, f"the stream of group {self.group} cannot be stopped")

    def _failed(self, error: EverviewError | None) -> bool:
        """What the scheduler has failed with ends the pipeline."""
        if error is not None:
            self._failure = error
        return error is None

    def _run(self, batch: DataFrame, batch_id: int) -> None:
        """Called by Spark, in this process. An error keeps its type on the way to the caller."""
        try:
            with self._epoch:
                maintainer = self._maintainer
                begun = None if maintainer is None else streamed(maintainer.store, self.group)
                if maintainer is not None and begun is not None:
                    executor = maintainer.epochs.executor
                    assert isinstance(executor, SparkExecutor)
                    maintainer.epochs.run(begun, executor.over(batch))
        except Exception as error:
            if self._stopping:
                return  # it was given up; the next start resumes it
            what = f"an epoch of group {self.group} failed"
            self._failure = error if isinstance(error, EverviewError) else error_of(error, what)
            raise self._failure from None  # Spark chokes on the long texts of Java's errors
