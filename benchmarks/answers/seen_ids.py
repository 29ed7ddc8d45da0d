"""Ids that do not exist: calls of a model in BFCL's simulated systems, without and with `Seen` or nominal types.

    pip download --no-deps bfcl-eval && unzip bfcl_eval-*.whl -d bfcl      # no part of it is changed
    PYTHONPATH=bfcl python -m benchmarks answers/seen_ids --model gguf:qwen2.5-coder-0.5b.gguf [--calls 60] [--keep]

The conversations of ``multi_turn_base`` are played in the simulators of BFCL (tickets, orders, bookings, messages,
posts). Up to a call that has an id, the calls are those of BFCL's answers, so that all ways have the same
conversation. Then the model writes that call, greedily, and the simulator says if the ids exist:

- ``free``: an id is any text (or number) of its type;
- ``seen``: an id was in the result of a tool or an argument of a successful call (``x-seen``), or is a word with a
  digit or an underscore in a message of the user (``x-copied`` with a pattern; for numbers, those of the messages). If
  there is none, the call is not offered;
- ``grounded``: ids have types (``x-type``), in parameters and in BFCL's schemas of results, under `Policy.grounded`.

The ways are compared with ``free`` on the same calls, by the exact sign test.

Symbols of shares are no ids here: models know them from elsewhere.
"""

from __future__ import annotations

import ast
import copy
import importlib
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.shared.answer_ways import rows_of
from benchmarks.shared.data import spread
from benchmarks.shared.sheets import Sheet, Sheets
from benchmarks.shared.tables import show
from toolgrammar.core import LiveValuesError, Message, ToolCall, load_model
from toolgrammar.core.models import Model
from toolgrammar.tools import Policy, Tool, ToolSet

#: What a user writes as an id: a word with a digit or an underscore.
ID_TEXT = r"^\S*[0-9_]\S*$"


@dataclass(frozen=True)
class Id:
    """A parameter that is an id.

    Attributes:
        seen: the keys of results that have such ids.
        known: the attribute of a simulator that has them.
    """

    seen: tuple[Any, ...]
    known: str


def of_tools(key: str, *tools: str) -> tuple[Any, ...]:
    """Return the key in the results of some tools."""
    return tuple({"key": key, "tool": tool} for tool in tools)


IDS: dict[str, Id] = {
    "ticket_id": Id(of_tools("id", "create_ticket", "get_ticket", "get_user_tickets"), "ticket_queue"),
    "tweet_id": Id(of_tools("id", "post_tweet", "get_tweet", "get_user_tweets", "search_tweets"), "tweets"),
    "order_id": Id(("order_id", "order_history", *of_tools("id", "get_order_details")), "orders"),
    "access_token": Id(("access_token",), "access_token"),
    "card_id": Id(("card_id",), "credit_card_list"),
    "booking_id": Id(("booking_id",), "booking_record"),
    "receiver_id": Id(("user_id",), "user_map"),
    "user_id": Id(("user_id",), "user_map"),
}


def exists(systems: Sequence[Any], parameter: str, value: Any) -> bool:
    """Return True if a system has an id now."""
    for system in systems:
        known = getattr(system, IDS[parameter].known, None)
        if known is None:
            continue
        if isinstance(known, str):
            return bool(value == known)
        if parameter == "ticket_id":
            return any(one.get("id") == value for one in known)
        if parameter in ("receiver_id", "user_id"):
            return value in known.values()
        return value in known
    return False


def bfcl() -> Path:
    """Return the folder of the package ``bfcl-eval``."""
    return Path(str(importlib.import_module("bfcl_eval").__file__)).parent


def lines(package: Path, name: str) -> Iterator[Any]:
    """Yield the objects of a data file of BFCL."""
    with (package / "data" / name).open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def functions(package: Path, classes: Sequence[str], files: dict[str, str]) -> dict[str, Any]:
    """Return the descriptions of the functions of some systems, by name."""
    return {one["name"]: one for name in classes for one in lines(package, f"multi_turn_func_doc/{files[name]}")}


def call_of(text: str, described: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name and the arguments of a call that is written as Python."""
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    names = list(described[call.func.id]["parameters"]["properties"])
    arguments = {name: ast.literal_eval(value) for name, value in zip(names, call.args, strict=False)}
    return call.func.id, arguments | {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}


@dataclass
class Point:
    """A call with an id that a model is asked for.

    Attributes:
        name: of the conversation, and the number of the call.
        messages: the conversation before it.
        function: its name.
        described: the descriptions of all functions, by name.
        wanted: the arguments of BFCL's answer.
        systems: the systems, as they are then.
    """

    name: str
    messages: list[Message]
    function: str
    described: dict[str, Any]
    wanted: dict[str, Any]
    systems: list[Any]


def points(package: Path) -> Iterator[Point]:
    """Yield the calls with ids of all conversations."""
    constants = importlib.import_module("bfcl_eval.constants.executable_backend_config")
    answers = {one["id"]: one["ground_truth"] for one in lines(package, "possible_answer/BFCL_v4_multi_turn_base.json")}
    for entry in lines(package, "BFCL_v4_multi_turn_base.json"):
        described = functions(package, entry["involved_classes"], constants.MULTI_TURN_FUNC_DOC_FILE_MAPPING)
        systems = []
        for name in entry["involved_classes"]:
            system = getattr(importlib.import_module(constants.CLASS_FILE_PATH_MAPPING[name]), name)()
            if name not in constants.STATELESS_CLASSES:
                system._load_scenario(copy.deepcopy(entry["initial_config"].get(name, {})), long_context=False)
            systems.append(system)
        messages: list[Message] = []
        for turn, (said, calls) in enumerate(zip(entry["question"], answers[entry["id"]], strict=True)):
            messages += [Message(one["role"], one["content"]) for one in said]
            for number, text in enumerate(calls):
                name, arguments = call_of(text, described)
                if any(parameter in IDS for parameter in arguments):
                    where = f"{entry['id']}:{turn}:{number}"
                    yield Point(where, list(messages), name, described, arguments, copy.deepcopy(systems))
                identity = f"call_{turn}_{number}"
                run = next(getattr(system, name) for system in systems if hasattr(system, name))
                try:
                    result = run(**arguments)
                except Exception as error:  # as BFCL executes calls
                    result = f"Error during execution: {error}"
                shown = result if isinstance(result, str) else json.dumps(result, default=str)
                messages.append(Message("assistant", "", tool_calls=(ToolCall(identity, name, arguments),)))
                messages.append(Message("tool", shown, tool_call_id=identity, name=name))


def tool_of(point: Point, *, seen: bool) -> Tool:
    """Return the tool of a point; with ``seen``, its ids are those of the conversation."""
    tool = next(iter(ToolSet.from_any([point.described[point.function]])))
    if not seen:
        return tool
    properties = dict(tool.parameters["properties"])
    for name, schema in properties.items():
        if name in IDS:
            properties[name] = in_conversation(schema, name, point.messages)
    return tool.changed(parameters={**tool.parameters, "properties": properties})


def in_conversation(schema: dict[str, Any], name: str, messages: Sequence[Message]) -> dict[str, Any]:
    """Return the schema of an id of results, of earlier calls, or of the user's messages."""
    plain = {"type": schema.get("type", "string")}
    options = [{**plain, "x-seen": key} for key in (*IDS[name].seen, {"key": name, "calls": True})]
    if plain["type"] == "string":
        options.append({**plain, "x-copied": "user", "pattern": ID_TEXT})
    else:
        said = " ".join(message.text for message in messages if message.role == "user")
        numbers = sorted({int(one) for one in re.findall(r"(?<![\w.])\d{1,18}(?![\w.]*\w)", said)})
        options += [{**plain, "enum": numbers}] if numbers else []
    return {key: value for key, value in schema.items() if key != "type"} | {"anyOf": options}


def grounded(point: Point, tool: Tool) -> Policy:
    """Return the policy of the types of ids in results and in the parameters of a tool."""
    properties = {
        name: {**schema, "x-type": IDS[name].known} if name in IDS else schema
        for name, schema in tool.parameters["properties"].items()
    }
    typed = tool.changed(parameters={**tool.parameters, "properties": properties})
    results = [Tool(name, output_schema=of_results(one["response"], name)) for name, one in point.described.items()]
    policy = Policy.grounded([typed, *(one for one in results if one.name != tool.name)])
    ruled = {steps[0] for rule, _ in policy.rules(tool.name) or () for steps in rule.arguments}
    bare = sorted((point.wanted.keys() & IDS.keys()) - ruled)
    assert not bare, f"{tool.name}: ids without a rule: {bare}"
    return policy


def of_results(schema: dict[str, Any], tool: str) -> dict[str, Any]:
    """Return BFCL's schema of a tool's results as JSON Schema, with the types of its ids."""
    made: dict[str, Any] = {}
    if "type" in schema:
        made["type"] = {"dict": "object", "float": "number"}.get(schema["type"], schema["type"])
    if "items" in schema:
        made["items"] = of_results(schema["items"], tool)
    for key, inner in schema.get("properties", {}).items():
        made.setdefault("properties", {})[key] = one = of_results(inner, tool)
        types = [of.known for of in IDS.values() if key in of.seen or {"key": key, "tool": tool} in of.seen]
        if types:
            one.get("items", one)["x-type"] = types[0]
    return made


def answer(model: Model, point: Point, way: str) -> Sheet:
    """Return what a model writes at a point: if its ids exist, and if they are those of BFCL's answer."""
    tool = tool_of(point, seen=way == "seen")
    ids = [name for name in point.wanted if name in IDS]
    asked: dict[str, Any] = {"tools": [tool], "tool_choice": tool.name, "max_tokens": 160, "parallel_tool_calls": False}
    if way == "grounded":
        asked["policy"] = grounded(point, tool)
    try:
        (call,) = model.generate(point.messages, **asked).tool_calls
    except LiveValuesError:
        return {"ids": 0, "exist": 0, "right": 0, "invented": 0, "offered": 0}
    written = {name: value for name, value in call.arguments.items() if name in IDS}
    real = [name for name, value in written.items() if exists(point.systems, name, value)]
    return {
        "ids": len(written),
        "exist": len(real),
        "right": int(all(written.get(name) == point.wanted[name] for name in ids)),
        "invented": int(len(real) < len(written)),
        "offered": 1,
        "written": written,
        "wanted": {name: point.wanted[name] for name in ids},
    }


def main(
    model: str = "smollm2",
    name: str = "",
    calls: int = 60,
    most_prompt: int = 8_000,
    context: int = 0,
    sheets: Path | None = None,
    keep: str = "",
) -> None:
    """Play the conversations, and show the table.

    Args:
        calls: how many, spread over the conversations
        context: context window, for a model that takes one
        keep: write benchmarks/results/KEEP.json
    """
    # A point whose own answer names an id that no system has is an error of the data.
    found = [
        point
        for point in points(bfcl())
        if all(exists(point.systems, key, value) for key, value in point.wanted.items() if key in IDS)
    ]
    known, label = Sheets(sheets), name or model.rpartition("/")[2]
    rows: dict[str, list[Sheet]] = {"free": [], "seen": [], "grounded": []}
    with load_model(model, **({"context_window": context} if context else {})) as loaded:
        short = [one for one in found if loaded.count_tokens(one.messages, [tool_of(one, seen=False)]) <= most_prompt]
        chosen = spread(short, calls)
        for number, point in enumerate(chosen, 1):
            for way, done in rows.items():
                done.append(known.answer((label, way, point.name), answer, loaded, point, way))
            print(f"{number} of {len(chosen)}", file=sys.stderr, flush=True)
    report = {
        "model": label,
        "points": len(found),
        "ways": rows_of(
            {way: dict(enumerate(done)) for way, done in rows.items()},
            "free",
            ("offered", "invented", "right", "ids", "exist"),
        ),
    }
    show(keep or "seen_ids", report, keep=bool(keep), table="seen_ids")
