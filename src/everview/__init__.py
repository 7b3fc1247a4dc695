"""Everview keeps SQL views of key-value tables up to date."""

import importlib
from typing import TYPE_CHECKING

from everview.version import __version__ as __version__

if TYPE_CHECKING:
    from everview.change.frontier import Frontier
    from everview.change.schema import Column, Schema
    from everview.change.types import Type
    from everview.client.database import Database, open
    from everview.client.maintaining import Maintaining
    from everview.client.result import Result
    from everview.client.sessions import Session
    from everview.client.snapshot_handles import Snapshot
    from everview.client.status import Status
    from everview.client.subscriptions import Subscription, ViewChange
    from everview.errors import EverviewError

__all__ = [
    "Column",
    "Database",
    "EverviewError",
    "Frontier",
    "Maintaining",
    "Result",
    "Schema",
    "Session",
    "Snapshot",
    "Status",
    "Subscription",
    "Type",
    "ViewChange",
    "open",
]

_HOMES = {
    "Column": "everview.change.schema",
    "Database": "everview.client.database",
    "EverviewError": "everview.errors",
    "Frontier": "everview.change.frontier",
    "Maintaining": "everview.client.maintaining",
    "Result": "everview.client.result",
    "Schema": "everview.change.schema",
    "Session": "everview.client.sessions",
    "Snapshot": "everview.client.snapshot_handles",
    "Status": "everview.client.status",
    "Subscription": "everview.client.subscriptions",
    "Type": "everview.change.types",
    "ViewChange": "everview.client.subscriptions",
    "open": "everview.client.database",
}

if not TYPE_CHECKING:

    def __getattr__(name):
        """Names are loaded on first use: Spark starts processes that need few of
        them."""
        if name == "errors":
            return importlib.import_module("everview.errors")
        if name not in _HOMES:
            raise AttributeError(f"module {__name__} has no attribute {name}")
        found = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
        return found

    def __dir__():
        return sorted({*globals(), *_HOMES})
