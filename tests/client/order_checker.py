"""Is there an order of writes and reads that explains what every session saw?

Every read says which writes it saw and which it did not, and that makes a graph whose
cycles are the violations (as Elle finds them in histories of transactions).

Writes add an element that is never taken away, and a read shows all elements of what it is about, so
nothing has to be guessed::

    w → r    r shows what w added                      (r came after w)
    r → w    r is about what w added, and lacks it     (r came before w)
    a → b    a session did a before b                  (session order)

A history without cycles is one that a single copy of everything could have had, with every session's
operations in their order. Small cycles have names::

    w ⇒ r → w                  a session does not see what it wrote
    r₁ ⇒ r₂ → w → r₁           a session sees less than before
    w₁ ⇒ w₂ → r → w₁           a later write of a session is seen, an earlier one not
    r₁ → w₁ → r₂ → w₂ → r₁     two readers disagree about the order of two writes
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Write:
    """Adds an element, which belongs to these subjects (such as keys of views)."""

    session: str
    element: int
    subjects: frozenset[str]


@dataclass(frozen=True)
class Read:
    """Shows all elements of a subject."""

    session: str
    subject: str
    elements: frozenset[int]


Operation = Write | Read


@dataclass(frozen=True)
class Violation:
    """A cycle: each operation must come before the next, and the last before the first."""

    kind: str
    cycle: tuple[Operation, ...]

    def __str__(self) -> str:
        lines = [self.kind, *(f"  {_line(operation)}" for operation in self.cycle)]
        return "\n".join(lines)


def _line(operation: Operation) -> str:
    if isinstance(operation, Write):
        return f"{operation.session} writes {operation.element} to {', '.join(sorted(operation.subjects))}"
    return f"{operation.session} reads {operation.subject}: {sorted(operation.elements)}"


def check(history: Sequence[Sequence[Operation]]) -> Violation | None:
    """The shortest cycle of a history, given as each session's operations in order."""
    operations = [operation for session in history for operation in session]
    phantom = _phantom(operations)
    if phantom is not None:
        return phantom
    graph = _graph(history, operations)
    shortest: list[int] | None = None
    for component in _components(graph):
        found = _shortest(graph, component, None if shortest is None else len(shortest))
        if found is not None:
            shortest = found
    return None if shortest is None else _named(operations, graph, shortest)


def _phantom(operations: Sequence[Operation]) -> Violation | None:
    written = {one.element: one for one in operations if isinstance(one, Write)}
    for one in operations:
        if isinstance(one, Read):
            for element in one.elements:
                if element not in written or one.subject not in written[element].subjects:
                    return Violation(f"{element} is seen, and nobody wrote it there", (one,))
    return None


SESSION, SEEN, LACKED = "session", "seen", "lacked"


def _graph(history: Sequence[Sequence[Operation]], operations: Sequence[Operation]) -> list[dict[int, str]]:
    """For each operation those that come after it, and why."""
    graph: list[dict[int, str]] = [{} for _ in operations]
    writers: dict[str, list[tuple[int, int]]] = {}
    for at, one in enumerate(operations):
        if isinstance(one, Write):
            for subject in one.subjects:
                writers.setdefault(subject, []).append((at, one.element))
    for at, one in enumerate(operations):
        if isinstance(one, Read):
            for writer, element in writers.get(one.subject, ()):
                if element in one.elements:
                    graph[writer].setdefault(at, SEEN)
                else:
                    graph[at].setdefault(writer, LACKED)
    start = 0
    for session in history:
        for at in range(start, start + len(session) - 1):
            graph[at][at + 1] = SESSION
        start += len(session)
    return graph


def _components(graph: Sequence[dict[int, str]]) -> Iterable[set[int]]:
    """Sets of operations that are all before and after one another (Kosaraju, without recursion)."""
    order: list[int] = []
    seen = [False] * len(graph)
    for root in range(len(graph)):
        if seen[root]:
            continue
        seen[root] = True
        stack = [(root, iter(graph[root]))]
        while stack:
            node, rest = stack[-1]
            for target in rest:
                if not seen[target]:
                    seen[target] = True
                    stack.append((target, iter(graph[target])))
                    break
            else:
                order.append(node)
                stack.pop()
    back: list[list[int]] = [[] for _ in graph]
    for node, targets in enumerate(graph):
        for target in targets:
            back[target].append(node)
    taken = [False] * len(graph)
    for root in reversed(order):
        if taken[root]:
            continue
        taken[root] = True
        component, waiting = {root}, [root]
        while waiting:
            for source in back[waiting.pop()]:
                if not taken[source]:
                    taken[source] = True
                    component.add(source)
                    waiting.append(source)
        if len(component) > 1:
            yield component


def _shortest(graph: Sequence[dict[int, str]], component: set[int], bound: int | None) -> list[int] | None:
    """The shortest cycle within a component, if it is shorter than the bound."""
    best: list[int] | None = None
    for start in sorted(component):
        came: dict[int, int] = {}
        waiting = deque([start])
        while waiting:
            node = waiting.popleft()
            if start in graph[node]:
                path = [node]
                while path[-1] != start:
                    path.append(came[path[-1]])
                if bound is None or len(path) < bound:
                    best, bound = path[::-1], len(path)
                break
            for target in graph[node]:
                if target in component and target not in came and target != start:
                    came[target] = node
                    waiting.append(target)
    return best


def _named(operations: Sequence[Operation], graph: Sequence[dict[int, str]], cycle: list[int]) -> Violation:
    found = tuple(operations[at] for at in cycle)
    edges = [graph[at][after] for at, after in zip(cycle, [*cycle[1:], cycle[0]], strict=True)]
    if SESSION not in edges:
        kind = "no single order: readers disagree about the order of writes"
    elif len(cycle) == 2:
        kind = "read your writes: a session does not see what it wrote"
    elif len(cycle) == 3 and sum(isinstance(one, Read) for one in found) == 2:
        kind = "monotonic reads: a session sees less than before"
    else:
        kind = "no single order: what sessions did cannot be put in one line"
    return Violation(kind, found)
