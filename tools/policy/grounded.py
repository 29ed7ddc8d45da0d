"""Nominal types: an argument of a type takes only values that a result showed under it, or ids that the user wrote."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from itertools import chain
from typing import Annotated, Any, NamedTuple, NewType, get_args, get_origin, get_type_hints

from pydantic import BaseModel, TypeAdapter
from typing_extensions import is_typeddict

from toolgrammar.core.json import to_pointer

from ..tool import Tool
from .compiled import has_value_at, same_value
from .notation import Field, Layer, Source, ToolRule

#: The keyword that names the type of a string or number; else the name of its definition does, or its title.
TYPE = "x-type"

#: Words of the user that may be ids: with a digit or a mark; a name is none.
_LIKE_IDS = {"pattern": "[0-9_@#:/-]"}

#: A title that can be the name of a type: ``UserId``. Titles that label a field have spaces, or are one word.
_NAME = re.compile("[A-Z][a-z0-9]+(?:[A-Z][A-Za-z0-9]*)+")

#: Maximum number of schemas or types that are read of a tool's arguments, and of its results.
MAX_PLACES = 4_096

#: Maximum number of times that a recursive type is entered on one path.
MAX_TURNS = 3

_SCALARS = (str, int, float)


class _Typed(NamedTuple):
    """A string or number of a named type.

    Attributes:
        name: of the type.
        steps: what leads to the value.
        label: the name of the member that has it as a title; None: the name of the type is no title.
    """

    name: str
    steps: tuple[str, ...]
    label: str | None = None

    @property
    def is_sure(self) -> bool:
        """False if its name may be made from that of the member, as generators of schemas make titles."""
        return self.label is None or not _plain(self.label).endswith(_plain(self.name))


def grounded_layer(tools: Sequence[Tool], free: Sequence[str]) -> Layer:
    """Return the layer in which arguments of types that results have come from these results, or from the user.

    Args:
        tools: the tools.
        free: arguments that are left as they are: ``"tool.argument"``, or ``"tool"`` for all of one.
    """
    results = {tool.name: list(_of_result(tool)) for tool in tools}
    arguments = {tool.name: list(_of_arguments(tool)) for tool in tools}
    sure = {typed.name for typed in chain(*results.values(), *arguments.values()) if typed.is_sure}
    fields: dict[str, list[Field]] = {}
    for tool, found in results.items():
        for typed in found:
            fields.setdefault(typed.name, []).append(Field(tool, to_pointer(typed.steps) or "**"))
    rules = {}
    for tool, found in arguments.items():
        held: dict[tuple[str, ...], Any] = {}
        for name, steps, _ in found:  # the first name is the nearest
            is_free = tool in free or ".".join((tool, *steps[:1])) in free
            if steps and steps not in held and name in sure and name in fields and not is_free:
                held[steps] = (Source(user="words", schema=_LIKE_IDS), Source(seen=tuple(dict.fromkeys(fields[name]))))
        rules[tool] = ToolRule(held)
    return Layer(rules)


def _of_arguments(tool: Tool) -> Iterator[_Typed]:
    """Yield the named types of a tool's arguments."""
    hints = _hints(tool.function)
    for name in tool.parameters.get("properties", {}):
        for found in _in_annotation(hints.get(name), (name,), ("*",)):
            if has_value_at(tool.parameters, tool.parameters, found.steps):
                yield found
    yield from _in_schema(tool.parameters, ("*",))


def _of_result(tool: Tool) -> Iterator[_Typed]:
    """Yield the named types of a tool's result: of its source's schema, or of a function's return annotation."""
    if tool.output_schema is None and tool.operation is None:
        yield from _in_annotation(_hints(tool.function).get("return", Any), (), ())
    yield from _in_schema(result_schema(tool), ())


def result_schema(tool: Tool) -> dict[str, Any]:
    """Return the schema of a tool's result: its source's, or of a function's return annotation; ``{}``: unknown."""
    if tool.output_schema is not None or tool.operation is not None:
        found: dict[str, Any] | None = tool.output_schema if tool.operation is None else tool.operation.answers()
        return found or {}
    try:
        return TypeAdapter(_hints(tool.function).get("return", Any)).json_schema(mode="serialization")
    except Exception:  # a class that Pydantic does not know
        return {}


def named_types(tool: Tool) -> tuple[dict[tuple[str, ...], str], dict[tuple[str, ...], str]]:
    """Return the names of the types of a tool's arguments, and of its results, by the steps that lead to a value.

    The steps of results have none for an item. Of several names the nearest counts."""
    found = [{typed.steps: typed.name for typed in reversed([*of])} for of in (_of_arguments(tool), _of_result(tool))]
    return found[0], found[1]


def _hints(source: Any) -> Mapping[str, Any]:
    """Return the annotations of a function or a class; none if they are of names that exist for type checkers alone."""
    try:
        return get_type_hints(inspect.unwrap(source), include_extras=True) if source else {}
    except Exception:
        return {}


class _Place(NamedTuple):
    """A schema or a Python type, the steps that lead to its values, and the name of the member that it is of."""

    kind: Any
    steps: tuple[str, ...] = ()
    label: str = ""


def _places(first: _Place, below: Callable[[_Place], Iterator[_Place]]) -> Iterator[_Place]:
    """Yield places breadth first, as many as are read; types may be recursive."""
    queue: deque[tuple[_Place, tuple[int, ...]]] = deque([(first, ())])
    for _ in range(MAX_PLACES):
        if not queue:
            return
        place, above = queue.popleft()
        yield place
        if above.count(id(place.kind)) < MAX_TURNS:
            queue.extend((inner, (*above, id(place.kind))) for inner in below(place))


def _in_annotation(kind: Any, steps: tuple[str, ...], item: tuple[str, ...]) -> Iterator[_Typed]:
    """Yield the strings and numbers of a `NewType` in a Python type.

    Args:
        kind: the type.
        steps: what leads to it.
        item: the step of an item of a list.
    """

    def below(place: _Place) -> Iterator[_Place]:
        kind, steps, _ = place
        members: Mapping[str, Any] = {}
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            members = {
                name: field.annotation
                for key, field in kind.model_fields.items()
                for name in {key, field.alias or key, field.serialization_alias or key}
            }
        elif dataclasses.is_dataclass(kind) or is_typeddict(kind):
            members = _hints(kind)
        yield from (_Place(_bare(inner), (*steps, name)) for name, inner in members.items())
        origin = get_origin(kind)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return  # names of members are data
        is_list = isinstance(origin, type) and issubclass(origin, (Sequence, Set))
        yield from (_Place(_bare(inner), (*steps, *item) if is_list else steps) for inner in get_args(kind))

    for base, at, _ in _places(_Place(_bare(kind), steps), below):
        names = []
        while isinstance(base, NewType):
            names.append(base.__name__)
            base = _bare(base.__supertype__)
        if isinstance(base, type) and issubclass(base, _SCALARS):
            yield from (_Typed(name, at) for name in names)


def _bare(kind: Any) -> Any:
    """Return a type without its annotations."""
    return kind.__origin__ if get_origin(kind) is Annotated else kind


def _in_schema(root: Any, item: tuple[str, ...]) -> Iterator[_Typed]:
    """Yield the strings and numbers of a named type in a schema.

    Args:
        root: the schema.
        item: the step of an item of a list.
    """

    def below(place: _Place) -> Iterator[_Place]:
        schema, steps, label = place
        if not isinstance(schema, Mapping):
            return
        yield from (_Place(inner, steps, label) for inner in same_value(schema, root))
        members = schema.get("properties") or {}
        yield from (_Place(inner, (*steps, name), name) for name, inner in members.items())
        items = [schema.get("items"), *(schema.get("prefixItems") or ())]
        yield from (_Place(inner, (*steps, *item)) for inner in items)

    for schema, steps, label in _places(_Place(root), below):
        if not isinstance(schema, Mapping):
            continue
        said, title, reference = (schema.get(name) for name in (TYPE, "title", "$ref"))
        if isinstance(said, str) and said:
            yield _Typed(said, steps)
        if isinstance(title, str) and _NAME.fullmatch(title) and _is_scalar(schema):
            yield _Typed(title, steps, label)
        if isinstance(reference, str) and any(map(_is_scalar, same_value({"$ref": reference}, root))):
            yield _Typed(reference.rpartition("/")[2], steps)


def _is_scalar(schema: Any) -> bool:
    """Return True for strings or numbers that a name can say the type of: they have no list of their own."""
    is_scalar = isinstance(schema, Mapping) and schema.get("type") in ("string", "integer", "number")
    return is_scalar and {TYPE, "enum", "const"}.isdisjoint(schema)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()
