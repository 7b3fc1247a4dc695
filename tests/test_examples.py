"""Every example in a docstring of Everview does what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import everview


@pytest.mark.parametrize("name", [found.name for found in pkgutil.walk_packages(everview.__path__, "everview.")])
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
