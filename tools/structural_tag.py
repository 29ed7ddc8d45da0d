"""Turns of a wire format as structural tags, for engines that read xgrammar's JSON.

Calls that a structural tag cannot express are left out, so that a tag never admits more than the format's own grammar.
Exceptions: distinct calls, the numbering of ids, and keywords of JSON Schema that the reader does not enforce.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from toolgrammar.core.errors import GrammarError, ToolGrammarError
from toolgrammar.core.json import dump_json

from .closed_schema import close_objects
from .formats.base import TurnSpec, WireFormat
from .formats.template.format import HOLE, TemplateFormat
from .formats.xml.calls import XmlCalls
from .tool import Tool

#: The styles of a structural tag by the template of one argument, without the white space around it.
STYLES = {
    "<parameter=$key>\n$value\n</parameter>": "qwen_xml",
    "<parameter=$key>$value</parameter>": "qwen_xml",
    '<parameter name="$key">$value</parameter>': "minimax_xml",
    "<arg_key>$key</arg_key>\n<arg_value>$value</arg_value>": "glm_xml",
    "<arg_key>$key</arg_key><arg_value>$value</arg_value>": "glm_xml",
    '<｜DSML｜parameter name="$key" string="$raw">$value</｜DSML｜parameter>': "deepseek_xml",
}


def structural_tag(wire: WireFormat, turn: TurnSpec) -> dict[str, Any]:
    """Return a turn as a structural tag, in xgrammar's current form: ``{"type": "structural_tag", "format": ...}``.

    Raises:
        GrammarError: a structural tag cannot express the calls of the format, or the text around them.
        ToolGrammarError: the format cannot spell a tool's name.
    """
    if type(wire) not in (TemplateFormat, XmlCalls):  # these classes alone: a subclass may write calls in its own way
        raise GrammarError(
            f"a structural tag cannot express the calls of the format {wire.name}",
            hint="choose a format that writes JSON, such as hermes, or pass the tools to the engine in another form",
        )
    assert isinstance(wire, TemplateFormat)
    text = _text(wire) if turn.text and turn.min_calls == 0 else None
    if not turn.tools or turn.max_calls == 0:
        answer = {"type": "any_text"} if text is None else text
    else:
        calls = _calls(wire, turn)
        answer = calls if text is None else _either(wire, text, calls)
    return {"type": "structural_tag", "format": answer}


def _either(wire: TemplateFormat, text: dict[str, Any], calls: dict[str, Any]) -> dict[str, Any]:
    """Return the element that admits text, or calls; text before the calls too, where the format has it.

    Raises:
        GrammarError: text could begin like a call.
    """
    if wire.anchored:
        raise GrammarError(
            f"in the format {wire.name}, text could begin like a call, which a structural tag cannot exclude",
            hint='demand calls with tool_choice="required", or choose another format',
        )
    alternatives = [text, calls]
    if wire.prose:
        alternatives.append(_sequence([_free(wire), _constant("" if wire.glued else wire.joint), calls]))
    return {"type": "or", "elements": alternatives}


def _free(wire: TemplateFormat) -> dict[str, Any]:
    """Return the element that admits free text, in which nothing begins a call."""
    return {"type": "any_text", "excludes": list(wire.markers)}


def _text(wire: TemplateFormat) -> dict[str, Any]:
    """Return the element that admits a turn of text alone."""
    return _sequence([_constant(wire.text_start), _free(wire), _constant(wire.text_end)])


def _calls(wire: TemplateFormat, turn: TurnSpec) -> dict[str, Any]:
    """Return the element that admits the calls of a turn, with the markup around them.

    Raises:
        GrammarError: structural tags have no style for the format's arguments.
        ToolGrammarError: the format cannot spell a tool's name.
    """
    one = {"type": "or", "elements": [_tag(wire, tool, turn) for tool in turn.tools]}
    parts = [_constant(wire.begin), one]
    most = turn.max_calls if wire.parallel else 1
    least = max(turn.min_calls, turn.least_calls)
    if most is None or most > 1:
        further = _sequence([_constant(wire.separator), one])  # calls after the first; "max": -1 is no maximum
        bounds = {"min": least - 1, "max": -1 if most is None else most - 1}
        parts.append({"type": "repeat", **bounds, "content": further})
    return _sequence([*parts, _constant(wire.finish)])


def _tag(wire: TemplateFormat, tool: Tool, turn: TurnSpec) -> dict[str, Any]:
    """Return the element of a structural tag that admits one call of a tool.

    Raises:
        ToolGrammarError: the format cannot spell the tool's name.
        GrammarError: structural tags have no style for the format's arguments.
    """
    if not re.fullmatch(wire.name_pattern, tool.name):
        raise ToolGrammarError(
            f"the format {wire.name} cannot express the tool name {tool.name!r}",
            hint=f"names match {wire.name_pattern}",
        )
    schema, is_open = turn.schema(tool)
    if not is_open:
        schema = close_objects(schema)
    content: dict[str, Any] = {"type": "json_schema", "json_schema": schema}
    names = {"$name": tool.name, "$quoted": dump_json(tool.name)}
    parts: list[dict[str, Any]] = []
    for piece in HOLE.split(wire.call):
        if piece == "$id":
            parts.append({"type": "regex", "pattern": wire.ids or r"[A-Za-z0-9_\-]+"})
        else:
            parts.append(content if piece == "$args" else _constant(names.get(piece, piece)))
    if isinstance(wire, XmlCalls):
        content["style"] = _style(wire)
        space = wire.parameter[len(wire.parameter.rstrip()) :]
        # White space that ends each argument. xgrammar's style does not write it after the last one. It is absent if
        # there are no arguments, so it is optional.
        if space:
            parts.insert(parts.index(content) + 1, {"type": "optional", "content": _constant(space)})
    return _joined(parts)


def _style(wire: XmlCalls) -> str:
    """Return xgrammar's name of the style in which a format writes arguments.

    Raises:
        GrammarError: there is none.
    """
    style = STYLES.get(wire.parameter.rstrip())
    if style is None:
        raise GrammarError(
            f"structural tags have no style for the arguments of the format {wire.name}",
            hint="choose a format that writes JSON, such as hermes",
        )
    return style


def _joined(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the element of a sequence, in which neighbouring constants become one; a tag if it is a constant, a JSON
    Schema and a constant."""
    joined: list[dict[str, Any]] = []
    for part in parts:
        if joined and part["type"] == joined[-1]["type"] == "const_string":
            joined[-1] = _constant(joined[-1]["value"] + part["value"])
        elif part != _constant(""):
            joined.append(part)
    kinds = [part["type"] for part in joined]
    if kinds == ["const_string", "json_schema", "const_string"]:
        begin, content, end = joined
        return {"type": "tag", "begin": begin["value"], "content": content, "end": end["value"]}
    return _sequence(joined)


def _sequence(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the element of a sequence, without empty constants; of one part, the part."""
    kept = [part for part in parts if part != _constant("")]
    return kept[0] if len(kept) == 1 else {"type": "sequence", "elements": kept}


def _constant(value: str) -> dict[str, Any]:
    return {"type": "const_string", "value": value}
