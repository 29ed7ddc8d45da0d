"""Page of a trace: the text with the facts of each token, and where probability and time went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .frame import escape, page

#: Fields of tokens that repeat, and are written once.
_REPEATED = ("schema", "expected", "tool", "pointer")


def trace_page(trace: Mapping[str, Any], title: str) -> str:
    """Return the page of a trace.

    Args:
        trace: as ``Trace.to_dict`` gives it.
        title: heading of the page.
    """
    texts: dict[str, int] = {}
    attempts = [
        {**attempt, "tokens": [_short(token, texts) for token in attempt["tokens"]], "earlier": []}
        for attempt in (*trace["earlier"], trace)
    ]
    plain = escape("".join(token["text"] for token in trace["tokens"]))
    body = f"""<header><h1>{escape(title)}</h1><p id="about"></p></header>
<main id="main" hidden>
<nav id="attempts" aria-label="Answers" hidden></nav>
<section id="cards" aria-label="Summary"></section>
<div class="columns">
<section class="written"><h2>The answer, token by token</h2>
<p class="hint">Point at a token, tap it, or move with the arrow keys.</p>
<div id="legend"></div>
<div id="tokens" role="group" aria-label="Tokens"></div></section>
<aside id="detail" aria-live="polite" aria-label="The token"></aside>
</div>
<section id="most"></section>
<section id="places"></section>
</main>
<noscript><p>Without scripts only the text is shown.</p><pre>{plain}</pre></noscript>"""
    return page(title, body, data={"texts": list(texts), "attempts": attempts}, script="trace.js")


def _short(token: Mapping[str, Any], texts: dict[str, int]) -> dict[str, Any]:
    """Return a token with numbers of texts for what repeats, and rounded figures."""
    short = dict(token)
    for name in _REPEATED:
        if name in short:
            short[name] = texts.setdefault(short[name], len(texts))
    for name in ("probability", "removed", "model_seconds", "engine_seconds"):
        if name in short:
            short[name] = float(f"{short[name]:.4g}")
    if "forbidden" in short:
        short["forbidden"] = [
            {**token, "probability": float(f"{token['probability']:.4g}")} for token in short["forbidden"]
        ]
    return short
