"""Everview keeps SQL views of key-value tables up to date."""

from everview.change.frontier import Frontier
from everview.change.schema import Column, Schema
from everview.change.types import Type
from everview.client.database import Database, open
from everview.client.result import Result
from everview.errors import EverviewError

__all__ = ["Column", "Database", "EverviewError", "Frontier", "Result", "Schema", "Type", "open"]
