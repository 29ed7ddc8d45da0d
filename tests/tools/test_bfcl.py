"""Real requests of the Berkeley Function Calling Leaderboard."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from toolgrammar.core import InvalidArgumentsError, ToolCall, UnsupportedSchemaError
from toolgrammar.tools import ToolSet, get_format

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "bfcl-dev.jsonl.gz"
pytestmark = pytest.mark.skipif(not DATA.exists(), reason=f"needs {DATA.name}, which is not part of the repository")


@cache
def requests() -> list[dict[str, Any]]:
    """The requests."""
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def chosen(options: list[Any]) -> Any:
    """The first accepted value; accepted objects list the accepted values of each property."""
    value = next(option for option in options if option != "")
    if isinstance(value, dict):
        return {
            key: chosen(inner) if isinstance(inner, list) else inner for key, inner in value.items() if inner != [""]
        }
    return value


def answers(request: dict[str, Any]) -> list[ToolCall]:
    """The accepted calls of a request, without the arguments that may be left out."""
    calls = []
    for answer in request["answers"]:
        ((name, arguments),) = answer.items()
        given = {key: chosen(options) for key, options in arguments.items() if options and "" not in options}
        calls.append(ToolCall("c", name, given))
    return calls


def in_schema_order(call: ToolCall, tools: ToolSet) -> ToolCall:
    """The call with its arguments in the order in which the grammar writes them."""
    order = list(tools[call.name].parameters["properties"])
    arguments = dict(sorted(call.arguments.items(), key=lambda item: order.index(item[0])))
    return ToolCall(call.id, call.name, arguments)


def test_every_request_converts() -> None:
    """All functions of all requests become tools whose schemas are valid Draft 2020-12 with nothing lost."""
    validator = jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA)
    count = 0
    seen: set[str] = set()
    for request in requests():
        tools = ToolSet.from_any(request["functions"])
        assert list(tools.names) == [function["name"] for function in request["functions"]]
        for tool, function in zip(tools, request["functions"], strict=True):
            source = json.dumps(function)
            count += 1
            if source in seen:
                continue
            seen.add(source)
            assert validator.is_valid(tool.parameters), tool.name
            assert tool.parameters["properties"].keys() == function["parameters"]["properties"].keys()
            assert tool.description == function["description"]
    assert (len(requests()), count) == (873, 2811)


def test_accepted_answers_validate() -> None:
    """Accepted answers are valid calls, but for the few that contradict their own schema; the grammar agrees."""
    render = get_format("hermes").render_calls
    contradictions = unsupported = written = 0
    for request in requests():
        tools = ToolSet.from_any(request["functions"])
        for call in answers(request):
            try:
                tools.validate(call)
            except InvalidArgumentsError:
                contradictions += 1
                continue
            try:
                grammar = tools.subset([call.name]).grammar(tool_choice="required")
            except UnsupportedSchemaError:
                unsupported += 1
                continue
            written += grammar.matches(render([in_schema_order(call, tools)]))
    total = sum(len(request["answers"]) for request in requests())
    assert contradictions <= 18
    # Nested objects of a few answers are in another order than their schema's.
    assert written >= total - contradictions - unsupported - 5
