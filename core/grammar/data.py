"""Grammars as data: JSON that says how each part was made, with a version.

Parts that several others have in common are written once, and rules refer to their definitions by number, so that
recursive grammars are finite.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any, cast

from ..errors import GrammarError, LimitError, ToolGrammarError
from ..regex.foreign import to_ecma
from ..schema import SchemaOptions, compile_schema
from ..schema.scalars import value_syntax
from ..schema.scalars.value_syntax import Arguments, NestedTags
from ..text_grammars.ebnf import read_ebnf
from ..text_grammars.expressions import Control, Literal
from ..text_grammars.lark import read_lark

#: The version of the form. A change that older readers would misunderstand raises it.
VERSION = 1

#: The sign that a grammar is EBNF and not Lark, outside of comments. vLLM tells them apart likewise.
_DEFINITION = re.compile(r"^(?:(?!#|//)[^\n])*::=", re.MULTILINE)

#: The members of a grammar as data.
_MEMBERS = {"version", "root", "parts"}

#: Fields of the options of a schema that are plain data.
_OPTIONS = (
    "whitespace",
    "additional_properties",
    "property_order",
    "on_unsupported",
    "formats",
    "strict_formats",
    "plain_integers",
)


def dumped(grammar: Any) -> str:
    """Return a grammar as JSON.

    Raises:
        GrammarError: a part has no form as data.
        LimitError: the grammar is nested too deeply.
    """
    writer = _Writer()
    try:
        root = writer.part(grammar)
    except RecursionError:
        raise LimitError("the grammar is nested too deeply to be written", hint="flatten it") from None
    try:
        return json.dumps({"version": VERSION, "root": root, "parts": writer.parts}, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise GrammarError(
            f"the grammar contains values that JSON cannot represent: {error}", hint="make it of plain data"
        ) from None


class _Writer:
    """The parts of a grammar, each as the name of its maker and the arguments."""

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def part(self, grammar: Any) -> int:
        """Return the number of a part."""
        identity = grammar._rule if grammar._key[0] == "rule" else id(grammar)
        number = self._numbers.get(identity)
        if number is None:
            number = self._numbers[identity] = len(self.parts)
            self.parts.append(None)
            self.parts[number] = self._as_data(grammar)
        return number

    def _as_data(self, grammar: Any) -> list[Any]:
        """Return a grammar as JSON: its kind, then its parameters and parts; `_Parts._from_data` makes it again."""
        kind, *rest = grammar._key
        if kind in ("sequence", "choice"):
            return [kind, *map(self.part, rest)]
        if kind == "rule":
            return [kind, rest[0].name, self.part(rest[0].body)]
        if kind == "repeat":
            return [kind, self.part(rest[0]), *rest[1:]]
        if kind == "cases":
            return [kind, [[word, self.part(inner)] for word, inner in rest]]
        if kind == "distinct":
            separator, least, most, *inner = rest
            return [kind, self.part(separator), least, most, [self.part(item) for item in inner]]
        if kind == "literal":
            return [kind, rest[0].decode("utf-8", "surrogateescape")]
        if kind == "schema":
            return [kind, *_schema(grammar, rest[0])]
        if kind in ("ebnf", "gbnf", "lark"):
            rules, *arguments = rest
            _, _, root, named, *_ = rules.key
            return [kind, *arguments, *([] if kind == "lark" else [root]), _tokens(named)]
        if kind == "builtin":
            return [kind, *rest[0].key]
        if kind == "structural_tag":
            if rest[0].source is None:
                raise GrammarError(
                    "a structural tag that was read with a vocabulary cannot be serialised",
                    hint="store the tag, and read it again with the vocabulary",
                )
            return [kind, rest[0].source, *rest[1:]]
        return [kind, *rest]


def _schema(grammar: Any, compiled: Any) -> list[Any]:
    """Return the schema of a grammar and its options as JSON data."""
    options = getattr(compiled, "options", None)
    if options is None:
        raise GrammarError("the grammar cannot be serialised", hint="make it with a function of Grammar")
    plain = {name: getattr(options, name) for name in _OPTIONS}
    if options.registry is not None:
        if not isinstance(options.registry, Mapping):
            raise GrammarError("a registry that is not a mapping cannot be serialised", hint="pass a dict of schemas")
        plain["registry"] = dict(options.registry)
    for name in ("syntax", "arguments"):
        if (value := getattr(options, name)) is not None:
            plain[name] = _syntax_as_data(value)
    return [compiled.document.schema, plain]


def _syntax_as_data(value: Any) -> Any:
    """Return a syntax as data."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            "is": type(value).__name__,
            **{item.name: _syntax_as_data(getattr(value, item.name)) for item in fields(value)},
        }
    if isinstance(value, tuple):
        return [_syntax_as_data(item) for item in value]
    return value.decode() if isinstance(value, bytes) else value


def _syntax_of(data: Any) -> Any:
    """Return the syntax that `_syntax_as_data` wrote."""
    if isinstance(data, dict):
        kind = getattr(value_syntax, str(data["is"]), None)
        if not (isinstance(kind, type) and issubclass(kind, (Arguments, NestedTags, value_syntax.ValueSyntax))):
            raise GrammarError(
                f"{data['is']!r} is not a known syntax of values", hint="it may come from a newer version"
            )
        values = {name: _syntax_of(item) for name, item in data.items() if name != "is"}
        for item in fields(cast(Any, kind)):
            if item.type == "bytes" and isinstance(values.get(item.name), str):
                values[item.name] = values[item.name].encode()
        return kind(**values)
    return tuple(_syntax_of(item) for item in data) if isinstance(data, list) else data


def _tokens(named: Any) -> list[list[str]]:
    """Return the expressions of tokens, in the order in which a grammar names them."""
    return [["control", item.name] if isinstance(item, Control) else ["text", item.text] for item in named]


def _token_reader(written: list[list[str]]) -> Callable[[int | str], Control | Literal]:
    """Return the function by which a parser of grammars reads the tokens that a text names. Here it returns the
    expressions of `_tokens` in order, whatever the name: no vocabulary is needed, and the parser asks in their order.
    """
    left: Iterator[list[str]] = iter(written)

    def expression(token: int | str) -> Control | Literal:
        kind, text = next(left)
        return Control(text) if kind == "control" else Literal(text)

    return expression


def loaded(make: Any, text: str) -> Any:
    """Return the grammar that `dumped` wrote.

    Args:
        make: the class `Grammar`.
        text: the JSON.

    Raises:
        GrammarError: it is malformed, or of another version.
    """
    hint = "pass the output of dumps()"
    try:
        data = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise GrammarError(f"a grammar as data is JSON, and this is not: {error}", hint=hint) from None
    if not isinstance(data, dict) or "version" not in data:
        raise GrammarError("a grammar as data is an object with version, root and parts", hint=hint)
    if data["version"] != VERSION:
        raise GrammarError(
            f"the grammar has version {data['version']!r}, and this library reads {VERSION}", hint="write it again"
        )
    if not isinstance(data.get("parts"), list):
        raise GrammarError("a grammar as data is an object with version, root and parts", hint=hint)
    reader = _Parts(make, data["parts"])
    try:
        for number in range(len(data["parts"])):  # those that only rules refer to are read now, not at first use
            reader.part(number)
        return reader.part(data.get("root"))
    except ToolGrammarError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, StopIteration, RecursionError) as error:
        raise GrammarError(f"a part of the grammar is malformed ({type(error).__name__}: {error})", hint=hint) from None


def grammar_of(make: Any, value: Any, vocabulary: Any) -> Any:
    """Return the grammar that a value stands for (see `Grammar.from_any`, whose class ``make`` is)."""
    if isinstance(value, make):
        return value
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise GrammarError(f"the grammar begins like JSON, but is not valid JSON: {error}", hint=_FORMS) from None
    if isinstance(value, str):
        read = make.from_gbnf if _DEFINITION.search(value) else make.from_lark
        return read(value, vocabulary=vocabulary)
    if isinstance(value, Mapping):
        if set(value) == {"syntax", "definition"}:
            return _of_syntax(make, value["syntax"], value["definition"], vocabulary)
        if set(value) >= _MEMBERS:
            return loaded(make, json.dumps(value))
        if is_tag(value):
            return make.from_structural_tag(dict(value), vocabulary=vocabulary)
        raise GrammarError(f"the grammar is an object with {', '.join(map(repr, value)) or 'nothing'}", hint=_FORMS)
    raise GrammarError(f"the grammar is {value!r}", hint=_FORMS)


_FORMS = (
    "give a text of GBNF or Lark, {'syntax': ..., 'definition': ...}, a structural tag, or what Grammar.dumps() wrote; "
    "a JSON Schema is given where a schema is asked for"
)


def is_tag(value: Any) -> bool:
    """Return True if a value is meant to be a structural tag, in the present form or the legacy one."""
    if not isinstance(value, Mapping):
        return False
    return set(value) == {"structures", "triggers"} or (
        value.get("type") == "structural_tag" and ("format" in value or "structures" in value)
    )


def is_grammar(value: Any) -> bool:
    """Return True if an object of JSON is meant to be a grammar rather than a JSON Schema."""
    return is_tag(value) or (isinstance(value, Mapping) and set(value) in (_MEMBERS, {"syntax", "definition"}))


def _of_syntax(make: Any, syntax: Any, definition: Any, vocabulary: Any) -> Any:
    """Return the grammar of a definition in a syntax, ``"lark"``, ``"gbnf"``, ``"ebnf"`` or ``"regex"``."""
    if not isinstance(definition, str):
        raise GrammarError(f"the definition is {definition!r}, not a text", hint=_FORMS)
    if syntax == "regex":  # Rust's, as in custom tools and in x-grammar
        return make.from_regex(to_ecma(definition, "rust"))
    if syntax not in ("lark", "gbnf", "ebnf"):
        raise GrammarError(f"unknown syntax of a grammar: {syntax!r}", hint="use one of lark, gbnf, ebnf, regex")
    return getattr(make, f"from_{syntax}")(definition, vocabulary=vocabulary)


class _Parts:
    """Grammars of parts, made when they are first asked for."""

    def __init__(self, make: Any, parts: list[Any]) -> None:
        self._make = make
        self._parts = parts
        self._done: dict[int, Any] = {}

    def part(self, number: Any) -> Any:
        """Return a part."""
        self._check(number)
        if number not in self._done:
            self._done[number] = self._from_data(*self._parts[number])
        return self._done[number]

    def _check(self, number: Any) -> None:
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(self._parts):
            raise GrammarError(f"the grammar has no part {number!r}", hint="pass the output of dumps()")

    def _from_data(self, kind: str, *rest: Any) -> Any:
        """Return the grammar of a kind, from the parameters and parts that `_Writer._as_data` wrote.

        Raises:
            GrammarError: the kind is unknown.
        """
        make, part = self._make, self.part
        if kind in ("sequence", "choice"):
            return getattr(make, kind)(*map(part, rest))
        if kind == "rule":
            name, body = rest
            self._check(body)
            return make.rule(name, lambda: part(body))
        if kind == "repeat":
            item, *bounds = rest
            return make.repeat(part(item), *bounds)
        if kind == "cases":
            return make.cases({word: part(inner) for word, inner in rest[0]})
        if kind == "distinct":
            separator, least, most, inner = rest
            return make.distinct([part(item) for item in inner], part(separator), least, most)
        if kind == "literal":
            return make.literal(rest[0].encode("utf-8", "surrogateescape"))
        if kind == "schema":
            return self._schema(*rest)
        if kind == "regex":
            return make.from_regex(rest[0])
        if kind in ("ebnf", "gbnf"):
            text, root, named = rest
            return make._read(kind, read_ebnf(text, root, _token_reader(named)), text)
        if kind == "lark":
            text, root, whitespace, on_unsupported, named = rest
            compiled = partial(compile_schema, options=SchemaOptions(whitespace, on_unsupported=on_unsupported))
            read = read_lark(text, root, _token_reader(named), compiled, is_exact=on_unsupported == "error")
            return make._read(kind, read, text, root, whitespace, on_unsupported)
        if kind == "structural_tag":
            tag, whitespace, on_unsupported = rest
            return make.from_structural_tag(tag, whitespace=whitespace, on_unsupported=on_unsupported)
        if kind == "builtin" and rest[0] in ("csv", "markdown_table", "xml", "yaml", "python_literal", "sql_select"):
            return getattr(make, rest[0])(**json.loads(rest[1]))
        if kind == "text":
            excluding, min_chars, *starts = rest  # grammars without excluded starts were written without them
            return make.text(excluding=excluding, min_chars=min_chars, excluding_starts=starts[0] if starts else ())
        if kind == "until":
            return make.until(rest[0], excluding=rest[1])
        if kind in ("special", "format"):
            return getattr(make, kind)(rest[0])
        raise GrammarError(f"unknown kind {kind!r} of grammars", hint="it may come from a newer version")

    def _schema(self, schema: Any, options: Mapping[str, Any]) -> Any:
        """Return the grammar of a schema, given with its options as `_schema` wrote them."""
        plain = {
            name: _syntax_of(value) if name in ("syntax", "arguments") else value for name, value in options.items()
        }
        return self._make._of_schema(schema, SchemaOptions(**plain))
