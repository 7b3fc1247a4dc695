"""What a view cannot be made of: answers that change although no row did.

A view is maintained from changes of its tables, so an expression whose value
depends on the time, on chance, on the session or on a file would go stale unnoticed, and is
refused with its place, the reason and what to write instead.

DuckDB knows which functions these are: all that it does not call consistent, and the
macros made of them. A few that it calls consistent are not, and are named here.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass

from sqlglot import exp

from everview.errors import EverviewError, SqlRefusedError
from everview.sql.dialects import DEFAULT, reader
from everview.sql.positions import error_at, offset_of
from everview.sql.typer import typer


@dataclass(frozen=True)
class Reason:
    """Why something is refused, and what does the same in a view."""

    why: str
    hint: str


TIME = Reason(
    "its value changes with the time, and no row need be written for it to change",
    "keep the time in a column when a row is written, or compare with the time in the query that reads the view",
)
CHANCE = Reason(
    "every evaluation gives another value",
    "keep the value in a column when a row is written; hash(…) of the key is random enough and stays the same",
)
SEQUENCE = Reason(
    "every evaluation takes the next number",
    "number the rows with row_number() OVER (ORDER BY …)",
)
SAMPLE = Reason(
    "every evaluation chooses other rows",
    "choose rows by their key: WHERE hash(key) % 100 < 10 is a tenth of them, and always the same",
)
SESSION = Reason(
    "its value depends on the process that evaluates it, not on the rows",
    "write the value itself",
)
BOUNDS = Reason(
    "without bounds its length depends on statistics that DuckDB keeps of a table, not on the rows",
    "give the least and the greatest value: bitstring_agg(column, 0, 99)",
)
OTHER = Reason(
    "its value depends on more than its arguments",
    "leave it out, or compute it in the query that reads the view",
)

_TIME = re.compile(
    r"now|today|.*current_(date|time|timestamp)|(current_)?local(time|timestamp)|transaction_timestamp|ago|age"
)
_CHANCE = re.compile(r"random|setseed|gen_random_uuid|uuid(v\d)?|reservoir_quantile")
_SEQUENCE = re.compile(r"nextval|currval|setval")
_SESSION = re.compile(
    r"(current|session)_(setting|database|schemas?|catalog|user|role|query|.*_id)|user|version"
    r"|getvariable|in_search_path|txid_current|pg_.*|inet_.*|stats|vector_type"
)

_NOT_CONSISTENT = ("reservoir_quantile", "version", "current_user", "session_user", "current_role", "user")
"""What DuckDB calls consistent, or has as a macro or a keyword, and is not."""
KEYWORDS = ("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "current_catalog")
WORDS = frozenset({*KEYWORDS, "current_user", "session_user", "current_role", "user"})
"""What is volatile without parentheses."""


def reason_of(name: str) -> Reason:
    for pattern, reason in ((_TIME, TIME), (_CHANCE, CHANCE), (_SEQUENCE, SEQUENCE), (_SESSION, SESSION)):
        if pattern.fullmatch(name):
            return reason
    return OTHER


@functools.cache
def volatile_names() -> frozenset[str]:
    """Every function of DuckDB whose answer is not a function of its arguments. ``error`` is
    not one: it always fails, and is called volatile so that it does so only when it is reached."""
    functions = typer().functions()
    found = {name for name, _, stability, _ in functions if stability not in ("", "CONSISTENT")} - {"error"}
    found.update(_NOT_CONSISTENT, KEYWORDS)
    macros = [(name, set(re.findall(r"\w+", body))) for name, kind, _, body in functions if kind == "macro"]
    while True:
        more = {name for name, words in macros if name not in found and words & found}
        if not more:
            return frozenset(found)
        found |= more


@functools.cache
def _volatile_classes() -> dict[type[exp.Expr], str]:
    """sqlglot's own classes for volatile functions, each with one of its names."""
    found: dict[type[exp.Expr], str] = {}
    own = reader(DEFAULT)
    for name in sorted(volatile_names()):
        for call in (f"SELECT {name}()", f"SELECT {name}"):
            try:
                tree = own.read(call).expressions[0]
            except EverviewError:
                continue
            if isinstance(tree, exp.Func) and not isinstance(tree, exp.Anonymous):
                found.setdefault(type(tree), name)
    return found


def volatile_nodes(tree: exp.Expr, columns: Container[str] = ()) -> Iterator[tuple[exp.Expr, str, Reason]]:
    """What is volatile in a query: the node, what to call it, and why. A name that no column has may be
    a word: to DuckDB ``"current_date"``, in quotes too, is the date."""
    names, classes = volatile_names(), _volatile_classes()
    for node in tree.walk():
        if isinstance(node, exp.Anonymous):
            name = node.name.lower()
            if name in names or (name == "age" and len(node.expressions) == 1):
                yield node, name, reason_of(name)
            elif name == "bitstring_agg" and not _has_bounds(node):
                yield node, name, BOUNDS
        elif type(node) in classes:
            name = classes[type(node)]
            yield node, name, reason_of(name)
        elif isinstance(node, exp.Column) and not node.table and node.name.lower() in WORDS:
            if node.name.lower() not in columns:
                yield node, node.name.lower(), reason_of(node.name.lower())
        elif isinstance(node, exp.TableSample):
            yield node, "sample", SAMPLE


def _has_bounds(call: exp.Anonymous) -> bool:
    arguments = list(call.expressions)
    while len(arguments) == 1 and isinstance(arguments[0], exp.Order | exp.Distinct):
        arguments = arguments[0].expressions if isinstance(arguments[0], exp.Distinct) else [arguments[0].this]
    return len(arguments) > 1


def refuse_volatile(tree: exp.Expr, text: str, columns: Container[str] = ()) -> None:
    """Raise for the first volatile construct of a query, in which columns have these names in lower case."""
    placed = [(_place(node, name, text), name, reason) for node, name, reason in volatile_nodes(tree, columns)]
    for offset, name, reason in sorted(placed, key=lambda found: found[0] or 0):
        written = re.compile(r"\w+").match(text, offset or 0)
        spelled = written[0].lower() if written and offset is not None else name
        what = "sampling" if reason is SAMPLE else spelled if spelled in KEYWORDS else f"{spelled}()"
        raise error_at(
            SqlRefusedError,
            text,
            offset,
            f"{what} cannot be part of a view",
            width=len(spelled),
            why=reason.why,
            hint=reason.hint,
        )


def _place(node: exp.Expr, name: str, text: str) -> int | None:
    """Where the construct stands. sqlglot keeps no place of words such as CURRENT_DATE: it is
    the one that stands nearest to the parts around it."""
    around = offset_of(node)
    if "start" in node.meta or around is None:
        return around
    words = re.finditer(rf"\b(table)?{re.escape(name)}\b", text, re.IGNORECASE)
    return min((word.start() for word in words), key=lambda start: abs(start - around), default=around)
