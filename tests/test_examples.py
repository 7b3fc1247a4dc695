"""Every example in a docstring of Everview does what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import everview
from everview.change.frontier import Frontier, Position
from everview.change.schema import Column, Schema
from everview.change.types import parse_type

VOCABULARY = {found.__name__: found for found in (Column, Frontier, Position, Schema, parse_type)}
"""Names an example may use without saying where they come from."""


@pytest.mark.parametrize("name", [found.name for found in pkgutil.walk_packages(everview.__path__, "everview.")])
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name), extraglobs=VOCABULARY).failed == 0
