"""Pages: they load nothing, escape everything, read well in light and dark, and work in a browser."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from toolgrammar.core import ForbiddenToken, JsonMode, Trace, TracedToken, load_model
from toolgrammar.core.pages.frame import asset, json_in_html

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u2028`"


def trace_of(*texts: str) -> Trace:
    """A trace with these texts as tokens, and every other text the same one."""
    tokens = tuple(
        TracedToken(
            number,
            text,
            "",
            "sampled",
            allowed=2,
            probability=0.25,
            removed=0.5,
            forbidden=(ForbiddenToken(1, text, 0.5, text),),
            expected=text,
            instead_of=text,
            role="string",
            pointer=f"/{text}",
            tool=text,
            call=0,
            schema=text,
        )
        for number, text in enumerate(texts)
    )
    trace = Trace(tokens, HOSTILE, 300, 4, 0.5, 1.0, 0.1)
    return Trace(tokens, HOSTILE, 300, 4, 0.5, 1.0, 0.1, earlier=(trace,), problems=(HOSTILE,))


def test_page_loads_nothing() -> None:
    """No page names another file, and its policy forbids to load one."""
    page = load_model("embedded").generate("x", max_tokens=4, trace=True).trace.to_html()  # type: ignore[union-attr]
    markup = re.sub(r"(?s)<(script|style)\b.*?</\1>", "", page)
    assert not re.search(r"\b(src|href)=|url\(|@import", markup + asset("page.css"))
    assert not re.search(r"https?:|fetch\(|XMLHttp|import\(", page)
    assert "default-src 'none'" in page


def test_everything_is_escaped() -> None:
    """Hostile text in every place stays text: the page holds one data and one program script, and no other markup."""
    page = trace_of(HOSTILE, "\ud800").to_html(HOSTILE)
    assert page.count("<script") == 2
    assert "<img" not in page and "alert(1)</script>" not in page
    assert html.escape(HOSTILE) in page
    data = json.loads(re.search(r'(?s)id="data">(.*?)</script>', page).group(1))  # type: ignore[union-attr]
    assert data["attempts"][0]["tokens"][0]["text"] == HOSTILE
    assert page.encode("utf-8")


@pytest.mark.parametrize("value", [HOSTILE, "\ud83d", {"</script>": ["<!--"]}, None, 1.5])
def test_json_in_html_is_the_same_json(value: Any) -> None:
    """JSON inside a page is that JSON, and holds no markup."""
    text = json_in_html(value)
    assert json.loads(text) == value
    assert not set("<>&") & set(text)


def test_notebooks_show_the_page_in_a_frame() -> None:
    """The notebook's form is one frame whose document is the page."""
    trace = trace_of("a")
    frame = trace._repr_html_()
    assert html.unescape(re.search(r'srcdoc="([^"]*)"', frame).group(1)) == trace.to_html()  # type: ignore[union-attr]


def luminance(colour: str) -> float:
    """Relative luminance of a colour (WCAG 2)."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours (WCAG 2)."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_colours_have_contrast() -> None:
    """In light and dark, text has a contrast of 4.5 at least on each ground that it stands on, and marks one of 3."""
    schemes = [dict(re.findall(r"--([\w-]+): (#\w{6})", block)) for block in asset("page.css").split("@media")[:2]]
    assert len(schemes) == 2 and schemes[0].keys() == schemes[1].keys()
    for colours in schemes:
        for text in ("ink", "dim", "closed", "good", "link"):
            for ground in ("paper", "card"):
                assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
        assert contrast(colours["chosen-ink"], colours["chosen"]) >= 4.5
        assert contrast(colours["ink"], colours["forced"]) >= 4.5
        for mark in ("edge", "removed"):
            for ground in ("paper", "card"):
                assert contrast(colours[mark], colours[ground]) >= 3, (mark, ground)


PICK = """
const tokens = document.querySelectorAll('#tokens .t');
tokens[0].click();
document.getElementById('tokens').dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight' }));
document.title = tokens.length + ' tokens; at ' + document.querySelector('.t.on').dataset.n
  + '; overflow ' + (document.documentElement.scrollWidth > innerWidth);
"""


@pytest.mark.parametrize("width", [1280, 500])
def test_trace_page_works_in_a_browser(open_page: Callable[..., Any], width: int) -> None:
    """Each token is shown once; a tap and an arrow key show a token's facts; the console stays silent."""
    generation = load_model("embedded").generate(
        "x", json_mode=JsonMode({"type": "array", "minItems": 3}), temperature=1.0, seed=1, max_tokens=80, trace=True
    )
    assert generation.trace is not None
    opened = open_page(generation.trace.to_html(), PICK, width)
    assert opened.complaints == []
    assert f"<title>{len(generation.trace.tokens)} tokens; at 1; overflow false</title>" in opened.document
    assert f"Token 2 of {len(generation.trace.tokens)}" in opened.document


def test_hostile_page_in_a_browser(open_page: Callable[..., Any]) -> None:
    """Hostile texts run no script and make no element, in all answers of a trace."""
    opened = open_page(trace_of(HOSTILE, "b").to_html(HOSTILE), PICK)
    assert opened.complaints == []
    assert "<title>2 tokens; at 1; overflow false</title>" in opened.document
    assert "<img" not in opened.document.replace("&lt;img", "")
    assert "Answer 1" in opened.document


def test_five_thousand_tokens_in_a_browser(open_page: Callable[..., Any]) -> None:
    """A long trace is shown whole, in a page of moderate size."""
    page = trace_of(*["word "] * 5_000).to_html()
    assert len(page) < 4_000_000
    opened = open_page(page, PICK)
    assert opened.complaints == []
    assert "<title>5000 tokens; at 1; overflow false</title>" in opened.document
