"""Shrinking: a script that fails becomes a small one that fails in the same way.

Parts of the script are left out, and its queries made shorter, as long as what is left
still fails.

Histories are cut by halves (delta debugging), queries by sqlglot's trees: a clause or a column goes,
a part of an expression stands for the whole. A script whose queries DuckDB does not take is no
failure at all.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import duckdb
import sqlglot
from sqlglot import exp

from everview.change.frontier import Frontier
from tests.oracle.base import Base
from tests.oracle.played import Wrong, play
from tests.oracle.script import NODES, Epoch, Script, View, Write

T = TypeVar("T")
Fails = Callable[[Script], bool]
Values = tuple[tuple[str, str], ...]


def refusal(script: Script) -> str | None:
    """What DuckDB has against the queries."""
    try:
        Base(script.tables).recomputed([(view.name, view.plain) for view in script.views], Frontier())
    except duckdb.Error as error:
        return str(error)
    return None


def failure(script: Script, played: Callable[[Script], object] = play) -> str | None:
    """How a script fails, in a few words that stay the same while it shrinks; None where it does not."""
    if refusal(script) is not None:
        return None
    try:
        played(script)
    except Wrong:
        return "a view is wrong"
    except Exception as error:
        return type(error).__name__
    return None


def shrunk(script: Script, seconds: float = 60, played: Callable[[Script], object] = play) -> Script:
    """A small script that fails as the given one does, as far as that is found in the time given."""
    end = time.monotonic() + seconds
    how = failure(script, played)
    assert how is not None, "only a script that fails is shrunk"

    def fails(one: Script) -> bool:
        return time.monotonic() < end and failure(one, played) == how

    while True:
        before = script
        for part in (_views, _history, _queries, _writes, _tables):
            script = part(script, fails)
        if script == before or time.monotonic() > end:
            return script


def _fewer(items: Sequence[T], fails: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """As few of the items as still fail, found by leaving out more and more of ever smaller parts."""
    kept = tuple(items)
    size = max(1, len(kept) // 2)
    while kept:
        at = 0
        while at < len(kept):
            rest = kept[:at] + kept[at + size :]
            if fails(rest):
                kept = rest
            else:
                at += size
        if size == 1:
            return kept
        size //= 2
    return kept


def _views(script: Script, fails: Fails) -> Script:
    return replace(script, views=_fewer(script.views, lambda some: fails(replace(script, views=some))))


def _history(script: Script, fails: Fails) -> Script:
    """Fewer writes, then fewer epochs."""
    places = [(number, write) for number, epoch in enumerate(script.epochs) for write in epoch.writes]

    def history(some: Sequence[tuple[int, Write]]) -> Script:
        epochs = [
            replace(epoch, writes=tuple(write for at, write in some if at == number))
            for number, epoch in enumerate(script.epochs)
        ]
        return replace(script, epochs=tuple(epochs))

    script = history(_fewer(places, lambda some: fails(history(some))))
    with_old_rows = replace(script, before_images=True)
    if with_old_rows != script and fails(with_old_rows):
        script = with_old_rows
    whole = replace(script, epochs=tuple(Epoch(epoch.writes) for epoch in script.epochs), nodes=NODES)
    if whole != script and fails(whole):
        script = whole
    return _joined(script, fails)


def _joined(script: Script, fails: Fails) -> Script:
    """An epoch's writes in the one after it."""
    at = 0
    while at + 1 < len(script.epochs):
        one, two = script.epochs[at : at + 2]
        both = Epoch(one.writes + two.writes, two.most)
        shorter = replace(script, epochs=(*script.epochs[:at], both, *script.epochs[at + 2 :]))
        if fails(shorter):
            script = shorter
        else:
            at += 1
    return script


def _writes(script: Script, fails: Fails) -> Script:
    """Writes of fewer columns."""
    for number, epoch in enumerate(script.epochs):
        for at, write in enumerate(epoch.writes):
            if write.deletes:
                continue
            make = functools.partial(_with_values, script, number, at)
            script = make(_fewer(write.values, functools.partial(_fails_with, make, fails)))
    return script


def _fails_with(make: Callable[[Values], Script], fails: Fails, some: Values) -> bool:
    return bool(some) and fails(make(some))


def _with_values(script: Script, number: int, at: int, values: Values) -> Script:
    writes = list(script.epochs[number].writes)
    writes[at] = replace(writes[at], values=values)
    epochs = list(script.epochs)
    epochs[number] = replace(epochs[number], writes=tuple(writes))
    return replace(script, epochs=tuple(epochs))


def _tables(script: Script, fails: Fails) -> Script:
    """Tables that nobody writes or reads go."""
    return replace(script, tables=_fewer(script.tables, lambda some: fails(replace(script, tables=some))))


def _queries(script: Script, fails: Fails) -> Script:
    """Shorter queries. One that must be written in two ways stays as it is."""
    for at, view in enumerate(script.views):
        if view.query != view.plain:
            plain = _with_query(script, at, view.plain)
            if not fails(plain):
                continue
            script = plain
        found = _shorter(script, at, script.views[at], fails)
        while found is not None:
            script = found
            found = _shorter(script, at, script.views[at], fails)
    return script


def _shorter(script: Script, at: int, view: View, fails: Fails) -> Script | None:
    made = (_with_query(script, at, text) for text in _simplified(view.query))
    return next((one for one in made if fails(one)), None)


def _with_query(script: Script, at: int, text: str) -> Script:
    view = View(script.views[at].name, text, text)
    return replace(script, views=(*script.views[:at], view, *script.views[at + 1 :]))


_OPTIONAL = ("where", "having", "qualify", "order", "limit", "offset", "distinct", "with_", "joins", "group", "filter")
_LISTS = ("expressions", "joins", "partition_by", "laterals")


def _simplified(text: str) -> Iterator[str]:
    """Texts that are one cut shorter, the largest cuts first."""
    tree = sqlglot.parse_one(text, read="duckdb")
    seen = {text}
    for make in _cuts(tree):
        copy = tree.copy()
        changed = make(list(copy.walk()))
        found = (changed or copy).sql("duckdb")
        if len(found) < len(text) and found not in seen:
            seen.add(found)
            yield found


Cut = Callable[[list[exp.Expr]], "exp.Expr | None"]
"""Given the nodes of a tree, in their order: changes it, or says what stands for all of it."""


def _cuts(tree: exp.Expr) -> Iterator[Cut]:
    nodes = list(tree.walk())
    for number, node in enumerate(nodes):
        if number and isinstance(node, exp.Query) and not isinstance(node, exp.Subquery):
            yield functools.partial(_only, number)
    for number, node in enumerate(nodes):
        for name in _OPTIONAL:
            if node.args.get(name):
                yield functools.partial(_without, number, name, None)
        for name in _LISTS:
            items = node.args.get(name)
            if isinstance(items, list) and len(items) > 1:
                for at in range(len(items)):
                    yield functools.partial(_without, number, name, at)
    for number, node in enumerate(nodes):
        if isinstance(node, exp.Binary | exp.Unary | exp.Func | exp.Case | exp.Window | exp.Between | exp.In):
            for at, part in enumerate(nodes):
                if part.parent is node and isinstance(part, exp.Condition):
                    yield functools.partial(_instead, number, at)


def _only(number: int, nodes: list[exp.Expr]) -> exp.Expr:
    return nodes[number].copy()


def _without(number: int, name: str, at: int | None, nodes: list[exp.Expr]) -> None:
    """Without an argument, or one item of it."""
    node = nodes[number]
    node.set(name, None if at is None else [item for n, item in enumerate(node.args[name]) if n != at])


def _instead(number: int, at: int, nodes: list[exp.Expr]) -> exp.Expr | None:
    """A part instead of the whole."""
    node, part = nodes[number], nodes[at]
    if node.parent is None:
        return part
    node.replace(part.copy())
    return None
