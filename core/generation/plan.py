"""Plans of requests: checked parameters, the conversation, and the language of the answer, computed once.

A request becomes one immutable `Plan` before the first forward pass; `write` (``write.py``) decodes it and reads the
output. Asking again for better JSON (``json_output.py``) changes the prompt of a plan, and nothing else.
"""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any, Union, cast

from ..basics.logs import logger_of
from ..basics.options import Whitespace, require_known
from ..basics.recent_memo import TextMemo
from ..conversation.bound import needs_conversation
from ..conversation.message_dicts import message_of
from ..conversation.messages import Message, as_shown
from ..errors import (
    GrammarError,
    InvalidSchemaError,
    LiveValuesError,
    ModelError,
    ToolGrammarError,
    UnknownOptionError,
    UnsatisfiableSchemaError,
)
from ..grammar import Grammar
from ..live.asking import LiveValues
from .insertions import Insertions
from .live_shape import LiveShape
from .params import OPTIONS, RANGES, GenerateParams, JsonMode, OutputParser, ToolInterface
from .ranges import check_ranges
from .tool_choice import allowed_by, no_tools, policy_of, tool_choice_of, tool_set_of

if TYPE_CHECKING:
    from .reasoning import ReasoningPlan

#: A text of the user, a message, or a conversation; a dict is a message in OpenAI's format.
#: (A list of both is typed as `Sequence[object]` where mypy joins the types of its items.)
Prompt = Union[str, Message, Mapping[str, Any], Sequence[Union[Message, Mapping[str, Any]]], Sequence[object]]

#: Maximum number of grammars of schemas that a planner memoises.
CACHED_GRAMMARS = 64


_LOG = logger_of("models")

#: Matches a rule of EBNF or Lark.
_RULE = re.compile(r"^[ \t]*[?!]?[\w.-]+\s*(?:::=|:(?!//))", re.MULTILINE)


@dataclass(frozen=True)
class Plan:
    """The plan of one answer: its language, its parser, and its prompt.

    Attributes:
        grammar: the language of the answer.
        make_parser: makes a parser of tool calls, with the options of `ToolInterface.parser`; None if the answer is
            text.
        barred: markers of calls: the beginning of one that the options or the budget denied is no part of a text.
        stop: strings that end the answer; empty if they could make it invalid.
        is_json: the text of the answer is JSON.
        check: a JSON Schema that the grammar does not enforce and the answer must satisfy; None if there is none.
        params: the options of the request.
        prompt: token ids of the conversation.
        prefix: token ids of ``params.prefix``, which the answer continues.
        reasoning: the reasoning before the answer; None: no reasoning.
        may_end: the model may end the answer before its first token, although the grammar has no empty text.
        may_be_empty: an answer of a denied marker alone is empty; else it is an error.
        values: the callables of the grammar's live values, and what they answered; None: it has none.
        insertions: what the prompt gains while the answer is written; None: nothing.
        marked: makes the reading grammar of the answer (``core/reading``); None: it has no calls.
    """

    grammar: Grammar
    make_parser: Callable[..., OutputParser] | None = None
    barred: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    is_json: bool = False
    check: Any = None
    params: GenerateParams = field(default_factory=GenerateParams)
    prompt: tuple[int, ...] = ()
    prefix: tuple[int, ...] = ()
    reasoning: ReasoningPlan | None = None
    values: LiveValues | None = None
    insertions: Insertions | None = None
    marked: Callable[[], Grammar] | None = None
    may_end: bool = False
    may_be_empty: bool = False


def may_be_empty(params: GenerateParams, messages: Sequence[Message]) -> bool:
    """Return True if an answer to a conversation may have no text and no call (``GenerateParams.empty_answer``)."""
    after_result = bool(messages) and messages[-1].role == "tool" and not params.prefix
    return after_result and params.empty_answer and params.tool_choice in ("auto", "none")


def without_calls(params: GenerateParams, messages: Sequence[Message]) -> GenerateParams:
    """Return the options of a request, with an empty tool set if it offers no tool and the model may try to call one:
    the conversation has calls, or ``tool_choice`` is "none". By the tool set, the model's markers of calls are known,
    and forbidden. Other requests keep their options.
    """
    tools, choice = params.tools, params.tool_choice
    if _is_shaped(params) or choice not in ("auto", "none") or (tools is not None and tools.names):
        return params
    has_calls = any(message.tool_calls or message.role == "tool" for message in messages)
    return replace(params, tools=no_tools(), tool_choice="none") if has_calls or choice == "none" else params


def _is_shaped(params: GenerateParams) -> bool:
    """Return True if the answer is JSON or a text of a grammar, not free text."""
    return params.json_mode is not None or params.grammar is not None


class Planner:
    """Chooses the language of answers, and memoises the grammars of schemas."""

    def __init__(self) -> None:
        self._grammars: TextMemo[Grammar] = TextMemo(CACHED_GRAMMARS)

    def plan(self, params: GenerateParams, tool_format: Any, *, empty: bool = False) -> Plan:
        """Return the plan of an answer, without its prompt and reasoning.

        Args:
            params: options of the request.
            tool_format: the wire format of calls (`ToolInterface.wire_format`); None if a server parses the calls.
            empty: the answer may be empty (`may_be_empty`).

        Raises:
            ModelError: two options exclude each other.
            SchemaError: the schema cannot be enforced.
        """
        tools, mode = params.tools, params.json_mode
        if params.grammar is not None and mode is not None:
            raise _excluded("grammar", "json_mode")
        if tools is not None and tools.names and params.tool_choice != "none":
            plan = self._with_tools(params, tools, tool_format)
            return replace(plan, may_end=True, may_be_empty=True) if empty and not plan.is_json else plan
        if tools is not None and params.tool_choice == "none" and tool_format is not None and not _is_shaped(params):
            # Text without calls: no call may begin in it.
            return replace(self._with_tools(params, tools, tool_format), may_be_empty=empty)
        if params.tool_choice not in ("auto", "none"):
            raise ModelError(
                f"tool_choice is {params.tool_choice!r}, and there are no tools",
                hint="give tools, or tool_choice='auto'",
            )
        if mode is not None and mode.constrained_decoding:
            return self._json(mode, params)
        if params.grammar is not None:
            # Keywords that the grammar does not enforce are checked afterwards.
            check = params.grammar.schema if params.grammar.unenforced else None
            return Plan(params.grammar, check=check, params=params)
        return Plan(Grammar.text(min_chars=1), stop=tuple(params.stop), params=params)

    def require_possible(self, params: GenerateParams, tool_format: Any) -> None:
        """Check that there is an answer at all, for a model on a server, whose answers are validated.

        The server may enforce what this engine cannot, or cannot within its limits: this is no error.

        Raises:
            UnsatisfiableSchemaError: no call or no text can be valid; names the place.
            InvalidSchemaError: a schema is malformed; names the place.
        """
        try:
            self.plan(replace(params, other_spellings=False), tool_format).grammar.check()
        except (UnsatisfiableSchemaError, InvalidSchemaError):
            raise
        except ToolGrammarError as error:
            _LOG.debug("whether there is an answer is not known: %s", error)

    def _with_tools(self, params: GenerateParams, tools: ToolInterface, tool_format: Any) -> Plan:
        """Return the plan of an answer that may call tools, with the schema of an answer that is no call (None: free
        text). Raise ModelError for options that exclude tools."""
        if params.grammar is not None:
            raise _excluded("tools", "grammar")
        mode, schema, choice = params.json_mode, None, params.tool_choice
        response_values: Mapping[str, Any] = {}
        if mode is not None:
            if mode.grammar is not None or not mode.constrained_decoding:
                raise _excluded("tools", "this json_mode")
            if isinstance(mode.schema, LiveShape):
                response_values = mode.schema.sources
                choice, schema = self._answer_or_calls(mode.schema, tools, choice)
            else:
                schema = schema_of_mode(mode, is_written=True)
        is_json = schema is not None
        other_spellings = params.other_spellings and params.tool_choice == "auto" and not is_json
        options: Any = {"response_schema": schema, "other_spellings": other_spellings}
        parallel = params.parallel_tool_calls
        make_grammar = partial(tools.grammar, tool_format, tool_choice=choice, parallel=parallel, **options)
        make_parser = partial(tools.parser, tool_format, **options)
        may_be_text = not is_json and choice in ("auto", "none")
        live_values = getattr(tools, "live_values", None)  # other tool sets than ours may have none
        if response_values:
            options["response_values"] = response_values
        values = live_values and live_values(tool_format, **options)
        if values is not None:
            make_parser = partial(make_parser, values=values)
        return Plan(
            make_grammar(),
            make_parser,
            getattr(tool_format, "barred_markers", ()) if may_be_text else (),
            () if is_json else tuple(params.stop),
            is_json,
            params=params,
            values=values,
            marked=partial(make_grammar, marked=True),
        )

    def _answer_or_calls(self, shape: LiveShape, tools: ToolInterface, choice: str) -> tuple[str, Any]:
        """Return the tool choice, and the schema of an answer that is no call. While the conversation lacks values for
        the answer, only calls are offered, as a tool without values is not offered."""
        schema = schema_of(shape, is_written=True)
        if choice == "auto":
            try:
                self._live_grammar(shape, schema, "single", True)
            except LiveValuesError:
                return "required", None
        return choice, schema

    def _live_grammar(self, shape: LiveShape, schema: Any, whitespace: Whitespace, strict: bool) -> Grammar:
        """Return the grammar of the schema of a shape, memoised unless it has values of the conversation.

        Raises:
            LiveValuesError: the conversation has no value for a required field.
        """
        make = _json_grammar if needs_conversation(schema_of(shape.shape)) else self._grammar
        try:
            grammar = make(schema, whitespace, strict)
            grammar.check()
            return grammar
        except UnsatisfiableSchemaError as error:
            shape.require_values(error)
            raise

    def _json(self, mode: JsonMode, params: GenerateParams) -> Plan:
        """Return the plan of a JSON answer. What the grammar does not enforce of the schema is checked afterwards
        (`Plan.check`)."""
        if mode.grammar is not None:
            if mode.schema is not None:
                raise _excluded("the schema of json_mode", "its grammar")
            return Plan(mode.grammar, is_json=True, params=params)
        schema = schema_of_mode(mode, is_written=True)
        if mode.reasoning_first:
            from ..schema.read.reasoning_order import reasoning_first

            schema = reasoning_first(schema)
        live = mode.schema if isinstance(mode.schema, LiveShape) else None
        if live is None:
            grammar = self._grammar(schema, mode.whitespace, mode.strict)
        else:
            grammar = self._live_grammar(live, schema, mode.whitespace, mode.strict)
        check = schema if grammar.unenforced else None
        return Plan(grammar, is_json=True, check=check, params=params, values=None if live is None else live.values())

    def _grammar(self, schema: Any, whitespace: Whitespace, strict: bool) -> Grammar:
        """Return the grammar of a schema, memoised by its text. A schema that names a day, such as today, is first made
        absolute, so that a grammar of yesterday is not reused. A schema that is not JSON is not memoised; building its
        grammar raises."""
        from ..schema.read.dated import names_a_day, of_today

        try:
            # Not sorted: the order of properties matters.
            text = json.dumps([schema, whitespace, strict])
            if names_a_day(text):
                text = json.dumps([of_today(schema), whitespace, strict])
        except (TypeError, ValueError, RecursionError):
            return _json_grammar(schema, whitespace, strict)  # it raises the more precise error
        known = self._grammars.get(text)
        if known is None:
            known = _json_grammar(*json.loads(text))
            self._grammars.put(text, known)
        return known


def _json_grammar(schema: Any, whitespace: Whitespace, strict: bool) -> Grammar:
    """Build the grammar of the schema of an answer; warn of misspelt keywords, and of reasons that are written after
    the answer that they explain. What it cannot enforce narrows the grammar if ``strict``, else is checked afterwards.
    """
    from ..schema.read.reasoning_order import answers_before_reasons
    from ..schema.read.unread import misspelt, warn_of_misspelt

    warn_of_misspelt(misspelt(schema), "the schema of the answer")
    for pointer in answers_before_reasons(schema):
        _LOG.warning("%s explains an answer that is written before it; see JsonMode.reasoning_first", pointer)
    return Grammar.from_json_schema(
        schema, whitespace=whitespace, on_unsupported="narrow" if strict else "validate", plain_integers=True
    )


def json_params(params: GenerateParams, schema: Any) -> GenerateParams:
    """Return the parameters of a request for a JSON value.

    Args:
        params: options of the request.
        schema: schema of the value; None: that of ``params.json_mode``, or any JSON.

    Raises:
        ModelError: they also request tool calls, or two shapes.
    """
    if params.tools is not None:
        raise ModelError("generate_json gives a value, not calls", hint="use generate(..., tools=..., output_type=...)")
    mode = params.json_mode or JsonMode()
    if isinstance(schema, Grammar):
        return replace(params, json_mode=replace(mode, schema=None, grammar=schema))
    if params.json_mode is None and params.grammar is not None and schema is None:
        return replace(params, grammar=None, json_mode=JsonMode(grammar=params.grammar))
    return replace(params, json_mode=mode if schema is None else replace(mode, schema=schema))


def resolve_params(params: GenerateParams | None, overrides: Mapping[str, Any]) -> GenerateParams:
    """Return the parameters with overrides, checked; tools become a tool set, and ``output_type`` becomes the option
    that it replaces.

    Raises:
        UnknownOptionError: an option is unknown.
        ModelError: a value has a wrong type or is out of range; the message names the option and the value.
        SchemaError: a tool cannot be read.
        PolicyError: the policy is malformed, or is not for these tools.
    """
    _require_known(overrides)
    if not isinstance(params, (GenerateParams, NoneType)):
        raise ModelError(f"params is a {type(params).__name__}", hint=_meant_by(params))
    params = replace(params or GenerateParams(), **overrides)
    if isinstance(params.stop, str):
        params = replace(params, stop=(params.stop,))
    if cast(Any, params.json_mode) is True:
        params = replace(params, json_mode=JsonMode())
    if params.policy is not None:
        params = replace(params, policy=policy_of(params.policy))
    if params.tools is not None:
        params = replace(params, tools=allowed_by(params.policy, tool_set_of(params.tools)))
        params = replace(params, tool_choice=tool_choice_of(params.tool_choice, params.tools.names))
    given: Any = params.grammar
    if isinstance(given, (str, Mapping)):
        try:
            params = replace(params, grammar=Grammar.from_any(given))
        except GrammarError as error:
            hint = error.hint or "give a Grammar, Grammar.dumps(), or text in Lark or GBNF"
            raise ModelError(f"grammar is malformed: {error.message}", hint=hint, place=error.place) from error
    check_ranges(vars(params), RANGES)
    return params if params.output_type is None else _with_shape(params)


def _meant_by(value: Any) -> str:
    """Return a hint for a value that was given as `GenerateParams`, and is probably an option."""
    if is_python_type(value) or isinstance(value, (Grammar, Mapping)) or _are_literals(value):
        return f"the shape of an answer is an option: output_type={getattr(value, '__name__', '...')}"
    if callable(value) or isinstance(value, (list, tuple)):
        return "tools are an option: tools=[...]"
    return "give GenerateParams(...), or options by name"


def _require_known(given: Collection[str]) -> None:
    """Raise an error for unknown options, with a hint if all of them are fields of `JsonMode`."""
    only_of_mode = {option.name for option in fields(JsonMode)} - set(OPTIONS) - {"schema"}
    of_mode = sorted(only_of_mode.intersection(given))
    if of_mode and set(given) <= {*OPTIONS, *of_mode}:
        raise UnknownOptionError(
            f"unknown generation option: {', '.join(of_mode)}", hint=f"write json_mode=JsonMode(..., {of_mode[0]}=...)"
        )
    require_known(given, OPTIONS, "unknown generation option:")


def _with_shape(params: GenerateParams) -> GenerateParams:
    """Return the parameters with ``output_type`` as ``grammar`` or ``json_mode``."""
    shape = params.output_type
    for name in ("grammar", "json_mode"):
        if getattr(params, name) is not None:
            raise _excluded("output_type", name)
    if isinstance(shape, str) and _RULE.search(shape):  # a grammar as text
        return resolve_params(replace(params, output_type=None), {"grammar": shape})
    if not (isinstance(shape, (Grammar, Mapping, bool)) or is_python_type(shape) or _are_literals(shape)):
        hint = "give a Pydantic class, a Python type, a list of values, a JSON Schema (a dict or a bool) or a Grammar"
        if isinstance(shape, str) and shape.lstrip()[:1] == "{":
            hint = "json.loads(...) gives the schema of a JSON text"
        raise ModelError(f"output_type is {shape!r}", hint=hint)
    if isinstance(shape, Grammar):
        return replace(params, output_type=None, grammar=shape)
    return replace(params, output_type=None, json_mode=JsonMode(schema=shape))


def conversation_of(prompt: Prompt, prefix: str = "") -> tuple[Message, ...]:
    """Return a prompt as a conversation, as a model is shown it (`as_shown`); a text is one message of the user.

    Args:
        prompt: may be empty with a prefix, which is then a text to continue.
        prefix: the beginning of the assistant's turn.

    Raises:
        ModelError: it is not a prompt.
    """
    if isinstance(prompt, str):
        return (Message("user", prompt),)
    items: Any = (prompt,) if isinstance(prompt, Message) or (prompt and isinstance(prompt, Mapping)) else prompt
    messages = tuple(items) if isinstance(items, Iterable) else ()
    if not (messages or prefix) or not all(isinstance(message, (Message, Mapping)) for message in messages):
        raise ModelError(
            "a prompt is a text, a message, or a sequence of messages, and not empty",
            hint="Message('user', text), or {'role': 'user', 'content': text}",
        )
    return as_shown([message_of(message) if isinstance(message, Mapping) else message for message in messages])


def _are_literals(shape: Any) -> bool:
    """Return True for a list of values, of which the answer is one."""
    return (
        isinstance(shape, (list, tuple))
        and bool(shape)
        and all(isinstance(value, (str, int, float, bool, NoneType)) for value in shape)
    )


def is_python_type(shape: Any) -> bool:
    """Return True if a shape is a Python type, generic alias, union or Pydantic ``TypeAdapter``, not a JSON Schema."""
    return isinstance(shape, type) or typing.get_origin(shape) is not None or hasattr(shape, "validate_json")


def schema_of_mode(mode: JsonMode, *, is_written: bool = False) -> Any:
    """Return the JSON Schema of the value of a JSON mode; arguments and errors as for `schema_of`."""
    return schema_of(mode.schema, additional_properties=mode.additional_properties, is_written=is_written)


def shown_schema(shape: Any, *, additional_properties: bool = False) -> Any:
    """Return the JSON Schema of a shape for models and servers: without live values, which are enforced or checked
    here. Arguments and errors as for `schema_of`."""
    if isinstance(shape, LiveShape):
        return shape.shown
    return schema_of(shape, additional_properties=additional_properties)


def schema_of(shape: Any, *, additional_properties: bool = False, is_written: bool = False) -> Any:
    """Return the JSON Schema of a shape of an answer.

    Args:
        shape: a JSON Schema itself; a Pydantic class; any other Python type; a list of values to choose from; a
            `LiveShape`, one of these with live values; or None: any JSON.
        additional_properties: objects of Python types may have members that are not fields.
        is_written: the schema is for a grammar, in which integers without bounds have at most 64 bits.

    Raises:
        ModelError: the type has no JSON Schema.
        SchemaError: the type cannot be enforced.
    """
    if shape is None:
        return True
    if isinstance(shape, LiveShape):
        schema = schema_of(shape.shape, additional_properties=additional_properties, is_written=is_written)
        return shape.bound(schema)
    if _are_literals(shape):
        return {"enum": list(shape)}
    if not (is_python_type(shape) or hasattr(shape, "model_json_schema")):
        return shape
    from pydantic.errors import PydanticUserError

    from ..schema.pydantic.schema import json_schema_of

    try:
        return json_schema_of(
            shape if hasattr(shape, "model_json_schema") else adapter_of(shape),
            additional_properties=additional_properties,
            is_written=is_written,
        )
    except PydanticUserError as error:
        reason = re.split(r"\. |\n", error.message)[0]
        raise ModelError(
            f"the type {shape!r} has no JSON Schema: {reason}",
            hint="give a JSON Schema, a Pydantic class, a dataclass or a typed dict",
        ) from None


def adapter_of(shape: Any) -> Any:
    """Return the Pydantic ``TypeAdapter`` of a Python type."""
    from pydantic import TypeAdapter

    return shape if hasattr(shape, "validate_json") else TypeAdapter(shape)


def _excluded(one: str, other: str) -> ModelError:
    return ModelError(
        f"{one} and {other} exclude each other",
        hint="give one of them; beside tools, output_type is the shape of an answer without calls",
    )
