"""Bars side by side on a logarithmic scale, as SVG that is the same for the same numbers.

Written by hand: a drawing library would be the largest package that the benchmarks need, and this text can be compared
with the results it shows, byte by byte.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from xml.sax.saxutils import escape

#: Sizes in pixels: of the picture, of the room beside and between panels, of a bar, and of the names before it.
WIDTH, MARGINS, GAP = 1_080, 86, 26
BAR, BAR_GAP, NAMES = 22, 12, 104
INK = "#24292f"


def text(x: float, y: float, content: str, size: int, **more: str) -> str:
    """A line of text that begins at a place."""
    extra = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in more.items())
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="start" fill="{INK}" font-size="{size}"{extra}>'
        f"{escape(content)}</text>"
    )


def bars(title: str, panels: Mapping[str, Mapping[str, float]], ours: str) -> str:
    """Panels of bars side by side, each with its value; shorter is better.

    Args:
        title: read out where the picture cannot be seen.
        panels: from left to right, what is compared, and microseconds by name.
        ours: the name whose bars are coloured.
    """
    height = 64 + max(map(len, panels.values())) * (BAR + BAR_GAP)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
        ' role="img" font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
    ]
    width = (WIDTH - MARGINS - GAP * (len(panels) - 1)) / len(panels)
    for index, (compared, values) in enumerate(panels.items()):
        left = 24 + index * (width + GAP)
        low = math.floor(math.log10(min(values.values())))
        span = math.ceil(math.log10(max(values.values()))) - low
        room = width - NAMES - 70
        out.append(text(left, 30, f"{compared} (median, logarithmic)", 15, font_weight="600"))
        for row, (name, value) in enumerate(values.items()):
            top = 50 + row * (BAR + BAR_GAP)
            length = room * (math.log10(value) - low) / span
            colour = "#1a5fb4" if name == ours else "#b3bac2"
            out.append(text(left, top + 16, name, 14))
            box = f'x="{left + NAMES:.1f}" y="{top}" width="{length:.1f}" height="{BAR}" rx="3"'
            out.append(f'<rect {box} fill="{colour}"/>')
            out.append(text(left + NAMES + length + 8, top + 16, micros(float(f"{value:.2g}")), 14, font_weight="600"))
    return "\n".join([*out, "</svg>", ""])


def micros(value: float) -> str:
    """A time given in microseconds, in the unit that suits it."""
    for bound, unit in ((1e6, "s"), (1e3, "ms")):
        if value >= bound:
            return f"{value / bound:g} {unit}"
    return f"{value:g} µs"
