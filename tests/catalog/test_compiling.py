"""What is recorded of a view compiles to the same plan again; the catalog as queries see it."""

from __future__ import annotations

import pytest

from everview.catalog import Catalog, IndexDefinition, NamedQuery, ViewDefinition
from everview.catalog.catalog_names import CatalogNames
from everview.catalog.compiling import compiled_view, define_query, define_view
from everview.change.schema import Column, Schema
from everview.change.types import INTEGER, VARCHAR
from everview.errors import DefinitionError, SqlRefusedError, UnknownObjectError
from everview.plan.compile import plan_views
from everview.sql.parse import parse
from everview.sql.statements import CreateMaterializedView, CreateTable, CreateView
from tests.queries.corpora import CORPORA, Corpus


def create(catalog: Catalog, *texts: str, dialect: str = "duckdb", params: list[object] | None = None) -> None:
    for text in texts:
        for statement in parse(text, dialect, params):
            if isinstance(statement, CreateTable):
                catalog.create_table(statement.name, Schema.of(statement.columns, statement.key))
            elif isinstance(statement, CreateView):
                catalog.create_query(define_query(statement, catalog.definitions(), dialect=dialect))
            else:
                assert isinstance(statement, CreateMaterializedView)
                catalog.create_view(define_view(statement, catalog.definitions(), dialect=dialect)[0])


@pytest.fixture
def shop(catalog: Catalog) -> Catalog:
    create(
        catalog,
        "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INTEGER, amount DOUBLE, moment TIMESTAMP)",
        "CREATE TABLE visits (customer INTEGER, page VARCHAR)",
    )
    return catalog


def test_tables_views_and_named_queries_are_found_in_any_spelling(shop: Catalog) -> None:
    create(
        shop,
        "CREATE VIEW big AS SELECT id, customer FROM orders WHERE amount > 5",
        "CREATE MATERIALIZED VIEW totals AS SELECT customer, count(*) AS n FROM big GROUP BY customer",
        "CREATE MATERIALIZED VIEW pages AS SELECT page FROM visits",
    )
    shop.create_index(IndexDefinition("by_customer", shop.table("orders").id, ("customer",)))
    names = CatalogNames(shop.definitions())
    assert set(names.names()) == {"orders", "visits", "big", "totals", "pages"}
    orders, visits, totals, pages = (names.find(name) for name in ("ORDERS", "visits", "Totals", "pages"))
    assert orders and orders.kind == "table" and orders.key == ("id",) and not orders.bag
    assert visits and visits.key == () and visits.bag and [c.name for c in visits.columns] == ["customer", "page"]
    assert totals and totals.kind == "view" and totals.key == ("customer",)
    assert pages and pages.bag and pages.key == ()
    big = names.find("big")
    assert big and big.kind == "named query" and big.query
    assert names.find("by_customer") is None and names.find("nothing") is None
    assert [found.name for found in names.used.values()] == ["orders", "visits", "totals", "pages", "big"]


def test_a_view_depends_on_all_it_reads_named_queries_too(shop: Catalog) -> None:
    create(
        shop,
        "CREATE VIEW big AS SELECT id, customer FROM orders WHERE amount > 5",
        "CREATE VIEW bigger AS SELECT id FROM big WHERE customer > 5",
        "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM bigger",
    )
    found = {shop.definitions().by_id(id).name for id in shop.view("v").depends_on}
    assert found == {"orders", "big", "bigger"}
    with pytest.raises(DefinitionError, match="depend on it: bigger, v"):
        shop.drop_query("big")


def test_a_view_keeps_its_columns_when_its_table_gains_some(shop: Catalog) -> None:
    create(
        shop,
        "CREATE MATERIALIZED VIEW everything AS SELECT * FROM orders",
        "CREATE VIEW named AS SELECT *, customer + 1 AS next FROM orders",
    )
    before = compiled_view(shop.view("everything"), shop.definitions())
    shop.add_column("orders", Column("note", VARCHAR))
    after = compiled_view(shop.view("everything"), shop.definitions())
    assert after.relation == before.relation
    assert [column.name for column in shop.query("named").columns] == ["id", "customer", "amount", "moment", "next"]
    create(shop, "CREATE MATERIALIZED VIEW later AS SELECT * FROM named")
    assert [column.name for column in shop.view("later").columns] == ["id", "customer", "amount", "moment", "next"]
    create(shop, "CREATE MATERIALIZED VIEW wider AS SELECT * FROM orders")
    assert [column.name for column in shop.view("wider").columns][-1] == "note"


def test_columns_without_an_alias_keep_the_names_their_words_gave_them(shop: Catalog) -> None:
    create(
        shop,
        "CREATE MATERIALIZED VIEW v AS SELECT customer, list(amount), count( * ) FROM orders GROUP BY customer",
        "CREATE VIEW q AS SELECT customer, list(amount) FROM orders GROUP BY customer",
        "CREATE VIEW renamed (a, b) AS SELECT customer, list(amount) FROM orders GROUP BY customer",
    )
    names = [column.name for column in shop.view("v").columns]
    assert names == ["customer", "list(amount)", "count_star()"]
    again = compiled_view(shop.view("v"), shop.definitions())
    assert [field.name for field in again.columns] == names
    assert [column.name for column in shop.query("q").columns] == ["customer", "list(amount)"]
    assert [column.name for column in shop.query("renamed").columns] == ["a", "b"]


def test_other_dialects_and_parameters_are_recorded_as_they_were_meant(shop: Catalog) -> None:
    create(shop, "CREATE MATERIALIZED VIEW half AS SELECT `id`, `customer` / 2 AS h FROM orders", dialect="mysql")
    create(shop, "CREATE MATERIALIZED VIEW big AS SELECT id FROM orders WHERE amount > ?", params=[5.5])
    half, big = shop.view("half"), shop.view("big")
    assert half.dialect == "mysql" and half.text.startswith("CREATE MATERIALIZED VIEW half")
    assert str(half.columns[1].type) == "DOUBLE"
    assert "?" not in big.sql
    assert [field.type for field in compiled_view(half, shop.definitions()).columns][1] == half.columns[1].type
    compiled_view(big, shop.definitions())


def test_the_order_a_view_is_read_in_is_recorded(shop: Catalog) -> None:
    create(shop, "CREATE MATERIALIZED VIEW v AS SELECT id, amount FROM orders ORDER BY amount DESC, id")
    order = shop.view("v").order
    assert [(one.descending, one.nulls_first) for one in order] == [(True, False), (False, False)]
    assert order[0].sql == '"amount"'


@pytest.mark.parametrize(
    ("columns", "query"),
    [
        ("(x)", "SELECT 'it''s' FROM visits ORDER BY 1 DESC"),
        ("(x)", "SELECT id FROM orders ORDER BY amount DESC"),
        ('("order")', "SELECT id FROM orders ORDER BY amount + 1"),
        ("(amount, id)", "SELECT id, amount FROM orders ORDER BY amount"),
        ("", "SELECT customer, list(amount) FROM orders GROUP BY customer ORDER BY list(amount)"),
    ],
)
def test_a_view_that_names_its_columns_keeps_its_order(shop: Catalog, columns: str, query: str) -> None:
    create(shop, f"CREATE MATERIALIZED VIEW v {columns} AS {query}")
    view = shop.view("v")
    again = compiled_view(view, shop.definitions())
    (planned,) = plan_views([again]).views
    assert len(view.order) == len(planned.order) == 1
    assert [column.name for column in planned.columns] == [column.name for column in view.columns]


def test_a_view_without_recorded_columns_is_not_read_by_queries(shop: Catalog) -> None:
    shop.create_view(ViewDefinition("old", "SELECT …"))
    with pytest.raises(DefinitionError, match="view old cannot be used"):
        create(shop, "CREATE MATERIALIZED VIEW v AS SELECT * FROM old")


def test_refusals_come_through(shop: Catalog) -> None:
    with pytest.raises(SqlRefusedError, match="random"):
        create(shop, "CREATE MATERIALIZED VIEW v AS SELECT random() AS r FROM orders")
    with pytest.raises(UnknownObjectError, match="no table or view ordres"):
        create(shop, "CREATE VIEW v AS SELECT * FROM ordres")
    with pytest.raises(DefinitionError, match="names 1 columns"):
        create(shop, "CREATE VIEW v (a) AS SELECT id, amount FROM orders")


def test_names_that_differ_in_letters_that_duckdb_does_not_fold(shop: Catalog) -> None:
    shop.create_query(NamedQuery("é", "SELECT 1 AS a", (Column("a", INTEGER),)))
    names = CatalogNames(shop.definitions())
    assert names.find("é") is not None and names.find("É") is None


@pytest.mark.parametrize("corpus", CORPORA, ids=lambda found: found.name)
def test_every_query_of_the_corpora_is_recorded_as_what_it_is(corpus: Corpus) -> None:
    from tests.catalog.memory import MemoryMetadata

    catalog = Catalog(MemoryMetadata())
    create(catalog, corpus.schema_text)
    for name, text in corpus.queries.items():
        (statement,) = parse(f"CREATE MATERIALIZED VIEW v_{name} AS {text}")
        assert isinstance(statement, CreateMaterializedView)
        view, compiled = define_view(statement, catalog.definitions())
        again = compiled_view(view, catalog.definitions())
        first, second = plan_views([compiled]), plan_views([again])
        assert first.view_fingerprint(view.name) == second.view_fingerprint(view.name), name
