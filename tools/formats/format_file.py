"""Wire formats as data: a description in TOML, or a dict, becomes a whole `WireFormat`, and a format its description.

A description names a shape and the markup of a turn. Unless the description has them, the parser's markers are derived
from the markup, as for a chat template of no known family. Every description is tested: it must read what it writes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from toolgrammar.core.conversation import CallEnd, ReasoningMarkers, ToolCall
from toolgrammar.core.errors import GrammarError, ToolGrammarError

from .base import TurnSpec, WireFormat
from .functionary import Recipients
from .gemma import BareCalls
from .harmony import Channels
from .learned import parameter_pattern, with_markup
from .nested.calls import NestedCalls
from .probe import TOOLS
from .pythonic.calls import PythonicCalls
from .template.format import TemplateFormat
from .xml.calls import XmlCalls

#: The shapes, by the name that a description has for them.
SHAPES: Mapping[str, type[TemplateFormat]] = {
    "json": TemplateFormat,
    "tags": XmlCalls,
    "nested": NestedCalls,
    "python": PythonicCalls,
    "bare": BareCalls,
    "recipients": Recipients,
    "channels": Channels,
}

#: Fields that are regular expressions.
_PATTERNS = ("head", "parameter_head", "names", "ids")

#: The types of fields, by their annotations: what they are called, and the check.
_TYPES: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "str": ("a string", lambda value: isinstance(value, str)),
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "int | None": ("a number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    "tuple[str, ...]": ("a list of strings", lambda value: _is_strings(value)),
    "tuple[str, str] | None": ("a list of two strings", lambda value: _is_strings(value) and len(value) == 2),
    "Whitespace | None": ("compact, single or flexible", lambda value: value in ("compact", "single", "flexible")),
}

#: A tool of two arguments, ``word`` and ``count``.
_PROBE = TOOLS[0]


def _is_strings(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)


def _refuse(name: str, message: str, hint: str) -> NoReturn:
    raise GrammarError(f"wire format {name!r}: {message}", hint=hint)


def read_format(source: str | Path | Mapping[str, Any]) -> WireFormat:
    """Return the format of a description.

    Args:
        source: a dict; the path of a TOML file; or TOML text, which has more than one line.

    Raises:
        GrammarError: the description is malformed, or its calls are not read as they are written; names the field.
    """
    data = dict(source) if isinstance(source, Mapping) else _toml(source)
    name = data.get("name")
    if not isinstance(name, str) or not name:
        _refuse(str(name), "name is missing", "add name = '...'")
    shape = SHAPES.get(data.pop("shape", "json"))
    if shape is None:
        _refuse(name, "the shape is not known", f"one of {', '.join(SHAPES)}")
    known = {field.name: field for field in fields(shape)}
    values = {key: _value(name, known.get(key), key, value, sorted(known)) for key, value in data.items()}
    call = values.get("call", "")
    if "$args" not in call or not ("$name" in call or "$quoted" in call):
        _refuse(name, "call lacks a placeholder for the name or the arguments", "write $name or $quoted, and $args")
    wire = shape(**values) if "triggers" in values else _derived(shape, values)
    _check_reads_itself(wire)
    return wire


def _toml(source: str | Path) -> dict[str, Any]:
    """Return the data of a TOML file, or of TOML text, which has more than one line."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        text = source if isinstance(source, str) and "\n" in source else Path(source).read_text(encoding="utf-8")
        found: dict[str, Any] = tomllib.loads(text)
    except OSError as error:
        raise GrammarError(f"no description of a wire format: {error}", hint="give the path of a TOML file") from None
    except tomllib.TOMLDecodeError as error:
        raise GrammarError(
            f"the description of the wire format is not valid TOML: {error}", hint="check the quotes"
        ) from None
    return found


def _value(name: str, field: Field[Any] | None, key: str, value: Any, known: list[str]) -> Any:
    """Return the value of a field, checked: lists as tuples, ``thinking`` as `ReasoningMarkers`.

    Args:
        name: of the format, for errors.
        field: the field; None: there is none of this key.
        key: its name.
        value: its value in the description.
        known: the names of all fields.
    """
    if field is None:
        near = get_close_matches(key, known, 1)
        _refuse(name, f"unknown field {key!r}", f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}")
    if key == "thinking":
        if not isinstance(value, Mapping) or not all(isinstance(part, str) for part in value.values()):
            _refuse(name, "thinking is a table of strings", "write start, end and after")
        if unknown := value.keys() - {"start", "end", "after"}:
            _refuse(name, f"thinking has no field {min(unknown)!r}", "write start, end and after")
        return ReasoningMarkers(**value)
    meaning, is_valid = _TYPES[str(field.type)]
    if not is_valid(value):
        _refuse(name, f"{key} is {value!r}", f"it is {meaning}")
    if key in _PATTERNS:
        try:
            re.compile(value)
        except re.error as error:
            _refuse(name, f"{key} is not a valid regular expression: {error}", "escape literal characters")
    return tuple(value) if isinstance(value, list) else value


def _derived(shape: type[TemplateFormat], values: Mapping[str, Any]) -> TemplateFormat:
    """Return the format of a description without ``triggers``: they, openers and patterns are made of its markup, and
    the fields of the description replace what was made."""
    call, parameter = values["call"], values.get("parameter", "")
    more: dict[str, Any] = {}
    if shape is XmlCalls:
        if "$key" not in parameter or "$value" not in parameter.partition("$key")[2]:
            _refuse(values["name"], "parameter lacks a placeholder for the key or the value", "write $key, then $value")
        before, _, rest = parameter.partition("$key")
        more["parameter_head"] = parameter_pattern(before, rest.partition("$value")[0])
    if shape is NestedCalls and not values.get("mark"):
        _refuse(values["name"], "elements need a mark before their tags", "write mark = '...'")
    base = shape(**{"name": values["name"], "call": call, "triggers": (), **more})
    begin, separator, finish = (values.get(key, "") for key in ("begin", "separator", "finish"))
    wire = with_markup(base, begin, call, separator, finish, values.get("parallel", True))
    if wire.is_bare and "openers" not in values:
        _refuse(
            values["name"],
            "a call must not begin with its name, because it would look like text",
            "write triggers and openers",
        )
    return replace(wire, **values)


def _check_reads_itself(wire: TemplateFormat) -> None:
    """Refuse a format whose grammar or parser does not take the calls that it renders."""
    calls = [
        ToolCall(id=f"probe000{number}", name=_PROBE.name, arguments={"word": f"word{number}", "count": number})
        for number in (0, 1)
    ]
    plain = wire.with_special(())
    spec = TurnSpec((_PROBE,), min_calls=1)
    for turn in (calls[:1], calls) if wire.parallel else (calls[:1],):
        text = plain.render_calls(turn)
        written = f"a call is written as {text!r}"
        parser = plain.parser((_PROBE,), lambda call: call, lambda: "id")
        try:
            events = [event for char in text for event in parser.feed(char)] + parser.close()
            admitted = plain.grammar(spec).matches(text)
        except (ToolGrammarError, ValueError) as error:
            _refuse(wire.name, f"the format cannot parse its own calls: {error}", written)
        read = [(event.call.name, event.call.arguments) for event in events if isinstance(event, CallEnd)]
        if read != [(call.name, call.arguments) for call in turn]:
            _refuse(wire.name, "the format cannot parse its own call", f"{written}; give head, openers")
        if not admitted:
            _refuse(wire.name, "its grammar does not accept its own calls", written)


def format_data(wire: WireFormat) -> dict[str, Any]:
    """Return the description of a format, which `read_format` reads: the fields that differ from the defaults.

    Raises:
        GrammarError: the format has none of the `SHAPES`.
    """
    shape = next((name for name, kind in SHAPES.items() if type(wire) is kind), None)
    if shape is None or not isinstance(wire, TemplateFormat):
        raise GrammarError(f"{type(wire).__name__} has no description as data", hint="describe its markup")
    data: dict[str, Any] = {"name": wire.name, "shape": shape}
    for field in fields(wire):
        value = getattr(wire, field.name)
        if field.name == "name" or (field.default is not MISSING and value == field.default):
            continue
        if isinstance(value, ReasoningMarkers):
            value = {"start": value.start, "end": value.end, "after": value.after}
        data[field.name] = list(value) if isinstance(value, tuple) else value
    return data
