"""Partial values of Python types: the whole parts as instances, and the incomplete ones with optional fields."""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Callable, Mapping, Set
from functools import lru_cache
from types import UnionType
from typing import Any, Literal, NamedTuple, Union

from ..json import reference_steps
from .plan import adapter_of, is_python_type


def typed_partial(value: Any, shape: Any, innermost: str | None) -> Any:
    """Return the value of an incomplete JSON text as a value of a Python type.

    A part that is complete is what the type makes of it. An incomplete object of a class is an instance of a class of
    the same fields, ``Partial`` and its name, whose fields are None until their values begin (a Pydantic class for a
    Pydantic class, a dataclass for a dataclass). An incomplete list has its items so far. An incomplete string is
    shown where the type takes any string; another incomplete value is None. Of a union, the one alternative that can
    be meant is taken; else the part stays JSON until it is complete.

    Args:
        value: the JSON value so far, as in `Partial`.
        shape: a Pydantic class, another Python type, or a JSON Schema, whose values are JSON.
        innermost: JSON pointer of the innermost incomplete value; None if the text is complete.
    """
    if not is_python_type(shape):
        return value
    return _complete(value, shape) if innermost is None else _incomplete(value, shape, reference_steps(f"#{innermost}"))


def _complete(value: Any, shape: Any) -> Any:
    """Return a complete part; one that the type's own validators refuse stays JSON."""
    from pydantic import ValidationError

    if shape in (Any, str, int, bool):
        return value
    try:
        return _adapter(shape).validate_json(json.dumps(value))  # from JSON: strict fields take a date from its text
    except ValidationError:
        return value


_adapter = lru_cache(maxsize=256)(adapter_of)


def _incomplete(value: Any, shape: Any, steps: list[str]) -> Any:
    """Return an incomplete part: the value at the end of ``steps`` is its innermost incomplete one, and all parts that
    are not on the way there are complete."""
    shape = _alternative(value, _plain(shape))
    if isinstance(value, str):
        return value if shape in (str, Any) else None
    if not isinstance(value, (dict, list)):
        return None

    def part(step: str | int, value: Any, shape: Any) -> Any:
        is_open = bool(steps) and str(step) == steps[0]
        return _incomplete(value, shape, steps[1:]) if is_open else _complete(value, shape)

    if isinstance(value, list):
        kinds = _items(shape, len(value))
        return [part(index, item, kind) for index, (item, kind) in enumerate(zip(value, kinds, strict=True))]
    fields = _fields(shape)
    if fields is None:
        arguments = typing.get_args(shape) if _is_subclass(typing.get_origin(shape), Mapping) else ()
        kind = arguments[1] if len(arguments) > 1 else Any  # X of dict[str, X]
        return {name: part(name, item, kind) for name, item in value.items()}
    known = [(name, fields[name], item) for name, item in value.items() if name in fields]
    members = {field.name: part(name, item, field.type) for name, field, item in known}
    return members if _is_typed_dict(shape) else _partial_class(shape)(**members)


def _plain(shape: Any) -> Any:
    """Return a type without annotations, names and wrappers."""
    while True:
        if typing.get_origin(shape) is typing.Annotated:
            shape = typing.get_args(shape)[0]
        elif hasattr(shape, "__supertype__"):  # NewType
            shape = shape.__supertype__
        elif hasattr(shape, "__value__"):  # a type alias
            shape = shape.__value__
        elif hasattr(shape, "validate_json"):  # an adapter of Pydantic, which does not tell its type
            return Any
        elif getattr(shape, "__pydantic_root_model__", False):
            shape = shape.model_fields["root"].annotation
        else:
            return shape


def _alternative(value: Any, shape: Any) -> Any:
    """Return the alternative of a union that an incomplete value can be of; Any if there are none or several."""
    if typing.get_origin(shape) not in (Union, UnionType):
        return shape
    kinds = [_plain(kind) for kind in typing.get_args(shape)]
    fitting = [kind for kind in kinds if _can_be(value, kind)]
    return fitting[0] if len(fitting) == 1 else Any


def _can_be(value: Any, shape: Any) -> bool:
    """Return False if an incomplete value is certainly not of a type."""
    fields = _fields(shape)
    if isinstance(value, str):
        return shape in (str, Any)
    if isinstance(value, list):
        return shape is Any or _is_subclass(typing.get_origin(shape) or shape, (list, tuple, Set))
    if fields is None:
        return shape is Any or _is_subclass(typing.get_origin(shape) or shape, Mapping)
    plain = {name: _plain(field.type) for name, field in fields.items()}
    tags = {name: typing.get_args(kind) for name, kind in plain.items() if typing.get_origin(kind) is Literal}
    return set(value) <= set(fields) and all(value[name] in tag for name, tag in tags.items() if name in value)


def _is_subclass(shape: Any, kind: Any) -> bool:
    return isinstance(shape, type) and issubclass(shape, kind)


def _items(shape: Any, size: int) -> list[Any]:
    """Return the types of the items of an array."""
    kinds = typing.get_args(shape)
    if _is_subclass(typing.get_origin(shape), tuple) and kinds[-1:] != (Ellipsis,):
        return [*kinds, *[Any] * size][:size]
    return [kinds[0] if kinds else Any] * size


def _is_typed_dict(shape: Any) -> bool:
    return hasattr(shape, "__required_keys__")  # of `typing` or of `typing_extensions`


class _Field(NamedTuple):
    """A field of a class: its name in Python, and its type."""

    name: str
    type: Any


@lru_cache(maxsize=256)
def _fields(shape: Any) -> Mapping[str, _Field] | None:
    """Return the fields of a class by their names in JSON; None for a type without fields."""
    if hasattr(shape, "model_fields"):  # a Pydantic class, whose fields may have other names in JSON
        return {
            str(field.validation_alias or field.alias or name): _Field(name, field.annotation)
            for name, field in shape.model_fields.items()
        }
    if dataclasses.is_dataclass(shape) or _is_typed_dict(shape):
        return {name: _Field(name, kind) for name, kind in typing.get_type_hints(shape).items()}
    return None


@lru_cache(maxsize=256)
def _partial_class(shape: Any) -> Callable[..., Any]:
    """Return the class of incomplete instances of a class: its fields, each None until it begins."""
    fields = _fields(shape) or {}
    name = f"Partial{shape.__name__}"
    if hasattr(shape, "model_fields"):
        from pydantic import create_model

        optional: Any = {field.name: (Any, None) for field in fields.values()}
        made: Callable[..., Any] = create_model(name, __module__=shape.__module__, **optional).model_construct
        return made
    return dataclasses.make_dataclass(name, [(field.name, Any, None) for field in fields.values()])
