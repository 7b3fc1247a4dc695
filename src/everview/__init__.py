"""Everview keeps SQL views of key-value tables up to date."""

from everview.change.frontier import Frontier
from everview.change.schema import Column, Schema
from everview.change.types import Type
from everview.client.database import Database, open
from everview.client.maintaining import Maintaining
from everview.client.result import Result
from everview.client.sessions import Session
from everview.client.snapshots import Snapshot
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
