"""A bare NULL fits every type, wherever a column that is nothing but NULL is used."""

from __future__ import annotations

from collections import Counter

import duckdb
import pytest

from everview.change.schema import Schema
from everview.plan.relations import Reevaluate
from tests.operators.histories import maintained
from tests.oracle.maintained import bag, comparable
from tests.plan.shop import built

TABLES = {"t": Schema.of({"a": "INTEGER", "s": "VARCHAR"}, key=["a"])}
ROWS: list[dict[str, object]] = [{"a": 1, "s": "x"}, {"a": 2, "s": None}, {"a": 3, "s": "y"}]
NULLS = "(SELECT NULL AS x, a, s FROM t)"
QUERIES = [
    "SELECT NULL AS x, [NULL] AS l, [] AS e, {'q': NULL} AS r, a FROM t",
    "SELECT NULL AS x FROM t UNION ALL SELECT s FROM t",
    "SELECT NULL AS x FROM t UNION SELECT DATE '2020-01-01' FROM t",
    f"SELECT upper(x) AS u, x || 'a' AS v, x + 1 AS w FROM {NULLS}",
    f"SELECT x FROM {NULLS} WHERE x = 'abc' OR x IS NULL",
    f"SELECT x FROM {NULLS} UNION ALL SELECT [a] FROM t",
    f"SELECT coalesce(x, DATE '2020-01-01') AS u, coalesce(x, s) AS v FROM (FROM {NULLS} ORDER BY a LIMIT 2)",
    f"SELECT sum(x) AS s, count(x) AS c, max(x) AS m, list(x) AS l FROM {NULLS}",
    f"SELECT x, count(*) AS c FROM {NULLS} GROUP BY x",
    f"SELECT coalesce(max(x), 'k') AS x, a FROM {NULLS} GROUP BY a",
    f"SELECT lag(x) OVER (ORDER BY a) AS x, a FROM {NULLS}",
    f"SELECT q.x, t.s FROM {NULLS} q LEFT JOIN t ON q.x = t.s",
    "SELECT DISTINCT NULL AS x FROM t",
    "SELECT a FROM t WHERE s NOT IN (SELECT NULL FROM t)",
    "SELECT a, unnest([NULL, NULL]) AS x FROM t",
    f"WITH c AS {NULLS} SELECT c.x AS p, coalesce(d.x, d.s) AS q FROM c JOIN c d USING (a)",
    "SELECT list_concat(x, ['a']) AS y FROM (SELECT [] AS x, a FROM t ORDER BY a LIMIT 2)",
    f"SELECT a, x FROM {NULLS} ORDER BY x, a",
]


@pytest.mark.parametrize("query", QUERIES)
def test_a_bare_null_is_what_duckdb_makes_of_it(query: str) -> None:
    with maintained(TABLES, {"v": query}) as m, duckdb.connect() as plain:
        plain.execute("CREATE TABLE t (a INTEGER, s VARCHAR)")
        for row in ROWS:
            m.table("t").put(row)
            plain.execute("INSERT INTO t VALUES ($a, $s)", row)
            m.epoch()
            expected = Counter(tuple(map(comparable, row)) for row in plain.execute(query).fetchall())
            assert bag(m.view("v")) == expected
        assert not m.quarantine()


def test_what_reads_a_bare_null_is_maintained_by_operators() -> None:
    found = built("SELECT coalesce(q.x, q.tags) AS n FROM (SELECT NULL AS x, tags FROM orders) q")
    assert not [node for node in found.relation.walk() if isinstance(node, Reevaluate)]
    assert not found.notices


def test_a_query_in_which_an_empty_list_gets_its_type_elsewhere_is_evaluated_as_it_stands() -> None:
    (notice,) = built("SELECT list_concat(q.x, ['a']) AS n FROM (SELECT [] AS x FROM orders) q").notices
    assert notice.construct == "values whose type depends on where they are used"
