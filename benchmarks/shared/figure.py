"""Small charts side by side, both axes logarithmic, as SVG that is the same for the same numbers.

Written by hand: a drawing library would be the largest package that the benchmarks need, and this text can be compared
with the results it shows, byte by byte.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, GAP = 1_080, 64, 22, 26
HEAD, TITLE, PLOT, FOOT = 56, 52, 186, 40
INK, FAINT, GRID = "#24292f", "#6e7781", "#e4e8ec"


@dataclass(frozen=True)
class Line:
    """What one kind of line is called and looks like.

    Attributes:
        name: as the legend has it.
        colour: of the line.
        dashes: lengths of its dashes and gaps; empty for a line that is whole.
    """

    name: str
    colour: str
    dashes: str = ""


@dataclass(frozen=True)
class Panel:
    """One chart.

    Attributes:
        title: what is on the x axis.
        lines: for each line's name its points, x and y above zero; y is None where there is no result.
    """

    title: str
    lines: Mapping[str, Sequence[tuple[float, float | None]]]


def short(value: float) -> str:
    """A number as an axis has it: 33k, 300, 0.1."""
    return f"{round(value / 1e3):,}k" if value >= 1e3 else f"{value:g}"


def text(
    x: float, y: float, content: str, *, anchor: str = "start", colour: str = INK, size: int = 12, **more: str
) -> str:
    """A line of text."""
    extra = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in more.items())
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-size="{size}"{extra}>'
        f"{escape(content)}</text>"
    )


def begun(title: str, height: int) -> list[str]:
    """The beginning of a picture, with its title and background."""
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
        ' role="img" font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
    ]


def powers(span: tuple[float, float]) -> range:
    """The whole powers of ten between two."""
    return range(math.ceil(span[0]), math.floor(span[1]) + 1)


def stroke(line: Line) -> str:
    """How a line is drawn."""
    dashes = f' stroke-dasharray="{line.dashes}"' if line.dashes else ""
    return f'fill="none" stroke="{line.colour}" stroke-width="2.2" stroke-linejoin="round"{dashes}'


def panel_of(
    panel: Panel, styles: Sequence[Line], box: tuple[float, float, float], span: tuple[float, float]
) -> list[str]:
    """One chart, in a box (left, top, width), between two powers of ten.

    Grid lines stand at the whole powers.
    """
    left, top, width = box
    low, high = span
    xs = sorted({x for points in panel.lines.values() for x, _ in points})
    first, last = math.log(xs[0]), math.log(xs[-1])

    def across(x: float) -> float:
        return left + 12 + (width - 24) * (math.log(x) - first) / ((last - first) or 1)

    def up(y: float) -> float:
        return top + PLOT * (high - math.log10(y)) / (high - low)

    out = [text(left + width / 2, top + PLOT + 34, panel.title, anchor="middle", colour=FAINT)]
    for power in powers(span):
        height = up(10.0**power)
        out.append(f'<path d="M{left:.1f} {height:.1f}h{width:.1f}" stroke="{GRID}"/>')
    out += [text(across(x), top + PLOT + 16, short(x), anchor="middle", colour=FAINT, size=11) for x in xs]
    for style in styles:
        points = panel.lines.get(style.name, ())
        there = [(across(x), up(y)) for x, y in points if y is not None]
        if there:
            path = "L".join(f"{x:.1f} {y:.1f}" for x, y in there)
            out.append(f'<path d="M{path}" {stroke(style)}/>')
            out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{style.colour}"/>' for x, y in there]
        for x, y in points:
            if y is None and not style.dashes:
                at, height = across(x), there[-1][1] if there else top + PLOT / 2
                cross = f"M{at - 4:.1f} {height - 4:.1f}l8 8m0 -8l-8 8"
                out.append(f'<path d="{cross}" fill="none" stroke="{style.colour}" stroke-width="2"/>')
    return out


def chart(title: str, styles: Sequence[Line], rows: Sequence[tuple[str, Sequence[Panel]]]) -> str:
    """Rows of charts; those of one row share their y axis.

    Args:
        title: read out where the picture cannot be seen.
        styles: the lines, in the order in which they are drawn and named.
        rows: a heading (what y is), and the row's charts from left to right.
    """
    height = HEAD + len(rows) * (TITLE + PLOT + FOOT)
    out = begun(title, height)
    at = float(LEFT)
    for style in styles:
        out.append(f'<path d="M{at:.1f} 30h30" {stroke(style)}/>')
        out.append(f'<circle cx="{at + 15:.1f}" cy="30" r="3" fill="{style.colour}"/>')
        out.append(text(at + 38, 34, style.name, size=13))
        at += 62 + 7.2 * len(style.name)
    if any(y is None for _, panels in rows for each in panels for points in each.lines.values() for _, y in points):
        out.append(f'<path d="M{at:.1f} 26l8 8m0 -8l-8 8" fill="none" stroke="{FAINT}" stroke-width="2"/>')
        out.append(text(at + 16, 34, "refused", size=13, colour=FAINT))
    top = float(HEAD)
    for heading, panels in rows:
        out.append(text(LEFT, top + 22, heading, size=14, font_weight="600"))
        top += TITLE
        values = [y for each in panels for points in each.lines.values() for _, y in points if y is not None]
        low = math.floor(2 * math.log10(min(values))) / 2
        high = max(math.ceil(2 * math.log10(max(values))) / 2, low + 1)
        for power in powers((low, high)):
            where = top + PLOT * (high - power) / (high - low)
            out.append(text(LEFT - 8, where + 4, micros(10.0**power), anchor="end", colour=FAINT, size=11))
        width = (WIDTH - LEFT - RIGHT - GAP * (len(panels) - 1)) / len(panels)
        for index, panel in enumerate(panels):
            out += panel_of(panel, styles, (LEFT + index * (width + GAP), top, width), (low, high))
        top += PLOT + FOOT
    return "\n".join([*out, "</svg>", ""])


@dataclass(frozen=True)
class Bars:
    """Bars below one another, on a logarithmic scale.

    Attributes:
        title: what is compared.
        values: microseconds by name.
    """

    title: str
    values: Mapping[str, float]


BAR, BAR_GAP, NAMES = 22, 12, 104


def bars(title: str, panels: Sequence[Bars], ours: str) -> str:
    """Panels of bars side by side, each with its value; shorter is better.

    Args:
        title: read out where the picture cannot be seen.
        panels: from left to right.
        ours: the name whose bars are coloured.
    """
    count = max(len(each.values) for each in panels)
    height = 64 + count * (BAR + BAR_GAP)
    out = begun(title, height)
    width = (WIDTH - LEFT - RIGHT - GAP * (len(panels) - 1)) / len(panels)
    for index, panel in enumerate(panels):
        left = 24 + index * (width + GAP)
        low = math.floor(math.log10(min(panel.values.values())))
        span = math.ceil(math.log10(max(panel.values.values()))) - low
        room = width - NAMES - 70
        out.append(text(left, 30, f"{panel.title} (median, logarithmic)", size=15, font_weight="600"))
        for row, (name, value) in enumerate(panel.values.items()):
            top = 50 + row * (BAR + BAR_GAP)
            length = room * (math.log10(value) - low) / span
            colour = "#1a5fb4" if name == ours else "#b3bac2"
            out.append(text(left, top + 16, name, size=14))
            box = f'x="{left + NAMES:.1f}" y="{top}" width="{length:.1f}" height="{BAR}" rx="3"'
            out.append(f'<rect {box} fill="{colour}"/>')
            shown = micros(float(f"{value:.2g}"))
            out.append(text(left + NAMES + length + 8, top + 16, shown, size=14, font_weight="600"))
    return "\n".join([*out, "</svg>", ""])


def micros(value: float) -> str:
    """A time given in microseconds, in the unit that suits it."""
    for bound, unit in ((1e6, "s"), (1e3, "ms")):
        if value >= bound:
            return f"{value / bound:g} {unit}"
    return f"{value:g} µs"
