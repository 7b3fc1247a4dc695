"""CREATE, ALTER and DROP, SHOW, DESCRIBE, EXPLAIN, SET and FLUSH."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

import everview
from everview.catalog import GroupKind, ViewStatus
from everview.catalog.compiling import compiled_view
from everview.errors import (
    DeadlineError,
    DefinitionError,
    DuplicateObjectError,
    EverviewError,
    SqlRefusedError,
    SqlSyntaxError,
    UnknownColumnError,
    UnknownObjectError,
)

TOTALS = "SELECT customer, count(*) AS n, sum(amount) AS total FROM orders GROUP BY customer"


def shown(db: everview.Database, what: str) -> list[str]:
    return [row[0] for row in db.sql(f"SHOW {what}").rows()]


# ------------------------------------------------------------------ tables


def test_tables_are_created_once(db: everview.Database) -> None:
    assert db.sql("CREATE TABLE t (a INTEGER, b VARCHAR, PRIMARY KEY (b, a))").rows() == []
    assert db.catalog.table("T").schema.key == ("b", "a")
    with pytest.raises(DuplicateObjectError, match="there is a table t already"):
        db.sql("CREATE TABLE T (a INTEGER PRIMARY KEY)")
    assert db.sql("CREATE TABLE IF NOT EXISTS t (a INTEGER PRIMARY KEY)").notices == ("table t exists already",)
    db.sql("CREATE VIEW v AS SELECT 1 AS a")
    with pytest.raises(DuplicateObjectError, match="there is a view v already"):
        db.sql("CREATE TABLE IF NOT EXISTS v (a INTEGER PRIMARY KEY)")


def test_columns_are_added(shop: everview.Database) -> None:
    shop.sql("ALTER TABLE orders ADD COLUMN more INTEGER[]")
    assert shop.sql("SELECT DISTINCT more FROM orders").rows() == [(None,)]
    with pytest.raises(DuplicateObjectError, match="has a column More already"):
        shop.sql("ALTER TABLE orders ADD COLUMN More INTEGER")
    assert shop.sql("ALTER TABLE orders ADD COLUMN IF NOT EXISTS More INTEGER").notices
    assert shop.sql("ALTER TABLE IF EXISTS nope ADD COLUMN a INTEGER").notices == ("there is no table nope",)
    with pytest.raises(UnknownObjectError, match="no table nope"):
        shop.sql("ALTER TABLE nope ADD COLUMN a INTEGER")


def test_tables_are_dropped_with_their_rows(shop: everview.Database) -> None:
    shop.sql("DROP TABLE orders")
    assert shown(shop, "TABLES") == ["lines", "visits"]
    assert shop.catalog.discarded() == ()
    with pytest.raises(UnknownObjectError, match="no table orders"):
        shop.sql("DROP TABLE orders")
    assert shop.sql("DROP TABLE IF EXISTS orders").notices == ("there is no table orders",)
    shop.sql("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    assert shop.sql("SELECT * FROM orders").rows() == []


def test_what_views_read_is_dropped_with_cascade_only(shop: everview.Database) -> None:
    shop.sql(f"""
        CREATE VIEW big AS SELECT * FROM orders WHERE amount > 5;
        CREATE MATERIALIZED VIEW totals AS {TOTALS};
        CREATE MATERIALIZED VIEW above AS SELECT * FROM totals WHERE n > 1;
        CREATE INDEX by_n ON totals (n)
    """)
    with pytest.raises(DefinitionError, match="these views depend on it: big, totals, above"):
        shop.sql("DROP TABLE orders")
    with pytest.raises(DefinitionError, match="these views depend on it: above"):
        shop.sql("DROP MATERIALIZED VIEW totals")
    gone = shop.sql("DROP MATERIALIZED VIEW totals CASCADE").notices
    assert set(gone) == {"view above was dropped too", "index by_n was dropped too"}
    assert shop.sql("DROP TABLE orders CASCADE").notices == ("view big was dropped too",)


# ------------------------------------------------------------------ views


def test_a_materialized_view_is_recorded_and_built(shop: everview.Database) -> None:
    shop.sql(f"CREATE MATERIALIZED VIEW totals AS {TOTALS}")
    view = shop.catalog.view("totals")
    assert view.status is ViewStatus.LIVE and view.key == ("customer",) and view.group == "main"
    assert [column.name for column in view.columns] == ["customer", "n", "total"]
    compiled_view(view, shop.catalog.definitions())
    shop.sql("INSERT INTO orders (id, customer, amount) VALUES (4, 10, 1); FLUSH")
    found = [(customer, n, str(total)) for customer, n, total in shop.sql("SELECT * FROM totals ORDER BY ALL").rows()]
    assert found == [(10, 2, "6.50"), (20, 1, "7.00"), (None, 1, "None")]
    assert shop.sql("SELECT n FROM totals WHERE customer = 10").rows() == [(2,)]


def test_a_view_is_not_readable_before_it_is_built(shop: everview.Database) -> None:
    with shop.store.lease("maintenance"):
        shop.sql(f"CREATE MATERIALIZED VIEW totals AS {TOTALS}")
        assert shop.catalog.view("totals").status is ViewStatus.BUILDING
        for text in ("SELECT * FROM totals", "SELECT 1 FROM orders, totals"):
            with pytest.raises(DefinitionError, match="view totals is not built yet"):
                shop.sql(text)
        with pytest.raises(DeadlineError):
            shop._context.maintenance.flush(timeout=0)
    shop.sql("FLUSH")
    assert shop.sql("SELECT count(*) FROM totals").rows() == [(3,)]


def test_views_of_a_table_without_a_key(shop: everview.Database) -> None:
    shop.sql("""
        CREATE MATERIALIZED VIEW pages AS SELECT page FROM visits WHERE customer IS NOT NULL;
        CREATE MATERIALIZED VIEW counts AS SELECT page, count(*) AS n FROM pages GROUP BY page;
        CREATE INDEX by_page ON visits (page);
        INSERT INTO visits VALUES (10, 'home'), (30, 'cart');
        UPDATE visits SET page = 'exit' WHERE customer = 20;
        DELETE FROM visits WHERE customer IS NULL;
        FLUSH
    """)
    assert sorted(shop.sql("SELECT * FROM pages").rows()) == [("cart",), ("exit",), *[("home",)] * 3]
    assert sorted(shop.sql("SELECT * FROM counts").rows()) == [("cart", 1), ("exit", 1), ("home", 3)]


def test_views_are_created_replaced_or_kept(shop: everview.Database) -> None:
    shop.sql(f"CREATE MATERIALIZED VIEW v AS {TOTALS}")
    id = shop.catalog.view("v").id
    with pytest.raises(DuplicateObjectError, match="there is a view v already"):
        shop.sql(f"CREATE MATERIALIZED VIEW v AS {TOTALS}")
    kept = shop.sql("CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT id FROM orders")
    assert kept.notices == ("view v exists already",) and len(shop.catalog.view("v").columns) == 3
    shop.sql("CREATE OR REPLACE MATERIALIZED VIEW V AS SELECT id FROM orders")
    assert shop.catalog.view("v").id == id and len(shop.catalog.view("v").columns) == 1
    shop.sql("CREATE MATERIALIZED VIEW w AS SELECT * FROM v")
    with pytest.raises(DefinitionError, match=r"cannot be replaced(?s:.*)depend on it: w"):
        shop.sql("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT id FROM orders")
    with pytest.raises(DuplicateObjectError, match="there is a table orders already"):
        shop.sql("CREATE OR REPLACE MATERIALIZED VIEW orders AS SELECT line FROM lines")


def test_options_choose_the_group_of_a_view(shop: everview.Database) -> None:
    shop.sql(f"CREATE MATERIALIZED VIEW a WITH (refresh = 'lazy') AS {TOTALS}")
    shop.sql(f"CREATE MATERIALIZED VIEW b WITH (group = 'night', refresh = 'lazy') AS {TOTALS}")
    shop.sql(f"CREATE MATERIALIZED VIEW c WITH (group = 'night') AS {TOTALS}")
    groups = {group.name: group.kind for group in shop.catalog.groups()}
    own = shop.catalog.view("a").group
    assert groups == {"main": GroupKind.CONTINUOUS, own: GroupKind.LAZY, "night": GroupKind.LAZY}
    assert shop.catalog.view("c").group == "night"
    with pytest.raises(DefinitionError, match="cannot be continuous in group night"):
        shop.sql(f"CREATE MATERIALIZED VIEW d WITH (group = 'night', refresh = 'continuous') AS {TOTALS}")
    shop.sql("DROP MATERIALIZED VIEW a; DROP MATERIALIZED VIEW b; DROP MATERIALIZED VIEW c")
    assert shown(shop, "GROUPS") == ["main", "night"]


def test_plain_views_stand_for_their_query(shop: everview.Database) -> None:
    shop.sql(
        "CREATE VIEW big AS SELECT id, note FROM orders WHERE amount > 5; CREATE VIEW n (k) AS SELECT count(*) FROM big"
    )
    assert shop.sql("SELECT * FROM n").rows() == [(2,)]
    assert shop.sql("SELECT k + 1 AS x FROM n").names == ("x",)
    with pytest.raises(DefinitionError, match="depend on it: n"):
        shop.sql("CREATE OR REPLACE VIEW big AS SELECT 1 AS id")
    shop.sql("CREATE OR REPLACE VIEW n AS SELECT 7 AS k")
    assert shop.sql("SELECT * FROM n").rows() == [(7,)]
    assert shop.sql("CREATE VIEW IF NOT EXISTS n AS SELECT 8 AS k").notices == ("view n exists already",)
    shop.sql("CREATE VIEW today AS SELECT current_date AS d")
    assert len(shop.sql("SELECT * FROM today").rows()) == 1
    shop.sql("DROP VIEW n; DROP VIEW big")
    assert shop.sql("DROP VIEW IF EXISTS big").notices == ("there is no view big",)


def test_drop_says_the_right_words(shop: everview.Database) -> None:
    shop.sql(
        f"CREATE MATERIALIZED VIEW m AS {TOTALS}; CREATE VIEW p AS SELECT 1 AS a; CREATE INDEX i ON orders (customer)"
    )
    for text, says in {
        "DROP VIEW m": "m is a materialized view",
        "DROP MATERIALIZED VIEW p": "p is not materialized",
        "DROP TABLE m": "m is a view, not a table",
        "DROP VIEW orders": "orders is a table, not a plain view",
        "DROP INDEX orders": "orders is a table, not an index",
        "DROP TABLE IF EXISTS i": "i is an index, not a table",
        "DROP MATERIALIZED VIEW mm": "no view mm",
    }.items():
        with pytest.raises(DefinitionError, match=says):
            shop.sql(text)
    assert shop.sql("DROP MATERIALIZED VIEW IF EXISTS mm").notices == ("there is no materialized view mm",)


def test_what_a_view_cannot_be_made_of_is_refused_and_nothing_recorded(shop: everview.Database) -> None:
    with pytest.raises(SqlRefusedError, match="random"):
        shop.sql("CREATE MATERIALIZED VIEW v AS SELECT random() AS r FROM orders")
    with pytest.raises(UnknownObjectError, match=r"no table or view ordres at line 1(?s:.*)did you mean orders"):
        shop.sql("CREATE MATERIALIZED VIEW v AS SELECT * FROM ordres")
    with pytest.raises(UnknownObjectError, match=r"no table or view i "):
        shop.sql("CREATE INDEX i ON orders (customer); CREATE VIEW v AS SELECT * FROM i")
    assert shown(shop, "VIEWS") == []


def test_reevaluation_is_noticed_or_refused(shop: everview.Database) -> None:
    text = "SELECT a.id, b.id AS other FROM orders AS a JOIN orders AS b ON a.amount < b.amount"
    assert shop.sql(f"CREATE MATERIALIZED VIEW v AS {text}").notices
    shop.sql("SET on_reevaluation = 'refuse'")
    with pytest.raises(SqlRefusedError, match="has no operator"):
        shop.sql(f"CREATE MATERIALIZED VIEW w AS {text}")
    assert shop.sql(f"CREATE MATERIALIZED VIEW w WITH (on_reevaluation = 'notice') AS {text}").notices


# ------------------------------------------------------------------ indexes


def test_indexes_are_objects(shop: everview.Database) -> None:
    shop.sql(
        f"CREATE MATERIALIZED VIEW totals WITH (group = 'g') AS {TOTALS}; CREATE INDEX a ON orders (Customer, note)"
    )
    shop.sql("CREATE INDEX b ON totals (n)")
    assert shop.sql("CREATE INDEX IF NOT EXISTS a ON orders (note)").notices == ("index a exists already",)
    assert shop.sql("SHOW INDEXES").rows() == [
        ("a", "orders", "customer, note", "live"),
        ("b", "totals", "n", "live"),
    ]
    assert shop.catalog.index("b").group == "g"
    shop.sql("DROP INDEX a")
    assert shop.sql("DROP INDEX IF EXISTS a").notices == ("there is no index a",)


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("CREATE INDEX i ON ordres (id)", UnknownObjectError, "did you mean orders"),
        ("CREATE INDEX i ON orders (nope)", UnknownColumnError, "orders has no column nope"),
        ("CREATE INDEX i ON orders (ntoe)", UnknownColumnError, "did you mean note"),
        ("CREATE INDEX i ON visits (__row)", UnknownColumnError, "no column __row"),
        ("CREATE INDEX i ON p (a)", DefinitionError, "not materialized"),
        ("CREATE INDEX orders ON orders (id)", DuplicateObjectError, "there is a table orders"),
        ("CREATE INDEX i ON nested (tags)", DefinitionError, "not a scalar type"),
    ],
)
def test_what_cannot_be_indexed_is_refused(
    shop: everview.Database, text: str, kind: type[EverviewError], says: str
) -> None:
    shop.sql("CREATE VIEW p AS SELECT 1 AS a; CREATE TABLE nested (id INTEGER PRIMARY KEY, tags VARCHAR[])")
    with pytest.raises(kind, match=f"(?s){says}"):
        shop.sql(text)


# ------------------------------------------------------------------ asking


def test_show_and_describe(shop: everview.Database) -> None:
    shop.sql(f"CREATE MATERIALIZED VIEW totals AS {TOTALS}; CREATE VIEW p AS SELECT id FROM orders")
    assert shop.sql("SHOW TABLES").rows() == [("orders", "id", 3), ("lines", "order_id, line", 4), ("visits", None, 4)]
    assert shop.sql("SHOW VIEWS").rows() == [
        ("totals", True, "customer", "main", "live"),
        ("p", False, None, None, None),
    ]
    ((name, kind, views, epoch),) = shop.sql("SHOW GROUPS").rows()
    assert (name, kind, views) == ("main", "continuous", 1) and epoch > 0
    assert shop.sql("DESCRIBE lines").rows() == [
        ("order_id", "BIGINT", False, True),
        ("line", "INTEGER", False, True),
        ("product", "VARCHAR", False, False),
    ]
    assert shop.sql("DESCRIBE visits").rows() == [
        ("customer", "INTEGER", True, False),
        ("page", "VARCHAR", True, False),
    ]
    assert [row[:2] for row in shop.sql("DESC totals").rows()] == [
        ("customer", "INTEGER"),
        ("n", "BIGINT"),
        ("total", "DECIMAL(38,2)"),
    ]
    assert shop.sql("DESCRIBE p").rows() == [("id", "BIGINT", True, False)]
    with pytest.raises(UnknownObjectError, match=r"no table or view totls(?s:.*)did you mean totals"):
        shop.sql("DESCRIBE totls")


DEFINED = [
    'CREATE TABLE "odd name" ("a ""b""" DECIMAL(10,2) NOT NULL, c STRUCT("x y" INTEGER)[], PRIMARY KEY ("a ""b"""))',
    "CREATE TABLE bag (a INTEGER NOT NULL, b MAP(VARCHAR, DOUBLE))",
    "CREATE VIEW p AS SELECT a, count(*) FROM bag GROUP BY a",
    "CREATE VIEW q AS SELECT *, a + 1 AS next FROM bag WHERE a > 5",
    "CREATE MATERIALIZED VIEW m WITH (group='g', refresh = 'lazy') AS SELECT a, list(b ORDER BY a) FROM bag GROUP BY 1",
    "CREATE MATERIALIZED VIEW n (x) AS SELECT 'it''s' FROM bag ORDER BY 1 DESC",
    "CREATE MATERIALIZED VIEW o AS SELECT a FROM p LIMIT 5",
    "CREATE INDEX i ON bag (a)",
]


def test_what_show_create_says_defines_the_same(db: everview.Database, tmp_path: Path) -> None:
    db.sql("; ".join(DEFINED))
    names = db.catalog.definitions().names()
    texts = [db.sql(f'SHOW CREATE "{name}"').rows()[0][0] for name in names]
    with everview.open(tmp_path / "again") as again:
        again.sql("; ".join(texts))
        assert [again.sql(f'SHOW CREATE "{name}"').rows()[0][0] for name in names] == texts
        for name in names:
            old, new = db.catalog.definitions().find(name), again.catalog.definitions().find(name)
            assert type(old) is type(new)
            if name != "i":
                assert db.sql(f'DESCRIBE "{name}"').rows() == again.sql(f'DESCRIBE "{name}"').rows()


def test_show_create_of_another_kind_is_refused(shop: everview.Database) -> None:
    assert shop.sql("SHOW CREATE TABLE visits").rows() == [
        ('CREATE TABLE "visits" (\n  "customer" INTEGER,\n  "page" VARCHAR\n)',)
    ]
    with pytest.raises(UnknownObjectError, match=r"orders is not a view(?s:.*)SHOW CREATE TABLE orders"):
        shop.sql("SHOW CREATE VIEW orders")


def test_explain_in_all_formats(shop: everview.Database) -> None:
    shop.sql(f"CREATE MATERIALIZED VIEW totals AS {TOTALS}")
    text = "\n".join(row[0] for row in shop.sql(f"EXPLAIN {TOTALS}").rows())
    assert "zone 2" in text and "shared with totals" in text and "insert in orders" in text
    (document,) = shop.sql(f"EXPLAIN (FORMAT JSON) CREATE MATERIALIZED VIEW w AS {TOTALS}").rows()[0]
    assert json.loads(document)["zones"]
    (picture,) = shop.sql(f"EXPLAIN (FORMAT SVG) CREATE OR REPLACE MATERIALIZED VIEW totals AS {TOTALS}").rows()[0]
    assert ElementTree.fromstring(picture).tag.endswith("svg")
    assert shop.sql("EXPLAIN CREATE VIEW v (a) AS SELECT id FROM orders").rows()
    assert shown(shop, "VIEWS") == ["totals"]
    text = repr(shop.sql("EXPLAIN CREATE INDEX i ON totals (n)"))
    assert "index" in text and "shared with totals" in text
    with pytest.raises(UnknownObjectError, match="line 1, column 23"):
        shop.sql("EXPLAIN SELECT * FROM nope")


# ------------------------------------------------------------------ sessions


def test_several_statements_give_the_last_result_and_all_notices(shop: everview.Database) -> None:
    result = shop.sql("DROP TABLE IF EXISTS a; DROP TABLE IF EXISTS b; SELECT 1 AS one;")
    assert result.rows() == [(1,)] and result.notices == ("there is no table a", "there is no table b")
    assert shop.sql("").rows() == [] and shop.sql(" ; -- nothing\n").rows() == []


def test_a_text_that_cannot_be_read_executes_nothing(shop: everview.Database) -> None:
    with pytest.raises(SqlSyntaxError, match="line 2"):
        shop.sql("DROP TABLE orders;\nSELEC 1")
    assert "orders" in shown(shop, "TABLES")


def test_an_error_says_which_statement_it_is_about(shop: everview.Database) -> None:
    with pytest.raises(UnknownObjectError) as caught:
        shop.sql("CREATE TABLE t (a INTEGER PRIMARY KEY);\n  DROP TABLE nope; DROP TABLE t")
    assert "in the statement at line 2, column 3" in str(caught.value)
    assert "t" in shown(shop, "TABLES")


def test_the_dialect_is_that_of_the_call_or_of_the_session(shop: everview.Database) -> None:
    assert shop.sql("SELECT `id` / 2 AS h FROM orders WHERE id = 1", dialect="mysql").rows() == [(0.5,)]
    with pytest.raises(EverviewError):
        shop.sql("SELECT `id` FROM orders")
    shop.sql("SET dialect = 'mysql'")
    assert shop.sql("SELECT `id` FROM orders WHERE id = 1").rows() == [(1,)]
    shop.sql("CREATE MATERIALIZED VIEW h AS SELECT `id`, `id` / 2 AS h FROM orders")
    assert shop.catalog.view("h").dialect == "mysql"
    assert shop.sql("SELECT 7 / 2 AS h", dialect="duckdb").rows() == [(3.5,)]
    assert shop.sql("SET dialect = 'duckdb'; SELECT 7 / 2 AS h").rows() == [(3.5,)]
    with pytest.raises(DefinitionError):
        shop.sql("SELECT 1", dialect="klingon")


def test_flush_returns_where_no_view_waits(shop: everview.Database) -> None:
    assert shop.sql("FLUSH").rows() == []
