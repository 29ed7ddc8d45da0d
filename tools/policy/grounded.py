"""Nominal types: an argument of a type takes only values that a result showed under it, or ids that the user wrote.

If ``list_users`` returns an ``id`` of the type ``UserId``, the argument ``user: UserId`` of another tool takes only ids
that were listed, or that the user wrote.
"""

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
        member: if the name is the title of a schema, the name of the member with this schema; else None.
    """

    name: str
    steps: tuple[str, ...]
    member: str | None = None

    @property
    def is_sure(self) -> bool:
        """False if a generator of schemas may have made the title from the name of the member: ``UserId`` of
        ``user_id``."""
        return self.member is None or not _plain(self.member).endswith(_plain(self.name))


def grounded_layer(tools: Sequence[Tool], free: Sequence[str]) -> Layer:
    """Return the layer in which an argument takes values of results of the same type, or ids from the user.

    A type counts if a result has it, and if its name is sure in at least one place.

    Args:
        tools: the tools.
        free: arguments that are left as they are: ``"tool.argument"``, or ``"tool"`` for all of one.
    """
    results = {tool.name: list(_of_result(tool)) for tool in tools}
    arguments = {tool.name: list(_of_arguments(tool)) for tool in tools}
    sure = {typed.name for typed in chain(*results.values(), *arguments.values()) if typed.is_sure}
    fields: dict[str, list[Field]] = {}  # of results, by the names of their types
    for tool, found in results.items():
        for typed in found:
            fields.setdefault(typed.name, []).append(Field(tool, to_pointer(typed.steps) or "**"))
    rules = {}
    for tool, found in arguments.items():
        by_steps: dict[tuple[str, ...], Any] = {}
        for name, steps, _ in found:
            is_free = not steps or tool in free or f"{tool}.{steps[0]}" in free
            if is_free or name not in sure or name not in fields:
                continue
            # A value may have several names of types, the nearest first, which counts.
            seen = Source(seen=tuple(dict.fromkeys(fields[name])))
            by_steps.setdefault(steps, (Source(user="words", schema=_LIKE_IDS), seen))
        rules[tool] = ToolRule(by_steps)
    return Layer(rules)


def _of_arguments(tool: Tool) -> Iterator[_Typed]:
    """Yield the named types of a tool's arguments."""
    hints = _hints(tool.function)
    for name in tool.parameters.get("properties", {}):
        for found in _in_annotation(hints.get(name), (name,), ("*",)):
            if has_value_at(tool.parameters, tool.parameters, found.steps):  # not a member that its schema leaves out
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
    """Where a type stands in another one.

    Attributes:
        kind: a schema or a Python type.
        steps: what leads to its values.
        member: the name of the member that has it; empty: none, or not known.
    """

    kind: Any
    steps: tuple[str, ...] = ()
    member: str = ""


def _places(first: _Place, below: Callable[[_Place], Iterator[_Place]]) -> Iterator[_Place]:
    """Yield a place and those below it, breadth first: `MAX_PLACES` of them, and in a recursive type `MAX_TURNS` deep.

    Args:
        first: the place.
        below: gives the places directly below one.
    """
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
        """Yield the members of a model, dataclass or TypedDict, and the arguments of a generic type or union."""
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

    for place in _places(_Place(_bare(kind), steps), below):
        base, names = place.kind, []
        while isinstance(base, NewType):  # of another NewType, maybe
            names.append(base.__name__)
            base = _bare(base.__supertype__)
        if isinstance(base, type) and issubclass(base, _SCALARS):
            yield from (_Typed(name, place.steps) for name in names)


def _bare(kind: Any) -> Any:
    """Return a type without annotations: ``Annotated[str, ...]`` -> ``str``."""
    return kind.__origin__ if get_origin(kind) is Annotated else kind


def _in_schema(root: Any, item: tuple[str, ...]) -> Iterator[_Typed]:
    """Yield the strings and numbers of a named type in a schema.

    Args:
        root: the schema.
        item: the step of an item of a list.
    """

    def below(place: _Place) -> Iterator[_Place]:
        """Yield the schemas of the same value, of its members and of its items."""
        schema, steps, member = place
        if not isinstance(schema, Mapping):
            return
        yield from (_Place(inner, steps, member) for inner in same_value(schema, root))
        members = schema.get("properties") or {}
        yield from (_Place(inner, (*steps, name), name) for name, inner in members.items())
        items = [schema.get("items"), *(schema.get("prefixItems") or ())]
        yield from (_Place(inner, (*steps, *item)) for inner in items)

    for schema, steps, member in _places(_Place(root), below):
        if not isinstance(schema, Mapping):
            continue
        keyword, title, reference = (schema.get(name) for name in (TYPE, "title", "$ref"))
        if isinstance(keyword, str) and keyword:
            yield _Typed(keyword, steps)
        if isinstance(title, str) and _NAME.fullmatch(title) and _is_scalar(schema):
            yield _Typed(title, steps, member)
        if isinstance(reference, str) and any(map(_is_scalar, same_value({"$ref": reference}, root))):
            yield _Typed(reference.rpartition("/")[2], steps)  # the name of the definition


def _is_scalar(schema: Any) -> bool:
    """Return True for a string or number whose type a title or definition may name: without ``x-type``, which names it
    already, and without a list of values."""
    is_scalar = isinstance(schema, Mapping) and schema.get("type") in ("string", "integer", "number")
    return is_scalar and {TYPE, "enum", "const"}.isdisjoint(schema)


def _plain(name: str) -> str:
    """Return a name for comparing: ``user_id``, ``userId`` -> ``userid``."""
    return re.sub(r"[\W_]", "", name).casefold()
