"""Queries that take too long are given up, and nothing else is."""

from __future__ import annotations

import os
import threading

import duckdb
import pytest

from everview.sql.patience import given_up
from everview.sql.settings import connect

ENDLESS = "SELECT sum(a.range * b.range) FROM range(10_000_000) a, range(10_000_000) b"


def test_a_query_that_takes_too_long_is_given_up() -> None:
    connection = connect()
    with pytest.raises(duckdb.InterruptException), given_up(connection, 0.01):
        connection.execute(ENDLESS)
    assert connection.execute("SELECT 42").fetchall() == [(42,)]


def test_each_query_has_its_own_time() -> None:
    """One with a long time that came first does not keep the watch from one with a short time."""
    patient, hasty = connect(), connect()
    with given_up(patient, 3600):
        with pytest.raises(duckdb.InterruptException), given_up(hasty, 0.01):
            hasty.execute(ENDLESS)
        assert patient.execute("SELECT 42").fetchall() == [(42,)]


def test_a_query_that_has_ended_is_not_interrupted_afterwards() -> None:
    """The time of the first runs out while the second runs on the same connection."""
    connection, other = connect(), connect()
    with given_up(connection, 0.05):
        pass
    ended = threading.Event()

    def later() -> None:
        with pytest.raises(duckdb.InterruptException), given_up(other, 0.2):
            other.execute(ENDLESS)
        ended.set()

    thread = threading.Thread(target=later)
    thread.start()
    while not ended.is_set():
        assert connection.execute("SELECT sum(range) FROM range(100_000)").fetchall() == [(4999950000,)]
    thread.join()


def test_a_forked_child_gives_up_queries_too() -> None:
    with given_up(connect(), 3600):
        child = os.fork()
        if child == 0:
            connection = connect()
            try:
                with given_up(connection, 0.01):
                    connection.execute(ENDLESS)
            except duckdb.InterruptException:
                os._exit(7)
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
