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
        (compiled,) = rest
        options = getattr(compiled, "options", None)
        schema = compiled.document.schema if grammar.schema is None and options else grammar.schema
        given = {name: getattr(options, name) for name in schema_defaults} if options else {}
        other: dict[str, Any] = {name: value for name, value in given.items() if value != schema_defaults[name]}
        if options and (options.syntax or options.arguments):
            other["syntax"] = ...  # of a wire format that does not write JSON
        return [_call("from_json_schema", schema, **other)]
    if kind == "regex":
        return [_call("from_regex", rest[0])]
    if kind in ("ebnf", "gbnf"):
        rules, text = rest
        return [_call(f"from_{kind}", text, root=None if rules.root == "root" else rules.root)]
    if kind == "lark":
        _, text, start, *_ = rest
        return [_call("from_lark", text, start=None if start == "start" else start)]
    if kind == "structural_tag":
        return ["Grammar.from_structural_tag(...)"]
    if kind == "builtin":
        maker, written = rest[0].key
        return [_call(maker, **json.loads(written))]
    if kind == "rule":
        return [f"Grammar.rule({rest[0].name!r}, lambda: ...)"]
    if kind == "literal":
        try:
            return [_call("literal", rest[0].decode())]
        except UnicodeDecodeError:
            return [_call("literal", rest[0])]
    if kind == "text":
        words, least, starts = rest
        return [_call("text", excluding=list(words) or None, min_chars=least or None, excluding_starts=starts or None)]
    if kind == "until":
        marker, words = rest
        return [_call("until", marker, excluding=list(words) or None)]
    if kind == "cases":
        arguments = [piece for word, part in rest for piece in (f", {word!r}: ", part)]
        return ["Grammar.cases({", arguments[0][2:], *arguments[1:], "})"]
    if kind == "repeat":
        item, least, most = rest
        bounds = "" if least == 0 and most is None else f", {least!r}" + (f", {most!r}" if most is not None else "")
        return ["Grammar.repeat(", item, f"{bounds})"]
    if kind == "distinct":
        separator, least, most, *parts = rest
        bounds = (f", min={least!r}" if least else "") + (f", max={most!r}" if most != len(parts) else "")
        return ["Grammar.distinct([", *_listed(parts), "], ", separator, f"{bounds})"]
    if kind in ("sequence", "choice"):
        return [f"Grammar.{kind}(", *_listed(rest), ")"]
    return [_call(kind, *rest)]


def _call(maker: str, *values: Any, **options: Any) -> str:
    """Return the call of a maker as source; an option that is None is left out, and one that is ``...`` is shown so."""
    shown = (f"{name}={'...' if value is ... else repr(value)}" for name, value in options.items() if value is not None)
    return f"Grammar.{maker}({', '.join([*map(repr, values), *shown])})"


def _listed(parts: Sequence[Any]) -> list[Any]:
    return [piece for number, part in enumerate(parts) for piece in ((", ", part) if number else (part,))]
