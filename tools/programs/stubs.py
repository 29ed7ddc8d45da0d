"""Functions of programs as Python: the lines that a model reads, and a module for type checkers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from .signatures import Function, Type

_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_HEAD = """from collections.abc import Mapping, Sequence
from typing import Any, Literal, NewType, overload
"""


def shown(functions: Mapping[str, Function]) -> str:
    """Return functions as a model reads them: a line for each class of objects, and for each function.

    ::

        class Order: id: OrderId; price: int
        orders_of(customer: CustomerId) -> list[Order]  # Orders of a customer.
    """
    lines = [
        f"class {name}: " + "; ".join(f"{key}: {annotation(one)}" for key, one in fields.items())
        for name, fields in _classes(functions).items()
    ]
    for function in functions.values():
        summary = " ".join(function.tool.summary.split())
        lines.append(_signature(function) + (f"  # {summary}" if summary else ""))
    return "\n".join(lines)


def module(functions: Mapping[str, Function]) -> str:
    """Return functions as a module of stubs, whose named types are ``NewType``; for mypy and Pyright."""
    parts = [_HEAD]
    names: dict[str, str] = {}
    for kind in _all(functions):
        if kind.name:
            names.setdefault(kind.name, annotation(Type(kind.schema)))
    parts += [f'{name} = NewType("{name}", {base})' for name, base in sorted(names.items())]
    for name, fields in _classes(functions).items():
        parts += ["", f"class {name}:"]
        parts += [f"    {key}: {annotation(one)}" for key, one in fields.items()]
        overload = "    @overload\n" if len(fields) > 1 else ""
        for key, one in fields.items():
            parts.append(f'{overload}    def __getitem__(self, key: Literal["{key}"]) -> {annotation(one)}: ...')
    parts.append("")
    for function in functions.values():
        # mypy refuses any use of the result of a function that returns None.
        returns_none = function.result.schema.get("type") == "null"
        used = replace(function, result=Type({})) if returns_none else function
        parts.append(f"def {_signature(used)}: ...")
    return "\n".join([*parts, ""])


def _signature(function: Function) -> str:
    """Return the name, parameters and result of a function, as Python writes them after ``def``."""
    parameters = ", ".join(
        f"{one.name}: {annotation(one.type, 'Sequence')}{'' if one.is_required else ' = ...'}"
        for one in function.parameters
    )
    return f"{function.name}({parameters}) -> {annotation(function.result)}"


def annotation(kind: Type, list_name: str = "list") -> str:
    """Return a type as Python writes it.

    Args:
        kind: the type.
        list_name: the name of the type of lists: ``Sequence`` for parameters, whose items may be of a narrower type.
    """
    if kind.name:
        return kind.name
    if kind.fields:
        return kind.title
    if kind.items is not None:
        return f"{list_name}[{annotation(kind.items, list_name)}]"
    return _of_schema(kind.schema, list_name)


def _of_schema(schema: Any, list_name: str) -> str:
    """Return the type of a schema as Python writes it; ``Any`` if there is none. ``list_name`` as for `annotation`."""
    if not isinstance(schema, Mapping):
        return "Any"
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if values is not None and all(isinstance(value, (str, int, bool, type(None))) for value in values):
        return f"Literal[{', '.join(map(repr, values))}]"
    kinds = schema.get("type")
    if isinstance(kinds, list):
        return " | ".join(_of_schema({**schema, "type": kind}, list_name) for kind in kinds)
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            parts = [_of_schema(inner, list_name) for inner in schema[key]]
            return "Any" if "Any" in parts else " | ".join(dict.fromkeys(parts))
    if kinds == "array":
        return f"{list_name}[{_of_schema(schema.get('items', {}), list_name)}]"
    if kinds == "object":
        return "Mapping[str, Any]"
    return _SCALARS.get(str(kinds), "Any")


def _all(functions: Mapping[str, Function]) -> Iterator[Type]:
    """Yield all types of functions, those inside of others too."""
    pending = [kind for one in functions.values() for kind in (one.result, *(each.type for each in one.parameters))]
    while pending:
        kind = pending.pop(0)
        yield kind
        pending += [*kind.fields.values(), *([] if kind.items is None else [kind.items])]


def _classes(functions: Mapping[str, Function]) -> dict[str, Mapping[str, Type]]:
    """Return the fields of each class of objects, by its name."""
    return {kind.title: kind.fields for kind in _all(functions) if kind.fields}
