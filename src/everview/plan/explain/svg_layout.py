"""Boxes in columns: where everything goes in the drawing of a plan.

Changes flow from left to right, so a node stands one column right of the last of
its sources, and a line that spans columns is given a lane of its own in each of them.

The steps of layered drawing (Sugiyama and others): columns, lanes for long lines, an order in
each column by the middle of the sources, positions without overlap. What is particular here: a
stage is a run of columns, and the nodes of a zone form a *band* across the columns of their
stage, so that a box can be drawn around each zone.

    stage 1 | stage 2                  bands of stage 2, one below the other:
    delta ──→ (by c1) → sums → view      zone 2    [columns 1 2 3]
          └─→ (by c2) → sums → view      zone 3    [columns 1 2 3]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

GAP_X, GAP_Y = 44.0, 16.0
LANE = 10.0
"""The height of a lane."""
HEADER, MARGIN = 30.0, 14.0
"""Of a band: room above for its title, and around."""
BETWEEN = 56.0
"""From stage to stage."""


@dataclass(eq=False)
class Node:
    """A box, or a lane of a line (without a name)."""

    name: str
    width: float
    height: float
    stage: int
    band: str
    column: int = 0
    """Within the stage."""
    room: float = 0.0
    """The width of that column."""
    x: float = 0.0
    y: float = 0.0
    sources: list[Node] = field(default_factory=list)

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


@dataclass(frozen=True)
class Band:
    """The box around a zone."""

    name: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Line:
    """From a node to a node, through lanes."""

    points: tuple[tuple[float, float], ...]
    """A line runs level from the first to the second (out of a column), bends to the third, runs
    level to the fourth (through a lane), and so on; it ends with a bend."""


@dataclass(frozen=True)
class Drawing:
    nodes: tuple[Node, ...]
    bands: tuple[Band, ...]
    lines: tuple[Line, ...]
    width: float
    height: float


def arranged(nodes: Sequence[Node], edges: Iterable[tuple[Node, Node]], titles: Mapping[str, float]) -> Drawing:
    """Place nodes, given in an order in which sources come first. ``titles`` has the width that the
    title of each band needs."""
    edges = list(edges)
    _columns(nodes, edges)
    stages = sorted({node.stage for node in nodes})
    count = {stage: 1 + max(node.column for node in nodes if node.stage == stage) for stage in stages}
    paths, lanes = _lanes(edges, stages, count)
    everything = [*nodes, *lanes]
    width = _widths(everything, stages, count, titles)
    bands, height = _bands(everything, stages, count, titles)
    lines = tuple(Line(_points(path)) for path in paths)
    return Drawing(tuple(nodes), tuple(bands), lines, width, height)


def _columns(nodes: Sequence[Node], edges: Sequence[tuple[Node, Node]]) -> None:
    for _, target in edges:
        target.column = 0
    into: dict[Node, list[Node]] = {}
    for source, target in edges:
        into.setdefault(target, []).append(source)
    for node in nodes:
        inside = [source.column for source in into.get(node, ()) if source.stage == node.stage]
        node.column = 1 + max(inside) if inside else 0


def _lanes(
    edges: Sequence[tuple[Node, Node]], stages: Sequence[int], count: Mapping[int, int]
) -> tuple[list[list[Node]], list[Node]]:
    """The path of each line, through lanes that lines from one source share."""
    lanes: dict[tuple[Node, int, int, str], Node] = {}
    paths: list[list[Node]] = []
    for source, target in edges:
        path = [source]
        for stage in stages:
            for column in range(count[stage]):
                if not (source.stage, source.column) < (stage, column) < (target.stage, target.column):
                    continue
                band = source.band if stage == source.stage else target.band if stage == target.stage else ""
                at = (source, stage, column, band)
                if at not in lanes:
                    lanes[at] = Node("", 0, LANE, stage, band, column)
                if path[-1] not in lanes[at].sources:
                    lanes[at].sources.append(path[-1])
                path.append(lanes[at])
        target.sources.append(path[-1])
        paths.append([*path, target])
    return paths, list(lanes.values())


def _widths(
    everything: Sequence[Node], stages: Sequence[int], count: Mapping[int, int], titles: Mapping[str, float]
) -> float:
    x = MARGIN
    for stage in stages:
        start = x
        x += MARGIN
        for column in range(count[stage]):
            here = [node for node in everything if (node.stage, node.column) == (stage, column)]
            widest = max(node.width for node in here)
            for node in here:
                node.x = x
                node.room = widest
            x += widest + GAP_X
        wanted = max((titles.get(node.band, 0.0) for node in everything if node.stage == stage), default=0.0)
        x = max(x - GAP_X + MARGIN, start + wanted + 2 * MARGIN) + BETWEEN
    return x - BETWEEN + MARGIN


def _bands(
    everything: Sequence[Node], stages: Sequence[int], count: Mapping[int, int], titles: Mapping[str, float]
) -> tuple[list[Band], float]:
    found: list[Band] = []
    lowest = 0.0
    for stage in stages:
        inside: dict[str, list[Node]] = {}
        for node in everything:
            if node.stage == stage:
                inside.setdefault(node.band, []).append(node)
        order = sorted(inside.items(), key=lambda item: _wish(item[1], stage))
        y = MARGIN
        for name, nodes in order:
            head = HEADER if name else MARGIN
            stacks = [[node for node in nodes if node.column == column] for column in range(count[stage])]
            tall = max(_tall(stack) for stack in stacks)
            for stack in stacks:
                _stacked(stack, y + head, tall)
            if name:
                left = min(node.x for node in nodes) - MARGIN
                right = max(node.x + node.room for node in nodes) + MARGIN
                width = max(right - left, titles.get(name, 0.0) + 2 * MARGIN)
                found.append(Band(name, left, y, width, head + tall + MARGIN))
            y += head + tall + MARGIN + GAP_Y
        lowest = max(lowest, y)
    return found, lowest - GAP_Y + MARGIN


def _wish(nodes: Sequence[Node], stage: int) -> float:
    """The middle of what a band's nodes come from in earlier stages."""
    sources = [source.middle for node in nodes for source in node.sources if source.stage < stage]
    return sum(sources) / len(sources) if sources else 0.0


def _tall(stack: Sequence[Node]) -> float:
    return sum(node.height for node in stack) + GAP_Y * max(0, len(stack) - 1)


def _stacked(stack: list[Node], top: float, tall: float) -> None:
    """Place the nodes of one column in a band, each as near to the middle of its sources as the
    others leave room for."""
    wish = {
        node: sum(source.middle for source in node.sources) / len(node.sources) - node.height / 2
        if node.sources
        else top
        for node in stack
    }
    stack.sort(key=lambda node: wish[node] + node.height / 2)
    free, below = top, _tall(stack)
    for node in stack:
        last = top + tall - below  # the lowest place that leaves room for those below
        node.y = min(max(free, wish[node]), last)
        free = node.y + node.height + GAP_Y
        below -= node.height + GAP_Y


def _points(path: Sequence[Node]) -> tuple[tuple[float, float], ...]:
    first, *lanes, last = path
    points = [(first.x + first.width, first.middle), (first.x + first.room, first.middle)]
    for lane in lanes:
        points += [(lane.x, lane.middle), (lane.x + lane.room, lane.middle)]
    return (*points, (last.x, last.middle))
