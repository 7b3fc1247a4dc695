"""A campaign's lines as tables: by suite, by construct, and why.

Equal queries over tables of one shape count once, wherever they stand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from tests.strangers.constructs import CONSTRUCTS, constructs

KINDS = (
    "right",
    "reevaluated",
    "open",
    "no answer",
    "refused",
    "wrong",
    "crashed",
    "timed out",
    "too large",
    "harness",
)
_TITLES = {"reevaluated": "right by re-evaluation"}
Line = dict[str, Any]


def distinct(lines: Iterable[Line]) -> list[Line]:
    """The queries among the lines, each once."""
    return list({line["id"]: line for line in lines if line["kind"] == "query"}.values())


def tables(lines: Sequence[Line]) -> str:
    """The report in Markdown."""
    queries = distinct(lines)
    by_suite: dict[str, Counter[str]] = {}
    by_construct: dict[str, Counter[str]] = {}
    for line in queries:
        by_suite.setdefault(line["suite"], Counter())[line["outcome"]] += 1
        for name in constructs(line["query"]):
            by_construct.setdefault(name, Counter())[line["outcome"]] += 1
    total: Counter[str] = sum(by_suite.values(), Counter())
    on_spark = Counter(line["outcome"] for line in lines if line["kind"] == "spark")
    ordered = {name: by_construct[name] for name in CONSTRUCTS if name in by_construct}
    parts = [
        _table(
            "suite", {**dict(sorted(by_suite.items())), "all": total} | ({"on Spark": on_spark} if on_spark else {})
        ),
        _table("construct", ordered),
        _others(lines),
        _remarks(queries),
        _validated(queries),
        _reasons(queries, "refused"),
        _reasons(queries, "crashed"),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(title: str, counted: dict[str, Counter[str]]) -> str:
    used = [kind for kind in KINDS if any(counts[kind] for counts in counted.values())]
    heads = [title, "queries", *(_TITLES.get(kind, kind) for kind in used)]
    rows = [[name, f"{counts.total():,}", *(f"{counts[kind]:,}" for kind in used)] for name, counts in counted.items()]
    return "\n".join(
        [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *(f"| {' | '.join(row)} |" for row in rows)]
    )


def _others(lines: Sequence[Line]) -> str:
    """Why queries were not tried."""
    counts: Counter[str] = Counter()
    for line in lines:
        if line["kind"] == "file":
            counts.update(line.get("others", {}))
            counts["file not read"] += "unread" in line
    return "Not for us: " + ", ".join(f"{count:,} {name}" for name, count in counts.most_common() if count)


def _remarks(queries: Sequence[Line]) -> str:
    """How many columns are not called as DuckDB calls them, or have another type."""
    counts = Counter(remark.split()[0] for line in queries for remark in line.get("remarks", ()))
    return (
        f"Columns with another name than DuckDB's: {counts['name']:,}, with another type: {counts['type']:,};"
        f" views with values that are shown otherwise and compare equal: {counts['form:']:,}"
    )


def differs(line: Line) -> bool:
    """Whether CREATE found a plan to be wrong."""
    validated = line.get("validated", "")
    return validated.startswith("not validated: ") and "has no answer" not in validated


def _validated(queries: Sequence[Line]) -> str:
    """How many plans were found to be wrong at CREATE, and what became of their views."""
    differing = [line for line in queries if differs(line)]
    counts = Counter(line["outcome"] for line in differing)
    said = ", ".join(f"{count:,} {_TITLES.get(kind, kind)}" for kind, count in counts.most_common())
    return f"Plans that CREATE found to differ from DuckDB: {len(differing):,}" + (f" ({said})" if said else "")


def reason(detail: str) -> str:
    """The first line of a reason, without names, numbers and places."""
    first = detail.strip().partition("\n")[0]
    first = re.sub(r" at line \d+, column \d+.*", "", first)
    return re.sub(r"\d+", "N", re.sub(r"'[^']*'|\"[^\"]*\"", "…", first))[:110]


def _reasons(queries: Sequence[Line], kind: str) -> str:
    counts = Counter(reason(line["detail"]) for line in queries if line["outcome"] == kind)
    if not counts:
        return ""
    rows = [f"| {count:,} | {text.replace('|', '¦')} |" for text, count in counts.most_common(40)]
    return "\n".join([f"| {kind} | reason |", "|---|---|", *rows])
