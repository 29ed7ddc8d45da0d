"""Classes as tools: a call builds an instance of a Pydantic model, a dataclass or a typed dict."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Collection, Mapping
from typing import Any

import typing_extensions
from pydantic import AliasPath, BaseModel, TypeAdapter, create_model
from pydantic.json_schema import SkipJsonSchema

from toolgrammar.core.errors import Place, SchemaError
from toolgrammar.core.live import LiveSchema

from ..tool import Tool, with_tool
from .python import ArgumentsJsonSchema, annotated_with, first_line
from .typed_dicts import readable

_QUALIFIERS = (
    typing_extensions.Required,
    typing_extensions.NotRequired,
    typing_extensions.ReadOnly,
    typing.ClassVar,
    *(getattr(typing, name) for name in ("Required", "NotRequired", "ReadOnly") if hasattr(typing, name)),
)


def tool_from_class(cls: type[Any]) -> Tool:
    """Return a tool whose call builds an instance of a class: a Pydantic model, dataclass or typed dict.

    Raises:
        SchemaError: another kind of class, or a field without a JSON Schema.
    """
    name = cls.__name__
    if typing_extensions.is_typeddict(cls):
        return Tool(name, _class_doc(cls), _schema_of(cls, name), model=cls)
    if issubclass(cls, BaseModel):
        return _from_model(cls)
    if _is_pydantic_v1(cls):
        schema: dict[str, Any] = dict(cls.schema(by_alias=True))
        description = schema.pop("description", "")
        return Tool(name, description, {"$schema": "http://json-schema.org/draft-07/schema#", **schema}, model=cls)
    if dataclasses.is_dataclass(cls):
        return Tool(name, _class_doc(cls), _schema_of(cls, name), model=cls)
    if issubclass(cls, dict):
        raise _not_a_tool(name, "a dict class says nothing about its keys", "use a TypedDict")
    raise _not_a_tool(name, "the class has no schema", "use a Pydantic model, a dataclass, a TypedDict or a function")


def recognise(source: Any) -> list[Tool] | None:
    """Return the tool that a class is, None for another object."""
    return [tool_from_class(source)] if inspect.isclass(source) else None


def parameters_of(source: Any, name: str) -> Any:
    """Return the parameters of a class or a schema; the class's own description is not the tool's."""
    if not inspect.isclass(source):
        return source
    tool = tool_from_class(source)
    # The callables of live values get names by which the tool that is made of the schema finds them, too.
    schema = dict(LiveSchema(tool.parameters).with_sources(tool.values))
    schema.pop("title", None)
    schema.pop("description", None)
    return schema


def without_fields(cls: type[BaseModel], names: Collection[str]) -> type[BaseModel]:
    """Return a Pydantic class whose schema lacks some fields; the class itself, if there are none."""
    if not names:
        return cls
    hidden: Any = dict.fromkeys(names, (SkipJsonSchema[Any], None))  # type: ignore[misc]  # it is generic at run time alone
    return create_model(cls.__name__, __base__=cls, **hidden)


def _from_model(cls: type[BaseModel]) -> Tool:
    """Return a Pydantic class as a tool, whose arguments are its fields.

    Raises:
        SchemaError: its schema cannot be made, or it does not describe an object by plain names.
    """
    name = cls.__name__
    try:
        schema = cls.model_json_schema(by_alias=True, schema_generator=ArgumentsJsonSchema)
    except SchemaError as error:  # a pattern
        raise with_tool(error, name) from error
    except Exception as error:  # classes may have code of their own for this
        raise _of_pydantic(cls, error) from error
    for field, info in cls.model_fields.items():
        first = getattr(info.validation_alias, "choices", [info.validation_alias])[0]
        if isinstance(first, AliasPath):
            raise _not_a_tool(
                name,
                "its alias is a path into the data, which Pydantic's schema does not show",
                "nest a model, or put a plain alias first in AliasChoices",
                field,
            )
    root = schema.get("$defs", {}).get(name, {}) if "$ref" in schema else schema  # recursive models refer to themselves
    if cls.__pydantic_root_model__ and not _is_object(schema):
        raise _not_a_tool(
            name,
            "its root is not an object, and arguments always are",
            "give a model with a field for the value",
            "root",
        )
    return Tool(name, root.get("description", ""), schema, model=cls)


def _is_object(schema: Mapping[str, Any]) -> bool:
    """Return True if every value of a Pydantic schema is an object, as far as that is written at its root."""
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            definitions = {"$defs": schema.get("$defs", {})}
            return all(_is_object({**definitions, **part}) for part in schema[keyword])
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target = schema.get("$defs", {}).get(reference.rsplit("/", 1)[-1], {})
        return bool(target.get("type") == "object")
    return schema.get("type") == "object"


def _schema_of(cls: type[Any], name: str) -> dict[str, Any]:
    """Return the schema of a dataclass or typed dict."""
    try:
        return TypeAdapter(readable(cls)).json_schema(by_alias=True, schema_generator=ArgumentsJsonSchema)
    except SchemaError as error:  # a pattern
        raise with_tool(error, name) from error
    except Exception as error:  # classes may have code of their own for this
        raise _of_pydantic(cls, error) from error


def _of_pydantic(cls: type[Any], error: Exception) -> SchemaError:
    """Return a complaint of Pydantic, or of a class's own code, as an error that names the field."""
    name, reason = cls.__name__, first_line(error)
    try:
        hints = typing_extensions.get_type_hints(cls, include_extras=True)
    except NameError as missing:
        reason = f"an annotation cannot be evaluated: {missing}"
        hint = "import the names used in annotations at module level, outside TYPE_CHECKING"
        return _not_a_tool(name, reason, hint, annotated_with(cls, missing.name))
    except Exception:  # evaluating a string annotation may raise anything
        hints = {}
    if getattr(error, "code", None) == "typed-dict-version":
        return _not_a_tool(name, reason, "import TypedDict from typing_extensions")
    # The configuration of ``cls`` may allow a class that Pydantic does not know. So a field that fails even if every
    # class counts as known is blamed first, and then one that fails as it is, such as a union with such a class.
    checks = [(field, hint, lenient) for lenient in (True, False) for field, hint in hints.items()]
    culprit = next((field for field, hint, lenient in checks if not _has_schema(hint, lenient)), None)
    return _not_a_tool(name, reason, "give the field a JSON-like type", culprit)


def _class_doc(cls: type[Any]) -> str:
    doc = inspect.getdoc(cls) or ""
    # dataclasses write their own signature as docstring when there is none
    return "" if doc.startswith((f"{cls.__name__}(", "dict() ->")) else doc


def _is_pydantic_v1(cls: type[Any]) -> bool:
    return any(base.__module__ == "pydantic.v1.main" for base in cls.__mro__)


def _has_schema(annotation: Any, lenient: bool) -> bool:
    """Return True if Pydantic has a schema for an annotation; ``lenient``: classes that it does not know count."""
    while typing_extensions.get_origin(annotation) in _QUALIFIERS:
        (annotation,) = typing_extensions.get_args(annotation)
    # In a list, since an adapter takes no configuration for what has its own.
    container: Any = list
    try:
        TypeAdapter(container[readable(annotation)], config={"arbitrary_types_allowed": lenient}).json_schema()
    except Exception:  # whatever it is, this is the field to name
        return False
    return True


def _not_a_tool(name: str, reason: str, hint: str, field: str | None = None) -> SchemaError:
    place = Place(tool=name, parameter=field)
    return SchemaError(f"cannot make a tool of the class {name}: {reason}", hint=hint, place=place)
