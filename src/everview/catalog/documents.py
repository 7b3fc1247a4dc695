"""Catalog objects as documents: JSON bytes with a format number, and their names.

A document contains its format, its kind and the catalog version that wrote it,
so that every reader knows what it may rely on.

::

    catalog/head                        the next id, and the last version that changed a definition
    catalog/change/17                   which documents one of the last changes wrote or removed
    table/7   view/9   group/main       the current definitions
    index/11  query/12
    history/table/7/00000000000000000012    every version of each of them, the last one included
    discard/8                           a state or base table that is dropped, and whose rows may still be stored
    quarantine/…                        see everview.catalog.quarantine

A table's document is also its stamp: stores compare it inside every write, byte by byte,
so equal tables must give equal bytes (sorted keys, no spaces).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from everview.catalog.objects import (
    Derived,
    Group,
    GroupKind,
    IndexDefinition,
    NamedQuery,
    Ordering,
    Past,
    ViewDefinition,
    ViewStatus,
)
from everview.change.schema import Column, Schema
from everview.change.types import parse_type
from everview.errors import DamagedEntryError, UnsupportedFormatError
from everview.store.contract import StateTable, Table

T = TypeVar("T")

Json: TypeAlias = dict[str, Any]

FORMAT = 2
"""Documents of format 1 have no indexes, no named queries and no columns of views; they are still read."""
HEAD = "catalog/head"
TABLES, VIEWS, INDEXES, QUERIES = "table/", "view/", "index/", "query/"
GROUPS, DISCARDS = "group/", "discard/"
DEFINING = (TABLES, VIEWS, INDEXES, QUERIES, GROUPS)
"""What the names of documents begin with that define something."""
CHANGES = "catalog/change/"
KEPT_CHANGES = 256
"""How many of the last changes are recorded."""
LARGE_CHANGE = 256
"""Documents from which on a change is not recorded one by one: then all of them are read."""


def table_name(id: int) -> str:
    return f"{TABLES}{id}"


def view_name(id: int) -> str:
    return f"{VIEWS}{id}"


def derived_name(found: Derived) -> str:
    if isinstance(found, ViewDefinition):
        return view_name(found.id)
    return f"{INDEXES if isinstance(found, IndexDefinition) else QUERIES}{found.id}"


def group_name(folded: str) -> str:
    return f"{GROUPS}{folded}"


def discard_name(id: int) -> str:
    return f"{DISCARDS}{id}"


def history_prefix(name: str) -> str:
    """The prefix of the versions of the object with this document name."""
    return f"history/{name}/"


def history_name(name: str, version: int) -> str:
    return f"{history_prefix(name)}{version:020d}"


# ------------------------------------------------------------------ the envelope


def encode(kind: str, plain: Mapping[str, object]) -> bytes:
    whole = {"format": FORMAT, "kind": kind, **plain}
    return json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def decode(name: str, document: bytes, read: Callable[[Json], T]) -> T:
    """Read a document, or raise an error that names the document and the reason."""
    try:
        plain = json.loads(document)
        found = plain["format"]
        if not isinstance(found, int):
            raise TypeError(f"the format is {found!r}")
        if found <= FORMAT:
            return read(plain)
    except Exception as error:  # a damaged document may fail in any way
        raise DamagedEntryError(
            f"the catalog document {name} cannot be read",
            detail=f"{type(error).__name__}: {error}",
            hint="restore the store from a backup",
        ) from error
    raise UnsupportedFormatError(
        f"the catalog document {name} has format {found}, this version reads up to {FORMAT}",
        hint="open the store with a newer version of Everview",
    )


# ------------------------------------------------------------------ the kinds


@dataclass(frozen=True)
class Head:
    """``next_id`` only rises, so no id is used twice; ``changed`` is the catalog
    version of the last change of a definition, which lets a reader distinguish it from other
    changes of the counter. ``changes`` is the number of changes so far."""

    next_id: int = 1
    changed: int = 0
    changes: int = 0


def encode_head(head: Head) -> bytes:
    return encode("head", {"next_id": head.next_id, "changed": head.changed, "changes": head.changes})


def read_head(plain: Json) -> Head:
    return Head(int(plain["next_id"]), int(plain["changed"]), int(plain.get("changes", 0)))


@dataclass(frozen=True)
class DefinitionChange:
    """What one change of definitions wrote or removed."""

    version: int
    before: int
    """The version of the change before it."""
    names: tuple[str, ...] | None
    """Of documents that define something; None: of very many."""


def change_name(number: int) -> str:
    """Where the change with this number is recorded: in the place of a much older one."""
    return f"{CHANGES}{number % KEPT_CHANGES}"


def encode_change(change: DefinitionChange) -> bytes:
    names = change.names if change.names is not None and len(change.names) < LARGE_CHANGE else None
    return encode("change", {"version": change.version, "before": change.before, "names": names})


def read_change(plain: Json) -> DefinitionChange:
    names = plain["names"]
    return DefinitionChange(int(plain["version"]), int(plain["before"]), None if names is None else tuple(names))


def encode_table(table: Table, version: int, created: float, dropped: bool = False) -> bytes:
    plain: Json = {
        "id": table.id,
        "name": table.name,
        "schema": table.schema.to_json(),
        "version": version,
        "created": created,
    }
    return encode("table", plain | {"dropped": True} if dropped else plain)


def read_table(name: str, document: bytes) -> Table:
    return replace(decode(name, document, _table), stamp=document)


def _table(plain: Json) -> Table:
    return Table(int(plain["id"]), plain["name"], Schema.from_json(plain["schema"]))


def encode_derived(found: Derived, dropped: bool = False) -> bytes:
    """A dropped view has the status ``dropped``, other objects have a mark."""
    if isinstance(found, ViewDefinition):
        return _encode_view(replace(found, status=ViewStatus.DROPPED) if dropped else found)
    kind, plain = _index(found) if isinstance(found, IndexDefinition) else _query(found)
    plain |= {"id": found.id, "name": found.name, "version": found.version, "created": found.created}
    return encode(kind, plain | {"dropped": True} if dropped else plain)


def _encode_view(view: ViewDefinition) -> bytes:
    return encode(
        "view",
        {
            "id": view.id,
            "name": view.name,
            "sql": view.sql,
            "text": view.text,
            "dialect": view.dialect,
            "columns": _columns(view.columns),
            "key": list(view.key),
            "bag": view.bag,
            "order": [[one.sql, one.descending, one.nulls_first] for one in view.order],
            "group": view.group,
            "depends_on": list(view.depends_on),
            "seen": {str(id): version for id, version in view.seen.items()},
            "fingerprint": view.fingerprint,
            "plan": base64.b64encode(view.plan).decode(),
            "state": [[table.id, table.name] for table in view.state],
            "options": dict(view.options),
            "status": view.status,
            "version": view.version,
            "created": view.created,
            "words": view.words,
            "verbatim": view.verbatim,
            "validated": view.validated,
        },
    )


def read_view(plain: Json) -> ViewDefinition:
    return ViewDefinition(
        name=plain["name"],
        sql=plain["sql"],
        group=plain["group"],
        depends_on=tuple(plain["depends_on"]),
        fingerprint=plain["fingerprint"],
        plan=base64.b64decode(plain["plan"], validate=True),
        state=_state(plain),
        options=plain["options"],
        status=ViewStatus(plain["status"]),
        id=int(plain["id"]),
        version=int(plain["version"]),
        created=float(plain["created"]),
        text=plain.get("text", ""),
        dialect=plain.get("dialect", "duckdb"),
        columns=_read_columns(plain.get("columns", ())),
        key=tuple(plain.get("key", ())),
        bag=plain.get("bag", False),
        order=tuple(Ordering(*one) for one in plain.get("order", ())),
        seen={int(id): version for id, version in plain.get("seen", {}).items()},
        words=plain.get("words", ""),
        verbatim=plain.get("verbatim", ""),
        validated=plain.get("validated", ""),
    )


def _index(index: IndexDefinition) -> tuple[str, Json]:
    return "index", {
        "on": index.on,
        "columns": list(index.columns),
        "group": index.group,
        "fingerprint": index.fingerprint,
        "state": [[table.id, table.name] for table in index.state],
        "status": index.status,
    }


def read_index(plain: Json) -> IndexDefinition:
    return IndexDefinition(
        name=plain["name"],
        on=int(plain["on"]),
        columns=tuple(plain["columns"]),
        group=plain["group"],
        fingerprint=plain["fingerprint"],
        state=_state(plain),
        status=ViewStatus(plain["status"]),
        id=int(plain["id"]),
        version=int(plain["version"]),
        created=float(plain["created"]),
    )


def _query(query: NamedQuery) -> tuple[str, Json]:
    return "query", {
        "sql": query.sql,
        "text": query.text,
        "dialect": query.dialect,
        "columns": _columns(query.columns),
        "depends_on": list(query.depends_on),
    }


def read_query(plain: Json) -> NamedQuery:
    return NamedQuery(
        name=plain["name"],
        sql=plain["sql"],
        columns=_read_columns(plain["columns"]),
        depends_on=tuple(plain["depends_on"]),
        text=plain["text"],
        dialect=plain["dialect"],
        id=int(plain["id"]),
        version=int(plain["version"]),
        created=float(plain["created"]),
    )


def _columns(columns: Sequence[Column]) -> list[list[object]]:
    return [[column.name, str(column.type), column.nullable] for column in columns]


def _read_columns(plain: Sequence[Sequence[Any]]) -> tuple[Column, ...]:
    return tuple(Column(name, parse_type(text), nullable) for name, text, nullable in plain)


def _state(plain: Json) -> tuple[StateTable, ...]:
    return tuple(StateTable(id, name, plain["group"]) for id, name in plain["state"])


def encode_group(group: Group, dropped: bool = False) -> bytes:
    plain: Json = {"name": group.name, "group_kind": group.kind, "version": group.version, "created": group.created}
    return encode("group", plain | {"dropped": True} if dropped else plain)


def read_group(plain: Json) -> Group:
    return Group(plain["name"], GroupKind(plain["group_kind"]), int(plain["version"]), float(plain["created"]))


def encode_discard(table: Table | StateTable) -> bytes:
    plain: Json = {"id": table.id, "name": table.name}
    if isinstance(table, StateTable):
        return encode("discard", plain | {"group": table.group})
    return encode("discard", plain | {"schema": table.schema.to_json()})


def read_discard(plain: Json) -> Table | StateTable:
    if "group" in plain:
        return StateTable(int(plain["id"]), plain["name"], plain["group"])
    return _table(plain)


def read_past_table(plain: Json) -> Past[Table]:
    """An earlier version of a table has no stamp: no write uses it."""
    return Past(int(plain["version"]), _table(plain), plain.get("dropped", False))


def read_past_view(plain: Json) -> Past[ViewDefinition]:
    view = read_view(plain)
    return Past(view.version, view, view.status is ViewStatus.DROPPED)
