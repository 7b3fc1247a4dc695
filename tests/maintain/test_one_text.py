"""Views that are created in one text are recorded in one change and built together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import everview
from everview.catalog import GroupKind, ViewStatus
from everview.errors import DuplicateObjectError, EverviewError, SqlRefusedError
from everview.maintain.plans import Plans


@pytest.fixture
def db(tmp_path: Path) -> Iterator[everview.Database]:
    with everview.open(tmp_path / "store", durability="none") as found:
        found.sql("CREATE TABLE a (id INTEGER PRIMARY KEY, k INTEGER, x INTEGER)")
        found.sql("INSERT INTO a SELECT i, i % 4, i FROM range(20) t(i)")
        yield found


def text(number: int) -> str:
    return f"CREATE MATERIALIZED VIEW v{number} AS SELECT id, x FROM a WHERE x > {number};"


def builds(db: everview.Database) -> int:
    """How many builds there ever were."""
    _, past = db.store.metadata.documents(f"history/group/{GroupKind.BUILDING}-")
    return len({name.split("/")[2] for name in past})


def test_a_text_is_one_build(db: everview.Database) -> None:
    db.sql("".join(map(text, range(12))) + "CREATE INDEX i ON a (k);" + text(12))
    assert builds(db) == 1
    assert {one.status for one in db.catalog.definitions().maintained()} == {ViewStatus.LIVE}
    assert [db.sql(f"SELECT count(*) FROM v{n}").rows() for n in (0, 12)] == [[(19,)], [(7,)]]


def test_what_is_asked_in_between_finds_the_views_built(db: everview.Database) -> None:
    found = db.sql(text(1) + "SELECT count(*) FROM v1;" + text(2) + "INSERT INTO a VALUES (100, 1, 1)" + ";" + text(3))
    assert builds(db) == 3
    assert found.rows() == []
    assert db.sql(text(4) + "SELECT count(*) FROM v4").rows() == [(15,)]


def test_views_before_one_that_is_refused_are_there(db: everview.Database) -> None:
    with pytest.raises(SqlRefusedError, match="random"):
        db.sql(text(1) + text(2) + "CREATE MATERIALIZED VIEW r AS SELECT random() AS r FROM a;" + text(3))
    with pytest.raises(DuplicateObjectError, match="there is a view v2 already") as refused:
        db.sql(text(4) + "CREATE MATERIALIZED VIEW v2 WITH (refresh = 'lazy') AS SELECT 1 AS one;" + text(5))
    assert "in the statement at line 1" in str(refused.value)
    assert [view.name for view in db.catalog.views()] == ["v1", "v2", "v4"]
    assert {view.status for view in db.catalog.views()} == {ViewStatus.LIVE}
    assert [group.name for group in db.catalog.groups()] == ["main"], "what was refused left no group"


def test_a_view_may_read_those_before_it_in_the_text(db: everview.Database) -> None:
    db.sql(text(1) + "CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM v1;" + text(2))
    assert builds(db) == 1
    assert db.sql("SELECT * FROM n").rows() == [(18,)]
    with pytest.raises(EverviewError, match="w"):
        db.sql("CREATE MATERIALIZED VIEW z AS SELECT * FROM w; CREATE MATERIALIZED VIEW w AS SELECT 1 AS one")


def test_notices_of_all_views_come_together(db: everview.Database) -> None:
    db.sql(text(1))
    found = db.sql(
        "CREATE MATERIALIZED VIEW IF NOT EXISTS v1 AS SELECT 1 AS one;"
        "CREATE MATERIALIZED VIEW p AS SELECT a.id, b.id AS other FROM a JOIN a AS b ON a.x < b.x"
    )
    assert found.notices[0] == "view v1 exists already" and len(found.notices) == 2


def test_views_of_a_template_are_compiled_once(db: everview.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[object] = []
    compile_again = Plans._compiled

    def counted(self: Plans, *said: Any) -> Any:
        compiled.append(said)
        return compile_again(self, *said)

    monkeypatch.setattr(Plans, "_compiled", counted)
    db.sql("".join(map(text, range(30))))
    assert len(compiled) == 1
    with everview.open(db.store.directory, create=False) as again:  # type: ignore[attr-defined]
        again.sql("DROP MATERIALIZED VIEW v3; INSERT INTO a VALUES (500, 1, 500)")
        again.flush()
        assert again.sql("SELECT count(*) FROM v29").rows() == [(1,)]
        again.sql(text(40))
        assert len(compiled) == 2, "another process compiles the view that is new, and no other"
        before = {table.id for view in again.catalog.views() for table in view.state}
        monkeypatch.setattr("everview.maintain.plans.__version__", "0.0.1")
        again.sql(text(50))
        assert len(compiled) > 20, "another version compiles what is recorded"
        assert {table.id for view in again.catalog.views() for table in view.state} == before, "and has the same plan"
