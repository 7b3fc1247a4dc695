"""EXPLAIN as a picture.

Zones are boxes from left to right in order of their stages, steps are cards in
them, and where changes enter a zone a tag names the row key by which they were redistributed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

from everview.plan.explain.excerpt import PlanExcerpt, listed, part_of
from everview.plan.explain.svg_layout import Band, Drawing, Line, Node, arranged
from everview.plan.maintenance import MaintenancePlan, Step
from everview.plan.maintenance.column_names import pretty
from everview.plan.maintenance.operator_definitions import (
    DeltaOperator,
    GroupReevaluationOperator,
    IndexOperator,
    ReevaluationOperator,
    RowsOperator,
    ViewOperator,
)

_LETTER = 6.65
"""The width of a letter of the fixed-width font at 11 pixels."""
_ROW = 15.0
_CARD = 34
"""Letters in a row of a card."""
_ROWS = 4
"""Rows of a card's title at most."""
_TAG = 30

_COLOURS = {
    DeltaOperator: "#dbe7f5",
    RowsOperator: "#dbe7f5",
    ViewOperator: "#d8efdc",
    IndexOperator: "#d8efdc",
    ReevaluationOperator: "#f8dfd6",
    GroupReevaluationOperator: "#f8dfd6",
}


def explain_svg(plan: MaintenancePlan, views: Sequence[str] | None = None) -> str:
    """How these views are maintained, as an SVG document; all of the group, unless some are given."""
    part = part_of(plan, views)
    cards = {step.fingerprint: _Card(part, step) for step in part.steps}
    nodes: list[Node] = []
    edges: list[tuple[Node, Node]] = []
    steps: dict[str, Node] = {}
    tags: dict[tuple[str, tuple[str, ...], str], Node] = {}
    titles: dict[str, str] = {}
    for number, zone, inside in part.zones:
        band = f"zone {number}"
        titles[band] = _cut(f"zone {number}, by {', '.join(zone.key) or 'one key'}", 60)
        for step in inside:
            card = cards[step.fingerprint]
            node = Node(step.fingerprint, card.width, card.height, zone.stage, band)
            for one in step.inputs:
                source = steps[one.step]
                if one.key is not None:
                    at = (one.step, one.key, band)
                    if at not in tags:
                        text = f"by {', '.join(map(pretty, one.key)) or 'one key'}"
                        rows = _wrapped(text, 2, _TAG)
                        size = (_wide(rows) + 16, 5 + _ROW * len(rows))
                        tags[at] = Node(f"tag {text}", *size, zone.stage, band)
                        nodes.append(tags[at])
                        edges.append((source, tags[at]))
                    source = tags[at]
                edges.append((source, node))
            steps[step.fingerprint] = node
            nodes.append(node)
    widths = {band: _wide([title]) for band, title in titles.items()}
    drawing = arranged(nodes, edges, widths)
    return "\n".join(_document(drawing, cards, titles)) + "\n"


class _Card:
    """A step: operator, title, what it keeps, who shares it."""

    def __init__(self, part: PlanExcerpt, step: Step) -> None:
        self.colour = _COLOURS.get(type(step.operator), "#ffffff")
        number = part.numbers[step.fingerprint]
        self.head = f"{number} {step.operator.name}"
        if step.members > 1:
            self.head += f" × {step.members:,}"
        self.rows = _wrapped(_NAMED.sub("…", step.title), _ROWS)
        self.states = [row for state in step.states for row in _wrapped(state.name, 2)]
        shared = part.shared_with(step)
        self.shared = _wrapped(f"shared with {listed(shared)}", 2) if shared else []
        self.full = "\n".join([f"{self.head}: {step.title}", *(f"keeps {state.name}" for state in step.states)])
        self.width = max(120.0, _wide([self.head, *self.rows, *self.states, *self.shared]) + 20)
        self.height = 10 + _ROW * (1 + len(self.rows) + len(self.shared)) + self.kept_height

    @property
    def kept_height(self) -> float:
        return _ROW * len(self.states) + 8 if self.states else 0.0

    def drawn(self, node: Node) -> Iterator[str]:
        yield f"<g><title>{escape(self.full)}</title>"
        yield _box(node.x, node.y, node.width, node.height, self.colour, "#5b6573", 5)
        y = node.y + 16
        yield _text(node.x + 10, y, self.head, "bold")
        for row in self.rows:
            y += _ROW
            yield _text(node.x + 10, y, row)
        for row in self.shared:
            y += _ROW
            yield _text(node.x + 10, y, row, "faint")
        if self.states:
            y += 6
            yield _box(node.x + 4, y, node.width - 8, self.kept_height - 5, "#fff3cf", "#c9a94a", 7)
            for row in self.states:
                y += _ROW
                yield _text(node.x + 10, y - 2, row)
        yield "</g>"


def _document(drawing: Drawing, cards: dict[str, _Card], titles: dict[str, str]) -> Iterator[str]:
    width, height = round(drawing.width), round(drawing.height)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="11">'
    )
    yield (
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#5b6573"/></marker></defs>'
    )
    yield f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    for band in drawing.bands:
        yield from _band(band, titles[band.name])
    for line in drawing.lines:
        yield _line(line)
    for node in drawing.nodes:
        if node.name in cards:
            yield from cards[node.name].drawn(node)
        else:
            yield from _tag(node)
    yield "</svg>"


def _band(band: Band, title: str) -> Iterator[str]:
    yield _box(band.x, band.y, band.width, band.height, "#f6f8fa", "#b6bfca", 9)
    yield _text(band.x + 12, band.y + 19, title, "bold")


def _tag(node: Node) -> Iterator[str]:
    text = node.name.removeprefix("tag ")
    yield f"<g><title>{escape(text)}</title>"
    yield _box(node.x, node.y, node.width, node.height, "#eceff3", "#8a94a3", 10)
    for number, row in enumerate(_wrapped(text, 2, _TAG)):
        yield _text(node.x + 8, node.y + 14 + _ROW * number, row)
    yield "</g>"


def _line(line: Line) -> str:
    (x, y), *rest = line.points
    path = f"M{x:.0f},{y:.0f}"
    for number, (to_x, to_y) in enumerate(rest):
        if number % 2 == 0:
            path += f" L{to_x:.0f},{to_y:.0f}"
        else:
            bend = (to_x - x) / 2
            path += f" C{x + bend:.0f},{y:.0f} {to_x - bend:.0f},{to_y:.0f} {to_x:.0f},{to_y:.0f}"
        x, y = to_x, to_y
    return f'<path d="{path}" fill="none" stroke="#5b6573" stroke-width="1.2" marker-end="url(#arrow)"/>'


def _box(x: float, y: float, width: float, height: float, fill: str, stroke: str, round_by: int) -> str:
    return (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="{round_by}" '
        f'fill="{fill}" stroke="{stroke}"/>'
    )


_LOOKS = {"": ' fill="#1c2430"', "bold": ' fill="#1c2430" font-weight="bold"', "faint": ' fill="#667080"'}


def _text(x: float, y: float, text: str, look: str = "") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}"{_LOOKS[look]}>{escape(text)}</text>'


def _wide(rows: Sequence[str]) -> float:
    """The width of the widest row. The sign of a join is in no fixed-width font, and wider."""
    return max(len(row) + row.count("⋈") * 0.6 for row in rows) * _LETTER


_NAMED = re.compile(r"… #[0-9a-f]{8}")
"""What ends a long name, so that two are never the same."""
_PIECES = re.compile(r"[^\s.,(]*[.,(]*\s*")


def _wrapped(text: str, rows: int, width: int = _CARD) -> list[str]:
    """The text in rows, broken between words, or else behind a dot, a comma or a parenthesis, or
    else anywhere; what is too much is cut off."""
    found = [""]
    for word in text.split():
        pieces = [word] if len(word) <= width else _PIECES.findall(word)
        for number, piece in enumerate(pieces):
            glue = " " if found[-1] and number == 0 else ""
            if len(found[-1] + glue + piece) <= width:
                found[-1] += glue + piece
            else:
                found += [piece[at : at + width] for at in range(0, len(piece), width)]
    found = found if found[0] or len(found) == 1 else found[1:]
    return found if len(found) <= rows else [*found[: rows - 1], _cut(f"{found[rows - 1]}…", width)]


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
