"""Arguments that are not one JSON object: their grammar in another syntax, and the kinds of their values.

A *raw* string is written without quotes and escapes, up to the markup that ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from toolgrammar.core.errors import Place, ToolGrammarError, UnsupportedSchemaError
from toolgrammar.core.grammar import Grammar
from toolgrammar.core.schema import (
    GRAMMAR,
    KEYWORDS,
    TYPES,
    Arguments,
    NestedTags,
    Reading,
    cannot_write_name,
    compile_arguments,
)
from toolgrammar.core.text_grammars import string_grammar

from ...tool import Tool, not_enforced
from ..base import TurnSpec

_ANY_KIND = frozenset(TYPES)


def arguments_grammar(
    tool: Tool,
    turn: TurnSpec,
    *,
    schema: Any = None,
    syntax: Any = None,
    arguments: Arguments | NestedTags | None = None,
    narrowed: tuple[UnsupportedSchemaError, ...] = (),
) -> Grammar:
    """Return the grammar of a tool's arguments in a value syntax other than one JSON object.

    Args:
        tool: the tool.
        turn: the specification of the turn.
        schema: what the format writes of the tool's schema; None: all of it.
        syntax: of the values, one of `toolgrammar.core.schema`; None: JSON.
        arguments: the markup around them; None: they are one object.
        narrowed: what was left out of the tool's schema before.

    Raises:
        SchemaError: its schema cannot be enforced in that syntax; names the tool.
    """
    given, additional = turn.schema(tool)
    schema = given if schema is None else schema
    in_tags = isinstance(arguments, NestedTags) or (arguments is not None and arguments.raw_end is not None)
    if arguments is not None and in_tags and not additional and _names_nothing(schema):
        schema = {**schema, "additionalProperties": False}
        narrowed += (
            UnsupportedSchemaError(
                f"{arguments.writer} writes a tag for each declared argument: this tool is called without arguments",
                hint="declare its properties, or choose a JSON format for this tool, such as hermes",
                place=Place(tool=tool.name, keyword="type"),
            ),
        )
    if arguments is not None and not additional:
        schema, left_out = without_names(
            schema, lambda name: arguments.spelled(name) is not None, tool.name, arguments.writer
        )
        narrowed += left_out
    try:
        return Grammar.of_arguments(
            schema,
            (*narrowed, *_ends_in_texts(tool.name, schema, arguments)),
            # Marks and bare names leave no room for other spaces.
            whitespace=turn.whitespace if syntax is None or turn.whitespace == "compact" else "single",
            additional_properties=additional,
            property_order=turn.property_order,
            syntax=syntax,
            arguments=arguments,
            plain_integers=True,
            is_marked=turn.is_marked,
        )
    except ToolGrammarError as error:
        raise not_enforced(error, tool.name) from error


def without_names(
    schema: Any, is_spelled: Callable[[str], bool], tool: str, writer: str
) -> tuple[Any, tuple[UnsupportedSchemaError, ...]]:
    """Return the schema of a tool's arguments without optional ones whose names a format cannot write, and a report for
    each of them. The calls that are left are valid: such an argument is never given.
    """
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or schema.get("additionalProperties", False) is not False:
        return schema, ()
    if not schema.keys() <= KEYWORDS.listing:  # other keywords may demand what would be left out
        return schema, ()
    required = schema.get("required", ())
    names = [name for name in properties if name not in required and not is_spelled(name)]
    if not names:
        return schema, ()
    kept = {name: value for name, value in properties.items() if name not in names}
    reports = (
        cannot_write_name(
            writer,
            name,
            Place(tool=tool, parameter=name, keyword="properties"),
            left_out=f"calls with the argument {name!r}",
        )
        for name in names
    )
    return {**schema, "properties": kept, "additionalProperties": False}, tuple(reports)


def _ends_in_texts(
    tool: str, schema: Any, arguments: Arguments | NestedTags | None
) -> Iterator[UnsupportedSchemaError]:
    """Yield a report for each argument with a grammar (`GRAMMAR`) of which texts are lost, because they contain what
    ends a raw text."""
    # A text is lost if it contains all of `ends`: one that may stand in a block must contain the end of that, too.
    ended: Callable[[Any], int] | None = None  # the term of the texts that contain the first end; None: anywhere
    follows = ""
    if isinstance(arguments, NestedTags):
        ends = ["".join(text for text, _ in arguments.mark)]
    elif arguments is not None and arguments.raw_end is not None:
        block_end = "" if arguments.block is None else "".join(text for text, _ in arguments.block[1])
        ended, ends = arguments.ended, [arguments.raw_end, *([block_end] if block_end else [])]
        if arguments.raw_follows:
            follows = " before another argument or the end of the call"
    else:
        return
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    for name, value in properties.items() if isinstance(properties, Mapping) else ():
        if not (isinstance(value, Mapping) and GRAMMAR in value):
            continue
        if not string_grammar(value[GRAMMAR]).has_text_with(ends if ended is None else ends[1:], ended):
            continue
        yield UnsupportedSchemaError(
            f"a raw text cannot contain {ends[-1]!r}{follows}, which ends it",
            hint="exclude it in the grammar, or choose a format that writes JSON for this tool, such as hermes",
            place=Place(tool=tool, parameter=name, keyword=GRAMMAR),
            left_out=f"texts that contain {' and '.join(map(repr, ends))}{follows}",
        )


def _names_nothing(schema: Any) -> bool:
    """Return True if a schema says only that the arguments are an object, as that of a tool without any does."""
    return set(schema) <= {"type", "title", "description", "$schema"} and schema.get("type") == "object"


def declared_names(tool: Tool) -> tuple[str, ...]:
    """Return the names of the arguments that a tool's schema lists at its top."""
    properties = tool.parameters.get("properties") if isinstance(tool.parameters, Mapping) else None
    return tuple(properties) if isinstance(properties, Mapping) else ()


#: Arguments under any name, where only their kinds are asked for.
_ANY = Arguments(names=r"[\s\S]*")

#: Maximum number of names of arguments in a text whose kinds may be too many to tell; then none are told any more.
_MAX_FAILED = 16


def kinds_of_arguments(tools: Sequence[Tool], arguments: Arguments = _ANY) -> Callable[[str, str], frozenset[str]]:
    """Return a function from tool and argument name to the JSON types that the argument may have.

    It gives all types where the schema does not restrict them.
    """
    by_name = {tool.name: tool for tool in tools}

    @cache  # of declared tools alone: a schema is compiled once, when a call of its tool has come
    def kinds_of(tool: str) -> Callable[[str], frozenset[str]]:
        try:
            return compile_arguments(by_name[tool].parameters, arguments).member_kinds
        except ToolGrammarError:  # the tool is refused when its grammar is made; its written calls are still read
            return lambda name: _ANY_KIND

    failed: set[tuple[str, str]] = set()  # tools and names with too many alternatives, which take long to find out

    def kinds(tool: str, name: str) -> frozenset[str]:
        if tool not in by_name or (tool, name) in failed or len(failed) >= _MAX_FAILED:
            return _ANY_KIND
        try:
            types = kinds_of(tool)(name)
        except ToolGrammarError:
            failed.add((tool, name))
            return _ANY_KIND
        # No type: the schema forbids this argument. If a text has it anyway, its value is read as a string.
        return types or frozenset({"string"})

    return kinds


def readings_of_arguments(tools: Sequence[Tool], arguments: NestedTags) -> Callable[[str], Reading | None]:
    """Return a function from a tool's name to what its arguments may be; None where that is not known."""
    by_name = {tool.name: tool for tool in tools}

    @cache  # of declared tools alone
    def reading(name: str) -> Reading | None:
        try:
            return compile_arguments(by_name[name].parameters, arguments).reading
        except ToolGrammarError:  # the tool is refused when its grammar is made; its written calls are still read
            return None

    return lambda name: reading(name) if name in by_name else None
