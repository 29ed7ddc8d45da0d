"""Parts of requests that protocols share: the rows of their fields, and what they mean."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from toolgrammar.core.basics import memoised_if_short
from toolgrammar.core.conversation import ImagePart, ToolCall
from toolgrammar.core.generation import OPTIONS
from toolgrammar.core.models import LocalModel, Model, find_markers
from toolgrammar.tools.tool import text_parameters

from .. import _shared
from . import rows
from .fields import Fields, RequestError, at_field
from .rows import Choice, Form, Row, Rows

#: Words of ``reasoning_effort``, and the reasoning that each asks for.
EFFORTS = _shared.EFFORTS

#: Options of `GenerateParams` that protocols lack; the server takes them under these names, as vLLM does.
EXTENSIONS = ("top_k", "min_p", "repetition_penalty")  # and ``grammar``, which is no number

#: The options that are taken in the field ``toolgrammar`` of any request.
OWN: Rows = {name: rows.option(name) for name, row in OPTIONS.items() if row.server}

#: Name of the argument of custom tools, whose calls have one text instead of arguments.
INPUT = "input"

#: Rows of fields that several protocols have.
TOOLGRAMMAR: Rows = {"toolgrammar": rows.inner(Form(OWN, exact=True))}
SAMPLING: Rows = {
    **{name: rows.option(name) for name in ("temperature", "top_p", *EXTENSIONS)},
    "seed": rows.WHOLE,
    "grammar": (rows.TEXT | rows.OBJECT)(
        schema={
            "description": "the answer is a text of this grammar: GBNF, Lark, {syntax, definition}, a structural tag, "
            "or what Grammar.dumps() wrote"
        }
    ),
    **TOOLGRAMMAR,
}
#: Maximum of ``top_logprobs``: alternatives to each token.
MAX_LIKELIEST = 20

LIKELIEST = rows.WHOLE(schema={"minimum": 0, "maximum": MAX_LIKELIEST})
LOGPROBS: Rows = {"logprobs": rows.FLAG, "top_logprobs": LIKELIEST}
STOP = rows.TEXT | rows.LIST(form=rows.TEXT)
BIAS = rows.OBJECT(schema={"additionalProperties": {"type": "number"}})
EFFORT = rows.word(*EFFORTS)
SCHEMA = rows.OBJECT(schema={"description": "a JSON Schema"})
#: ``strict`` changes nothing here; like vLLM's, it may be a text.
STRICT = Row((bool, str), ("true", "false"))
FUNCTION: Rows = {
    "name": rows.TEXT(needed=True),
    "description": rows.TEXT(default=""),
    "parameters": SCHEMA,
    "strict": STRICT,
}
_SYNTAX: Rows = {"syntax": rows.word("lark", "regex"), "definition": rows.TEXT}
CUSTOM: Rows = {
    "name": rows.TEXT(needed=True),
    "description": rows.TEXT(default=""),
    "strict": STRICT,
    "format": rows.inner(
        Form(
            {"type": rows.word("text", "grammar"), "grammar": rows.inner(Form(_SYNTAX, exact=True)), **_SYNTAX},
            exact=True,
        )
    ),
}
_DEFERRED: Rows = {"defer_loading": rows.FLAG}
_FUNCTION_TOOL = Form(
    {"function": rows.inner(Form(FUNCTION, schema="parameters"), needed=True), **_DEFERRED}, schema="function"
)
_CUSTOM_TOOL = {"custom": rows.inner(CUSTOM, needed=True), **_DEFERRED}
#: A tool of chat completions. One of another type is run by its maker's own server, or known to its maker's models
#: alone: it is declared here and not offered to the model.
TOOL = Choice("type", {"function": _FUNCTION_TOOL, "custom": _CUSTOM_TOOL}, "function", others=True)
#: The same in protocols without custom tools.
PLAIN_TOOL = Choice("type", {"function": _FUNCTION_TOOL}, "function", others=True)

_ANSWER: Rows = {"name": rows.LABEL, "description": rows.LABEL, "strict": STRICT, "schema": SCHEMA | Row((bool,))}
_NOT_HERE: Rows = {"json_schema": rows.refused(hint="give the type json_schema")}
#: OpenAI's ``response_format`` and ``text.format``; without a type, it is the object in ``json_schema``.
FORMAT = Choice(
    "type",
    {
        "text": Form(_NOT_HERE, schema="schema"),
        "json_object": Form({"schema": _ANSWER["schema"], **_NOT_HERE}, schema="schema"),
        "json_schema": {"json_schema": rows.inner(_ANSWER), **_ANSWER},
        "": {**_ANSWER, **_NOT_HERE},
    },
    "",
)


def sampling(fields: Fields) -> dict[str, Any]:
    """Return the sampling options that protocols name as we do, and the extensions; of those in ``toolgrammar`` see
    `Served.params`."""
    names = ("temperature", "top_p", *EXTENSIONS, "grammar")
    return {**fields.of(*names), "seed": seed_of(fields["seed"])}


def seed_of(value: Any) -> Any:
    """Return a seed as models here take it: -1 is any, as for llama.cpp and vLLM; other negative ones are seeds."""
    is_negative = isinstance(value, int) and -(2**63) <= value < 0
    return (None if value == -1 else value % 2**63) if is_negative else value


def tools_of(fields: Fields, model: Model) -> list[dict[str, Any]]:
    """Return the ``tools`` of a request of chat completions as functions, each once.

    Raises:
        RequestError: two of one name differ, or one has no schema that can be read.
    """
    tools = []
    for tool in fields["tools"]:
        make = custom_tool if tool.kind == "custom" else function_tool
        tools.append(make(tool[tool.kind], deferred=is_deferred(tool, model)))
    return distinct(tools)


def is_deferred(tool: Fields, model: Model) -> bool:
    """Return True if the prompt is to have only the name of a tool, until it is called (``defer_loading``).

    A model on a server gets all schemas, so there the field has no effect.
    """
    deferred: bool = tool["defer_loading"]
    if deferred and not isinstance(model, LocalModel):
        tool.skip("defer_loading")
        return False
    return deferred


def require_direct_caller(tool: Fields) -> None:
    """Check that the model may call a tool itself: code that calls tools runs on no server here.

    Raises:
        RequestError: only code may.
    """
    callers = tool["allowed_callers"]
    if callers and "direct" not in callers:
        raise tool.error("allowed_callers", "leaves the model out", "add 'direct'")
    for index, one in enumerate(callers):
        if one != "direct":
            tool.skip(f"allowed_callers[{index}]")


def custom_tool(fields: Fields, name: str | None = None, *, deferred: bool = False) -> dict[str, Any]:
    """Return a custom tool as a function whose only argument is its input; see `function_tool`.

    Raises:
        RequestError: the grammar of the input is malformed.
    """
    form = fields["format"]
    grammar = None
    if form is not None and form["type"] == "grammar":
        rest = form["grammar"] or form  # chat completions have an object of its own for the rest
        rest.require("syntax", "definition")
        grammar = rest.of("syntax", "definition")
        with at_field(rest.path("definition")):
            text_parameters(grammar)  # an error names the line
    return function_tool(fields, name, parameters=text_parameters(grammar, INPUT), deferred=deferred)


def base64_image(fields: Fields, name: str, data: str, media_type: str | None = None) -> ImagePart:
    """Return the image whose bytes a field has in Base64.

    Raises:
        RequestError: it is no Base64.
    """
    try:
        return ImagePart(base64.b64decode(data, validate=True), media_type=media_type)
    except ValueError:
        raise fields.error(name, "is not base64") from None


def custom_input(call: ToolCall) -> str:
    """Return the input of a call of a custom tool."""
    return str(call.arguments[INPUT]) if call.arguments else ""


def function_tool(
    function: Fields,
    name: str | None = None,
    *,
    schema_field: str = "parameters",
    parameters: Any = None,
    deferred: bool = False,
) -> dict[str, Any]:
    """Return a function as a tool of chat completions. Its ``strict`` is not read: every tool is strict here.

    Args:
        function: its fields: ``name``, ``description``, and the schema.
        name: the name that the model knows, if it is not that in the fields.
        schema_field: name of the field that has the schema of the arguments.
        parameters: the schema, if it is not in that field.
        deferred: see `is_deferred`.
    """
    made = {"name": name or function["name"], "description": function["description"]}
    parameters = function[schema_field] if parameters is None else parameters
    with at_field(function.path(schema_field)):
        read = _read_tool(json.dumps({**made, **({} if parameters is None else {"parameters": parameters})}))
    tool: dict[str, Any] = json.loads(read)
    if deferred:
        tool["defer_loading"] = True
    return tool


@memoised_if_short(1_024)
def _read_tool(text: str) -> str:
    """Return a tool in OpenAI's form, as JSON: agents send the same tools on every turn."""
    return json.dumps(_shared.openai_tool(json.loads(text)))


def distinct(tools: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return tools without repetitions.

    Raises:
        RequestError: two tools of one name differ.
    """
    by_name: dict[str, dict[str, Any]] = {}
    for tool in tools:
        name = _shared.tool_name(tool)
        if by_name.setdefault(name, tool) != tool:
            raise RequestError(f"two tools have the name {name!r}", field="tools", hint="give each its own name")
    return list(by_name.values())


def schema_of(form: Fields | None) -> Any:
    """Return the schema in OpenAI's ``response_format`` or ``text.format``; None: free text."""
    if form is None or form.kind == "text":
        return None
    if form.kind == "json_object":  # llama.cpp's and others' has a schema
        return {"type": "object"} if form["schema"] is None else closed_schema(form)
    inner = form["json_schema"] or form  # of a chat completion; of a response
    inner.require("schema")
    return closed_schema(inner)


def closed_schema(fields: Fields, name: str = "schema") -> Any:
    """Return the JSON Schema in a field, its objects closed unless they say otherwise."""
    with at_field(fields.path(name)):
        return _shared.closed(fields[name])


def thinking_of(fields: Fields, name: str, model: Model, *, optional: bool = False) -> bool | int | None:
    """Return the reasoning that a word of ``reasoning_effort`` asks for; None if it is absent.

    A model without reasoning is not asked for any: that is an error, or where it is ``optional`` an unused field.
    """
    effort = fields[name]
    if effort is None:
        return None
    thinking = EFFORTS[effort]
    if thinking is not False and isinstance(model, LocalModel) and find_markers(model.vocabulary) is None:
        if optional:
            fields.skip(name)
            return None
        raise fields.error(name, f"is {effort!r}, and this model has no reasoning", "leave it out, or say 'none'")
    return thinking


def asked_logprobs(fields: Fields, model: Model) -> int | None:
    """Return how many likely tokens ``logprobs`` (a flag) and ``top_logprobs`` ask for; None: no log-probabilities.

    Raises:
        RequestError: they go not together, or the model shows none.
    """
    wanted, count = fields["logprobs"], fields["top_logprobs"]
    if count and not wanted:
        raise fields.error("top_logprobs", "is given without logprobs", "give logprobs=true, too")
    return checked_logprobs(count or 0, "top_logprobs" if count else "logprobs", model) if wanted else None


def checked_logprobs(count: int, name: str, model: Model) -> int:
    """Return a number of likely tokens.

    Raises:
        RequestError: there are not so many, or the model shows none.
    """
    if not 0 <= count <= MAX_LIKELIEST:
        raise RequestError(f"{name} is {count}", field=name, hint=f"from 0 to {MAX_LIKELIEST}")
    if not isinstance(model, LocalModel):
        raise RequestError("this model shows no log-probabilities", field=name, hint="leave it out")
    return count
