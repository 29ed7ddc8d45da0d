"""Random tools, arguments and ways to cut a text, shared by the tests of this folder."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from toolgrammar.tools import Tool

TRICKY = (
    "",
    "</tool_call>",
    "<tool_call>",
    "\n</tool_call>\n<tool_call>\n",
    '"}}',
    "\\",
    '\\"',
    "line\nbreak\ttab\r",
    "\x00\x1f\x7f",
    "ünï → 🎉 \u2028",
    "{}[],:",
    "x" * 10_000,
)
texts = st.one_of(st.text(st.characters(codec="utf-8"), max_size=20), st.sampled_from(TRICKY))
names = st.one_of(
    st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=1, max_size=12),
    st.sampled_from(["get", "get_all", "get_al", "a.b.c", 'quo"te', "back\\slash", "emoji🎉", "</tool_call>"]),
)


def _scalars(strings: st.SearchStrategy[str]) -> list[tuple[dict[str, Any], st.SearchStrategy[Any]]]:
    return [
        ({"type": "string"}, strings),
        ({"type": "integer"}, st.integers(-(10**15), 10**15)),
        ({"type": "boolean"}, st.booleans()),
        ({"type": "null"}, st.none()),
        ({"enum": ["a", 1, None, "</tool_call>"]}, st.sampled_from(["a", 1, None, "</tool_call>"])),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, st.one_of(st.integers(-(10**15), 10**15), strings)),
    ]


@st.composite
def values(
    draw: st.DrawFn, depth: int = 2, keys: st.SearchStrategy[str] = names, strings: st.SearchStrategy[str] = texts
) -> tuple[dict[str, Any], Any]:
    """A schema, and a value that is valid for it, written in the schema's order."""
    kind = draw(st.sampled_from(["scalar", "array", "object"] if depth else ["scalar"]))
    if kind == "scalar":
        schema, instances = draw(st.sampled_from(_scalars(strings)))
        return schema, draw(instances)
    if kind == "array":
        schema, scalar = draw(st.sampled_from(_scalars(strings)))
        return {"type": "array", "items": schema}, draw(st.lists(scalar, max_size=3))
    return draw(objects(depth - 1, keys, strings))


@st.composite
def objects(
    draw: st.DrawFn, depth: int = 1, keys: st.SearchStrategy[str] = names, strings: st.SearchStrategy[str] = texts
) -> tuple[dict[str, Any], dict[str, Any]]:
    """An object schema with required and optional properties, and a valid object."""
    properties, instance, required = {}, {}, []
    for key in draw(st.lists(keys, max_size=3, unique=True)):
        properties[key], value = draw(values(depth, keys, strings))
        if draw(st.booleans()):
            required.append(key)
        if key in required or draw(st.booleans()):
            instance[key] = value
    return {"type": "object", "properties": properties, "required": required}, instance


@st.composite
def tools_and_calls(draw: st.DrawFn) -> tuple[list[Tool], list[tuple[str, dict[str, Any]]]]:
    """One to three tools, and one to four calls of them (name and arguments)."""
    tools, examples = [], []
    for name in draw(st.lists(names, min_size=1, max_size=3, unique=True)):
        schema, instance = draw(objects())
        tools.append(Tool(name, "", schema))
        examples.append((name, instance))
    return tools, draw(st.lists(st.sampled_from(examples), min_size=1, max_size=4))


@st.composite
def cuts(draw: st.DrawFn, text: str) -> list[str]:
    """The text in pieces."""
    at = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    return [text[a:b] for a, b in zip([0, *at], [*at, len(text)], strict=True)]
