"""Contents, tools and schemas in the forms that several frameworks share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any

from pydantic import TypeAdapter
from typing_extensions import is_typeddict

from toolgrammar.core.conversation import Part, TextPart
from toolgrammar.core.errors import ModelError, Place, PolicyError, SchemaError
from toolgrammar.core.schema import json_schema_of
from toolgrammar.tools import ToolSet, close_objects, to_json_schema


def content_of(parts: Sequence[Part], between: str = "") -> str | tuple[Part, ...]:
    """Return parts as the content of a message: of texts alone one text, with ``between`` between them."""
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    return between.join(texts) if len(texts) == len(parts) else tuple(parts)


def openai_tool(tool: Any) -> dict[str, Any]:
    """Return any tool that `ToolSet` reads as an OpenAI-style dict, in which ``x-values`` has names that every tool
    of this process understands.

    Raises:
        SchemaError: it is no tool, or several.
        PolicyError: it is from a tool set under a policy that a tool alone cannot hold: a person confirms its calls, or
            none may be made again.
    """
    found = list(ToolSet.from_any([tool]))
    if len(found) != 1:
        raise SchemaError(f"{tool!r} is {len(found) or 'no'} tool{'s' if found else ''}", hint="give one tool each")
    (made,) = found
    policy = made.policy
    if policy is not None and (policy.asks(made) or not policy.may_repeat(made.name)):
        raise PolicyError(
            "the tool alone does not hold its policy",
            hint="give the tools without it, and the policy in the adapter's own setting, policy=",
            place=Place(tool=made.name),
        )
    whole = made.to_openai(live=True)
    return {**whole, "defer_loading": True} if made.deferred else whole


def tool_name(tool: Mapping[str, Any]) -> str:
    """Return the name of an OpenAI-style tool."""
    return str(tool["function"]["name"])


def is_free(response_format: Any) -> bool:
    """Return True if a response format leaves a text answer free: there is none, or OpenAI's of a text."""
    return response_format is None or response_format == {"type": "text"}


def schema_in(response_format: Any) -> Any:
    """Return the schema in a response format of OpenAI; a class or a schema is returned as it is.

    Raises:
        ModelError: it is none of them.
    """
    if isinstance(response_format, type):
        return response_format
    if isinstance(response_format, Mapping):
        kind = response_format.get("type")
        if kind == "json_object":
            return {"type": "object"}
        if kind != "json_schema":
            return response_format
        inner = response_format.get("json_schema", response_format)  # the responses API has no envelope
        if isinstance(inner, Mapping) and "schema" in inner:
            return inner["schema"]
    raise ModelError(
        f"response_format is {response_format!r}",
        hint="give a class, a JSON Schema, {'type': 'json_object'} or {'type': 'json_schema', 'json_schema': {...}}",
    )


def closed(schema: Any) -> dict[str, Any] | bool:
    """Return a schema or a Pydantic class as JSON Schema, its objects closed unless they say otherwise.

    Frameworks mean by a schema "these fields", and none of them writes ``additionalProperties``.

    Raises:
        ModelError: it is a class without fields.
    """
    if isinstance(schema, type):
        if is_dataclass(schema) or is_typeddict(schema):
            schema = TypeAdapter(schema)
        # Pydantic of version 2, or of the version 1 that some frameworks still take.
        elif not (hasattr(schema, "model_json_schema") or hasattr(schema, "schema")):
            raise ModelError(
                f"{schema.__name__} has no fields that a schema could be made of",
                hint="give a Pydantic class, a dataclass, a typed dict or a JSON Schema; put a plain value in a field",
            )
        schema = json_schema_of(schema)
    return close_objects(to_json_schema(schema))
