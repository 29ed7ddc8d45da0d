"""Is every call valid that a client of a server gets? Real requests with 30 tools, by the SDKs, over a port.

    python benchmarks/server_bfcl.py path/to/bfcl-dev.jsonl.gz [--limit 100] [--tools 30]

Each request of a file of the Berkeley Function Calling Leaderboard has its own functions and those of the requests
after it, 30 in all, and two turns, as a coding agent would ask: a call is required, its result is sent back, and the
model may call again. The model chooses uniformly among the allowed tokens, and where it may write text it begins a call
one time in twenty. The clients take turns: OpenAI's chat completions and responses, Anthropic's messages and Ollama's
chat, whole and streamed. Each call that a client gets is checked by the ``jsonschema`` library; the exit code is 1 if
one is not valid, or a request has failed. Calls that the token budget cut are counted, and never run: their arguments
do not parse, or they are left out.
"""

from __future__ import annotations

import argparse
import gzip
import json
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import anthropic
import jsonschema
import ollama
import openai
import uvicorn
from bfcl_validity import uniform

from toolgrammar.adapters.server import create_app
from toolgrammar.core import GenerateParams, Model, ToolGrammarError, load_model
from toolgrammar.tools import ToolSet, to_json_schema

MODEL = "uniform"
BUDGET = 600

#: A call as a client sees it: its name, its arguments as text or as an object, and its id.
Call = tuple[str, Any, str]


@contextmanager
def serving() -> Iterator[str]:
    """Serve the model on a free port, and yield its address."""
    model = Model(uniform(load_model("embedded", context_window=65_536).backend, 0.05))
    app = create_app({MODEL: model}, defaults=GenerateParams(temperature=1.0))
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def chat(client: openai.OpenAI, tools: list[Any], streams: bool, history: list[Any], required: bool) -> list[Call]:
    """A turn of chat completions."""
    given = [{"type": "function", "function": tool} for tool in tools]
    asked: Any = {"model": MODEL, "messages": history, "tools": given, "max_tokens": BUDGET}
    asked["tool_choice"] = "required" if required else "auto"
    calls: dict[int, dict[str, str]] = {}
    text = ""
    if streams:  # not by the SDK's helper, which raises an error where the budget ended an answer
        for chunk in client.chat.completions.create(**asked, stream=True):
            text += chunk.choices[0].delta.content or ""
            for one in chunk.choices[0].delta.tool_calls or ():
                call = calls.setdefault(one.index, {"id": one.id, "name": one.function.name, "arguments": ""})
                call["arguments"] += one.function.arguments
    else:
        answer = client.chat.completions.create(**asked).choices[0].message
        text = answer.content or ""
        for index, one in enumerate(answer.tool_calls or ()):
            calls[index] = {"id": one.id, **dump(one.function)}
    made = [
        {"id": c["id"], "type": "function", "function": {k: c[k] for k in ("name", "arguments")}}
        for c in calls.values()
    ]
    history.append({"role": "assistant", "content": text, **({"tool_calls": made} if made else {})})
    history += [{"role": "tool", "tool_call_id": call["id"], "content": "done"} for call in made]
    return [(call["name"], call["arguments"], call["id"]) for call in calls.values()]


def respond(client: openai.OpenAI, tools: list[Any], streams: bool, history: list[Any], required: bool) -> list[Call]:
    """A turn of responses."""
    given = [{"type": "function", **tool} for tool in tools]
    asked: Any = {"model": MODEL, "input": history, "tools": given, "max_output_tokens": BUDGET, "store": False}
    asked["tool_choice"] = "required" if required else "auto"
    if streams:
        ends = ("response.completed", "response.incomplete")
        output = next(one.response for one in client.responses.create(**asked, stream=True) if one.type in ends).output
    else:
        output = client.responses.create(**asked).output
    calls = [item for item in output if item.type == "function_call"]
    history += [item.model_dump(exclude_none=True) for item in output]
    history += [{"type": "function_call_output", "call_id": call.call_id, "output": "done"} for call in calls]
    return [(call.name, call.arguments, call.call_id) for call in calls]


def message(
    client: anthropic.Anthropic, tools: list[Any], streams: bool, history: list[Any], required: bool
) -> list[Call]:
    """A turn of Anthropic's messages."""
    given = [{"name": t["name"], "description": t["description"], "input_schema": t["parameters"]} for t in tools]
    asked: Any = {"model": MODEL, "messages": history, "tools": given, "max_tokens": BUDGET}
    asked["tool_choice"] = {"type": "any" if required else "auto"}
    if streams:
        with client.messages.stream(**asked) as stream:
            content = stream.get_final_message().content
    else:
        content = client.messages.create(**asked).content
    calls = [block for block in content if block.type == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": "done"} for call in calls]
    if content:
        history.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in content]})
        history.append({"role": "user", "content": [*results, {"type": "text", "text": "Go on."}]})
    return [(call.name, call.input, call.id) for call in calls]


def ollama_chat(
    client: ollama.Client, tools: list[Any], streams: bool, history: list[Any], required: bool
) -> list[Call]:
    """A turn of Ollama's chat, which has no choice of a tool: there it always is the model's."""
    given = [{"type": "function", "function": tool} for tool in tools]
    asked: Any = {"model": MODEL, "messages": history, "tools": given, "options": {"num_predict": BUDGET}}
    parts = list(client.chat(**asked, stream=True)) if streams else [client.chat(**asked)]
    calls = [call for part in parts for call in part.message.tool_calls or ()]
    text = "".join(part.message.content or "" for part in parts)
    history.append({"role": "assistant", "content": text, "tool_calls": [dump(call) for call in calls]})
    history += [{"role": "tool", "tool_name": call.function.name, "content": "done"} for call in calls]
    return [(call.function.name, dict(call.function.arguments), "") for call in calls]


def dump(item: Any) -> Any:
    """A typed value as JSON data."""
    return item.model_dump(exclude_none=True)


def functions_of(path: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the last words of the user, and the functions whose schemas can be enforced, of each request."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            request = json.loads(line)
            tools = []
            for function in request["functions"]:
                schema = to_json_schema(function["parameters"])
                tool = {"name": function["name"], "description": function["description"], "parameters": schema}
                try:
                    ToolSet.from_any([{"type": "function", "function": tool}]).grammar()
                except ToolGrammarError:
                    continue
                tools.append(tool)
            yield request["question"][0][-1]["content"], tools


def with_others(requests: list[Any], start: int, size: int) -> list[dict[str, Any]]:
    """The functions of a request and of those after it, each name once."""
    found: dict[str, dict[str, Any]] = {}
    for number in range(start, start + len(requests)):
        for tool in requests[number % len(requests)][1]:
            if len(found) < size:
                found.setdefault(tool["name"], tool)
    return list(found.values())


def judge(call: Call, tools: Mapping[str, Any], seen: Counter[str]) -> None:
    """Count a call as valid, cut or invalid."""
    name, arguments, _ = call
    if isinstance(arguments, str):
        if "<cut short by the token budget" in arguments:
            seen["cut"] += 1
            try:
                json.loads(arguments)
            except ValueError:
                return
            seen["INVALID"] += 1
            return
        arguments = json.loads(arguments)
    schema = tools[name]["parameters"]
    error = jsonschema.Draft202012Validator(schema).is_valid(arguments)
    seen["valid" if error else "INVALID"] += 1


def main() -> int:
    """Ask, and print what each client saw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("path", type=Path)
    parser.add_argument("--limit", type=int, default=None)
    parser.add_argument("--tools", type=int, default=30)
    options = parser.parse_args()
    requests = list(functions_of(options.path))
    table: dict[str, Counter[str]] = {}
    begin = time.perf_counter()
    with serving() as url:
        sdk = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
        kinds = {
            "chat completions": partial(chat, sdk),
            "responses": partial(respond, sdk),
            "messages": partial(message, anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)),
            "ollama": partial(ollama_chat, ollama.Client(host=url)),
        }
        turns = [
            (f"{name}, streamed" if streams else name, kind, streams)
            for name, kind in kinds.items()
            for streams in (False, True)
        ]
        for number, (question, _) in zip(count(), requests[: options.limit]):
            name, kind, streams = turns[number % len(turns)]
            tools = with_others(requests, number, options.tools)
            seen = table.setdefault(name, Counter())
            history: list[Any] = [{"role": "user", "content": question}]
            for required in (True, False):
                try:
                    calls = kind(tools, streams, history, required)
                    seen["requests"] += 1
                except (openai.APIError, anthropic.APIError, ollama.ResponseError) as error:
                    seen["FAILED"] += 1
                    print(name, number, str(error)[:300], file=sys.stderr)
                    break
                for call in calls:
                    judge(call, {tool["name"]: tool for tool in tools}, seen)
                if not calls and required:
                    break  # the only call was cut, and left out
    for name, seen in sorted(table.items()):
        print(f"{name:28} {dict(sorted(seen.items()))}")
    total = sum(table.values(), Counter())
    print(f"{'all':28} {dict(sorted(total.items()))}, {time.perf_counter() - begin:.0f} s")
    return 1 if total["INVALID"] or total["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())
