"""A store that somebody has tampered with: what is recorded of its views reads no file, and says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import everview
from everview.errors import DamagedEntryError
from everview.maintain import plans
from everview.maintain.plans import GROUPS, PLANS
from everview.maintain.recorded_plans import RecordedPlan

SECRET = "the content of a file"

USES: dict[str, Callable[[everview.Database], object]] = {
    "verify": lambda db: db.verify().to_dict(),
    "verify state": lambda db: db.verify(state=True).to_dict(),
    "rebuild": lambda db: db.rebuild(),
    "explain": lambda db: db.sql("EXPLAIN SELECT * FROM over").rows(),
    "select": lambda db: [db.sql(f"SELECT * FROM {name}").rows() for name in ("v", "w", "over", "sorted")],
    "scan": lambda db: [db.view(name).scan().rows() for name in ("v", "w", "sorted")],
    "write": lambda db: _written(db),
    "recording": lambda db: _recorded(db),
}


def _written(db: everview.Database) -> object:
    db.table("t").put({"id": 5, "n": "x"})
    db.flush()
    return db.view("v").scan().rows()


def _recorded(db: everview.Database) -> object:
    with db.recording("v") as history:
        db.table("t").put({"id": 6, "n": "x"})
    return history.base_states(), history.view_states()


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret.txt"
    file.write_text(SECRET, "utf-8")
    return file


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with everview.open(tmp_path / "store", durability="none") as db:
        db.sql("""
            CREATE TABLE t (id BIGINT PRIMARY KEY, n VARCHAR);
            INSERT INTO t VALUES (1, 'a');
            CREATE VIEW over AS SELECT id, n FROM t;
            CREATE MATERIALIZED VIEW v AS SELECT id, n FROM t WHERE id > 0;
            CREATE MATERIALIZED VIEW w AS SELECT id, n FROM over WHERE id < 9;
            CREATE MATERIALIZED VIEW sorted AS SELECT id, n FROM t ORDER BY n DESC;
        """)
        db.flush()
    return tmp_path / "store"


def tamper(place: Path, name: str, **changes: object) -> None:
    """Change what is recorded of a view."""
    with everview.open(place) as db:
        one = db.catalog.definitions().find(name)
        assert one is not None
        document = f"{'query' if name == 'over' else 'view'}/{one.id}"
        metadata = db.store.metadata
        recorded = json.loads(metadata.documents(document)[1][document]) | changes
        metadata.commit(metadata.version(), {document: json.dumps(recorded).encode()}, [])


def refused(place: Path, use: str, name: str) -> bool:
    """Whether a use is refused with the name of the view; a message never shows what is in a file."""
    message = ""
    with everview.open(place) as db:
        try:
            found = repr(USES[use](db))
        except DamagedEntryError as error:
            found, message = str(error), error.message
    assert SECRET not in found
    return f"the recorded definition of view {name} cannot be used" in message


QUERIES = {
    "file": "SELECT 1 AS id, content AS n FROM read_text('{secret}')",
    "file by name": "SELECT 1 AS id, a AS n FROM '{secret}' AS f(a)",
    "file in a subquery": "SELECT id, (SELECT content FROM read_text('{secret}')) AS n FROM t",
    "settings": "WITH a AS (SELECT 1) SELECT 1 AS id, value AS n FROM duckdb_settings()",
    "another schema": "WITH a AS (SELECT 1) SELECT 1 AS id, table_name AS n FROM information_schema.tables",
    "time": "SELECT id, CAST(now() AS VARCHAR) AS n FROM t",
    "two statements": "SELECT id, n FROM t; COPY (SELECT 1) TO '{secret}.written'",
    "no query": "COPY (SELECT 1) TO '{secret}.written'",
    "end of the statement": "SELECT 1, 'a') AS answer(id, n); COPY (SELECT 1) TO '{secret}.written'; SELECT (SELECT 1",
    "unknown table": "SELECT id, n FROM elsewhere",
}


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("fields", ["sql words", "words verbatim"])
def test_a_view_whose_recorded_query_is_another(place: Path, secret: Path, query: str, fields: str) -> None:
    text = QUERIES[query].format(secret=secret)
    tamper(place, "v", **{field: "differs" if field == "verbatim" else text for field in fields.split()})
    assert refused(place, "verify", "v") and refused(place, "rebuild", "v")
    if query == "file":
        assert {use for use in USES if refused(place, use, "v")} >= {"verify state", "explain", "recording"}
    assert list(secret.parent.glob("*.written")) == []
    with everview.open(place) as db:  # and one can get rid of it
        db.sql("DROP MATERIALIZED VIEW v")
        db.flush()
        assert db.verify().right


@pytest.mark.parametrize("query", [query for query in QUERIES if query not in ("time", "end of the statement")])
def test_words_that_are_others(place: Path, secret: Path, query: str) -> None:
    """The words are what verify asks first; the view is maintained by its recorded query."""
    tamper(place, "v", words=QUERIES[query].format(secret=secret))
    several = query in ("two statements", "no query")
    assert refused(place, "verify", "v") == (not several) and not refused(place, "write", "v")
    assert list(secret.parent.glob("*.written")) == []


@pytest.mark.parametrize("query", [query for query in QUERIES if query != "time"])
def test_a_named_query_that_is_another(place: Path, secret: Path, query: str) -> None:
    tamper(place, "over", sql=QUERIES[query].format(secret=secret))
    for use in ("verify", "select", *(("rebuild", "explain") if query == "file" else ())):
        with everview.open(place) as db, pytest.raises(everview.EverviewError, match=r"over|read") as raised:
            USES[use](db)
        assert SECRET not in str(raised.value)
    assert list(secret.parent.glob("*.written")) == []


@pytest.mark.parametrize("digest_too", [False, True])
def test_an_order_that_reads_a_file(place: Path, secret: Path, digest_too: bool) -> None:
    """The plan, too, holds expressions, and is named by a digest of its bytes."""
    with everview.open(place) as db:
        metadata = db.store.metadata
        history = json.loads(metadata.documents(GROUPS + "main")[1][GROUPS + "main"])
        digest = history[0][0]
        plan = json.loads(plans.Plans(db.store, db.catalog).load(digest).to_bytes())
        (view,) = (kind for kind in plan["plan"]["views"] if kind["members"][0][0] == "sorted")
        view["order"][0]["sql"] = f"error((SELECT content FROM read_text('{secret}')))"
        changed = RecordedPlan("", 0, json.dumps(plan).encode())
        if digest_too:
            digest = history[0][0] = changed.digest
        documents = {PLANS + digest: changed.to_bytes(), GROUPS + "main": json.dumps(history).encode()}
        metadata.commit(metadata.version(), documents, [])
    plans._decoded.clear()
    with everview.open(place) as db, pytest.raises(everview.EverviewError) as raised:
        db.view("sorted").scan().rows()
    assert SECRET not in str(raised.value)
    assert digest_too or f"plan {digest} cannot be read" in raised.value.message


@pytest.mark.parametrize("names", [("v",), ("over",)])
def test_what_is_made_of_itself(place: Path, names: tuple[str, ...]) -> None:
    with everview.open(place) as db:
        ids = [found.id for name in names if (found := db.catalog.definitions().find(name)) is not None]
    for name in names:
        tamper(place, name, depends_on=ids)
    with pytest.raises(DamagedEntryError, match="it is made of itself"), everview.open(place) as db:
        db.verify()


DAMAGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "a list": lambda _: [],
    "nested": lambda _: json.loads("[" * 900 + "]" * 900),
    "no columns": lambda plain: plain | {"columns": 7},
    "a column": lambda plain: plain | {"columns": [[1, 2, 3]]},
    "an order": lambda plain: plain | {"order": [[1, 2, 3, 4, 5]]},
    "a huge number": lambda plain: plain | {"created": 1e999, "id": 1e999},
    "dependencies": lambda plain: plain | {"depends_on": 5},
    "nothing": lambda plain: dict.fromkeys(plain) | {"format": plain["format"]},
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_documents_of_anything(place: Path, damage: str) -> None:
    with everview.open(place) as db:
        name = f"view/{db.catalog.view('v').id}"
        metadata = db.store.metadata
        plain = json.loads(metadata.documents(name)[1][name])
        metadata.commit(metadata.version(), {name: json.dumps(DAMAGES[damage](plain)).encode()}, [])
    with pytest.raises(DamagedEntryError, match=f"document {name} cannot be read"), everview.open(place) as db:
        db.verify()
