"""Pictures of rows, as SVG.

A picture is a title, two axes, lines or bars for each series and a legend, drawn with no more
than the text of the file, on a ground of its own so that it can be read on any page.

The ground is light, or dark where the reader's page asks for that. How wide a text is cannot be known without
its font, so widths are estimated, rather too large than too small, and everything that could meet is kept
apart by them: labels of the x axis are turned when they would overlap, and values stand on bars where they fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from bench.report.axes import Axis, along, label, upright
from bench.report.experiment import Plot, Row, Value

WIDTH, HEIGHT = 600.0, 300.0
"""Of the field between the axes; it is wider where more has to stand side by side."""
TURNED, BAR = 16.0, 5.0
"""The least room of a label that is turned, and of a bar."""
TOP, LEFT, EDGE = 62.0, 58.0, 18.0
LINE = 18.0
"""Between two lines of the legend."""
DOTS = 30
"""Points of a line that are marked. More would hide the line."""
LIGHT = ("#1f6fb4", "#d95f02", "#1b9e77", "#7a5cc0", "#d6277f", "#96681a", "#5c6670", "#0f93b0", "#b38600", "#b3261e")
DARK = ("#6cb6ff", "#ff9d5c", "#57d3a5", "#b9a5ff", "#ff7fc0", "#d9a95a", "#b3bcc6", "#5fd7f0", "#f2cc4d", "#ff8078")
STYLE = """
text{font:12px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:#24292f}
.ground{fill:#ffffff;stroke:#d0d7de}.title{font-size:15px;font-weight:600}.soft{fill:#57606a}.small{font-size:10px}
.grid{stroke:#e3e7ec}.axis{stroke:#8c959f}.line{fill:none;stroke-width:2}
"""
STYLE_DARK = """
text{fill:#e6edf3}.ground{fill:#161b22;stroke:#30363d}.soft{fill:#9aa4af}.grid{stroke:#2b323b}.axis{stroke:#6e7681}
"""


class NothingToDraw(ValueError):
    """No row belongs into a picture."""


@dataclass(frozen=True)
class Series:
    """A name, and points in the order of x."""

    name: str
    points: tuple[tuple[Value, float], ...]


def draw(plot: Plot, rows: Sequence[Row], headings: dict[str, str]) -> str:
    """The picture of a plot."""
    log_y = plot.log_y
    series = _series(plot, rows)
    if not series:
        raise NothingToDraw(f"plot {plot.name}: no row has both {plot.x} and {plot.y}")
    named = [one.name for one in series] if plot.by else []
    if plot.by and named == [""]:
        raise ValueError(f"plot {plot.name}: no row has {plot.by}")
    legend = _Legend(headings.get(plot.by or "", ""), named)
    x_name = headings.get(plot.x, plot.x) + (", logarithmic" if plot.log_x else "")
    y_name = headings.get(plot.y, plot.y) + (", logarithmic" if log_y else "")
    axis = upright([y for one in series for _, y in one.points], TOP + HEIGHT, TOP, log_y)
    left = max(LEFT, EDGE + 8 + max(wide(label(tick)) for tick in axis.ticks))
    height = max(HEIGHT, legend.height)
    frame = _Frame(left, left + _width(plot, series), TOP, TOP + HEIGHT)
    field = _Bars(frame, series, axis) if plot.kind == "bars" else _Lines(frame, series, axis, plot.log_x)
    total = (max(frame.right + EDGE, legend.place(frame.right) + legend.width + EDGE), TOP + height + field.below + 34)
    total = (max(total[0], EDGE * 2 + wide(plot.title, 15.5)), total[1])
    middle, bottom = (frame.left + frame.right) / 2, TOP + HEIGHT + field.below + 22
    parts = [
        f'<rect class="ground" x="0.5" y="0.5" width="{total[0] - 1:.0f}" height="{total[1] - 1:.0f}" rx="6"/>',
        text(EDGE, 27, plot.title, "title"),
        text(EDGE, 47, y_name, "soft"),
        *_grid(frame, axis),
        *field.parts,
        text(middle, bottom, x_name, "soft", "middle"),
        *legend.parts(frame.right, plot.kind == "bars"),
    ]
    return _document(plot.title, total, parts)


def _series(plot: Plot, rows: Sequence[Row]) -> list[Series]:
    """Series in the order in which their first rows were found. A logarithm has no place for zero."""
    found: dict[str, list[tuple[Value, float]]] = {}
    for row in rows:
        x, y = row.get(plot.x), row.get(plot.y)
        if not plot.where(row) or x is None or isinstance(y, (str, bool)) or y is None or (plot.log_y and y <= 0):
            continue
        if plot.log_x and plot.kind == "lines" and (isinstance(x, str) or x <= 0):
            continue
        points = found.setdefault(label(row.get(plot.by)) if plot.by else "", [])
        if plot.kind == "bars" and any(known == x for known, _ in points):
            raise ValueError(f"plot {plot.name}: two rows have {plot.x} = {x}: let `where` or `by` distinguish them")
        points.append((x, float(y)))
    if plot.kind == "lines":
        for points in found.values():
            if not any(isinstance(x, str) for x, _ in points):
                points.sort(key=lambda point: point[0])  # type: ignore[arg-type, return-value]
    return [Series(name, tuple(points)) for name, points in found.items()]


# ------------------------------------------------------------------ the field


def _width(plot: Plot, series: Sequence[Series]) -> float:
    values = {x for one in series for x, _ in one.points}
    if plot.kind == "bars":
        return max(WIDTH, len(values) * max(TURNED, BAR * len(series) / 0.8))
    return max(WIDTH, len(values) * TURNED) if any(isinstance(value, str) for value in values) else WIDTH


@dataclass(frozen=True)
class _Frame:
    left: float
    right: float
    top: float
    bottom: float


def _grid(frame: _Frame, axis: Axis) -> list[str]:
    parts = []
    for tick in axis.ticks:
        y = axis.at(tick)
        parts.append(f'<line class="grid" x1="{frame.left:.1f}" x2="{frame.right:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(text(frame.left - 8, y + 4, label(tick), "soft", "end"))
    parts.append(
        f'<line class="axis" x1="{frame.left:.1f}" x2="{frame.right:.1f}" y1="{frame.bottom}" y2="{frame.bottom}"/>'
    )
    return parts


class _Lines:
    """A line for each series. Where x is a text, its values stand one after another."""

    def __init__(self, frame: _Frame, series: Sequence[Series], y: Axis, log_x: bool) -> None:
        values = list(dict.fromkeys(x for one in series for x, _ in one.points))
        if any(isinstance(value, str) for value in values):
            step = (frame.right - frame.left) / len(values)
            places = {value: frame.left + step * (at + 0.5) for at, value in enumerate(values)}
            labels, self.below = _labels([(places[value], label(value)) for value in values], step, frame)
        else:
            gap = 10 + max(wide(label(value)) for value in values)
            x = along([float(value or 0) for value in values], frame.left + 12, frame.right - 12, log_x, gap)
            places = {value: x.at(float(value or 0)) for value in values}
            labels, self.below = _labels([(x.at(tick), label(tick)) for tick in x.ticks], WIDTH, frame)
        self.parts = labels
        for number, one in enumerate(series):
            at = [(places[value], y.at(size)) for value, size in one.points]
            path = " ".join(f"{across:.1f},{up:.1f}" for across, up in at)
            self.parts.append(f'<polyline class="line s{number % len(LIGHT)}"{_dashed(number)} points="{path}"/>')
            if len(at) <= DOTS:
                for (across, up), (value, size) in zip(at, one.points, strict=True):
                    tooltip = f"<title>{escape(_tooltip(one.name, value, size))}</title>"
                    self.parts.append(_mark(number, across, up, tooltip))


class _Bars:
    """Groups of bars, a bar of each for every series."""

    def __init__(self, frame: _Frame, series: Sequence[Series], y: Axis) -> None:
        values = list(dict.fromkeys(x for one in series for x, _ in one.points))
        step = (frame.right - frame.left) / len(values)
        broad = min(step * 0.8 / len(series), 60.0)
        first = frame.left + (step - broad * len(series)) / 2
        places = [(frame.left + step * (at + 0.5), label(value)) for at, value in enumerate(values)]
        self.parts, self.below = _labels(places, step, frame)
        bottom = y.at(y.low if y.log else 0.0)
        fits = all(wide(label(size), 10) <= broad - 1 for one in series for _, size in one.points)
        for number, one in enumerate(series):
            for value, size in one.points:
                x, top = first + values.index(value) * step + number * broad, y.at(size)
                high, low = min(top, bottom), max(top, bottom)
                self.parts.append(
                    f'<rect class="b{number % len(LIGHT)}" x="{x:.1f}" y="{high:.1f}" width="{max(broad - 1, 1):.1f}" '
                    f'height="{max(low - high, 1):.1f}"><title>{escape(_tooltip(one.name, value, size))}</title></rect>'
                )
                if fits:
                    beyond = low + 11 if size < 0 else high - 4
                    self.parts.append(text(x + broad / 2, beyond, label(size), "soft small", "middle"))


def _labels(places: Sequence[tuple[float, str]], room: float, frame: _Frame) -> tuple[list[str], float]:
    """Labels of the x axis, turned where they would overlap; and how much room they take below it."""
    widest = max(wide(name) for _, name in places)
    if widest + 4 <= room:
        return [text(x, frame.bottom + 17, name, "soft", "middle") for x, name in places], 17.0
    turned = []
    for x, name in places:
        y = frame.bottom + 14
        turned.append(text(x + 4, y, name, "soft", "end", f' transform="rotate(-40 {x + 4:.1f} {y:.1f})"'))
    return turned, 10 + widest * math.sin(math.radians(40)) + 6


# ------------------------------------------------------------------ the legend


@dataclass(frozen=True)
class _Legend:
    heading: str
    names: Sequence[str]

    @property
    def width(self) -> float:
        return max((30 + wide(name) for name in (self.heading, *self.names)), default=0) if self.names else 0

    @property
    def height(self) -> float:
        return LINE * (len(self.names) + 1) if self.names else 0

    def place(self, right: float) -> float:
        return right + 20

    def parts(self, right: float, bars: bool) -> list[str]:
        if not self.names:
            return []
        x = self.place(right)
        found = [text(x, TOP + 4, self.heading, "soft")]
        for number, name in enumerate(self.names):
            y = TOP + 4 + LINE * (number + 1)
            if bars:
                found.append(f'<rect class="b{number % len(LIGHT)}" x="{x}" y="{y - 10}" width="12" height="12"/>')
            else:
                ends = f'x1="{x}" x2="{x + 22}" y1="{y - 4}" y2="{y - 4}"'
                found.append(f'<line class="line s{number % len(LIGHT)}"{_dashed(number)} {ends}/>')
                found.append(_mark(number, x + 11, y - 4, ""))
            found.append(text(x + (18 if bars else 28), y, name))
        return found


# ------------------------------------------------------------------ small parts


def wide(name: str, size: float = 12.0) -> float:
    """About how wide a text is, in a usual font."""
    total = 0.0
    for letter in name:
        if letter in "iIljtfr.,:;'|!()[] ":
            total += 0.34
        elif letter in "mwMW%@…—" or ord(letter) > 0x2E7F:
            total += 0.95
        else:
            total += 0.7 if letter.isupper() else 0.58
    return total * size


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start", more: str = "") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text{style} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(words)}</text>'


def _tooltip(name: str, x: Value, y: float) -> str:
    return f"{name}, {label(x)}: {y:,.6g}" if name else f"{label(x)}: {y:,.6g}"


def _dashed(number: int) -> str:
    """Colours come again after ten series, with dashes."""
    return ' stroke-dasharray="6 4"' if number // len(LIGHT) % 2 else ""


def _mark(number: int, x: float, y: float, inside: str) -> str:
    """A mark by shape as well as colour, for those who cannot distinguish colours."""
    kind = f'class="b{number % len(LIGHT)}"'
    shape = number % 4
    if shape == 0:
        return f'<circle {kind} cx="{x:.1f}" cy="{y:.1f}" r="3.5">{inside}</circle>'
    if shape == 1:
        return f'<rect {kind} x="{x - 3.2:.1f}" y="{y - 3.2:.1f}" width="6.4" height="6.4">{inside}</rect>'
    corners = [(0, -4.6), (4.4, 3.4), (-4.4, 3.4)] if shape == 2 else [(0, -4.8), (4.8, 0), (0, 4.8), (-4.8, 0)]
    path = " ".join(f"{x + across:.1f},{y + down:.1f}" for across, down in corners)
    return f'<polygon {kind} points="{path}">{inside}</polygon>'


def _document(title: str, size: tuple[float, float], parts: Sequence[str]) -> str:
    def colours(palette: Sequence[str]) -> str:
        return "".join(f".s{at}{{stroke:{one}}}.b{at}{{fill:{one}}}" for at, one in enumerate(palette))

    style = STYLE + colours(LIGHT) + "\n@media (prefers-color-scheme: dark){" + STYLE_DARK + colours(DARK) + "}\n"
    width, height = math.ceil(size[0]), math.ceil(size[1])
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'role="img" aria-label={quoteattr(title)}>',
            f"<style>{style}</style>",
            *parts,
            "</svg>\n",
        ]
    )
