"""Tools from annotated Python functions: the signature becomes the schema, the docstring the descriptions.

The schema of each parameter:

* annotated: the schema that Pydantic generates for the annotation (``Literal``, ``Enum``, ``TypedDict``, dataclasses,
  models, ``Optional``, ``Annotated[..., Field(...)]``); a parameter with a default is optional, and its schema has it;
* not annotated: any JSON value is acceptable;
* ``*items: T``: an array of ``T``, which may be left out;
* ``**options: Unpack[SomeTypedDict]``: one parameter for each key;
* other ``**options: T``: further parameters of any name (``additionalProperties``);
* ``self`` and ``cls`` of a bound method are bound already; an unbound method is refused.

Descriptions come from ``Field(description=...)``, ``Annotated[..., Doc(...)]`` (PEP 727) or ``Annotated[..., "text"]``,
else from the docstring (`docstrings`).
"""

from __future__ import annotations

import functools
import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import typing_extensions
from pydantic import BaseModel, Field, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaWarningKind

from toolgrammar.core.errors import InvalidArgumentsError, Place, SchemaError
from toolgrammar.core.errors import first_line as first_line_of
from toolgrammar.core.schema import PydanticJsonSchema

from ..dialects import is_finite
from ..tool import Tool
from .docstrings import read_docstring
from .typed_dicts import readable

_UNPACK = (typing_extensions.Unpack, getattr(typing, "Unpack", typing_extensions.Unpack))
_REQUIRED, _NOT_REQUIRED, _READ_ONLY = (
    (own := getattr(typing_extensions, name), getattr(typing, name, own))
    for name in ("Required", "NotRequired", "ReadOnly")
)
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
#: The default of a parameter that is not passed on where the call leaves it out.
_ABSENT: Any = object()


class ArgumentsJsonSchema(PydanticJsonSchema):
    """Pydantic's generator, for arguments: a default that JSON cannot write is left out (infinities, NaN)."""

    def default_schema(self, schema: Any) -> dict[str, Any]:
        """Return the schema of what has a default, with the default if JSON can write it."""
        result = super().default_schema(schema)
        if "default" in result and not (is_finite(result["default"]) and is_finite(schema.get("default"))):
            del result["default"]
        return result


class FunctionJsonSchema(ArgumentsJsonSchema):
    """The same for functions: no titles made up from names, no warning for a default that is not JSON."""

    ignored_warning_kinds: ClassVar[set[JsonSchemaWarningKind]] = {  # type: ignore[misc]  # an instance variable there
        "skipped-choice",
        "non-serializable-default",
    }

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Return False: a title would repeat the parameter's name."""
        return False


def tool_from_function(
    function: Callable[..., Any], *, name: str | None = None, description: str | None = None
) -> Tool:
    """Return a tool that runs ``function``.

    Args:
        function: a function, bound method, async function, partial or object with ``__call__``.
        name: instead of the function's own name.
        description: instead of the docstring's.

    Raises:
        SchemaError: naming tool, parameter and reason, when the signature cannot be a tool's.
    """
    unwrapped = function
    while isinstance(unwrapped, functools.partial):
        unwrapped = unwrapped.func
    # A callable object carries its annotations and docstring on __call__.
    target = unwrapped if hasattr(unwrapped, "__name__") else type(unwrapped).__call__
    name = name or (target.__name__ if hasattr(unwrapped, "__name__") else type(unwrapped).__name__)
    if name == "<lambda>":
        raise SchemaError(
            "a lambda has no name", hint="define a function with def, or pass a name", place=Place(tool=name)
        )
    documentation = read_docstring(inspect.getdoc(target))
    signature = _signature(function, name)
    parameters = _parameters(signature, target, name)
    model = _arguments_model(name, parameters, documentation.parameters)
    schema = _schema(model, name, parameters)
    options = _of_kind(signature, inspect.Parameter.VAR_KEYWORD)
    if options in parameters:
        schema = _with_further(schema, options, _taken(target, signature))
    return Tool(
        name=name,
        description=description if description is not None else documentation.description,
        parameters=schema,
        function=function,
        binder=_Binder(function, name, model, parameters, signature),
    )


def recognise(source: Any) -> list[Tool] | None:
    """Return the tool that a callable is, None for anything else.

    Raises:
        SchemaError: it is a type such as ``Optional[int]`` or ``Box[int]``, which can be called, and is no function.
    """
    if typing.get_origin(source) is not None or type(source).__module__ in ("typing", "typing_extensions"):
        hint = "pass a function, or a class with fields; of generic ones only Pydantic models are read"
        raise SchemaError(f"cannot make a tool of the type {source}", hint=hint)
    return [tool_from_function(source)] if callable(source) else None


def is_function(source: object) -> bool:
    """Return True if a value is a function or method of Python's own."""
    # Not inspect.isroutine: to it any object with a __get__ is one, and tool objects are.
    return inspect.isfunction(source) or inspect.ismethod(source) or inspect.isbuiltin(source)


def _signature(function: Callable[..., Any], tool: str) -> inspect.Signature:
    """Return the signature of a function.

    Raises:
        SchemaError: it has none that Python can read; names the tool.
    """
    try:
        return inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise SchemaError(
            "the function has no signature that Python can read",
            hint="wrap it in a function with annotated parameters",
            place=Place(tool=tool),
        ) from error


def _parameters(signature: inspect.Signature, target: Any, tool: str) -> dict[str, inspect.Parameter]:
    """Return the parameters that a model may fill, with evaluated annotations."""
    hints = _parameter_hints(target, signature.parameters, tool)
    result = {}
    for index, (key, parameter) in enumerate(signature.parameters.items()):
        if index == 0 and key in ("self", "cls") and parameter.annotation is parameter.empty:
            raise SchemaError(
                "the function is an unbound method",
                hint="pass the method of an instance: obj.method, not Class.method",
                place=Place(tool=tool, parameter=key),
            )
        hint = hints.get(key, Any)  # the annotation; without one, anything
        is_unpacked = typing_extensions.get_origin(hint) in _UNPACK
        if parameter.kind is parameter.VAR_KEYWORD and is_unpacked:
            result.update(_unpacked(typing_extensions.get_args(hint)[0], tool))
        elif parameter.kind is parameter.VAR_KEYWORD:
            result[key] = _optional(key, dict[str, readable(hint)])  # type: ignore[misc]  # a type that is computed
        elif parameter.kind is parameter.VAR_POSITIONAL:
            result[key] = _optional(key, _sequence(hint, is_unpacked))
        else:
            result[key] = parameter.replace(annotation=readable(hint))
    return result


def _optional(key: str, annotation: Any, default: Any = _ABSENT) -> inspect.Parameter:
    """Return a parameter that is passed on only if it is given; with the default ``empty``, it is required."""
    return inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _sequence(hint: Any, is_unpacked: bool) -> Any:
    """Return the type of all that a parameter like ``*items: hint`` takes."""
    if is_unpacked:  # Unpack[tuple[int, ...]]
        return readable(typing_extensions.get_args(hint)[0])
    if getattr(hint, "__unpacked__", False):  # *tuple[int, ...]
        return readable(tuple.__class_getitem__(typing_extensions.get_args(hint)))
    return list[readable(hint)]  # type: ignore[misc]  # a type that is computed


def _of_kind(signature: inspect.Signature, kind: Any) -> str:
    """Return the name of the parameter of a kind, or an empty one."""
    return next((key for key, parameter in signature.parameters.items() if parameter.kind is kind), "")


def _taken(target: Any, signature: inspect.Signature) -> list[str]:
    """Return the names that a call has given already, as ``self``: no further argument may have them."""
    try:
        whole = inspect.signature(getattr(target, "__func__", target))
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [key for key, one in whole.parameters.items() if key not in signature.parameters and one.kind in kinds]


def _with_further(schema: dict[str, Any], key: str, taken: list[str]) -> dict[str, Any]:
    """Return a schema of arguments whose property for ``**key`` became ``additionalProperties``; none of these may have
    a ``taken`` name."""
    properties = dict(schema["properties"])
    options = properties.pop(key)
    others = options.get("additionalProperties", True)
    if "description" in options:
        others = {"description": options["description"], **({} if others is True else others)}
    names = {"propertyNames": {"not": {"enum": taken}}} if taken else {}
    return {**schema, "properties": properties, "additionalProperties": others, **names}


def _parameter_hints(target: Any, keys: Iterable[str], tool: str) -> dict[str, Any]:
    """Return the evaluated annotations of these parameters.

    Other annotations are not evaluated: the types of the result and of ``self`` may be imported for type checkers only.
    """
    annotations = getattr(target, "__annotations__", None) or {}
    hints: dict[str, Any] = {}
    for key in keys:
        if key in annotations:
            # An object with this annotation alone; its names are looked up in the module of `__wrapped__`.
            carrier = types.SimpleNamespace(
                __annotations__={key: annotations[key]},
                __wrapped__=target,
                __type_params__=getattr(target, "__type_params__", ()),
            )
            try:
                hints.update(typing_extensions.get_type_hints(carrier, include_extras=True))
            except Exception as error:  # evaluating a string annotation may raise anything
                raise _unevaluated(error, tool, key) from error
    return hints


def _class_hints(cls: Any, tool: str) -> dict[str, Any]:
    """Return the evaluated annotations of a class."""
    try:
        return typing_extensions.get_type_hints(cls, include_extras=True)
    except Exception as error:
        raise _unevaluated(error, tool, annotated_with(cls, getattr(error, "name", None))) from error


def _unevaluated(error: Exception, tool: str, key: str | None) -> SchemaError:
    return SchemaError(
        f"an annotation cannot be evaluated: {first_line(error)}",
        hint="import the names used in annotations at module level, outside TYPE_CHECKING",
        place=Place(tool=tool, parameter=key),
    )


def annotated_with(source: Any, name: str | None) -> str | None:
    """Return the parameter or field whose annotation uses a name."""
    if name is None:
        return None
    for part in getattr(source, "__mro__", (source,)):
        for key, annotation in getattr(part, "__annotations__", {}).items():
            # Not evaluated yet, or only from the outside: NotRequired[ForwardRef('Name')].
            text = annotation if isinstance(annotation, str) else repr(annotation)
            if re.search(rf"\b{re.escape(name)}\b", text):
                return str(key)
    return None


def _unpacked(cls: Any, tool: str) -> dict[str, inspect.Parameter]:
    """Return the parameters of ``**options: Unpack[cls]`` (PEP 692)."""
    hints = _class_hints(cls, tool)
    result = {}
    for key, hint in hints.items():
        required = key in cls.__required_keys__
        # `Required[...]` in an annotation that is a string is not in `__required_keys__`.
        while (origin := typing_extensions.get_origin(hint)) in (*_REQUIRED, *_NOT_REQUIRED, *_READ_ONLY):
            required = origin in _REQUIRED or (required and origin in _READ_ONLY)
            (hint,) = typing_extensions.get_args(hint)
        result[key] = _optional(key, readable(hint), inspect.Parameter.empty if required else _ABSENT)
    return result


def _arguments_model(
    tool: str, parameters: Mapping[str, inspect.Parameter], described: Mapping[str, str]
) -> type[BaseModel]:
    """Return a Pydantic model with one field per parameter.

    The fields are called p0, p1, ... and carry the parameter's name as alias, so that parameters may be called
    anything that Python allows (``_x``, ``schema``, ``model_config``), which field names may not.
    """
    fields: dict[str, Any] = {}
    for index, (key, parameter) in enumerate(parameters.items()):
        default = ... if parameter.default is parameter.empty else parameter.default
        if default is _ABSENT:
            absent: Any = Field(default_factory=lambda: None)  # the schema shows no default
            info, annotation = absent, parameter.annotation
        elif isinstance(default, FieldInfo):  # def f(x: int = Field(3, description="..."))
            info, annotation = default, parameter.annotation
        else:
            info, annotation = Field(default), parameter.annotation
        extra: dict[str, Any] = {}
        infos = [*_field_infos(annotation), info]
        if not any(field.alias or field.validation_alias for field in infos):
            extra["alias"] = key
        text = _annotated_description(annotation) or described.get(key)
        if text and not any(field.description for field in infos):
            extra["description"] = text
        fields[f"p{index}"] = (typing.Annotated[annotation, Field(**extra)] if extra else annotation, info)
    try:
        return create_model(tool, **fields)
    except Exception as error:
        culprit = _culprit(parameters)
        raise SchemaError(
            f"the annotation cannot be turned into a schema: {first_line(error)}",
            hint="use JSON-like types, or wrap the value in a Pydantic model",
            place=Place(tool=tool, parameter=culprit),
        ) from error


def _field_infos(annotation: Any) -> list[FieldInfo]:
    """Return the ``Field(...)`` objects inside ``Annotated``."""
    if typing.get_origin(annotation) is not typing.Annotated:
        return []
    return [extra for extra in typing.get_args(annotation)[1:] if isinstance(extra, FieldInfo)]


def _annotated_description(annotation: Any) -> str | None:
    """Return the description in ``Annotated[..., Doc("text")]`` or ``Annotated[..., "text"]``."""
    if typing.get_origin(annotation) is not typing.Annotated:
        return None
    for extra in typing.get_args(annotation)[1:]:
        if isinstance(extra, str):
            return extra
        if type(extra).__name__ == "Doc" and isinstance(getattr(extra, "documentation", None), str):
            return str(extra.documentation)
    return None


def _schema(model: type[BaseModel], tool: str, parameters: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    """Return the schema of the arguments of a function.

    Raises:
        SchemaError: a parameter has no JSON Schema; names it.
    """
    try:
        schema = model.model_json_schema(by_alias=True, schema_generator=FunctionJsonSchema)
    except SchemaError as error:  # a pattern
        place = replace(error.place, tool=tool, parameter=_culprit(parameters))
        raise type(error)(error.message, hint=error.hint, place=place) from error
    except Exception as error:  # types may have code of their own for this
        raise SchemaError(
            f"a parameter's type has no JSON Schema: {first_line(error)}",
            hint="use JSON-like types, or wrap the value in a Pydantic model",
            place=Place(tool=tool, parameter=_culprit(parameters)),
        ) from error
    schema.pop("title", None)
    schema.setdefault("properties", {})
    return schema


def _culprit(parameters: Mapping[str, inspect.Parameter]) -> str | None:
    """Return the first parameter whose annotation alone cannot become a schema."""
    for key, parameter in parameters.items():
        try:
            create_model("probe", p=(parameter.annotation, ...)).model_json_schema(schema_generator=FunctionJsonSchema)
        except Exception:  # whatever it is, this is the parameter to name
            return key
    return None


@dataclass(frozen=True, eq=False)
class _Binder:
    """Decodes the arguments of a function's calls, by a model of its parameters. A pickled one is made again."""

    function: Callable[..., Any]
    tool: str
    model: type[BaseModel]
    parameters: Mapping[str, inspect.Parameter]
    signature: inspect.Signature

    def __call__(self, arguments: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return decoded arguments as positional and keyword arguments of the function's own types; defaults stay the
        function's."""
        values = self._decoded(arguments)
        items = values.pop(_of_kind(self.signature, inspect.Parameter.VAR_POSITIONAL), None) or ()
        options = values.pop(_of_kind(self.signature, inspect.Parameter.VAR_KEYWORD), None) or {}
        ordered = [each for each in self.signature.parameters.values() if each.kind in _POSITIONAL]
        # All before `*items`, or before a given one that is positional only, are given by position too, if need be with
        # their defaults.
        count = 0
        for number, each in enumerate(ordered, 1):
            if items or (each.kind is each.POSITIONAL_ONLY and each.name in values):
                count = number
        positional = [values.pop(each.name) if each.name in values else each.default for each in ordered[:count]]
        return [*positional, *items], {**values, **options}

    def _decoded(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of the parameters that a call has; those of ``*items`` and ``**options`` under their names.

        Raises:
            InvalidArgumentsError: a type does not take its value.
        """
        given = dict(arguments)
        options = _of_kind(self.signature, inspect.Parameter.VAR_KEYWORD)
        has_options = options in self.parameters  # the call has them beside the other arguments, the model in a field
        if has_options:
            named = [info.alias for info in self.model.model_fields.values() if info.alias != options]
            given = {key: given[key] for key in named if key in given}
            given[options] = {key: value for key, value in arguments.items() if key not in given}
        try:
            value = self.model.model_validate_json(json.dumps(given))
        except ValidationError as error:
            raise arguments_error(error, self.tool, options if has_options else None) from error
        except Exception as error:  # types may have code of their own for this
            raise not_built(error, self.tool) from error
        return {
            name: getattr(value, f"p{i}")
            for i, (name, parameter) in enumerate(self.parameters.items())
            # To Python, `= Field(3)` is a default of the type FieldInfo; what it means is known only here.
            if f"p{i}" in value.model_fields_set
            or parameter.default is parameter.empty
            or isinstance(parameter.default, FieldInfo)
        }

    def __deepcopy__(self, memo: dict[int, Any]) -> _Binder:
        return self

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Callable[..., Any], str]]:
        return _binder_of, (self.function, self.tool)


def _binder_of(function: Callable[..., Any], name: str) -> Any:
    return tool_from_function(function, name=name).binder


def arguments_error(error: ValidationError, tool: str, more: str | None = None) -> InvalidArgumentsError:
    """Return Pydantic's validation error as ours: all problems in the message, the first one's place.

    Args:
        error: Pydantic's.
        tool: the tool's name.
        more: the field of undeclared members; it is not part of a location.
    """
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    locations = [problem["loc"] for problem in problems]
    paths = (location[1:] if location[:1] == (more,) else location for location in locations)
    pointers = ["".join(f"/{step}" for step in path) for path in paths]
    text = "; ".join(
        f"{pointer or '(root)'}: {problem['msg']}" for pointer, problem in zip(pointers, problems, strict=True)
    )
    return InvalidArgumentsError(
        f"the arguments do not fit: {text}",
        hint="change the arguments",
        place=Place(tool=tool, pointer=pointers[0] if pointers else None),
    )


def not_built(error: Exception, tool: str) -> InvalidArgumentsError:
    """Return what the code of a parameter's own type raised as an error of ours."""
    return InvalidArgumentsError(f"the arguments do not fit: {first_line(error)}", place=Place(tool=tool))


def first_line(error: BaseException) -> str:
    """Return the first line of what an exception says, without advice of Pydantic."""
    return first_line_of(error).partition(". Set `arbitrary_types_allowed")[0]
