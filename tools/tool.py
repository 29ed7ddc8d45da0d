"""`Tool`: name, description, argument schema and function of one tool."""

from __future__ import annotations

import copy
import hashlib
import json
import marshal
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from toolgrammar.core.basics import cached_property, logger_of
from toolgrammar.core.errors import (
    InvalidSchemaError,
    Place,
    PolicyError,
    SchemaError,
    ToolGrammarError,
    UnsupportedSchemaError,
)
from toolgrammar.core.live import LiveSchema
from toolgrammar.core.schema import CHECK_LATER, GRAMMAR, KEYWORDS, of_today
from toolgrammar.core.text_grammars import string_grammar

from .dialects import to_json_schema

MAX_NAME_LENGTH = 256
#: Maximum number of characters of the one line of a tool whose schema is not in the prompt.
MAX_SUMMARY = 100
#: A first sentence, which more text follows.
_SENTENCE = re.compile(r".{12,}?[.!?](?= [A-Z(])")
#: Maximum number of tools that a warning of those left out describes.
MAX_SHOWN = 20

_LOG = logger_of("tools")


class _LiveFacts(NamedTuple):
    """What the parameters of a tool say of live values: `Tool.has_values`, `needs_conversation` and `readable`.

    Attributes:
        has_values: as of the tool.
        needs_conversation: as of the tool.
        readable: as of the tool; None: the tool itself.
    """

    has_values: bool
    needs_conversation: bool
    readable: Tool | None


#: The facts of a tool without live values. Tools keep them as plain tuples, which `marshal` takes (see `tool_dicts`).
_NOTHING_LIVE = (False, False, None)


@dataclass(frozen=True)
class Tool:
    """One tool: its description for the model, and the function that a call runs.

    Attributes:
        name: the name that the model writes; 1 to 256 characters, no control characters, no surrounding spaces.
        description: the purpose, for the model; may be empty.
        parameters: JSON Schema (Draft 2020-12) of the arguments, always of type ``object``; references and cycles
            are ``$ref``, never expanded. Given in another dialect it is converted (see `to_json_schema`).
        function: what to call, or None for a tool that is only described.
        model: the class that the arguments build (a Pydantic model, dataclass or typed dict), or None.
        binder: turns decoded arguments into the positional and the keyword arguments of ``function``; None passes them
            by name as they are.
        title: a name for people, or empty.
        output_schema: JSON Schema of what the tool returns, where its source says it (MCP), or None.
        annotations: what its source says of its behaviour (MCP's ``readOnlyHint`` and so on): claims, not facts.
        values: the callables that ``x-values`` in the parameters names, each a `Values` or another callable. One that
            stands in the parameters themselves gets a name.
        optional: a `ToolSet` leaves it out, with a warning, if its arguments have no grammar, instead of refusing all
            tools. So are the tools of documents and servers, which are listed by somebody else.
        deferred: the prompt has its name and one line, and its schema only when it is called (``defer_loading`` of
            OpenAI's and Anthropic's tools; see ``GenerateParams.tools_in_prompt`` for all tools).
        operation: what an OpenAPI document says of the tool: its request, and its answers, which nobody promises; the
            `Operation` of ``sources.openapi``, or None.
        program: what a tool of programs runs, the `Program` of ``programs.tool``, or None.

    Raises:
        SchemaError: the name is unusable, or the parameters are not an object schema.
    """

    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict, hash=False)
    function: Callable[..., Any] | None = None
    model: type[Any] | None = None
    binder: Callable[[Mapping[str, Any]], tuple[Sequence[Any], dict[str, Any]]] | None = field(
        default=None, repr=False, compare=False
    )
    title: str = field(default="", repr=False, compare=False)
    output_schema: dict[str, Any] | None = field(default=None, repr=False, compare=False)
    annotations: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    optional: bool = field(default=False, repr=False, compare=False)
    values: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)
    deferred: bool = field(default=False, repr=False, compare=False)
    operation: Any = field(default=None, repr=False, compare=False)
    program: Any = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_name(self.name)
        live = LiveSchema(self.parameters)
        is_live = live.is_live
        parameters, values = live.named() if is_live else (self.parameters, {})
        object.__setattr__(self, "values", {**self.values, **values})
        parameters = _as_object_schema(parameters, self.name)
        object.__setattr__(self, "parameters", LiveSchema(parameters).ordered() if is_live else parameters)
        if not is_live and self.program_argument is None:
            self.__dict__["_live_facts"] = _NOTHING_LIVE

    @classmethod
    def custom(
        cls,
        name: str,
        description: str = "",
        *,
        definition: str | None = None,
        syntax: str = "lark",
        function: Callable[[str], Any] | None = None,
    ) -> Tool:
        """Return a custom tool, as OpenAI calls it: its input is a text, which may be of a grammar.

        The text is the tool's only argument, ``input``: a JSON string, or raw text in formats that write strings so.

        Args:
            name: as for any tool.
            description: as for any tool.
            definition: the grammar of the input; None: any text.
            syntax: ``"lark"``, ``"regex"`` (Rust's), ``"gbnf"`` or ``"ebnf"``.
            function: what to call with the text, or None.

        Raises:
            GrammarError: the grammar is malformed, or has parts that no text can have; with line and column.
        """
        parameters = text_parameters(None if definition is None else {"syntax": syntax, "definition": definition})
        if function is None:
            return cls(name, description, parameters)
        run = function

        def with_input(input: str) -> Any:  # whatever name the function has for its parameter
            return run(input)  # perhaps a coroutine, which `calling.run` awaits

        return cls(name, description, parameters, with_input)

    @property
    def fingerprint(self) -> str:
        """Canonical text of a tool's name and schema: equal for tools that allow the same calls by the same schema.

        Titles, descriptions, defaults and other annotations do not count, nor does the order of keys that carry no
        order (the order of ``properties`` does: it is the order in which they are written).
        """
        return json.dumps([self.name, _essence(self.parameters)], ensure_ascii=True, separators=(",", ":"))

    @cached_property
    def identity(self) -> str | None:
        """Hash of name and parameters as they are, valid in this process; None if the parameters are not plain data."""
        try:
            # Version 2 writes equal data equally, and is the fastest serialisation of plain data.
            return hashlib.sha256(marshal.dumps((self.name, self.parameters), 2)).hexdigest()
        except ValueError:
            return None

    @property
    def program_argument(self) -> str | None:
        """The name of its one argument, if that is a program; None: it is no tool of programs."""
        properties = self.parameters.get("properties")
        if not isinstance(properties, dict) or len(properties) != 1:
            return None
        ((name, schema),) = properties.items()
        grammar = schema.get(GRAMMAR) if isinstance(schema, dict) else None
        is_program = isinstance(grammar, dict) and grammar.get("syntax") == "program"
        return str(name) if is_program or self.program is not None else None

    @property
    def is_bound(self) -> bool:
        """A call's arguments become values of Python's types: those of a function or a class."""
        return self.binder is not None or self.model is not None

    @cached_property
    def names_a_day(self) -> bool:
        """True if the parameters hold a date that must be past or still to come."""
        return of_today(self.parameters) is not self.parameters

    def _live(self) -> _LiveFacts:
        """Return the facts of live values, read once and kept as ``_live_facts``."""
        known: tuple[bool, bool, Tool | None] | None = self.__dict__.get("_live_facts")
        if known is None:
            live = LiveSchema(self.parameters)
            plain = live.plain()
            argument = self.program_argument
            if argument is not None and GRAMMAR in plain["properties"][argument]:
                # Models do not see the grammar of programs, which is longer than the tools in it.
                plain = {**plain, "properties": {argument: {"type": "string"}}}
            readable = None if plain is self.parameters else self.changed(parameters=plain)
            known = live.has_values, live.needs_conversation, readable
            self.__dict__["_live_facts"] = known
        return _LiveFacts(*known)

    @property
    def has_values(self) -> bool:
        """True if the parameters have live values."""
        return self._live().has_values

    @property
    def needs_conversation(self) -> bool:
        """True if the parameters have values or texts of a conversation."""
        return self._live().needs_conversation

    @property
    def readable(self) -> Tool:
        """The tool without live values, those of a conversation and the grammar of programs: for models, and for texts
        that are only read, whose calls are checked afterwards."""
        return self._live().readable or self

    @property
    def enforceable(self) -> Tool:
        """The tool without live values, for a grammar that asks no callable: unlike `readable`, with what a policy
        forbids, and with the grammar of programs."""
        plain = LiveSchema(self.parameters).plain()
        return self if plain is self.parameters else self.changed(parameters=plain)

    def of_today(self) -> Tool:
        """Return the same tool with formats of past or future dates as bounds by today's date; itself, if it has
        none."""
        return self.changed(parameters=of_today(self.parameters)) if self.names_a_day else self

    @property
    def summary(self) -> str:
        """The first sentence of the description, in one line of at most `MAX_SUMMARY` characters."""
        line = " ".join(self.description.split())
        first = _SENTENCE.match(line)
        line = line if first is None else first.group()
        return line if len(line) <= MAX_SUMMARY else line[: MAX_SUMMARY - 4].rsplit(" ", 1)[0] + " ..."

    def to_openai(self, *, live: bool = False, brief: bool = False, bound: bool = False) -> dict[str, Any]:
        """Return the tool as an OpenAI-style dict with its full schema.

        Args:
            live: with ``x-values``, ``x-seen`` and ``x-copied``, for another `Tool` of this process. False: for a
                model, without them.
            brief: without schema, and with one line of the description.
            bound: with all that calls are held to, for an engine that enforces it: also what a policy forbids, the
                grammar of programs, and ``x-values`` with names that only this tool knows, which an engine refuses.
        """
        if brief:
            return {"type": "function", "function": {"name": self.name, "description": self.summary}}
        if live:
            parameters = LiveSchema(self.parameters).with_sources(self.values)
        else:
            parameters = copy.deepcopy(self.parameters if bound else self.readable.parameters)
        function = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": function}

    def renamed(self, name: str) -> Tool:
        """Return the same tool under another name (frameworks rename tools before a model sees them)."""
        return self.changed(name=name)

    def read_as(self, readable: Tool) -> Tool:
        """Return the same tool, whose arguments depend on the conversation, and which models see as another one."""
        made = self.changed()
        made.__dict__["_live_facts"] = False, True, readable
        return made

    def restricted(self, parameters: dict[str, Any]) -> Tool:
        """Return the same tool with parameters that take fewer values, and that models do not see (a policy)."""
        made = self.changed(parameters=parameters)
        live = LiveSchema(parameters)
        made.__dict__["_live_facts"] = live.has_values, live.needs_conversation, self.readable
        made.__dict__["is_restricted"] = True
        return made

    @cached_property
    def is_restricted(self) -> bool:
        """True if a policy restricts its calls."""
        return False

    def under(self, policy: Any) -> Tool:
        """Return the same tool, which names the `Policy` of its tool set as `policy`."""
        made = self.changed()
        made.__dict__["policy"] = policy
        return made

    @cached_property
    def policy(self) -> Any:
        """The `Policy` of the tool set that it is from; None: it has none."""
        return None

    def live_places(self, in_grammar: bool) -> Iterator[str]:
        """Yield the pointers of what a server does not enforce; see `ToolSet.live_places`."""
        for place in LiveSchema(self.parameters).places(in_grammar):
            # The definitions that a policy adds (`policy/compiled.py`) count once, as "/policy".
            if not (self.is_restricted and place.startswith("/$defs/policy")):
                yield place
        may_repeat = self.policy is None or self.policy.may_repeat(self.name)
        if (self.is_restricted or not may_repeat) and not in_grammar:
            yield "/policy"

    def changed(self, **fields: Any) -> Tool:
        """Return the same tool with other values of some fields.

        Unlike `dataclasses.replace`, which converts the parameters again: they are Draft 2020-12, as
        `to_json_schema` returns them, also if they are among the fields.
        """
        if "name" in fields:
            check_name(fields["name"])
        made = copy.copy(self)
        made.__dict__.update(fields)
        for derived in ("identity", "names_a_day"):
            made.__dict__.pop(derived, None)
        known = _LiveFacts(*made.__dict__.pop("_live_facts", _NOTHING_LIVE))
        if known.readable is not None and "parameters" not in fields:  # the readable tool changes, too
            made.__dict__["_live_facts"] = *known[:2], known.readable.changed(**fields)
        return made


class ToolList(list[Tool]):
    """Tools that somebody else lists: the operations of a document, the tools of a server.

    Attributes:
        skipped: one error for each of them that cannot be a tool, with its name, its place and the reason.
    """

    def __init__(self, tools: Iterable[Tool] = (), skipped: Iterable[ToolGrammarError] = ()) -> None:
        super().__init__(tools)
        self.skipped = tuple(skipped)


def policy_of(tools: Sequence[Tool]) -> Any:
    """Return the policy under which all of some tools are; None: they are under none.

    Raises:
        PolicyError: only some are, or they are under different ones: a tool set has one policy for all.
    """
    policies = {None if tool.policy is None else tool.policy.hash: tool.policy for tool in tools}
    if len(policies) > 1:
        under = next(tool.name for tool in tools if tool.policy is not None)
        raise PolicyError(
            "the tool is under a policy that does not hold for all tools beside it",
            hint="make one ToolSet of all tools without a policy, and then call its under(policy)",
            place=Place(tool=under),
        )
    return next(iter(policies.values()), None)


def text_parameters(grammar: Mapping[str, Any] | None, argument: str = "input") -> dict[str, Any]:
    """Return the parameters of a custom tool: one text.

    Args:
        grammar: of the text, with ``syntax`` and ``definition``; None: any text.
        argument: the name of the text.

    Raises:
        GrammarError: the grammar is malformed; with line and column.
    """
    text: dict[str, Any] = {"type": "string"}
    if grammar is not None:
        string_grammar(grammar)
        text[GRAMMAR] = dict(grammar)
    return {"type": "object", "properties": {argument: text}, "required": [argument], "additionalProperties": False}


def check_name(name: object) -> None:
    """Raise an error for a name that no wire format could write.

    Raises:
        SchemaError: not a string, empty, too long, or with control characters, surrogates or surrounding spaces.
    """
    if not isinstance(name, str):
        raise SchemaError(f"a tool's name is a string, not {type(name).__name__}", hint="give the tool a name")
    place = Place(tool=name)
    if not name:
        raise SchemaError("a tool's name is empty", hint="give the tool a name")
    if len(name) > MAX_NAME_LENGTH:
        raise SchemaError(
            f"a tool's name has {len(name)} characters, at most {MAX_NAME_LENGTH} are allowed",
            hint="choose a shorter name",
            place=Place(tool=name[:40] + "..."),
        )
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in name):
        raise SchemaError(
            "a tool's name contains a control character or a lone surrogate",
            hint="use printable characters",
            place=place,
        )
    if name != name.strip():
        raise SchemaError("a tool's name has leading or trailing white space", hint="strip the name", place=place)


def warn_of_skipped(skipped: Sequence[ToolGrammarError]) -> None:
    """Warn of tools that are left out of a set, if there are any."""
    if skipped:
        shown = "; ".join(map(str, skipped[:MAX_SHOWN])) + ("; ..." if len(skipped) > MAX_SHOWN else "")
        _LOG.warning("%d tools are left out: %s", len(skipped), shown)


def with_tool(error: ToolGrammarError, tool: str) -> ToolGrammarError:
    """Return the same error, with the tool's name in its location."""
    return type(error)(error.message, hint=error.hint, place=replace(error.place, tool=tool))


def not_enforced(error: ToolGrammarError, tool: str) -> ToolGrammarError:
    """Return the same error of a tool's grammar, with the way out that a tool set has for what cannot be enforced."""
    hint = error.hint
    if isinstance(error, UnsupportedSchemaError):
        later = f"have the arguments checked after generation with ToolSet(..., strictness={{{tool!r}: 'object'}})"
        given = hint or CHECK_LATER
        hint = given.replace(CHECK_LATER, later) if CHECK_LATER in given else f"{given}, or {later}"
    return with_tool(type(error)(error.message, hint=hint, place=error.place), tool)


def _as_object_schema(schema: Any, tool: str) -> dict[str, Any]:
    """Return a tool's parameters as a Draft 2020-12 schema of objects."""
    if schema is None or schema == {}:
        return {"type": "object", "properties": {}}
    if schema is True:
        return {"type": "object"}
    if not isinstance(schema, Mapping):
        raise InvalidSchemaError(
            f"the parameters are a JSON Schema object, not {type(schema).__name__}",
            hint='for example {"type": "object", "properties": {...}}',
            place=Place(tool=tool),
        )
    try:
        converted = to_json_schema(schema)
    except ToolGrammarError as error:
        raise with_tool(error, tool) from error
    assert isinstance(converted, dict)  # a mapping converts to a dict
    kind = converted.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise SchemaError(
            f"the parameters are of type {kind!r}; arguments are always an object",
            hint="wrap the value in an object with one property",
            place=Place(tool=tool, pointer="/type", keyword="type"),
        )
    return {**converted, "type": "object"}


def _essence(schema: Any) -> Any:
    """Return a form of a schema that is equal for schemas of the same written calls.

    It lacks annotations, and its keywords are sorted. Properties are a list of pairs, in the order in which calls are
    written.
    """
    if not isinstance(schema, dict):
        return schema
    result: dict[str, Any] = {}
    for key in sorted(schema):
        value = schema[key]
        if key in KEYWORDS.annotations:
            continue
        if key in KEYWORDS.schema_maps and isinstance(value, dict):
            result[key] = [[name, _essence(sub)] for name, sub in value.items()]
        elif key == "required" and isinstance(value, list):
            result[key] = sorted(value, key=str)
        elif key in KEYWORDS.data or key == "dependentRequired":
            result[key] = value
        elif isinstance(value, list):
            result[key] = [_essence(item) for item in value]
        else:
            result[key] = _essence(value)
    return result


def merged(first: Tool, second: Tool) -> Tool:
    """Return one tool for two of the same name, if they allow the same calls and do not disagree on what to run."""
    run_the_same = first.function is None or second.function is None or first.function == second.function
    if first.fingerprint != second.fingerprint or not run_the_same or dict(first.values) != dict(second.values):
        raise SchemaError(
            "two different tools have the same name",
            hint="rename one of them",
            place=Place(tool=first.name),
        )
    if first.function is None and first.model is None:
        return first.changed(function=second.function, model=second.model, binder=second.binder)
    return first
