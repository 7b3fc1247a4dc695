"""A few tables with rows, and queries over them that use every construct a query can have."""

from __future__ import annotations

import duckdb
from sqlglot import exp

from everview.change.schema import Column
from everview.change.types import parse_type
from everview.sql.check import Checked, check
from everview.sql.namespace import NamedRelation, Names
from everview.sql.parse import parse
from everview.sql.settings import connect
from everview.sql.statements import Select

TABLES = {
    "Orders": "id BIGINT, Customer INTEGER, amount DOUBLE, ts TIMESTAMP",
    "people": "id INTEGER, name VARCHAR, address STRUCT(Street VARCHAR, zip INTEGER), tags VARCHAR[]",
    "prices": "product INTEGER, ts TIMESTAMP, price DECIMAL(10,2)",
}

ROWS = """
INSERT INTO Orders SELECT i, CASE WHEN i % 7 = 0 THEN NULL ELSE i % 5 END, (i * 37 % 11) / 2.0,
    TIMESTAMP '2024-01-01' + i * INTERVAL 17 MINUTE FROM range(40) r(i);
INSERT INTO people SELECT i, 'name ' || i % 4, {'Street': 'street ' || i, 'zip': i % 3},
    CASE WHEN i = 2 THEN NULL ELSE list_transform(range(i), lambda n: 'tag ' || n) END FROM range(8) r(i);
INSERT INTO prices SELECT i % 5, TIMESTAMP '2024-01-01' + i * INTERVAL 1 HOUR, i + 0.5 FROM range(30) r(i);
"""

NAMED = NamedRelation(
    "big",
    "named query",
    (Column("number", parse_type("BIGINT")), Column("Size", parse_type("DOUBLE"))),
    query="SELECT id, amount FROM orders WHERE amount > 2",
)


def namespace() -> Names:
    relations = []
    for name, columns in TABLES.items():
        split = [part.strip().split(" ", 1) for part in columns.replace("VARCHAR, zip", "VARCHAR; zip").split(",")]
        split = _joined(split)
        relations.append(
            NamedRelation(
                name, "table", tuple(Column(word, parse_type(kind.replace(";", ","))) for word, kind in split), ("id",)
            )
        )
    return Names([*relations, NAMED])


def _joined(split: list[list[str]]) -> list[list[str]]:
    """Columns cut at a comma inside a type, put together again."""
    found: list[list[str]] = []
    for part in split:
        if len(part) == 1:
            found[-1][1] += f",{part[0]}"
        else:
            found.append(part)
    return found


def filled() -> duckdb.DuckDBPyConnection:
    connection = connect()
    for name, columns in TABLES.items():
        connection.execute(f"CREATE TABLE {name} ({columns})")
    connection.execute(ROWS)
    connection.execute(f"CREATE VIEW big(number, Size) AS {NAMED.query}")
    return connection


def query_of(text: str) -> exp.Expr:
    (statement,) = parse(text)
    assert isinstance(statement, Select)
    return statement.query


def checked(text: str, *, allow_volatile: bool = False) -> Checked:
    return check(query_of(text), namespace(), text, allow_volatile=allow_volatile)


QUERIES = """
SELECT id, id IN (1, 2)::VARCHAR AS b, Customer NOT IN (1, 2)::VARCHAR AS c FROM orders
SELECT id, Customer IS NULL || 'x' || id AS b FROM orders WHERE Customer IS NOT NULL || 'y' = 'truey' AND id > 3
WITH a AS (SELECT 1 AS one) VALUES (1, 'a'), (2, 'b')
SELECT v.id FROM ((VALUES (1), (2)) v(id))
SELECT id, amount FROM ((VALUES (1), (2)) v(id) JOIN orders USING (id))
SELECT id, tag FROM people LEFT JOIN LATERAL unnest(tags) AS t(tag) ON true
SELECT name COLLATE NOACCENT.NOCASE AS n, count(*) AS c FROM people GROUP BY 1
SELECT bool_or(id > 3) AS a, bool_and(id > 3) AS b FROM orders
SELECT {'from': id, 'end': amount} AS s FROM orders
SELECT ID, CUSTOMER FROM ORDERS WHERE Amount > 3
SELECT * FROM orders
SELECT o.* FROM orders o, people p WHERE o.customer = p.id
SELECT * EXCLUDE (ts) REPLACE (id + 1 AS id) FROM orders
SELECT * RENAME (id AS key) FROM orders
SELECT max(COLUMNS(* EXCLUDE (ts))) FROM orders
SELECT COLUMNS('a.*') FROM orders
SELECT address.street, address.zip AS z, people.address.Zip FROM people
SELECT address.* FROM people
SELECT #2, #1 + 1 AS next FROM people WHERE #1 > 2
SELECT p FROM people p
SELECT o.id, name FROM orders o JOIN people p ON o.customer = p.id AND p.id > 1
SELECT o.id, name FROM orders o LEFT JOIN people p ON o.customer = p.id
SELECT o.id, name FROM orders o RIGHT JOIN people p ON o.customer = p.id
SELECT o.id, p.id AS pid FROM orders o FULL JOIN people p ON o.id = p.id
SELECT id, name, amount FROM orders JOIN people USING (id)
SELECT id, name, amount FROM people LEFT JOIN orders USING (id)
SELECT id, name, amount FROM people RIGHT JOIN orders USING (id)
SELECT * FROM people FULL JOIN orders USING (id)
SELECT * FROM people NATURAL JOIN orders
SELECT id, a.amount, name, b.amount AS b FROM orders a JOIN orders b USING (id) LEFT JOIN people USING (id)
SELECT id, count(*) FROM people FULL JOIN orders USING (id) LEFT JOIN (SELECT 3 AS id) USING (id) GROUP BY id
SELECT id FROM orders SEMI JOIN people USING (id)
SELECT id FROM orders ANTI JOIN people ON orders.customer = people.id
SELECT o.id, price FROM orders o ASOF JOIN prices p ON o.customer = p.product AND o.ts >= p.ts
SELECT a.product, ts, a.price, b.price AS b FROM prices a ASOF LEFT JOIN prices b USING (product, ts)
SELECT a.id FROM orders a JOIN orders b ON a.customer IS NOT DISTINCT FROM b.customer AND a.id = b.id
SELECT a.id, b.product FROM orders a, prices b WHERE a.ts < b.ts AND b.price > 25
SELECT o.id FROM (orders o JOIN people p ON o.id = p.id)
SELECT q.id, amount FROM ((SELECT id FROM people) q) JOIN ((orders)) USING (id)
SELECT a.id, i FROM (((SELECT id FROM people) a JOIN (SELECT customer AS i FROM orders) b ON a.id = b.i))
SELECT a.id, p.name, r.price FROM orders a LEFT JOIN ((people p JOIN prices r ON p.id = r.product)) ON a.id = p.id
SELECT a.id, p.name FROM ((orders a JOIN people p ON a.id = p.id) JOIN prices r ON p.id = r.product)
SELECT id FROM ((SELECT id FROM people ORDER BY id LIMIT 2))
SELECT amount * 2 AS twice, twice + 1 AS more FROM orders WHERE twice > 4
SELECT customer AS id FROM orders WHERE id > 5
SELECT customer % 2 AS g, count(*) FROM orders GROUP BY g
SELECT customer % 2 AS g, count(*) AS n FROM orders GROUP BY 1 ORDER BY 2 DESC, 1
SELECT customer % 2 AS g, count(*) AS n FROM orders GROUP BY ALL ORDER BY ALL
SELECT 1 AS one, customer, sum(amount) FROM orders GROUP BY ALL
SELECT sum(amount) FROM orders GROUP BY ALL
SELECT 'x' AS x, sum(amount) FROM orders WHERE id < 0 GROUP BY ALL
SELECT sum(amount) FROM orders WHERE id < 0
SELECT customer, sum(amount) AS total FROM orders GROUP BY customer HAVING total > 10
SELECT max(amount) AS amount FROM orders HAVING max(amount) > 1
SELECT customer, id % 2 AS odd, count(*), grouping(customer) FROM orders GROUP BY ROLLUP (customer, odd)
SELECT customer, id % 2 AS odd, count(*) FROM orders GROUP BY CUBE (customer, id % 2)
SELECT customer, id % 2 AS odd, count(*) FROM orders GROUP BY GROUPING SETS ((customer), (id % 2), ())
SELECT customer, id % 2 AS odd, count(*), grouping_id(customer, id % 2) FROM orders GROUP BY ROLLUP (1, 2)
SELECT customer, id % 2 AS odd, id % 3 AS t, count(*) FROM orders GROUP BY 3, GROUPING SETS ((1, 2), (2), ())
SELECT count(DISTINCT customer), sum(DISTINCT amount) FILTER (WHERE id > 3), avg(amount), min(ts), max(ts) FROM orders
SELECT list(id ORDER BY id DESC), string_agg(id::VARCHAR, '-' ORDER BY id), median(id), arg_max(id, ts) FROM orders
SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY amount DESC), mode(customer), histogram(customer) FROM orders
SELECT id, row_number() OVER (PARTITION BY customer ORDER BY id) AS n FROM orders QUALIFY n <= 2
SELECT id FROM orders QUALIFY rank() OVER (PARTITION BY customer ORDER BY ts DESC) <= 2
SELECT id, sum(amount) OVER w, lag(id) OVER (w ORDER BY id) FROM orders WINDOW w AS (PARTITION BY customer)
SELECT id, sum(amount) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) FROM orders
SELECT id, avg(amount) OVER (ORDER BY ts RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW) FROM orders
SELECT customer, sum(sum(amount)) OVER (ORDER BY customer) FROM orders GROUP BY customer
SELECT DISTINCT customer FROM orders
SELECT DISTINCT ON (g) customer % 2 AS g, id FROM orders ORDER BY g, id DESC
SELECT id FROM orders UNION SELECT id FROM people
SELECT id FROM orders WHERE id < 3 UNION ALL SELECT customer FROM orders ORDER BY 1
SELECT id, amount FROM orders UNION ALL BY NAME SELECT name, id FROM people
SELECT customer FROM orders INTERSECT ALL SELECT id % 3 FROM orders
SELECT customer FROM orders EXCEPT ALL SELECT id FROM people
SELECT customer FROM orders EXCEPT SELECT id FROM people WHERE id > 2
(SELECT id FROM orders ORDER BY id LIMIT 3) UNION ALL (SELECT id FROM people ORDER BY id DESC LIMIT 2)
SELECT id FROM orders ORDER BY amount DESC NULLS LAST, id LIMIT 5 OFFSET 2
SELECT id FROM orders ORDER BY id FETCH FIRST 4 ROWS ONLY
WITH a AS (SELECT id, amount FROM orders), b AS (SELECT max(amount) m FROM a) SELECT a.id FROM a, b WHERE amount = m
WITH orders AS (SELECT id FROM orders WHERE id < 3) SELECT * FROM orders
WITH a(k, v) AS (SELECT id, amount FROM orders) SELECT key FROM a x(key) WHERE x.v > 3
WITH a AS (SELECT 1 AS q) SELECT (WITH a AS (SELECT 2 AS q) SELECT q FROM a) AS inside, q FROM a
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n, id FROM r JOIN people ON n = id
WITH RECURSIVE r AS (SELECT id FROM people WHERE id < 2 UNION SELECT p.id FROM people p, r WHERE p.id = r.id + 2) FROM r
SELECT number, "size" FROM big WHERE size < 4
SELECT a.number FROM big a JOIN Big b ON a.number = b.number + 1
SELECT id, t FROM people, unnest(tags) t
SELECT id, w.t FROM people CROSS JOIN unnest(tags) AS w(t)
SELECT id, unnest(tags) AS t FROM people
SELECT id, t FROM people LEFT JOIN LATERAL (SELECT unnest(tags) AS t) ON TRUE
SELECT p.id, x.n FROM people p JOIN LATERAL (SELECT count(*) AS n FROM orders o WHERE o.customer = p.id) x ON x.n > 6
SELECT id, i FROM people, generate_series(1, id) g(i)
SELECT id, g FROM people, generate_series(1, id) g
SELECT i FROM range(4) g(i)
SELECT generate_series FROM generate_series(1, 3)
SELECT p.id, w.v FROM people p JOIN (VALUES (1, 'a'), (2, 'b')) w(k, v) ON p.id = w.k
SELECT * FROM (VALUES (1, 'a'))
VALUES (1, 'a'), (2, 'b')
SELECT id FROM orders WHERE customer IN (SELECT id FROM people WHERE id > 2)
SELECT id FROM orders WHERE customer NOT IN (SELECT id FROM people WHERE id > 2)
SELECT id FROM orders WHERE (customer, 1) IN (SELECT id, 1 FROM people)
SELECT id FROM people p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer = p.id AND o.amount > 4)
SELECT id FROM people p WHERE NOT EXISTS (FROM orders o WHERE o.customer = p.id)
SELECT id, (SELECT sum(amount) FROM orders o WHERE o.customer = p.id) AS total FROM people p
SELECT id FROM orders o WHERE amount = (SELECT max(amount) FROM orders i WHERE i.customer = o.customer)
SELECT id FROM orders WHERE amount > ALL (SELECT price FROM prices WHERE price < 3)
SELECT "count_star()" + 1 AS n FROM (SELECT count(*) FROM orders)
SELECT q."(id + 1)" FROM (SELECT id + 1 FROM orders) q
SELECT list_transform(tags, lambda t: t || id) AS l, [x || '!' FOR x IN tags IF x <> 'tag 1'] AS m FROM people
SELECT {'Abc': id, 'd': name}.abc, struct_pack(Xyz := id), map {'k': id} FROM people
SELECT st.abc FROM (SELECT {'Abc': id} AS st FROM people)
SELECT CASE customer WHEN 1 THEN 'one' ELSE 'other' END AS k, coalesce(customer, 9) FROM orders
SELECT id / 2 AS a, id // 2 AS b, amount / 2 AS c, id % 2 AS d, id / 0 AS e, -id / 2 AS f FROM orders
SELECT ts + INTERVAL 3 DAY, date_trunc('hour', ts), extract(dow FROM ts), ts AT TIME ZONE 'Europe/Berlin' FROM orders
SELECT * FROM (PIVOT orders ON customer IN (1, 2) USING sum(amount) GROUP BY ts)
SELECT * FROM (SELECT customer, amount FROM orders) PIVOT (sum(amount) FOR customer IN (1, 2))
SELECT * FROM (UNPIVOT (SELECT id, amount FROM orders) ON amount INTO NAME what VALUE much)
FROM people SELECT name WHERE id > 3
FROM people
SELECT o.id FROM orders o POSITIONAL JOIN people p
SELECT unnest(address) FROM people
SELECT main.orders.id FROM main.orders
SELECT id AS "Weird ""name", amount AS "order" FROM orders ORDER BY "weird ""name" DESC
SELECT name.upper() AS u, name[1:2] AS part, name LIKE '%1' AS one, name || id AS both FROM people
SELECT p.name.upper().left(6) AS a, (name).upper() AS b, main.upper(name) AS c, 'a'.upper() AS d FROM people p
SELECT tags.list_transform(lambda t: t || id) AS l FROM people
SELECT customer, id.sum() FILTER (WHERE id > 3) AS s, id.max() AS m FROM orders GROUP BY customer
SELECT [x || i FOR x, i IN tags IF i > 1] AS a, [x || i FOR x, i IN tags] AS b FROM people
SELECT [[y || x FOR y IN tags] FOR x IN tags] AS a, [s.k FOR s IN [{'k': id}]] AS b FROM people
SELECT customer, geomean(id + 1) AS g, wavg(id, amount) AS w, sum(id) FROM orders GROUP BY ALL
SELECT id, geomean(id + 1) OVER (PARTITION BY customer) AS g FROM orders
SELECT id IN [1, NULL] AS a, id NOT IN [1, 2] AS b, name IN tags AS c, id IN (1, NULL) AS d FROM people
SELECT sum(id) FROM (SELECT DISTINCT customer AS id FROM orders UNION ALL SELECT id FROM people) q
SELECT hash(id) % 3 AS h, count(*) FROM orders GROUP BY h HAVING count(*) > 1 ORDER BY count(*) DESC, h
""".strip().splitlines()
"""Each gives the same rows whatever order they are computed in."""
