"""``docs/life-of-a-change.md``, made from a trace: ``python -m tests.walk`` rewrites it.

The words are here, the hops come from the trace, so the page cannot describe a way that the code does not take.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.walk.trace import Trace
from tests.walk.walk import Walk, from_json

PAGE = Path(__file__).parents[2] / "docs" / "life-of-a-change.md"

OPENING = """# The life of a change

One `UPDATE`, from the statement to the row of a view. The view joins two tables and aggregates the result, so the
change is redistributed twice:

```sql
CREATE MATERIALIZED VIEW cities AS
SELECT city, count(*) AS orders, sum(amount) AS total
FROM orders JOIN customers ON orders.customer = customers.id
GROUP BY city;

UPDATE orders SET amount = 9 WHERE id = 11;
```

A hop is a call from one package into another, listed the first time it is made. Calls into `change` (frontiers, types,
columns: the words that all packages use) and `store/encoding` (bytes to columns and back) are left out. The tables are
made from a trace of this statement: `python -m tests.walk` writes this page, and a test fails when the path changes or
grows beyond its budget.

Two names are enough to follow it in the sources: every epoch is done by `Epochs.run`, and an `Executor` is where its
work is done.
"""

PARTS = {
    "update": (
        '## The write: `db.sql("UPDATE …")`',
        """The statement is parsed and checked, the rows that it changes are read from a snapshot by their key, and
the new rows are written together with their log entries, in one transaction of the store.""",
    ),
    "flush": (
        "## The epoch, in this process: `db.flush()`",
        """The maintainer takes each group to the end of the logs. An epoch begins with a durable record of its
frontier and its plan; the local executor reads the log slice as columns and runs all stages of the plan; the epoch is
committed, and readers see it.""",
    ),
    "get": (
        '## The read: `db.view("cities").get("London")`',
        "One record as of the last committed epoch. Nothing is computed.",
    ),
    "mover": (
        "## The epoch, on Spark\n\n### The mover: the epoch begins",
        """In a pipeline a thread, the mover, sees that the logs have grown and begins the group's next epoch in the
store. A small one it does itself, as above. A large one, and here every one, it leaves to the stream.""",
    ),
    "source": (
        "### The source: the epoch is offered",
        """Spark asks its source for the latest offset. The source finds the epoch in the store and returns its number.
That is all that it does: a batch of the stream has no rows.""",
    ),
    "driver": (
        "### The driver: `foreachBatch`",
        """Spark calls the pipeline. The same `Epochs.run` as above does the epoch, with an executor that deals out
what it reads among tasks, makes one Spark stage of each stage of the plan, checks that everything was read exactly
once, and returns.""",
    ),
    "stage 1": (
        "### The tasks of stage 1: the log slice is read",
        """Each task reads its share of the logs as columns, finds the old and the new row of each key, runs the steps
of the first zones, and packs what later stages need into blocks, one for each view server.""",
    ),
    "stage 2": (
        "### The tasks of stage 2: the join",
        """A view server reads the state of the join keys that it owns as of the last epoch, computes the changes of
the join, writes the new state stamped with this epoch, and packs the changes by the next key.""",
    ),
    "stage 3": (
        "### The tasks of stage 3: the aggregate and the view",
        """The groups' records are read, added to, and written; the view's rows are written beside them. What a task
reports (counts, times, rows whose expressions failed) goes back to the driver.""",
    ),
}


def trace() -> Walk:
    """The walk, in a process of its own: caches that other work has filled would hide hops."""
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run(
            [sys.executable, "-m", "tests.walk.walk", folder], capture_output=True, text=True, check=False
        )
    assert made.returncode == 0, made.stderr
    return from_json(made.stdout.splitlines()[-1])


def rendered(walk: Walk) -> str:
    """The page."""
    parts = [OPENING]
    for name, (title, text) in PARTS.items():
        parts.append(f"{title}\n\n{text}\n\n{_table(walk[name])}")
    return "\n".join(parts)


def _table(trace: Trace) -> str:
    lines = ["| | file | function | |", "|---|---|---|---|"]
    for number, hop in enumerate(trace.hops, 1):
        link = f"[{hop.file}](../src/everview/{hop.file})"
        lines.append(f"| {number} | {link} | `{hop.name}` | {hop.summary()} |")
    return "\n".join(lines) + "\n"
