"""JSON Schemas of Pydantic's types whose every valid value passes Pydantic's validation.

Pydantic's own JSON Schema is weaker than its validators: `NaiveDatetime` is a ``date-time``, which has an offset; the
bounds of dates, the schemes of URLs and the keys of ``dict[float, ...]`` are missing. `PydanticJsonSchema` adds them,
as far as enforced keywords can express them; where they cannot, the schema is narrower than the validator (see
`docs/json-schema.md`).

Law: a text that is valid under the schema of a type passes ``validate_json`` of that type. Excepted is what no schema
can express: validators that a user wrote, files that must exist, modules that can be imported.
"""

from __future__ import annotations

import datetime
import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import wraps
from typing import Any

from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonRef, JsonSchemaMode

from ...errors import InvalidSchemaError, PatternError, UnsupportedPatternError, UnsupportedSchemaError
from ..scalars.dates import at_least, at_most, between
from .discriminator import require_tags
from .json_strings import INTEGER, NUMBER, json_pattern

_EMAILS = {"email": "python-email", "name-email": "python-name-email", "regex": "python-regex"}
_TEXTS = {"base64": "python-base64-text", "base64url": "python-base64url-text"}
_BYTE_SIZE = r"^\s*(\d*\.?\d+)\s*(\w+)?"
_BYTE_UNITS = "[bB]|[kKmMgGtTpPeE][iI]?[bB]"
#: Strings that `str.strip` of Rust and Python leaves as they are.
_STRIPPED = r"^(?:[^\s\x1c-\x1f\x85](?:[\s\S]*[^\s\x1c-\x1f\x85])?)?$"
_DAY = datetime.timedelta(days=1)
#: Bounds of `timedelta`, in seconds.
_LONGEST = 86_400 * 999_999_998
#: Maximum number of steps up to which the remainder of floats, which Pydantic takes, agrees with that of decimals.
_MAX_STEPS = 1_000_000
_KEYS = {
    "integer": f"^{INTEGER}$",
    "number": f"^{NUMBER}$",
}
#: Maximum number of keys in a map with bounded numbers for keys.
_MAX_KEYS = 1_000

#: Constraints that Pydantic checks with a function (those of a union, say), and puts into its schema under their own
#: names, with the keywords for them.
_CONSTRAINTS = {
    "gt": ("exclusiveMinimum",),
    "ge": ("minimum",),
    "lt": ("exclusiveMaximum",),
    "le": ("maximum",),
    "multiple_of": ("multipleOf",),
    "min_length": ("minLength", "minItems", "minProperties"),
    "max_length": ("maxLength", "maxItems", "maxProperties"),
}

#: Bounds of an ``int`` that has none of its own, where a model writes it.
_LEAST_INT, _MOST_INT = -(2**63), 2**63 - 1

_NUMBER_BOUNDS = ("multiple_of", "le", "ge", "lt", "gt")
_LENGTHS = {"minLength": "min_length", "maxLength": "max_length"}


class _AbstractError(PydanticInvalidForJsonSchema):
    """A class has abstract methods, so no value can be an instance of it."""


def _for_validation(change: Callable[[Any, Any, dict[str, Any]], dict[str, Any]]) -> Callable[[Any, Any], Any]:
    """Return the method that makes the JSON Schema of a type from Pydantic's core schema, with a change for validation.

    Args:
        change: takes the core schema and Pydantic's own JSON Schema of the type, and returns the changed one.
    """

    @wraps(change)
    def method(self: PydanticJsonSchema, schema: Any) -> dict[str, Any]:
        made: dict[str, Any] = getattr(super(PydanticJsonSchema, self), change.__name__)(schema)
        return change(self, schema, made) if self.mode == "validation" else made

    return method


class PydanticJsonSchema(GenerateJsonSchema):
    """Generator of JSON Schemas whose values pass Pydantic's validation; serialization schemas are Pydantic's own."""

    def generate(self, schema: Any, mode: JsonSchemaMode = "validation") -> dict[str, Any]:
        """Return the schema; the tag of a discriminated union is required even where it has a default."""
        document: dict[str, Any] = super().generate(schema, mode)
        return require_tags(document) if mode == "validation" else document

    def generate_inner(self, schema: Any) -> dict[str, Any]:
        """Return the schema of a part, with what Pydantic itself checks by functions: formats and constraints.

        The format of a field, a ``str`` or a default may be one that the user wrote: it is kept.
        """
        made: dict[str, Any] = super().generate_inner(schema)
        if self.mode != "validation" or schema["type"] in ("str", "model-field", "typed-dict-field", "dataclass-field"):
            return made
        name = made.get("format")
        if name in _EMAILS and schema["type"] != "default":
            return {**made, "format": _EMAILS[name]}
        if name in _TEXTS and str(schema["type"]).startswith("function") and schema["schema"]["type"] == "str":
            return {**made, "format": _TEXTS[name]}
        for word in _CONSTRAINTS.keys() & made.keys():
            made = _constrained(made, word)
        options = made.get("anyOf")
        if options == []:  # Pydantic leaves out what has no JSON Schema
            return {"not": {}}
        for plain in ("minLength", "maxLength") if options else ():
            if plain in made:  # Pydantic takes the length of whatever it is
                made = {**made, **dict.fromkeys(_CONSTRAINTS[_LENGTHS[plain]], made[plain])}
        return made

    def field_is_present(self, field: Any) -> bool:
        """Return True if a field is in the schema: one of a dataclass with ``init=False`` is not."""
        return field.get("init") is not False and bool(super().field_is_present(field))

    def model_schema(self, schema: Any) -> dict[str, Any]:
        """Return the schema of a model; an abstract class has no instances, and so no schema."""
        if self.mode == "validation" and inspect.isabstract(schema["cls"]):
            return self._refused(schema)
        made: dict[str, Any] = super().model_schema(schema)
        return made

    def dataclass_schema(self, schema: Any) -> dict[str, Any]:
        """Return the schema of a dataclass; an abstract class has no instances, and so no schema."""
        if self.mode == "validation" and inspect.isabstract(schema["cls"]):
            return self._refused(schema)
        made: dict[str, Any] = super().dataclass_schema(schema)
        return made

    def nullable_schema(self, schema: Any) -> dict[str, Any]:
        """Return the schema of a type or null; null alone if the type has no values."""
        try:
            made: dict[str, Any] = super().nullable_schema(schema)
        except _AbstractError:
            return {"type": "null"}
        return made

    def _refused(self, schema: Any) -> dict[str, Any]:
        """Refuse a class, as Pydantic refuses a part without a JSON Schema: a union leaves it out."""
        raise _AbstractError(f"Cannot generate a JsonSchema: the class {schema['cls'].__name__} is abstract")

    # -- strings ---------------------------------------------------------------------------------------------------

    @_for_validation
    def str_schema(self, schema: Any, result: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of a string: patterns in ECMA-262, whatever they were written in."""
        if self._config.str_min_length and "minLength" not in result:
            result["minLength"] = self._config.str_min_length
        if self._config.str_max_length is not None and "maxLength" not in result:
            result["maxLength"] = self._config.str_max_length
        pattern = schema.get("pattern")
        result.pop("pattern", None)
        patterns = []
        if pattern == _BYTE_SIZE:  # `ByteSize` takes fewer texts than its pattern
            patterns.append(rf"^\d{{1,15}}(?:\.\d{{1,3}})? ?(?:{_BYTE_UNITS})?$")
        elif pattern is not None:
            from ...regex.foreign import to_ecma

            engine = schema.get("regex_engine") or self._config.regex_engine
            try:
                patterns.append(to_ecma(pattern, "python" if engine == "python-re" else "rust"))
            except PatternError as error:
                kind = UnsupportedSchemaError if isinstance(error, UnsupportedPatternError) else InvalidSchemaError
                place = replace(error.place, keyword="pattern")
                raise kind(error.message, hint=error.hint, place=place) from error
        strips = schema.get("strip_whitespace") or self._config.str_strip_whitespace
        if strips and (patterns or "minLength" in result or "maxLength" in result):
            patterns.append(_STRIPPED)  # the other conditions hold for the stripped string
        return _with_patterns(result, patterns)

    @_for_validation
    def bytes_schema(self, schema: Any, result: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of bytes: a length in bytes becomes one in characters."""
        least, most = result.pop("minLength", None), result.pop("maxLength", None)
        how = self._config.val_json_bytes
        if how == "utf8":
            result["format"] = "binary"
            if least is not None or most is not None:
                result["pattern"] = r"^[\x00-\x7f]*$"
        else:
            result["format"] = "python-hex" if how == "hex" else "base64url"
            # Four characters of base64 are three bytes: the minimum is rounded up, the maximum down.
            least = least and (2 * least if how == "hex" else 4 * math.ceil(least / 3))
            most = most and (2 * most if how == "hex" else 4 * (most // 3))
        return result | _given(minLength=least, maxLength=most)

    @_for_validation
    def url_schema(self, schema: Any, result: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of a URL, with its schemes."""
        return _of_url(schema, result, "python-url")

    @_for_validation
    def multi_host_url_schema(self, schema: Any, result: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of a URL that may have several hosts, with its schemes."""
        return _of_url(schema, result, "python-multi-host-url")

    def complex_schema(self, schema: Any) -> dict[str, Any]:
        """Return the schema of a complex number."""
        result: dict[str, Any] = super().complex_schema(schema)
        return {**result, "format": "python-complex"} if result.get("type") == "string" else result

    @_for_validation
    def is_subclass_schema(self, schema: Any, result: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of a class: no JSON value is valid."""
        return {"not": {}}

    @_for_validation
    def json_schema(self, schema: Any, result: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of a string that holds JSON: a pattern of some valid texts, or a format that is refused."""
        pattern = json_pattern(result.get("contentSchema", True), self._definition)
        return {**result, **({"format": "python-json"} if pattern is None else {"pattern": pattern})}

    def _definition(self, ref: str) -> Any:
        """Return the definition that a reference refers to; None while it is being generated."""
        try:
            return self.get_schema_from_definitions(JsonRef(ref))
        except KeyError:
            return None

    # -- numbers ---------------------------------------------------------------------------------------------------

    @_for_validation
    def float_schema(self, schema: Any, result: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of a float: multiples only up to where the remainder of two doubles is exact."""
        step = schema.get("multiple_of")
        if step:
            _bound(result, -_MAX_STEPS * step, _MAX_STEPS * step)
        return result

    def decimal_schema(self, schema: Any) -> dict[str, Any]:
        """Return the schema of a decimal: a number, or, if its value has no bounds, also a string."""
        if self.mode != "validation":
            own: dict[str, Any] = super().decimal_schema(schema)
            return own
        bounds = {word: schema[word] for word in _NUMBER_BOUNDS if schema.get(word) is not None}
        floats: Any = {"type": "float", **{word: float(value) for word, value in bounds.items()}}
        number: dict[str, Any] = super().float_schema(floats)
        digits, places = schema.get("max_digits"), schema.get("decimal_places")
        options = list(_decimals(number, digits, places))
        if not bounds:
            options.append({"type": "string", "pattern": _decimal_text(digits, places)})
        return {"anyOf": options}

    # -- dates and times -------------------------------------------------------------------------------------------

    @_for_validation
    def date_schema(self, schema: Any, result: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of a date, with its bounds."""
        least, most = schema.get("ge"), schema.get("le")
        if schema.get("gt") is not None:
            least = max(filter(None, (least, schema["gt"] + _DAY)))
        if schema.get("lt") is not None:
            most = min(filter(None, (most, schema["lt"] - _DAY)))
        return _with_patterns({**result, "format": _beside_now(schema, "python-date")}, between(least, most))

    @_for_validation
    def datetime_schema(self, schema: Any, result: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of a date with time; bounds are narrowed by two days, so that they hold at every offset."""
        zone = schema.get("tz_constraint")
        name = {"naive": "python-naive-datetime", "aware": "python-aware-datetime"}.get(zone, "python-datetime")
        lower = [bound.date() + 2 * _DAY for bound in (schema.get("ge"), schema.get("gt")) if bound is not None]
        upper = [bound.date() - 2 * _DAY for bound in (schema.get("le"), schema.get("lt")) if bound is not None]
        patterns = between(max(lower, default=None), min(upper, default=None))
        if isinstance(zone, int):
            name = "python-aware-datetime"
            patterns.append(("Z" if zone == 0 else _offset(zone).replace("+", "\\+")) + "$")
        return _with_patterns({**result, "format": _beside_now(schema, name)}, patterns)

    @_for_validation
    def time_schema(self, schema: Any, result: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of a time of day; where it has bounds, to the second and without an offset."""
        zone = schema.get("tz_constraint")
        bounds = {word: schema[word] for word in ("ge", "gt", "le", "lt") if schema.get(word) is not None}
        if zone == "naive" or (bounds and zone is None):
            result["format"] = "python-naive-time"
        else:
            result["format"] = "python-time"
        patterns = [r"(?:[Zz]|[+-]\d\d:\d\d)$"] if zone == "aware" else []
        if bounds:
            patterns.append(r"^\d\d:\d\d:\d\d$")
        for word, bound in bounds.items():
            seconds = bound.hour * 3600 + bound.minute * 60 + bound.second
            if word in ("ge", "gt"):
                seconds += 1 if word == "gt" or bound.microsecond else 0
                patterns.append(at_least(_clock(seconds)))
            else:
                seconds -= 1 if word == "lt" and not bound.microsecond else 0
                patterns.append(at_most(_clock(seconds)))
        return _with_patterns(result, patterns)

    @_for_validation
    def timedelta_schema(self, schema: Any, result: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of a duration: as text, or in seconds where it has bounds."""
        bounds = {
            word: schema[word].total_seconds() for word in ("ge", "gt", "le", "lt") if schema.get(word) is not None
        }
        gaps = {"ge": 0.0, "gt": 1e-3, "le": 0.0, "lt": -1e-3}  # a bound itself is hit by rounding to microseconds
        least = [bounds[word] + gaps[word] for word in ("ge", "gt") if word in bounds]
        most = [bounds[word] + gaps[word] for word in ("le", "lt") if word in bounds]
        if not least and not most and result.get("type") == "string":
            return {**result, "format": "python-timedelta"}
        seconds: dict[str, Any] = {"type": "number"}
        _bound(seconds, max([-_LONGEST, *least]), min([_LONGEST, *most]))
        return seconds

    # -- maps ------------------------------------------------------------------------------------------------------

    @_for_validation
    def dict_schema(self, schema: Any, result: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of a map, with the schema of its keys as strings."""
        if "patternProperties" in result:
            result.setdefault("additionalProperties", False)
        keys = self.generate_inner(schema["keys_schema"]) if "keys_schema" in schema else {}
        names = _as_key(keys)
        if "patternProperties" not in result and names is not True and keys.get("type") != "string":
            result["propertyNames"] = names
        return result


def _of_url(schema: Any, result: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the schema of a URL type: the format, and the schemes and the host that it demands as patterns."""
    result["format"] = name
    if schema.get("max_length"):
        result["maxLength"] = max(0, schema["max_length"] - 1)  # an empty path is written as /
    schemes = schema.get("allowed_schemes")
    patterns = []
    if schemes:
        patterns.append(f"^(?:{'|'.join(map(re.escape, schemes))}):")
    if schemes or schema.get("host_required") or schema.get("default_host"):
        patterns.append(r"^[^:]+:\/\/[^\/?#]" if schemes != ["file"] else r"^file:")
    return _with_patterns(result, patterns)


def _constrained(schema: Mapping[str, Any], word: str) -> dict[str, Any]:
    """Return the schema with one of `_CONSTRAINTS` (``word``) as JSON Schema's keywords: ``{"gt": 3}`` ->
    ``{"exclusiveMinimum": 3, "type": ["number"]}``. A bound of dates, say, is left out."""
    rest = {key: value for key, value in schema.items() if key != word}
    if word in ("gt", "ge", "lt", "le") and not isinstance(schema[word], (int, float)):
        return rest
    found = rest | dict.fromkeys(_CONSTRAINTS[word], schema[word])
    if "type" not in found:
        found["type"] = ["string", "array", "object"] if word in ("min_length", "max_length") else ["number"]
    return found


def _as_key(schema: Mapping[str, Any]) -> Any:
    """Return the schema of a map's keys, which JSON has as strings, from that of the decoded keys: ``{"type":
    "boolean"}`` -> ``{"enum": ["true", "false"]}``. True: any string; False: none that a schema can describe."""
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}
    if "anyOf" in schema or "oneOf" in schema:
        options = [_as_key(option) for option in schema.get("anyOf", schema.get("oneOf"))]
        options = [option for option in options if option is not False]
        return True if True in options else {"anyOf": options} if options else False
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return {"enum": [value for value in values if isinstance(value, str)]}
    kind = schema.get("type")
    if kind is None:
        return True
    if kind == "string":
        return {key: value for key, value in schema.items() if key not in ("type", "title")} or True
    if kind == "boolean":
        return {"enum": ["true", "false"]}
    if kind not in _KEYS or "multipleOf" in schema:
        return False
    least = max(schema.get("minimum", -math.inf), schema.get("exclusiveMinimum", -math.inf) + 1)
    most = min(schema.get("maximum", math.inf), schema.get("exclusiveMaximum", math.inf) - 1)
    if least == _LEAST_INT:  # `WrittenJsonSchema` gives an ``int`` without bounds those of 64 bits
        least = -math.inf
    if most == _MOST_INT:
        most = math.inf
    if least == -math.inf and most == math.inf:
        return {"pattern": _KEYS[kind]}
    if most == math.inf and least <= 1:
        return {"pattern": r"^[1-9][0-9]{0,17}$" if least > 0 else r"^(?:0|[1-9][0-9]{0,17})$"}
    # Other bounds: some integers from the bound on.
    first = math.ceil(least) if least > -math.inf else math.floor(most) - _MAX_KEYS
    last = min(math.floor(most), first + _MAX_KEYS) if most < math.inf else first + _MAX_KEYS
    return {"enum": [str(key) for key in range(first, last + 1)]}


def _with_patterns(schema: dict[str, Any], patterns: list[str]) -> dict[str, Any]:
    """Return the schema with all of the patterns."""
    if patterns:
        schema["pattern"] = patterns[0]
    if len(patterns) > 1:
        schema["allOf"] = [{"pattern": pattern} for pattern in patterns[1:]]
    return schema


def _given(**keywords: Any) -> dict[str, Any]:
    return {key: value for key, value in keywords.items() if value is not None}


def _bound(schema: dict[str, Any], least: float, most: float) -> None:
    """Narrow a schema of numbers to a range."""
    if schema.get("minimum", -math.inf) < least and schema.get("exclusiveMinimum", -math.inf) < least:
        schema["minimum"] = least
        schema.pop("exclusiveMinimum", None)
    if schema.get("maximum", math.inf) > most and schema.get("exclusiveMaximum", math.inf) > most:
        schema["maximum"] = most
        schema.pop("exclusiveMaximum", None)


def _decimals(number: dict[str, Any], digits: int | None, places: int | None) -> list[dict[str, Any]]:
    """Return schemas whose union is the numbers with at most ``digits`` digits, at most ``places`` of them after the
    point; None: no limit. With 4 digits alone: integers of 4 digits, and numbers with 2 digits on each side."""

    def limited(whole: int | None, fraction: int | None) -> dict[str, Any]:
        """Return the schema of numbers with at most so many digits before and after the point; None: no limit."""
        schema = dict(number)
        if whole is not None:
            limit = 10**whole
            if max(schema.get("minimum", -math.inf), schema.get("exclusiveMinimum", -math.inf)) <= -limit:
                schema.pop("minimum", None)
                schema["exclusiveMinimum"] = -limit
            if min(schema.get("maximum", math.inf), schema.get("exclusiveMaximum", math.inf)) >= limit:
                schema.pop("maximum", None)
                schema["exclusiveMaximum"] = limit
        if fraction == 0:
            schema["type"] = "integer"
        elif fraction is not None:
            step = float(Decimal(10) ** -fraction)
            if "multipleOf" in schema:
                schema["allOf"] = [{"multipleOf": step}]
            else:
                schema["multipleOf"] = step
        return schema

    if digits is None:
        return [limited(None, places)]
    if places is not None and digits > places:
        return [limited(digits - places, places)]
    if places is not None:  # not even a zero before the point
        return [limited(0, digits) | {"not": {"const": 0}}]
    fraction = min(digits, 2)  # only integers, and fractions of at most two digits
    return [limited(digits, 0), limited(digits - fraction, fraction)]


def _decimal_text(digits: int | None, places: int | None) -> str:
    """Return the pattern of a `Decimal` that is written as text: with 4 digits and 2 places,
    ``^-?\\d{1,2}(?:\\.\\d{1,2})?$``.

    Args:
        digits: ``max_digits``; None: 28 digits before the point, as the default context of `decimal` has.
        places: ``decimal_places``; None: as many as ``digits`` allows, where only zero stands before the point.
    """
    if digits is None:
        whole, fraction = 28, 28 if places is None else places
    elif places is not None:
        whole, fraction = digits - places, places
    else:
        return rf"^-?(?:\d{{1,{digits}}}|0\.\d{{1,{digits}}})$"
    if whole <= 0:  # below one; not 0.0, whose zero before the point counts as a digit
        return rf"^-?0\.(?!0*$)\d{{1,{digits}}}$"
    integer = rf"\d{{1,{whole}}}"
    return rf"^-?{integer}(?:\.\d{{1,{fraction}}})?$" if fraction else rf"^-?{integer}$"


def _beside_now(schema: Any, name: str) -> str:
    """Return the format of a date, which for `PastDate` and the like is that of past or future dates."""
    when = schema.get("now_op")
    return f"python-{when}-{name.removeprefix('python-')}" if when else name


def _clock(seconds: int) -> str:
    seconds = min(max(seconds, 0), 86_399)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _offset(seconds: int) -> str:
    minutes = abs(seconds) // 60
    return f"{'-' if seconds < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"


class ClosedJsonSchema(PydanticJsonSchema):
    """`PydanticJsonSchema` for answers: an object of a class has its fields only, unless the class says ``allow``.

    Pydantic drops unknown members, so a model would write them in vain.
    """

    def model_schema(self, schema: Any) -> dict[str, Any]:
        """Return the schema of a model; a root model is what it holds."""
        made: dict[str, Any] = super().model_schema(schema)
        return made if schema.get("root_model") else self._closed(made)

    def dataclass_schema(self, schema: Any) -> dict[str, Any]:
        """Return the schema of a dataclass."""
        return self._closed(super().dataclass_schema(schema))

    def typed_dict_schema(self, schema: Any) -> dict[str, Any]:
        """Return the schema of a typed dict."""
        return self._closed(super().typed_dict_schema(schema))

    def _closed(self, made: dict[str, Any]) -> dict[str, Any]:
        if self.mode == "validation" and made.get("type") == "object" and "additionalProperties" not in made:
            return {**made, "additionalProperties": False}
        return made


class WrittenJsonSchema(PydanticJsonSchema):
    """`ClosedJsonSchema` for generation: a number of the type ``int`` without bounds has at most 64 bits."""

    def int_schema(self, schema: Any) -> dict[str, Any]:
        """Return the schema of an integer."""
        made: dict[str, Any] = super().int_schema(schema)
        if self.mode == "validation" and made.get("type") == "integer":
            least = max(made.get("minimum", -math.inf), made.get("exclusiveMinimum", -math.inf))
            most = min(made.get("maximum", math.inf), made.get("exclusiveMaximum", math.inf))
            if least == -math.inf and most > _LEAST_INT:
                made["minimum"] = _LEAST_INT
            if most == math.inf and least < _MOST_INT:
                made["maximum"] = _MOST_INT
        return made


class AnswerJsonSchema(ClosedJsonSchema, WrittenJsonSchema):
    """Both: for grammars of answers."""


#: Generators, by whether undeclared members are taken, and whether a model writes the value.
_GENERATORS: dict[tuple[bool, bool], type[PydanticJsonSchema]] = {
    (False, False): ClosedJsonSchema,
    (False, True): AnswerJsonSchema,
    (True, False): PydanticJsonSchema,
    (True, True): WrittenJsonSchema,
}


def json_schema_of(source: Any, *, additional_properties: bool = False, is_written: bool = False) -> dict[str, Any]:
    """Return the JSON Schema of a Pydantic class or `TypeAdapter`; a class of version 1 has its own, unchanged.

    Args:
        source: the class.
        additional_properties: an object of a class takes members that are no fields, unless the class forbids them.
        is_written: a number of the type ``int`` without bounds has at most 64 bits.

    Raises:
        PydanticUserError: a field has no JSON Schema.
        UnsupportedSchemaError: a pattern cannot be enforced.
    """
    generator = _GENERATORS[additional_properties, is_written]
    if hasattr(source, "model_json_schema"):
        made: dict[str, Any] = source.model_json_schema(by_alias=True, schema_generator=generator)
    elif hasattr(source, "json_schema"):
        made = source.json_schema(by_alias=True, schema_generator=generator)
    else:
        made = {"$schema": "http://json-schema.org/draft-07/schema#", **source.schema(by_alias=True)}
    return made


def class_schema(source: type, *, additional_properties: bool) -> dict[str, Any]:
    """Return `json_schema_of` a Pydantic class, as texts are written by it.

    Raises:
        InvalidSchemaError: a field has no JSON Schema.
    """
    try:
        return json_schema_of(source, additional_properties=additional_properties, is_written=True)
    except PydanticUserError as error:
        raise InvalidSchemaError(
            f"the class {source.__name__} has no JSON Schema: {error.message}".partition("\n")[0],
            hint="give its fields types that JSON has",
        ) from None
