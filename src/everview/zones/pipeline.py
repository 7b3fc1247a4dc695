"""The pipeline on Spark: the views of a store kept up to date, large epochs by a streaming query.

It maintains the views in its own process from the first moment. Spark may start meanwhile; once the stream runs, large
epochs are handed over to it, and small ones, which cost less than a Spark job, stay here.

::

    lease ──▶ mover and scheduler in this process ──────────────────────▶ small epochs
    Spark starts ──▶ the stream runs ──▶ hand-over ─────────────────────▶ large epochs

A pipeline is the source, the function that runs epochs, and Spark between
them; it can be killed and started again anywhere, with or without its checkpoint, because
what has been done stands in the store.

    >>> with Pipeline(path, spark=new_session()) as pipeline:    # doctest: +SKIP
    ...     orders.put({"id": 1, "customer": 7, "amount": 10})
    ...     pipeline.drain()
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from everview.catalog import MAIN
from everview.errors import EverviewError
from everview.maintain.coordination import SERVERS, holder_of, require_servers, set_servers
from everview.maintain.epoch_sizes import CEILING, EpochSizes, require_border
from everview.maintain.epochs import offered
from everview.maintain.local_pipeline import LocalPipeline
from everview.maintain.maintainer import Maintainer
from everview.scratch import scratch
from everview.store.opened import machine, open_store
from everview.zones.batches import RemoteBatches
from everview.zones.failures import error_of
from everview.zones.protection import is_remote, require_secret
from everview.zones.session import gone, prepared
from everview.zones.source import NAME
from everview.zones.spark_executor import SparkExecutor

POLL = 0.01
LOOK = 0.1
"""Seconds after which Spark is asked again whether the stream still runs: through Spark Connect that takes
some milliseconds."""


class Pipeline(LocalPipeline):
    """Maintains the views of a store, with Spark for what is large: one group with ``foreachBatch``, others beside it.

    ``spark`` is a session of this process, on any master, or one of Spark Connect; or a function that starts one, which
    is called in a thread while the views are maintained here already. ``servers`` is the number of view servers, which
    may be changed while the pipeline runs; ``operations`` the most log entries of an epoch (a batch is never cut, so
    one larger batch is an epoch of its own). Epochs of at most ``in_driver`` entries are done in this process, and
    nothing is done before Spark is there; by default those that are done here sooner than on Spark, as measured.
    ``checkpoint`` is where Spark keeps its offsets; without one they are forgotten at the end. ``wait`` is how long to
    wait for another pipeline of the store to end.
    """

    EXECUTOR = SparkExecutor
    """What does the work of large epochs."""

    def __init__(
        self,
        place: str | Path,
        *,
        spark: SparkSession | Callable[[], SparkSession],
        group: str = MAIN,
        servers: int = SERVERS,
        operations: int = CEILING,
        in_driver: int | None = None,
        checkpoint: str | Path | None = None,
        wait: float | None = 0,
    ) -> None:
        self.place = str(Path(place).absolute())
        super().__init__(partial(open_store, self.place), group=group, operations=operations, wait=wait)
        self._in_driver = require_border(in_driver)
        self._servers = require_servers(servers)
        self._given = spark
        self._spark: SparkSession | None = None
        """The session beside the given one that is ours, while the pipeline runs."""
        self._checkpoint = None if checkpoint is None else str(checkpoint)
        self._stream_held = ExitStack()
        """What the stream has beside the query: a session of Spark Connect, a checkpoint that is not kept."""
        self._epoch = threading.Lock()
        """Held while a batch uses the store: Spark gives up waiting for us, we still run."""
        self._query: StreamingQuery | None = None
        self._on_spark: SparkExecutor | None = None
        self._starting: threading.Thread | None = None
        self._stops = threading.Event()
        self._is_handed_over = False
        self._gives_up = False
        """Whether the epoch that the stream does is left to the next start."""
        self._has_ended = False
        """Whether batches have nothing to do any more. Written while no batch uses the store."""
        self._looked = 0.0

    # -------------------------------------------------------------- life

    def start(self) -> Self:
        """Maintain the views until :meth:`stop`."""
        self._stops.clear()
        self._is_handed_over = self._gives_up = self._has_ended = False
        self._prepare()
        if self._in_driver is None:
            self._go()
        if callable(self._given):
            self._starting = threading.Thread(target=self._start_spark, name="everview-spark", daemon=True)
            self._starting.start()
            return self
        try:
            self._hand_over(self._given)
        except BaseException:
            self.stop(finish=False)
            raise
        return self

    def _sizes(self) -> EpochSizes:
        return EpochSizes(self._operations, lambda: self.servers, self._in_driver)

    def catch_up(self) -> None:
        """Maintain the views until they reflect what is in the logs now, then stop."""
        with self:
            self.drain()
            maintainer = self._maintainer
            assert maintainer is not None and self._scheduler is not None
            self._scheduler.stop()
            maintainer.tidy()
            maintainer.trimmer.hurry()
            maintainer.trim()

    def _open(self) -> Maintainer:
        maintainer = super()._open()
        set_servers(maintainer.store, self._servers)
        return maintainer

    @property
    def servers(self) -> int:
        """How many view servers there are; a new number holds from the next epoch on."""
        return self._servers

    @servers.setter
    def servers(self, servers: int) -> None:
        self._servers = require_servers(servers)
        if self._maintainer is not None:
            set_servers(self._maintainer.store, servers)

    @property
    def on_spark(self) -> bool:
        """Whether Spark has started and does large epochs."""
        return self._is_handed_over

    # -------------------------------------------------------------- Spark

    def _start_spark(self) -> None:
        """Start Spark, and hand large epochs over to it."""
        try:
            from everview.zones.rehearsal import rehearse

            assert callable(self._given)
            session = self._given()
            if not self._stops.is_set():
                seconds = rehearse(session, self._stops.is_set)
                if not self._stops.is_set():
                    self._hand_over(session, seconds)
        except Exception as error:
            what = f"the pipeline of group {self.group} cannot start"
            self._failed("spark", error if isinstance(error, EverviewError) else error_of(error, what))

    def _hand_over(self, session: SparkSession, seconds: float | None = None) -> None:
        """Start the stream, and let it do large epochs from now on. ``seconds`` are those of a small one on Spark, if
        it is known."""
        maintainer, mover = self._maintainer, self._mover
        if maintainer is None or mover is None:
            return  # it has been stopped meanwhile
        try:
            spark = self._spark = prepared(session)
            if is_remote(spark):
                self._stream_held.callback(spark.stop)  # of a session of this process it would end Spark
            on_spark = self.EXECUTOR(maintainer.store, maintainer.plans, spark, self.place, lambda: self.servers)
            self._on_spark = on_spark
            query = self._query = self._stream(maintainer)
            self._await(query)
        except EverviewError:
            raise
        except Exception as error:
            raise error_of(error, f"the pipeline of group {self.group} cannot start") from error
        executor = maintainer.executor
        if seconds is not None:
            executor.sizes.of(self.group).measured(1, seconds, here=False)
        executor.spark, executor.sizes.has_spark = on_spark, True
        self._is_handed_over = True
        mover.hand_over(self._check_stream)
        if self._in_driver is not None:
            self._go()

    def _await(self, query: StreamingQuery) -> None:
        """Wait until the stream waits for its first epoch: until its source runs."""
        while not self._stops.is_set() and not str(query.status["message"]).startswith("Waiting"):
            self._check_stream()
            time.sleep(POLL)

    def _stream(self, maintainer: Maintainer) -> StreamingQuery:
        assert self._spark is not None
        options = {"path": self.place, "group": self.group, "machine": machine()}
        run: Callable[[DataFrame, int], None] = self._run
        if not is_remote(self._spark):
            require_secret()
        else:
            options["holder"] = holder_of(maintainer.store)
            run = RemoteBatches(self.place, machine(), self.group, options["holder"], self.EXECUTOR)
        source = self._spark.readStream.format(NAME).options(**options).load()
        sink = source.writeStream.foreachBatch(run).option("checkpointLocation", self._checkpoint_folder())
        return sink.trigger(processingTime="0 seconds").start()

    def _checkpoint_folder(self) -> str:
        """Where Spark keeps its offsets: a directory for this user only, unless it is there already."""
        if self._checkpoint is None:
            return str(self._stream_held.enter_context(scratch()))
        if "://" not in self._checkpoint:
            Path(self._checkpoint).mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._checkpoint

    def stop(self, *, finish: bool = True) -> None:
        """Stop between two epochs: what is under way is finished and committed, and nothing new is
        begun. Without ``finish`` an epoch that is under way is given up, and resumed by the next start."""
        self._gives_up = not finish
        self._stops.set()
        super().stop(finish=finish)

    def _end(self) -> None:
        """End the stream, once Spark has started; a batch that still uses the store is waited for."""
        if self._starting is not None:
            self._starting.join()
        query, self._query = self._query, None
        try:
            if query is not None:
                self._is_active(query)
                try:
                    query.stop()
                except Exception as error:
                    what = f"the stream of group {self.group} cannot be stopped"
                    self._failures.setdefault("stream", error_of(error, what))
            with self._epoch:
                self._has_ended = True
        finally:
            self._stream_held.close()

    # -------------------------------------------------------------- progress

    def check(self) -> None:
        """Raise what made the pipeline fail, if it has failed."""
        now = time.monotonic()
        if now > self._looked + LOOK and not self._stops.is_set():
            self._looked = now
            try:
                self._check_stream()
            except EverviewError as error:
                self._failed("stream", error)
        super().check()

    def _check_stream(self) -> None:
        """Raise what made the stream end, if it has ended."""
        query = self._query
        if query is not None and not self._is_active(query):
            what = f"the stream of group {self.group} was stopped"
            raise self._failures.get("stream") or EverviewError(what, hint="start the pipeline again")

    def _is_active(self, query: StreamingQuery) -> bool:
        """Whether the stream runs. Where it does not, what went wrong is remembered, also if Spark alone
        knows of it, or is itself gone."""
        problem: Exception | None
        try:
            if query.isActive:
                return True
            problem = query.exception()
        except Exception as error:
            assert self._spark is not None
            gone(self._spark)
            problem = error
        if problem is not None:
            what = f"the pipeline of group {self.group} has stopped"
            self._failures.setdefault("stream", error_of(problem, what))
        return False

    def _run(self, batch: DataFrame, batch_id: int) -> None:
        """Called by Spark, in this process. An error keeps its type on the way to the caller."""
        with self._epoch:
            maintainer, executor = self._maintainer, self._on_spark
            if self._has_ended or maintainer is None or executor is None:
                return
            try:
                begun = offered(maintainer.store, self.group)
                if begun is not None:
                    maintainer.epochs.run(begun, executor)
            except Exception as error:
                if self._gives_up:
                    return
                what = f"an epoch of group {self.group} failed"
                failure = error if isinstance(error, EverviewError) else error_of(error, what)
                self._failures.setdefault("stream", failure)
                raise failure from None  # Spark chokes on the long texts of Java's errors
