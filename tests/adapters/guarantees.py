"""Tests that only some stores can pass say so."""

from __future__ import annotations

import pytest

from everview.store.contract import Store


def needs(store: Store, guarantee: str) -> None:
    """Skip a test of what this store's log does not promise."""
    if not getattr(store.log.guarantees, guarantee):
        pytest.skip(f"the store's log has no {guarantee.replace('_', ' ')}")
