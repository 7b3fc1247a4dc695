"""A database with a small shop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import everview


@pytest.fixture
def db(tmp_path: Path) -> Iterator[everview.Database]:
    with everview.open(tmp_path / "store", durability="none") as database:
        yield database


@pytest.fixture
def shop(db: everview.Database) -> everview.Database:
    db.sql("""
        CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INTEGER, amount DECIMAL(10, 2), note VARCHAR);
        CREATE TABLE lines (order_id BIGINT, line INTEGER, product VARCHAR NOT NULL, PRIMARY KEY (order_id, line));
        CREATE TABLE visits (customer INTEGER, page VARCHAR);
        INSERT INTO orders VALUES (1, 10, 5.50, 'a'), (2, 20, 7, NULL), (3, NULL, NULL, 'c');
        INSERT INTO lines VALUES (1, 1, 'ham'), (1, 2, 'egg'), (2, 1, 'ham'), (3, 1, 'jam');
        INSERT INTO visits VALUES (10, 'home'), (10, 'home'), (20, 'cart'), (NULL, 'home');
    """)
    return db
