"""Frame of every page: one HTML document with its style, script and data inside, which loads nothing."""

from __future__ import annotations

import html
import json
from functools import cache
from pathlib import Path
from typing import Any

#: The browser itself refuses whatever would be loaded.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def page(title: str, body: str, *, data: Any = None, script: str = "", style: str = "") -> str:
    """Return an HTML document.

    Args:
        title: as plain text.
        body: HTML, with every text in it escaped.
        data: JSON data for the script, in the element ``data``.
        script: name of a file of ``data/``.
        style: more CSS.
    """
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{escape(title)}</title>",
        f"<style>\n{asset('page.css')}{style}</style>",
        "</head>",
        f"<body>\n{body}",
    ]
    if data is not None:
        parts.append(f'<script type="application/json" id="data">{json_in_html(data)}</script>')
    if script:
        parts.append(f"<script>\n{asset(script)}</script>")
    return "\n".join([*parts, "</body>", "</html>", ""])


def embedded(document: str) -> str:
    """Return a document for a notebook's cell: in a frame of its own, so that neither changes the other's style."""
    return (
        f'<iframe srcdoc="{html.escape(document)}" sandbox="allow-scripts" title="toolgrammar" loading="lazy" '
        'style="width:100%;height:640px;border:1px solid #8886;border-radius:8px"></iframe>'
    )


def json_in_html(data: Any) -> str:
    """Return JSON that no HTML parser takes for markup, whatever its strings hold."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    # Half a surrogate pair cannot be written in UTF-8.
    text = "".join(f"\\u{ord(one):04x}" if "\ud800" <= one <= "\udfff" else one for one in text)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def escape(text: str) -> str:
    """Return a text as HTML; half a surrogate pair becomes U+FFFD."""
    return html.escape(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


@cache
def asset(name: str) -> str:
    """Return the text of a file of ``data/``."""
    return Path(__file__).with_name("data").joinpath(name).read_text(encoding="utf-8")
