"""What a notebook shows of a value: small tables, without script and style sheets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .frame import escape

#: Maximum number of characters of a cell.
MAX_CELL = 600


def table(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Return a table of texts as HTML; long texts are cut.

    Args:
        rows: the texts of each row; the first is in code style.
        head: the texts of the header.
    """
    parts = ["<table>"]
    if head:
        parts.append(f"<thead><tr>{''.join(f'<th>{escape(one)}</th>' for one in head)}</tr></thead>")
    parts.append("<tbody>")
    for first, *others in rows:
        cells = "".join(f'<td style="text-align:left;white-space:pre-wrap">{_short(one)}</td>' for one in others)
        parts.append(f'<tr><td style="text-align:left"><code>{_short(first)}</code></td>{cells}</tr>')
    return "".join([*parts, "</tbody></table>"])


def _short(text: str) -> str:
    return escape(text if len(text) <= MAX_CELL else f"{text[:MAX_CELL]}…")
