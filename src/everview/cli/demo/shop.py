"""The shop: customers, orders and order lines, and five views of them.

An order and its lines are written and cancelled in one batch, so whatever adds up all lines
adds up to the same in every view.

``spending``, ``cities`` and ``prices`` add the same lines up by customer, by city and by product: their sums
are equal in every snapshot (:data:`AGREEMENT`), or the views are not at one base state.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from decimal import Decimal

from everview.client.database import Database
from everview.store.contract import Row

TABLES = """
CREATE TABLE customers (id BIGINT PRIMARY KEY, name VARCHAR, city VARCHAR);
CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT);
CREATE TABLE order_lines (order_id BIGINT, line INTEGER, product VARCHAR, quantity INTEGER, price DECIMAL(10,2),
  PRIMARY KEY (order_id, line))
"""


@dataclass(frozen=True)
class View:
    """A view of the shop."""

    name: str
    kind: str
    query: str

    @property
    def statement(self) -> str:
        return f"CREATE MATERIALIZED VIEW {self.name} AS {self.query}"


VIEWS = (
    View(
        "spending",
        "an aggregate over a join",
        """SELECT o.customer, count(*) AS lines, sum(l.quantity * l.price) AS spent
  FROM orders o JOIN order_lines l ON l.order_id = o.id GROUP BY o.customer""",
    ),
    View(
        "prices",
        "least and greatest of a group",
        """SELECT product, min(price) AS lowest, max(price) AS highest, sum(quantity * price) AS sold
  FROM order_lines GROUP BY product""",
    ),
    View(
        "cities",
        "a view on a view",
        """SELECT c.city, count(*) AS customers, sum(s.spent) AS spent
  FROM spending s JOIN customers c ON c.id = s.customer GROUP BY c.city""",
    ),
    View(
        "best",
        "the top three of each city",
        """SELECT c.city, c.id, c.name, s.spent FROM spending s JOIN customers c ON c.id = s.customer
  QUALIFY row_number() OVER (PARTITION BY c.city ORDER BY s.spent DESC, c.id) <= 3""",
    ),
    View(
        "silent",
        "an anti join: customers without an order",
        """SELECT id, name, city FROM customers c
  WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id)""",
    ),
)

AGREEMENT = """SELECT (SELECT sum(spent) FROM spending) IS NOT DISTINCT FROM (SELECT sum(spent) FROM cities)
  AND (SELECT sum(spent) FROM spending) IS NOT DISTINCT FROM (SELECT sum(sold) FROM prices)"""

CUSTOMERS = 400
ORDERS = 4_000
"""Orders that exist before the views are created."""
LOADED = 500
"""Orders of a batch while the shop is filled."""
NAMES = ("Ada", "Ben", "Chiara", "Dev", "Elif", "Femi", "Greta", "Hugo", "Ines", "Jun")
CITIES = ("Berlin", "Lagos", "Lima", "London", "Mumbai", "Paris", "Rome", "Tokyo")
PRODUCTS = tuple(f"{what} {size}" for what in ("tea", "cup", "pot", "tin", "spoon") for size in ("S", "M", "L", "XL"))


def lines_of(order: int) -> int:
    """How many lines an order has: a function of its number, so it need not be stored."""
    return order % 4 + 1


class Clerk:
    """Writes orders and cancels them, customers and prices change: one atomic batch at a time."""

    def __init__(self, db: Database, seed: int, orders: int = 0) -> None:
        self._db = db
        self._rng = random.Random(seed)
        self._open = list(range(1, orders + 1))
        self._last = orders
        self._customers = CUSTOMERS

    def fill(self) -> None:
        """Fill the shop before the views are created."""
        self._db.table("customers").put_many([self._customer(id) for id in range(1, CUSTOMERS + 1)])
        for _ in range(ORDERS // LOADED):
            self._sell(LOADED)

    def work(self) -> None:
        """One batch of a random kind."""
        kind = self._rng.random()
        if kind < 0.70 or not self._open:
            self._sell(self._rng.randint(1, 8))
        elif kind < 0.85:
            self._cancel()
        elif kind < 0.92:
            self._change_a_line()
        elif kind < 0.97:
            moved = self._rng.randint(1, self._customers)
            self._db.table("customers").put({"id": moved, "city": self._rng.choice(CITIES)})
        else:
            self._customers += 1
            self._db.table("customers").put(self._customer(self._customers))

    def _sell(self, many: int) -> None:
        orders = range(self._last + 1, self._last + many + 1)
        with self._db.batch() as batch:
            batch.table("orders").put_many([self._order(order) for order in orders])
            lines = [self._line(order, line) for order in orders for line in range(lines_of(order))]
            batch.table("order_lines").put_many(lines)
        self._last += many
        self._open.extend(orders)

    def _cancel(self) -> None:
        order = self._any_order()
        self._open.remove(order)
        with self._db.batch() as batch:
            batch.table("orders").delete(order)
            batch.table("order_lines").delete_many([(order, line) for line in range(lines_of(order))])

    def _change_a_line(self) -> None:
        order = self._any_order()
        line = self._rng.randrange(lines_of(order))
        self._db.table("order_lines").put({"order_id": order, "line": line, "price": self._price()})

    def _any_order(self) -> int:
        return self._rng.choice(self._open)

    def _customer(self, id: int) -> Row:
        return {"id": id, "name": f"{self._rng.choice(NAMES)} {id}", "city": self._rng.choice(CITIES)}

    def _order(self, order: int) -> Row:
        return {"id": order, "customer": self._rng.randint(1, self._customers)}

    def _line(self, order: int, line: int) -> Row:
        product = self._rng.choice(PRODUCTS)
        quantity = self._rng.randint(1, 5)
        return {"order_id": order, "line": line, "product": product, "quantity": quantity, "price": self._price()}

    def _price(self) -> Decimal:
        return Decimal(self._rng.randrange(100, 10_000)) / 100
