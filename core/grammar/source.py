"""Python source of a grammar: its ``repr``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

#: Maximum length of the source, in characters.
MAX_REPR = 400


def source(grammar: Any, schema_defaults: Mapping[str, Any]) -> str:
    """Return Python source that makes a grammar; of a rule without its definition, and cut at `MAX_REPR`.

    Args:
        grammar: a `Grammar`.
        schema_defaults: the options of `Grammar.from_json_schema` with their defaults, in the order of its arguments.
    """
    pieces: list[str] = []
    size = 0
    pending: list[Any] = [grammar]
    while pending and size <= MAX_REPR:
        item = pending.pop()
        if isinstance(item, str):
            pieces.append(item)
            size += len(item)
        else:
            pending += reversed(_calls(item, schema_defaults))
    text = "".join(pieces)
    return text if len(text) <= MAX_REPR else f"{text[: MAX_REPR - 3]}..."


def _calls(grammar: Any, schema_defaults: Mapping[str, Any]) -> list[Any]:
    """Return the call that makes a grammar, as source in which parts are grammars still."""
    kind, *rest = cast("tuple[Any, ...]", grammar._key)
    arguments: list[Any]
    if kind == "schema":
        options = getattr(rest[0], "options", None)
        schema = rest[0].document.schema if grammar.schema is None and options else grammar.schema
        shown = [repr(schema)]
        for option, default in schema_defaults.items() if options else ():
            if (value := getattr(options, option)) != default:
                shown.append(f"{option}={value!r}")
        if options and (options.syntax or options.arguments):
            shown.append("syntax=...")  # of a wire format that does not write JSON
        return [f"Grammar.from_json_schema({', '.join(shown)})"]
    if kind == "regex":
        return [f"Grammar.from_regex({rest[0]!r})"]
    if kind in ("ebnf", "gbnf"):
        root = "" if rest[0].root == "root" else f", root={rest[0].root!r}"
        return [f"Grammar.from_{kind}({rest[1]!r}{root})"]
    if kind == "lark":
        start = "" if rest[2] == "start" else f", start={rest[2]!r}"
        return [f"Grammar.from_lark({rest[1]!r}{start})"]
    if kind == "structural_tag":
        return ["Grammar.from_structural_tag(...)"]
    if kind == "builtin":
        maker, written = rest[0].key
        shown = [f"{name}={value!r}" for name, value in json.loads(written).items() if value is not None]
        return [f"Grammar.{maker}({', '.join(shown)})"]
    if kind == "rule":
        return [f"Grammar.rule({rest[0].name!r}, lambda: ...)"]
    if kind == "literal":
        try:
            return [f"Grammar.literal({rest[0].decode()!r})"]
        except UnicodeDecodeError:
            return [f"Grammar.literal({rest[0]!r})"]
    if kind in ("text", "until"):
        words = rest[0] if kind == "text" else rest[1]
        shown = [repr(rest[0])] if kind == "until" else []
        shown += [f"excluding={list(words)!r}"] if words else []
        shown += [f"min_chars={rest[1]!r}"] if kind == "text" and rest[1] else []
        shown += [f"excluding_starts={rest[2]!r}"] if kind == "text" and rest[2] else []
        return [f"Grammar.{kind}({', '.join(shown)})"]
    if kind == "cases":
        arguments = [piece for word, part in rest for piece in (f", {word!r}: ", part)]
        return ["Grammar.cases({", arguments[0][2:], *arguments[1:], "})"]
    if kind == "repeat":
        bounds = "" if rest[1:] == [0, None] else f", {rest[1]!r}" + (f", {rest[2]!r}" if rest[2] is not None else "")
        return ["Grammar.repeat(", rest[0], f"{bounds})"]
    if kind == "distinct":
        separator, least, most, *parts = rest
        bounds = (f", min={least!r}" if least else "") + (f", max={most!r}" if most != len(parts) else "")
        return ["Grammar.distinct([", *_listed(parts), "], ", separator, f"{bounds})"]
    if kind in ("sequence", "choice"):
        return [f"Grammar.{kind}(", *_listed(rest), ")"]
    return [f"Grammar.{kind}({', '.join(map(repr, rest))})"]


def _listed(parts: Sequence[Any]) -> list[Any]:
    return [piece for number, part in enumerate(parts) for piece in ((", ", part) if number else (part,))]
