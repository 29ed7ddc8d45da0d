"""Values of each option: one other than the default, and wrong ones. The range of an option tells most of them."""

from __future__ import annotations

from typing import Any

from toolgrammar.core import Grammar
from toolgrammar.core.generation.params import OPTIONS, GenerateParams
from toolgrammar.tools import Policy

#: Values of options whose range is no kind of number, flag or word, or that need a certain one.
OTHER: dict[str, Any] = {
    "logit_bias": {1: 2.0},
    "thinking": False,
    "thinking_markers": ("<think>", "</think>"),
    "prefix": "I ",
    "stop": ("zz",),
    "timeout": 99.0,
    "max_repetition": 500,
    "tool_format": "json",
    "grammar": Grammar.from_regex("[a-z]+"),
    "policy": Policy({"tools": {"*": "free"}}),
}
WRONG: dict[str, list[Any]] = {
    "logit_bias": [{"1": 1.0}, {-1: 1.0}, {1: "x"}, [1]],
    "thinking": [-1, "maybe", 1.5],
    "thinking_markers": ["<>", ("<think>",), ("", "x")],
    "prefix": [None, b"x"],
    "stop": [[""], ("a", ""), "", 5, [5], None],
    "json_mode": [1, "json", {"type": "object"}],
    "grammar": ["[a-z]+", {"type": "object"}],
    "tool_choice": [None, True, {"x": 1}],
    "cancel": [True],
    "output_type": [5, "int", [int]],
}
#: Options whose values are checked by what reads them: the tool set, the formats, the policy.
UNCHECKED = {"tools", "tool_format", "policy"}


def other(name: str) -> Any:
    """Return a value of an option that is allowed, and not the default."""
    if name in OTHER:
        return OTHER[name]
    default, schema = getattr(GenerateParams(), name), OPTIONS[name].allowed.schema
    if schema.get("type") == "boolean":
        return not default
    if "enum" in schema:
        return next(word for word in schema["enum"] if word != default)
    return schema["minimum"] + 5 if schema["type"] == "integer" else 0.5


def wrong(name: str) -> list[Any]:
    """Return values of an option that are not allowed."""
    if name in WRONG:
        return WRONG[name]
    allowed = OPTIONS[name].allowed
    schema, none = allowed.schema, [] if allowed.holds(None) else [None]
    if schema.get("type") == "boolean":
        return [1, "yes", *none]
    if "enum" in schema:
        return ["no such word", 1, [schema["enum"][0]], *none]
    least = schema.get("minimum", schema.get("exclusiveMinimum"))
    beyond = [least - 1] + ([schema["maximum"] + 1] if "maximum" in schema else [])
    return [
        *beyond,
        str(least + 1),
        True,
        *([1.5] if schema["type"] == "integer" else [float("nan"), float("inf")]),
        *none,
    ]
