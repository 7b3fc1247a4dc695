"""Sessions: read your writes and monotonic reads, over views, groups and processes."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

import everview
from everview.client import freshness
from everview.errors import DeadlineError, InputError


@pytest.fixture
def totals(shop: everview.Database) -> everview.Database:
    shop.sql("CREATE MATERIALIZED VIEW totals AS SELECT customer, sum(amount) AS total FROM orders GROUP BY customer")
    shop.sql("CREATE MATERIALIZED VIEW count_all WITH (refresh = 'lazy') AS SELECT count(*) AS n FROM orders")
    return shop


def total(amount: str) -> dict[str, object]:
    return {"customer": 10, "total": Decimal(amount)}


def test_a_session_reads_what_it_wrote(totals: everview.Database) -> None:
    with totals.session() as session:
        orders, view = session.table("orders"), session.view("totals")
        assert view.get(10) == total("5.50")
        orders.put({"id": 7, "customer": 10, "amount": 1})
        assert view.get(10) == total("6.50")
        orders.put_many([{"id": 8, "customer": 10, "amount": 1}, {"id": 9, "customer": 10, "amount": 1}])
        assert view.get_many([10]).to_pylist() == [total("8.50")]
        orders.delete(7)
        assert view.scan((10,)).dicts() == [total("7.50")]
        orders.delete_many([8, 9])
        assert session.sql("SELECT * FROM totals WHERE customer = 10").dicts() == [total("5.50")]
        with session.batch() as batch:
            batch.table("orders").put({"id": 7, "customer": 11, "amount": 1})
        assert view.count() == 4
        session.sql("INSERT INTO orders VALUES (8, 10, 2, NULL)")
        assert view.get(10) == total("7.50")
        session.sql("UPDATE orders SET amount = 3 WHERE id = 8")
        assert view.get(10) == total("8.50")
        session.sql("DELETE FROM orders WHERE id = 8")
        assert view.get(10) == total("5.50")
        assert session.view("count_all").get() == {"n": 4}
        assert totals.view("totals").get(10) == total("5.50")
    assert totals.view("count_all").get() == {"n": 3}


def test_what_others_write_is_not_waited_for(totals: everview.Database) -> None:
    with totals.session() as session:
        view = session.view("totals")
        assert view.get(10) == total("5.50")
        totals.table("orders").put({"id": 7, "customer": 10, "amount": 1})
        assert view.get(10) == total("5.50")
        assert view.get(10, fresh=True) == total("6.50")
        assert view.get(10) == total("6.50"), "what was seen once is seen ever after"


def test_what_one_view_showed_all_others_show(totals: everview.Database) -> None:
    """Also where the other is of a group that lags behind."""
    for read in ("get", "scan", "sql"):
        totals.flush()
        count = totals.table("orders").count()
        with totals.session() as session:
            totals.table("orders").put({"id": 100 + count, "customer": 1, "amount": 1})
            totals._freshness.wait("main", totals.store.log.latest())
            assert totals.view("count_all").get() == {"n": count}
            if read == "get":
                session.view("totals").get(1)
            elif read == "scan":
                session.view("totals").scan()
            else:
                session.sql("SELECT * FROM totals").rows()
            assert session.view("count_all").get() == {"n": count + 1}
            assert session.sql("SELECT n FROM count_all").rows() == [(count + 1,)]


def test_a_token_goes_on_in_another_process(totals: everview.Database, tmp_path: Path) -> None:
    with totals.session() as session:
        session.table("orders").put({"id": 7, "customer": 10, "amount": 1})
        token = session.token
    with everview.open(tmp_path / "store") as other:
        assert other.view("totals").get(10) == total("5.50")
        with other.session(token) as again:
            assert again.token == token
            assert again.view("totals").get(10) == total("6.50")
    assert totals.session(token).frontier == everview.Frontier.parse(token)


def test_a_token_of_another_store(totals: everview.Database) -> None:
    with pytest.raises(InputError, match="ahead of the store"):
        totals.session("f:1=999")
    with pytest.raises(InputError, match="not a frontier"):
        totals.session("x")


def test_a_session_waits_where_much_is_missing(totals: everview.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freshness, "LITTLE", 0)
    with totals.session() as session:
        session.table("orders").put({"id": 7, "customer": 10, "amount": 1})
        with totals.store.lease("maintenance"), pytest.raises(DeadlineError, match="not as fresh"):
            session.view("totals").get(10, deadline=0)
        assert session.view("totals").get(10) == total("6.50")
    assert totals.view("totals").get(10) == total("6.50"), "an epoch has brought it"


def test_a_failed_write_moves_no_session(totals: everview.Database) -> None:
    with totals.session() as session:
        token = session.token
        with pytest.raises(InputError):
            session.table("orders").put({"id": "x"})
        with pytest.raises(ZeroDivisionError), session.batch() as batch:
            batch.table("orders").put({"id": 1})
            raise ZeroDivisionError
        assert session.token == token
