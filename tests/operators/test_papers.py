"""The papers' worked examples: after every step the views show the rows that the paper gives.

As scripts with their reasons they stand in ``tests/scripts/oracle/paper_*.txt``.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.oracle.corpora import schemas
from tests.oracle.maintained import Maintained, bag
from tests.queries.corpora import corpus
from tests.queries.paper_examples import CONDENSE, EXAMPLES, Condensed, Example, Step


def write(maintained: Maintained, step: Step) -> None:
    for name, rows in step.put.items():
        columns = [column.name for column in maintained.tables[name].schema.columns]
        for row in rows:
            maintained.table(name).put(dict(zip(columns, row, strict=True)))
    for name, keys in step.delete.items():
        for key in keys:
            maintained.table(name).delete(*key)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.place)
@pytest.mark.parametrize("before_images", [True, False], ids=["old rows from the log", "old rows from DELTA"])
def test_views_show_what_the_paper_says(tmp_path: Path, example: Example, before_images: bool) -> None:
    found = corpus(example.corpus)
    queries = {f"v_{name}": found.queries[name] for step in example.steps for name in step.shows}
    maintained = Maintained(tmp_path / "store", schemas(found), queries, before_images=before_images)
    for step in example.steps:
        write(maintained, step)
        maintained.epoch()
        for name, rows in step.shows.items():
            assert dict(bag(maintained.view(f"v_{name}"))) == dict.fromkeys(rows, 1), step.what
    maintained.close()


@pytest.mark.parametrize("cell", CONDENSE, ids=lambda cell: f"first {cell.first}, last {cell.last}")
def test_the_writes_of_a_key_are_condensed(tmp_path: Path, cell: Condensed) -> None:
    found = corpus("papers/002")
    maintained = Maintained(tmp_path / "store", schemas(found), {"v": "SELECT k, y FROM r"})
    table = maintained.table("r")
    if cell.first == "delete":
        table.put({"k": "k1", "y": cell.deltas[0][1]})
    maintained.epoch()
    for action, value in cell.deltas:
        if action == "delete":
            table.delete("k1")
        else:
            table.put({"k": "k1", "y": value})
    begun = maintained.begin()
    batches = maintained.runner.read(maintained.store, begun).batches
    changes = maintained.runner.dry(maintained.store.views, begun.base, batches).changes
    (use,) = maintained.plan.tables
    emitted = changes.get(use.step, pa.table({"r.y": [], "__weight": []}))
    assert sorted(zip(emitted["r.y"].to_pylist(), emitted["__weight"].to_pylist(), strict=True)) == sorted(cell.net)
    maintained.close()
