"""Validation of decoded values by the ``jsonschema`` library: dialect by ``$schema``, nothing fetched.

Some keywords are replaced where that library is slow or deviates: patterns are ECMA-262, as JSON Schema says and as in
grammars (``jsonschema`` uses Python's ``re``, which lacks ``\\p{L}``, matches digits of every script for ``\\d``, lets
``$`` match before a line break, and backtracks), and ``enum`` and ``uniqueItems`` compare values by hashing. What
grammars enforce beyond a dialect is checked as well: ``dependencies`` after Draft 7, OpenAPI's ``nullable``, and the
type ``any``. A time limit ends a validation that still takes too long.
"""

from __future__ import annotations

import datetime
import json
import math
import re
import subprocess
import sys
import threading
import time
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from functools import lru_cache
from itertools import islice
from typing import Any

import attrs
import jsonschema
import referencing
import referencing.exceptions
import referencing.jsonschema
from jsonschema.exceptions import ValidationError
from jsonschema.validators import validator_for

from .basics.cached import cached_property
from .basics.forks import shared_lock
from .basics.recent_memo import memoised_if_short
from .errors import InvalidSchemaError, LimitError, PatternError, Place, ToolGrammarError, first_line
from .grammar import Grammar
from .json import to_pointer, value_key
from .language.terms import Terms
from .regex.compile import regex_term
from .regex.parser import parse_with_groups
from .regex.printer import to_python
from .schema.read.keywords import GRAMMAR
from .schema.scalars import dates
from .schema.scalars.bounded_formats import BOUNDED
from .schema.scalars.numbers import NumberRange, exact
from .text_grammars.strings import StringGrammar, string_grammar

#: Maximum number of seconds of the validation of one value, and of the match of a pattern that is not regular.
MAX_SECONDS, PATTERN_SECONDS = 10, 2

#: Integers of more bits are not read from JSON (Python's limit is 4,300 digits).
MAX_INTEGER_BITS = 14_000

#: Maximum depth of a value.
MAX_DEPTH = 10_000

#: Maximum number of values of an ``enum`` that a message names.
_NAMED_VALUES = 20

#: Program of the child process that matches a pattern that is not regular; its status is 0 if a part matches, 3 if none
#: does, and 1 after an error of Python.
_PROGRAM = "import json, re, sys; sys.exit(0 if re.search(*json.load(sys.stdin)) else 3)"


class Validator:
    """Validator of values against one schema; compiled patterns are kept. Thread-safe.

    Args:
        schema: a JSON Schema; Draft 2020-12 unless its ``$schema`` names another.
        formats: True if ``format`` is an assertion, as in grammars; False if it is an annotation.
        plain_integers: only an ``int`` is an integer; else also a ``float`` without a fraction, as JSON Schema says.

    Raises:
        InvalidSchemaError: it is neither an object nor a bool.
    """

    def __init__(
        self, schema: Mapping[str, Any] | bool, *, formats: bool = False, plain_integers: bool = False
    ) -> None:
        if not isinstance(schema, (Mapping, bool)):
            raise InvalidSchemaError(
                f"a schema is an object or a bool, not {type(schema).__name__}", hint="{} takes every value"
            )
        self._patterns = _Patterns()
        self._formats: dict[tuple[str, datetime.date | None], Grammar] = {}
        self._time = threading.local()
        self._asserts_formats = formats
        self._plain_integers = plain_integers
        self._classes: dict[Any, Any] = {}
        kind = self._class_of(validator_for(schema, default=jsonschema.Draft202012Validator))
        self._validator = kind(schema, registry=referencing.Registry())
        self._enums: dict[int, tuple[list[Any], frozenset[str]]] = {}

    def _class_of(self, draft: Any) -> Any:
        """Return the class of validators for a draft: with its keywords, and ours."""
        if draft in self._classes:
            return self._classes[draft]
        ours = {
            "pattern": self._pattern,
            GRAMMAR: self._grammar,
            "patternProperties": self._pattern_properties,
            "additionalProperties": self._additional_properties,
            "multipleOf": _multiple_of,
            "enum": self._enum,
            "type": _nullable(draft.VALIDATORS["type"]),
            "uniqueItems": _unique_items,
        }
        if "unevaluatedProperties" in draft.VALIDATORS:
            ours["unevaluatedProperties"] = self._unevaluated_properties
        if self._asserts_formats:
            ours["format"] = self._format
        checks = {"dependencies": jsonschema.Draft7Validator.VALIDATORS["dependencies"], **draft.VALIDATORS, **ours}
        keywords = {name: self._timed(name, check) for name, check in checks.items()}
        types = draft.TYPE_CHECKER.redefine("any", lambda checker, instance: True)
        types = types.redefine("integer", _is_int) if self._plain_integers else types
        kind = self._classes[draft] = jsonschema.validators.extend(draft, keywords, type_checker=types)
        same_draft = kind.evolve

        def evolve(validator: Any, **changes: Any) -> Any:
            """Return a validator with other attributes: so ``jsonschema`` makes that of each subschema."""
            # For a schema with a `$schema` of its own, jsonschema's class of that draft would lack our keywords.
            changes.setdefault("schema", validator.schema)
            other = validator_for(changes["schema"], default=None)
            if other is None:
                return same_draft(validator, **changes)
            for each in attrs.fields(kind):
                if each.init:
                    changes.setdefault(each.alias, getattr(validator, each.name))
            return self._class_of(other)(**changes)

        kind.evolve = evolve
        return kind

    def problems(self, value: Any) -> Iterator[tuple[str, str]]:
        """Return the faults of a value: JSON pointers into it, each with a sentence; none if the value is valid.

        A value that JSON lacks (NaN, an infinity, a set, a tuple, a name that is not a string) is never valid.

        Raises:
            InvalidSchemaError: the schema is malformed, or has a reference that cannot be resolved.
            LimitError: it takes more than `MAX_SECONDS`.
        """
        return self._found(value, None)

    def of_part(self, part: Any) -> Validator:
        """Return the validator of a part of the schema, or of another schema with references into this one."""
        made = copy(self)
        made._validator = self._validator.evolve(schema=part)
        return made

    def is_valid(self, value: Any) -> bool:
        """Return True if a value is valid; the first fault ends the validation. Raises the errors of `problems`."""
        return next(self._found(value, 1), None) is None

    def _found(self, value: Any, most: int | None) -> Iterator[tuple[str, str]]:
        """Yield the faults of a value, of at most so many that are found first (None: of all)."""
        alien = _not_json(value)
        if alien is not None:
            yield alien
            return
        self._time.end = time.monotonic() + MAX_SECONDS
        try:
            faults = list(islice(self._validator.iter_errors(value), most))
            faults.sort(key=lambda fault: list(map(str, fault.absolute_path)))
        except (
            referencing.exceptions.Unresolvable,
            jsonschema.exceptions.SchemaError,
            jsonschema.exceptions.UnknownType,
            re.error,
            TypeError,
        ) as error:
            reason = first_line(error)
            raise InvalidSchemaError(f"the schema cannot be used for validation: {reason}") from error
        except BaseException as error:
            # `rpds`, which jsonschema's references are kept in, is Rust: it panics where the recursion limit is met
            # in a comparison of its keys, by an exception that is no `Exception`.
            if not isinstance(error, RecursionError) and type(error).__name__ != "PanicException":
                raise
            yield "", "it is nested too deeply to be checked"
            return
        for fault in faults:
            yield to_pointer(fault.absolute_path), _in_words(fault)

    def violations(self, value: Any) -> Iterator[str]:
        """Yield the faults of a value, one sentence each; see `problems`."""
        for where, message in self.problems(value):
            yield f"at {where or '(root)'}: {message}"

    def with_plain_integers(self, value: Any) -> Any:
        """Return a value with its floats without a fraction as ``int`` (3 for 3.0), unless it is valid as it is.

        Numbers from 2**53 on are left alone: as doubles they may differ from the numbers that were written.
        """
        if not _has_whole_float(value) or self.is_valid(value):
            return value
        return _with_integers(value)

    def _timed(self, name: str, check: Callable[..., Any]) -> Callable[..., Any]:
        """Return a keyword's check under the time limit."""

        def timed(validator: Any, wanted: Any, instance: Any, schema: Any) -> Any:
            if time.monotonic() > self._time.end:
                raise LimitError(
                    f"the validation of a value takes more than {MAX_SECONDS} seconds",
                    hint="simplify nested oneOf, anyOf and $ref of the schema, or send less",
                    place=Place(keyword=name),
                )
            return check(validator, wanted, instance, schema)

        return timed

    # -- keywords, as jsonschema calls them ---------------------------------------------------------

    def _pattern(self, validator: Any, pattern: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if validator.is_type(instance, "string") and not self._patterns.match(pattern, instance):
            yield ValidationError(f"{instance!r} does not match {pattern!r}")

    def _grammar(self, validator: Any, source: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if validator.is_type(instance, "string"):
            strings = _strings_of(string_grammar(source))
            if not strings.matches(instance):
                fault = bisect(range(len(instance)), False, key=lambda at: not strings.begins(instance[: at + 1]))
                said = f"; {instance[fault:]!r} cannot follow {instance[:fault]!r}" if 0 < fault < len(instance) else ""
                yield ValidationError(f"{instance!r} is not a text of the grammar{said}")

    def _enum(self, validator: Any, values: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        """Judge a value by the hashes of the listed ones; OpenAPI's ``nullable`` also allows null, but not beside
        ``const``."""
        entry = self._enums.get(id(values))
        if entry is None:
            entry = self._enums[id(values)] = values, frozenset(map(value_key, values))  # kept, so the id stays its own
        if value_key(instance) not in entry[1] and not (_is_allowed_null(instance, schema) and "const" not in schema):
            more = len(values) - _NAMED_VALUES
            named = repr(values) if more <= 0 else f"{values[:_NAMED_VALUES]!r} and {more:,} more"
            yield ValidationError(f"{instance!r} is not one of {named}")

    def _format(self, validator: Any, name: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        """Judge a string by the same language that a grammar would enforce; unknown formats accept every string."""
        if not validator.is_type(instance, "string") or not isinstance(name, str):
            return
        if name in BOUNDED:
            if not BOUNDED[name].judge(instance):
                yield ValidationError(f"{instance!r} is not a valid {name!r}")
            return
        day = dates.today() if name in dates.FORMATS else None
        if (name, day) not in self._formats:
            # Not `on_unsupported="error"`: a format that no grammar enforces accepts every string here.
            schema = {"type": "string", "format": name} if day is None else dates.as_judged(name, day)
            self._formats[name, day] = Grammar.from_json_schema(schema, on_unsupported="validate", whitespace="compact")
        if not self._formats[name, day].matches(json.dumps(instance)):
            yield ValidationError(f"{instance!r} is not a valid {name!r}")

    def _pattern_properties(
        self, validator: Any, patterns: Any, instance: Any, schema: Any
    ) -> Iterator[ValidationError]:
        """Judge the members whose names match, with patterns read as the grammar reads them."""
        if validator.is_type(instance, "object"):
            for pattern, subschema in patterns.items():
                for name, value in instance.items():
                    if self._patterns.match(pattern, name):
                        yield from validator.descend(value, subschema, path=name, schema_path=pattern)

    def _additional_properties(
        self, validator: Any, extra: Any, instance: Any, schema: Any
    ) -> Iterator[ValidationError]:
        """Judge undeclared members, with patterns read as the grammar reads them."""
        if not validator.is_type(instance, "object"):
            return
        declared, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for name, value in instance.items():
            if name in declared or any(self._patterns.match(pattern, name) for pattern in patterns):
                continue
            if extra is False:
                yield ValidationError(f"the property {name!r} is not allowed")
            else:
                yield from validator.descend(value, extra, path=name)

    def _unevaluated_properties(
        self, validator: Any, extra: Any, instance: Any, schema: Any
    ) -> Iterator[ValidationError]:
        """Judge members that nothing else evaluates, with patterns read as the grammar reads them."""
        if not validator.is_type(instance, "object"):
            return
        rest = {keyword: each for keyword, each in schema.items() if keyword != "unevaluatedProperties"}
        evaluated = set(self._evaluated(validator, instance, rest))
        for name, value in instance.items():
            if name in evaluated:
                continue
            if extra is False:
                yield ValidationError(f"the property {name!r} is not allowed")
            else:
                yield from validator.descend(value, extra, path=name)

    def _evaluated(self, validator: Any, instance: Mapping[str, Any], schema: Any) -> Iterator[str]:
        """Yield the names that a schema evaluates of an object which is valid for it, and others (JSON Schema 2020-12,
        11.3). The function of ``jsonschema`` reads patterns as Python does."""
        if not isinstance(schema, Mapping):
            return
        resolver = validator._resolver  # extensions of jsonschema have no other way to resolve
        resolved = [resolver.lookup(schema[each]) for each in ("$ref", "$dynamicRef") if each in schema]
        if "$recursiveRef" in schema:
            resolved.append(referencing.jsonschema.lookup_recursive_ref(resolver))
        for target in resolved:
            within = validator.evolve(schema=target.contents, _resolver=target.resolver)
            yield from self._evaluated(within, instance, target.contents)
        if "additionalProperties" in schema or "unevaluatedProperties" in schema:
            yield from instance
            return
        yield from schema.get("properties", ())
        patterns = schema.get("patternProperties", ())
        yield from (name for name in instance if any(self._patterns.match(pattern, name) for pattern in patterns))
        applied = [option for name, option in schema.get("dependentSchemas", {}).items() if name in instance]
        for keyword in ("allOf", "anyOf", "oneOf"):
            applied += [each for each in schema.get(keyword, ()) if validator.evolve(schema=each).is_valid(instance)]
        if "if" in schema:
            holds = validator.evolve(schema=schema["if"]).is_valid(instance)
            applied += [schema["if"], schema.get("then")] if holds else [schema.get("else")]
        for each in applied:
            yield from self._evaluated(validator, instance, each)


def _is_allowed_null(instance: Any, schema: Any) -> bool:
    return instance is None and schema.get("nullable") is True


def _nullable(check: Callable[..., Any]) -> Callable[..., Iterator[ValidationError]]:
    """Return the check of ``type`` that lets null pass where ``nullable`` does."""

    def checked(validator: Any, types: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if not _is_allowed_null(instance, schema):
            yield from check(validator, types, instance, schema)

    return checked


def _is_int(checker: Any, instance: Any) -> bool:
    return isinstance(instance, int) and not isinstance(instance, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()


def _has_whole_float(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_whole_float, value.values()))
    return any(map(_has_whole_float, value)) if isinstance(value, list) else _is_whole(value)


def _with_integers(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _with_integers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_with_integers(item) for item in value]
    return int(value) if _is_whole(value) and abs(value) < 2**53 else value


def _multiple_of(validator: Any, step: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """Compare as exact decimals: 0.07 is a multiple of 0.01, though its double is not one of the other's."""
    if validator.is_type(instance, "number") and not NumberRange(multiples=(exact(step),)).contains(instance):
        yield ValidationError(f"{instance!r} is not a multiple of {step!r}")


def _unique_items(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """Compare by hashing what is the same for equal values."""
    if not wanted or not validator.is_type(instance, "array"):
        return
    places: dict[str, int] = {}
    for index, item in enumerate(instance):
        first = places.setdefault(value_key(item), index)
        if first != index:
            yield ValidationError(f"items must be unique, but those at {first} and {index} are equal")
            return


def _not_json(value: Any) -> tuple[str, str] | None:
    """Return the pointer to a part of a value that JSON lacks, and a sentence; None if there is none."""
    stack: list[tuple[Any, Any, int]] = [(value, None, 0)]  # each with the way to it, a linked list, and its depth
    while stack:
        part, path, depth = stack.pop()
        if depth > MAX_DEPTH:  # perhaps a list that has itself as an item
            return "", "it is nested too deeply to be checked"
        problem = None
        if part is None or isinstance(part, (str, bool)):
            continue
        if isinstance(part, dict):
            for name, item in part.items():
                if not isinstance(name, str):
                    problem = f"the name {name!r} is not a string"
                    break
                stack.append((item, (path, name), depth + 1))
        elif isinstance(part, list):
            stack += [(item, (path, index), depth + 1) for index, item in enumerate(part)]
        elif isinstance(part, float):
            problem = None if math.isfinite(part) else f"{part} is not a JSON number"
        elif isinstance(part, int):
            problem = None if part.bit_length() <= MAX_INTEGER_BITS else "an integer has too many digits"
        else:
            problem = f"a value of type {type(part).__name__} is not JSON"
        if problem is not None:
            steps: list[Any] = []
            while path is not None:
                path, step = path
                steps.append(step)
            return to_pointer(reversed(steps)), problem
    return None


@lru_cache(maxsize=8)  # each derives states of its own
def _strings_of(grammar: StringGrammar) -> Grammar:
    """Return the texts of a grammar of strings."""
    return Grammar(grammar.rules.build, ("strings", grammar))


class _Patterns:
    """The languages of patterns, by pattern."""

    def __init__(self) -> None:
        self._by_pattern: dict[str, int | str] = {}  # a term, or a pattern of Python
        self._lock = shared_lock(self, "_lock", threading.Lock())

    @cached_property
    def _terms(self) -> Terms:
        """The store of the languages: most schemas have no pattern."""
        return Terms()

    def match(self, pattern: str, text: str) -> bool:
        """Return True if some part of ``text`` matches.

        Raises:
            re.error: the pattern is malformed.
            LimitError: a pattern that is not regular takes too long.
        """
        with self._lock:
            if pattern not in self._by_pattern:
                try:
                    self._by_pattern[pattern] = regex_term(self._terms, pattern, whole=False)
                except PatternError:
                    self._by_pattern[pattern] = _for_python(pattern)
            found = self._by_pattern[pattern]
            if isinstance(found, int):
                return self._terms.matches(found, text)
        return _search(found, text, pattern)


def _for_python(pattern: str) -> str:
    """Return a pattern that is not regular (with back-references, say) as a pattern of Python's ``re``: translated from
    ECMA-262; if that fails, as it is.

    Raises:
        re.error: the pattern is malformed, also as a pattern of Python.
    """
    try:
        translated = to_python(parse_with_groups(pattern))
        re.compile(translated)
        return translated
    except (ToolGrammarError, re.error):
        re.compile(pattern)
        return pattern


@memoised_if_short(1_024)
def _search(pattern: str, text: str, written: str) -> bool:
    """Return True if some part of a text matches a pattern of Python's ``re``, which was ``written`` otherwise.

    Its matcher backtracks, and nothing but the end of its process ends it.
    """
    command = [sys.executable, "-I", "-S", "-c", _PROGRAM]
    try:
        if getattr(sys, "frozen", False) or not sys.executable:
            raise OSError("there is no Python interpreter to run it in")
        result = subprocess.run(
            command, input=json.dumps([pattern, text]).encode(), timeout=PATTERN_SECONDS, capture_output=True
        )
        if result.returncode not in (0, 3):
            raise OSError(f"a process ended with {result.returncode}")
    except (OSError, subprocess.TimeoutExpired) as error:
        late = isinstance(error, subprocess.TimeoutExpired)
        reason = f"takes more than {PATTERN_SECONDS} seconds" if late else f"cannot be searched for: {error}"
        raise LimitError(
            f"the pattern {written!r} {reason}",
            hint="leave out back-references, and look-arounds inside of repetitions",
            place=Place(keyword="pattern"),
        ) from None
    return result.returncode == 0


#: Keywords whose fault does not say by itself what would be right.
_SIZES = {
    "minLength": "at least {} characters are needed",
    "maxLength": "at most {} characters are allowed",
    "minItems": "at least {} items are needed",
    "maxItems": "at most {} items are allowed",
    "minProperties": "at least {} members are needed",
    "maxProperties": "at most {} members are allowed",
}
_WORDS = {None: "null", True: "true", False: "false"}


def _in_words(fault: ValidationError) -> str:
    """Return the message of a fault for a reader of JSON, who is told what would be right."""
    message, value = str(fault.message), fault.instance
    if (value is None or isinstance(value, bool)) and message.startswith(f"{value} "):
        message = _WORDS[value] + message[len(str(value)) :]
    size = _SIZES.get(str(fault.validator))
    return message if size is None else f"{message}: {size.format(fault.validator_value)}"


def violations(value: Any, schema: Mapping[str, Any] | bool) -> Iterator[str]:
    """Yield the faults of a value; see `Validator`, which is quicker for several values.

    Raises:
        InvalidSchemaError: the schema is malformed, or has a reference that cannot be resolved.
    """
    return Validator(schema).violations(value)


def is_valid(value: Any, schema: Mapping[str, Any] | bool) -> bool:
    """Return True if a value satisfies a schema."""
    return Validator(schema).is_valid(value)
