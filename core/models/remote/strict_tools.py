"""Strict tools of providers that compile them to one grammar, whose size is limited: as many as are taken."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .schema_dialects import Subset, costs, plain_schema, strict_schema, with_notes
from .servers import known


@dataclass(frozen=True)
class Limits:
    """Limits of the strict tools of one request.

    Attributes:
        tools: maximum number of strict tools.
        optional: maximum number of optional members in all of them.
        unions: maximum number of unions (``anyOf``, several types) in all of them.
    """

    tools: int
    optional: int
    unions: int


@dataclass(frozen=True)
class Sent:
    """The tools of one request, some of them strict.

    Attributes:
        schemas: the parameters of each tool, in order.
        strict: names of the strict ones.
        left_out: pointers of removed keywords after the tool's name; the name alone: the tool is not strict.
        size: number of characters of the strict schemas.
    """

    schemas: Mapping[str, Any]
    strict: frozenset[str]
    left_out: tuple[str, ...]
    size: int


@dataclass(frozen=True)
class _Candidate:
    name: str
    schema: Any
    left_out: tuple[str, ...]
    optional: int
    unions: int
    size: int


def strict_ladder(
    tools: Sequence[Mapping[str, Any]], subset: Subset, limits: Limits, unknown: Collection[str], beside: int = 0
) -> Iterator[Sent]:
    """Yield the tools of a request with ever fewer strict ones, at last none: all that fit, then half of them each.

    The smallest stay strict: a provider's limit is used up by few large schemas.

    Args:
        tools: OpenAI-style dicts with closed schemas.
        subset: what the provider enforces.
        limits: its limits.
        unknown: keywords that the server has refused, which are removed.
        beside: size of another schema in the same grammar.
    """
    plain: dict[str, Any] = {}
    removed: dict[str, tuple[str, ...]] = {}
    candidates: list[_Candidate] = []
    for tool in tools:
        function = tool["function"]
        name, given = function["name"], function.get("parameters", {"type": "object", "properties": {}})
        reduced, gone = known(given, unknown)
        plain[name], removed[name] = plain_schema(reduced), tuple(name + place for place in gone)
        taken = strict_schema(reduced, subset)
        if taken is None:
            continue
        schema = with_notes(taken[0], given, (*gone, *taken[1]))
        left_out = (*removed[name], *(name + place for place in taken[1]))
        candidates.append(_Candidate(name, schema, left_out, *costs(schema), len(json.dumps(schema))))
    candidates.sort(key=lambda one: (one.optional + one.unions, one.size))
    number = 0
    optional = unions = 0
    for one in candidates[: limits.tools]:
        optional, unions = optional + one.optional, unions + one.unions
        if optional > limits.optional or unions > limits.unions:
            break
        number += 1
    while True:
        chosen = {one.name: one for one in candidates[:number]}
        places: list[str] = []
        for name in plain:
            places.extend(chosen[name].left_out if name in chosen else removed[name])
            if chosen and name not in chosen:
                places.append(name)
        yield Sent(
            {name: chosen[name].schema if name in chosen else schema for name, schema in plain.items()},
            frozenset(chosen),
            tuple(places),
            sum(one.size for one in chosen.values()) + beside,
        )
        if not number:
            return
        number //= 2
