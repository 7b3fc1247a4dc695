"""Compiling: ``python -m bench.plan``. Ten thousand selection views of one family on one table,
from their texts to one plan, with the result checked in the same run."""

from __future__ import annotations

import argparse
import sys
import time

from everview.change.schema import Column
from everview.change.types import parse_type
from everview.plan.compile import compile_text, plan_views
from everview.sql.namespace import Names, Relation

BAR = 60.0
"""Seconds that ten thousand views may take."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.plan", description=__doc__)
    parser.add_argument("--views", type=int, default=10_000)
    count = parser.parse_args().views
    kinds = {"id": "BIGINT", "customer": "INTEGER", "amount": "DOUBLE"}
    columns = tuple(Column(name, parse_type(kind), nullable=name != "id") for name, kind in kinds.items())
    names = Names([Relation("orders", "table", columns, ("id",))])
    start = time.perf_counter()
    views = [
        compile_text(f"CREATE MATERIALIZED VIEW v{n} AS SELECT id, customer FROM orders WHERE amount > {n}", names)
        for n in range(count)
    ]
    compiled = time.perf_counter()
    plan = plan_views(views)
    planned = time.perf_counter()
    assert [len(family.views) for family in plan.families] == [count], "the views are not one family"
    print(f"{count:,} views of one family: {planned - start:.1f} s, of which planning {planned - compiled:.2f} s")
    print(f"{(compiled - start) / count * 1e3:.2f} ms from a view's text to its relation")
    return 0 if planned - start <= BAR * count / 10_000 else 1


if __name__ == "__main__":
    sys.exit(main())
