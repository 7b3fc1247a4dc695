"""What a view will show, computed without an epoch, is what it shows after one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from everview.errors import DefinitionError
from everview.maintain.pending import Pending
from everview.operators.view import StoredView
from tests.maintain.kept import Kept, kept
from tests.maintain.test_building import ROWS, VIEWS, create, member, write
from tests.oracle.maintained import bag


@pytest.fixture
def k(tmp_path: Path) -> Iterator[Kept]:
    with kept(tmp_path, chunk=1000, operations=1000) as found:
        yield found


def check_pending(k: Kept) -> None:
    """Pending rows of all views, then the epochs, then the same rows."""
    pending = Pending(k.store, k.db.catalog, k.maintainer.plans)
    before = k.stored()
    seen = {}
    with k.store.snapshot() as snapshot:
        for one in k.live():
            bound = k.maintainer.plans.at(one.group, snapshot.committed(one.group).epoch)
            assert bound is not None
            reader = StoredView(bound, one.name)
            laid, epoch = pending.over(one.group, one.name, snapshot), snapshot.committed(one.group).epoch
            rows = reader.rows(laid, epoch)
            seen[one.name] = bag(rows)
            table, step = reader.stored.table, 3
            whole = laid.scan(table, reader.prefix, epoch)
            assert laid.read(table, whole.keys, epoch).to_pylist() == whole.values.to_pylist()
            pages, after = [], None
            while len((page := laid.scan(table, reader.prefix, epoch, step, after)).keys):
                pages += page.keys.to_pylist()
                after = pages[-1]
                assert len(page.keys) <= step
            assert pages == whole.keys.to_pylist() == sorted(pages)
    assert k.stored() == before, "nothing was written"
    k.settle()
    assert seen == {one.name: bag(k.rows(one.name)) for one in k.live()}


def test_pending_rows_are_those_of_the_next_epoch(k: Kept) -> None:
    k.sql(ROWS + "".join(map(create, VIEWS)) + member(1) + member(3))
    k.sql(create("above", "SELECT k, total FROM sums WHERE n > 1") + "CREATE INDEX by_s ON a (s);")
    k.sql(create("later", VIEWS["ends"], "WITH (refresh = 'lazy')"))
    k.settle()
    check_pending(k)
    for step in range(2):
        write(k, step)
        if step % 2:
            k.sql(f"DELETE FROM a WHERE k = {step}; DELETE FROM b WHERE k = {step}")
        check_pending(k)
    k.sql("ALTER TABLE a ADD COLUMN more INTEGER")
    k.sql("UPDATE a SET more = 1, x = x + 1")
    check_pending(k)


def test_an_earlier_frontier_can_be_asked_for(k: Kept) -> None:
    k.sql(ROWS + create("sums"))
    k.settle()
    write(k, 1)
    middle = k.store.log.latest()
    write(k, 2)
    pending = Pending(k.store, k.db.catalog, k.maintainer.plans)
    with k.store.snapshot() as snapshot:
        epoch = snapshot.committed("main").epoch
        bound = k.maintainer.plans.at("main", epoch)
        assert bound is not None
        rows = StoredView(bound, "sums").rows(pending.over("main", "sums", snapshot, middle), epoch)
    k.maintainer.advance("main", middle)
    k.check()
    assert bag(k.rows("sums")) == bag(rows)


def test_a_view_that_is_being_built_has_no_pending_rows(k: Kept) -> None:
    k.sql(ROWS + create("sums"))
    with k.store.snapshot() as snapshot, pytest.raises(DefinitionError, match="sums is not built yet"):
        Pending(k.store, k.db.catalog, k.maintainer.plans).over("main", "sums", snapshot)
