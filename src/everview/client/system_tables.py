"""System tables: the figures of views and epochs, for SELECT.

The figures of epochs, as the snapshot of a query has them, are rows of tables in the schema
``everview``.

::

    SELECT epoch, operations, staleness, predicted_staleness FROM everview.epochs WHERE group_name = 'main'
    SELECT view_name, sum(inserted + updated + deleted) FROM everview.view_updates GROUP BY ALL

They are not in the catalog: SHOW does not list them, and no view can be defined over them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pyarrow as pa

from everview.catalog import Definitions, ViewDefinition
from everview.catalog.catalog_names import CatalogNames
from everview.change.schema import Column
from everview.change.types import BIGINT, DOUBLE, INTEGER, TIMESTAMPTZ, VARCHAR, Type
from everview.client.answers import AnswerSource
from everview.maintain.figures import EpochFigures
from everview.maintain.metrics import Metrics
from everview.maintain.staleness import max_throughput
from everview.sql.namespace import SYSTEM_TABLES, NamedRelation, system_name
from everview.store.contract import TableSnapshot

Row: TypeAlias = tuple[Any, ...]
Read: TypeAlias = Callable[[Metrics, Definitions, TableSnapshot], Iterator[Row]]

_UPDATES: dict[str, Type] = {"inserted": BIGINT, "updated": BIGINT, "deleted": BIGINT}
"""Rows of views."""
_WORK: dict[str, Type] = {
    "operations": BIGINT,
    "rows_taken_in": BIGINT,
    "changes": BIGINT,
    **_UPDATES,
    "bytes_shuffled": BIGINT,
    "quarantined": BIGINT,
    "unreadable": BIGINT,
    "seconds": DOUBLE,
}
"""The figures of an epoch, and their sums over all epochs."""

COLUMNS: dict[str, dict[str, Type]] = {
    "epochs": {
        "group_name": VARCHAR,
        "epoch": BIGINT,
        "committed": TIMESTAMPTZ,
        "servers": INTEGER,
        **_WORK,
        "waited_seconds": DOUBLE,
        "worked_seconds": DOUBLE,
        "last_commit_seconds": DOUBLE,
        "lag_operations": BIGINT,
        "lag_seconds": DOUBLE,
        "queue": BIGINT,
        "staleness": DOUBLE,
        "predicted_staleness": DOUBLE,
    },
    "stages": {
        "group_name": VARCHAR,
        "epoch": BIGINT,
        "stage": INTEGER,
        "tasks": INTEGER,
        "seconds": DOUBLE,
        "part": VARCHAR,
        "part_seconds": DOUBLE,
    },
    "view_updates": {
        "group_name": VARCHAR,
        "epoch": BIGINT,
        "committed": TIMESTAMPTZ,
        "view_name": VARCHAR,
        **_UPDATES,
    },
    "groups": {
        "group_name": VARCHAR,
        "kind": VARCHAR,
        "since": TIMESTAMPTZ,
        "epochs": BIGINT,
        **_WORK,
        "latency": DOUBLE,
        "rest": DOUBLE,
        "max_throughput": DOUBLE,
    },
    "views": {
        "view_name": VARCHAR,
        "group_name": VARCHAR,
        "since_epoch": BIGINT,
        **_UPDATES,
        "validated": VARCHAR,
    },
}
"""The columns of each table."""


def _epochs(metrics: Metrics, definitions: Definitions, snapshot: TableSnapshot) -> Iterator[Row]:
    for group, one in _remembered(metrics, definitions, snapshot):
        yield (
            group,
            one.epoch,
            _moment(one.time),
            one.servers,
            one.operations,
            one.rows,
            one.changes,
            *one.updates,
            one.shuffled,
            one.quarantined,
            one.unreadable,
            one.seconds,
            one.waited,
            one.worked,
            one.commit,
            one.lag,
            one.lag_seconds,
            one.queue,
            one.staleness,
            one.predicted,
        )


def _stages(metrics: Metrics, definitions: Definitions, snapshot: TableSnapshot) -> Iterator[Row]:
    for group, one in _remembered(metrics, definitions, snapshot):
        for stage in one.stages:
            for part, seconds in stage.parts.items():
                yield group, one.epoch, stage.stage, stage.tasks, stage.seconds, part, seconds


def _view_updates(metrics: Metrics, definitions: Definitions, snapshot: TableSnapshot) -> Iterator[Row]:
    """Of existing views, since their creation."""
    for group in definitions.groups():
        sums = metrics.sums(snapshot, group.name)
        if sums is None:
            continue
        since = {one.name: sums.views[one.name].since for one in definitions.maintained()}
        for one in metrics.last(snapshot, group.name):
            for name, three in one.views.items():
                if since.get(name, one.epoch + 1) <= one.epoch:
                    yield group.name, one.epoch, _moment(one.time), name, *three


def _groups(metrics: Metrics, definitions: Definitions, snapshot: TableSnapshot) -> Iterator[Row]:
    for group in definitions.groups():
        sums = metrics.sums(snapshot, group.name)
        if sums is None:
            continue
        one, last = sums.totals, metrics.last(snapshot, group.name, 1)
        servers = last[0].servers if last else 1
        yield (
            group.name,
            str(group.kind),
            _moment(one.since),
            one.epochs,
            one.operations,
            one.rows,
            one.changes,
            *one.updates,
            one.shuffled,
            one.quarantined,
            one.unreadable,
            one.seconds,
            one.pace.latency if one.pace.known else None,
            one.pace.rest if one.pace.known else None,
            max_throughput(servers, one.pace.latency),
        )


def _views(metrics: Metrics, definitions: Definitions, snapshot: TableSnapshot) -> Iterator[Row]:
    for group in definitions.groups():
        sums = metrics.sums(snapshot, group.name)
        for one in definitions.maintained():
            if one.group == group.name:
                found = None if sums is None else sums.views[one.name]
                yield (
                    one.name,
                    group.name,
                    *((None, 0, 0, 0) if found is None else (found.since or None, *found.updates)),
                    one.validated or None if isinstance(one, ViewDefinition) else None,
                )


READERS: dict[str, Read] = {
    "epochs": _epochs,
    "groups": _groups,
    "stages": _stages,
    "view_updates": _view_updates,
    "views": _views,
}

SYSTEM_RELATIONS = {
    system_name(name): NamedRelation(
        system_name(name), "table", tuple(Column(column, kind) for column, kind in COLUMNS[name].items()), bag=True
    )
    for name in SYSTEM_TABLES
}
"""The tables as queries see them."""


class SystemNames(CatalogNames):
    """The catalog together with the system tables."""

    def find(self, name: str) -> NamedRelation | None:
        return SYSTEM_RELATIONS.get(name) or super().find(name)


def system_source(name: str, metrics: Metrics, definitions: Definitions, snapshot: TableSnapshot) -> AnswerSource:
    """The rows of one of the tables."""
    table = next(one for one in SYSTEM_TABLES if system_name(one) == name)
    schema = pa.schema([pa.field(column, kind.arrow) for column, kind in COLUMNS[table].items()])

    def scan() -> Iterator[pa.RecordBatch]:
        rows = list(READERS[table](metrics, definitions, snapshot))
        columns = zip(*rows, strict=True) if rows else [()] * len(schema)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return AnswerSource(schema, scan)


def _remembered(
    metrics: Metrics, definitions: Definitions, snapshot: TableSnapshot
) -> Iterator[tuple[str, EpochFigures]]:
    for group in definitions.groups():
        for one in metrics.last(snapshot, group.name):
            yield group.name, one


def _moment(seconds: float) -> int:
    """Microseconds, as a timestamp counts them."""
    return round(seconds * 1_000_000)
