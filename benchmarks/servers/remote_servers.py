"""Real servers, before and after: is the first answer a valid call?

    python -m benchmarks servers/remote_servers DATA LABEL --sheets FILE [--url URL] [--model NAME]
        [--template FILE] [--server KIND] [--requests 200] [--seconds S] [--max-tokens 128] [--at-once N] [--keep]

Each request of the Berkeley Function Calling Leaderboard demands one call of a server twice, greedily. ``plain`` is the
request of an ordinary client: native tools and ``tool_choice: "required"`` at ``/chat/completions``. ``toolgrammar`` is
the same by `load_model` with an address, which negotiates the strongest constraint that the server takes. The judge of
both is the ``jsonschema`` library, by the same schemas. Without ``--url``, llama.cpp's server runs in this process
(`xllamacpp`) with SmolLM2 and a chat template: the model's own shows no tools, so the server drops those of a request.

Each answer is a line of the file of sheets. A run that was stopped goes on from there, and ``--keep`` keeps the servers
of all its lines. The exit code is 1 if an invalid call was passed on to the caller.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from pathlib import Path
from typing import Any

import httpx
import jsonschema

from benchmarks.engines.local_engines import drawn
from benchmarks.shared.sheets import Sheets
from benchmarks.shared.tables import show
from toolgrammar.core import (
    BudgetError,
    ContextOverflowError,
    LimitError,
    ToolGrammarError,
    UnsupportedSchemaError,
    load_model,
)
from toolgrammar.core.models.published import PUBLISHED
from toolgrammar.tools import ToolSet, to_json_schema

#: Requests of answers that the library has sent for the present request, as the last item of a list.
SENT: ContextVar[list[int]] = ContextVar("SENT")


@contextlib.contextmanager
def llama_server(threads: int, template: str, at_once: int, port: int = 0) -> Iterator[str]:
    """Run llama.cpp's server with SmolLM2 and a chat template for some requests at once, and yield its base URL."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(PUBLISHED["smollm2"].pull())
    params.chat_template, params.use_jinja = template, True
    params.n_ctx, params.n_parallel, params.port = 4_096 * at_once, at_once, port
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server


def judged(calls: list[tuple[str, Any]], schemas: Mapping[str, Any]) -> str:
    """Return ``valid``, or the fault of the first call that has one."""
    if not calls:
        return "no call"
    for name, arguments in calls:
        if name not in schemas:
            return "invented name"
        try:
            value = json.loads(arguments) if isinstance(arguments, str) else arguments
        except ValueError:
            return "broken JSON"
        if not isinstance(value, dict) or not jsonschema.Draft202012Validator(schemas[name]).is_valid(value):
            return "wrong arguments"
    return "valid"


def plain(client: httpx.Client, model: str, request: Mapping[str, Any], tools: list[Any], most: int) -> dict[str, Any]:
    """Return the result of the request of an ordinary client."""
    body = {
        "model": model,
        "messages": request["question"][0][-1:],
        "tools": [{"type": "function", "function": tool} for tool in tools],
        "tool_choice": "required",
        "max_tokens": most,
        "temperature": 0,
    }
    answer = client.post("chat/completions", json=body)
    if answer.status_code != 200:
        return {"first": "refused", "passed": "refused", "requests": 1, "tokens": 0, "why": answer.text[:200]}
    data = answer.json()
    chosen = data["choices"][0]
    functions = [call["function"] for call in chosen["message"].get("tool_calls") or ()]
    found = judged(
        [(each["name"], each["arguments"]) for each in functions], {t["name"]: t["parameters"] for t in tools}
    )
    text = (chosen["message"].get("content") or "")[:200]
    if found != "valid" and chosen["finish_reason"] == "length" and not text:
        found = "cut"  # inside a call; a text is no call, however long
    tokens = (data.get("usage") or {}).get("completion_tokens", 0)
    return {"first": found, "passed": found, "requests": 1, "tokens": tokens, "text": text}


def constrained(model: Any, request: Mapping[str, Any], tools: list[Any], most: int) -> dict[str, Any]:
    """Return the result of the same request by the library.

    Args:
        model: of `load_model`.
        request: the request.
        tools: its functions, with JSON Schemas.
        most: maximum number of tokens.
    """
    sent = [0]
    SENT.set(sent)
    result: dict[str, Any] = {"tokens": 0}
    try:
        known = ToolSet.from_any([{"type": "function", "function": tool} for tool in tools])
        known.grammar()
    except (UnsupportedSchemaError, LimitError) as error:
        return {
            "first": "refused schema",
            "passed": "refused schema",
            "requests": 0,
            "tokens": 0,
            "why": str(error)[:200],
        }
    question = request["question"][0][-1]["content"]
    options = {"tool_choice": "required", "parallel_tool_calls": False, "max_tokens": most, "temperature": 0.0}
    try:
        answer = model.generate(question, tools=known, **options)
    except BudgetError:
        result |= {"first": "cut", "passed": "cut"}
    except ContextOverflowError:
        result |= {"first": "refused", "passed": "refused"}  # by the server, as it refuses the plain request
    except ToolGrammarError as error:
        result |= {"first": "invalid", "passed": "error", "why": f"{type(error).__name__}: {error}"[:200]}
    else:
        calls = [(call.name, call.arguments) for call in answer.tool_calls]
        cut = any(call.cut for call in answer.tool_calls) or answer.finish_reason == "length"
        found = judged(calls, {tool["name"]: tool["parameters"] for tool in tools})
        found = "cut" if cut and found != "valid" else found
        first = found if answer.attempts == 1 else "invalid"
        result |= {"first": first, "passed": found, "form": answer.form, "left_out": len(answer.left_out)}
        result["tokens"] = answer.usage.completion_tokens
    return {**result, "requests": sent[-1]}


class Counting(httpx.AsyncHTTPTransport):
    """The network, with a count of the requests that ask for an answer."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request."""
        SENT.get([0])[-1] += request.method == "POST" and request.url.path.endswith(
            ("/completions", "/completion", "/chat")
        )
        return await super().handle_async_request(request)


def counted(sheets: Sheets) -> dict[str, Any]:
    """Return the counts of each server and client."""
    servers: dict[str, dict[str, Any]] = {}
    for (label, _, client), result in sheets.items():
        found = servers.setdefault(label, {}).setdefault(
            client, {"first": Counter(), "passed": Counter(), "forms": Counter()}
        )
        found["first"][result["first"]] += 1
        found["passed"][result["passed"]] += 1
        found["forms"][result.get("form", "none")] += 1
        for kind in ("requests", "tokens"):
            found[kind] = found.get(kind, 0) + result[kind]
    return servers


def main(
    data: Path,
    label: str,
    *,
    sheets: Path,
    url: str = "",
    model: str = "smollm2",
    server: str = "auto",
    requests: int = 200,
    seconds: float = float("inf"),
    max_tokens: int = 128,
    template: Path | None = None,
    threads: int = 1,
    at_once: int = 1,
    keep: bool = False,
) -> int:
    """Ask, judge, and print the counts.

    Args:
        label: name and version of the server, in the table
        url: base URL, with /v1
        server: kind of the server, as `load_model` takes it
        seconds: begin no request after this time
        template: a chat template that shows tools, for llama.cpp
        threads: of llama.cpp
        at_once: requests at a time
    """
    known, start = Sheets(sheets), time.perf_counter()
    with contextlib.ExitStack() as stack:
        if requests:
            own = "" if url else (template or Path()).read_text()
            base = url or stack.enter_context(llama_server(threads, own, at_once))
            client = stack.enter_context(httpx.Client(base_url=base + "/", timeout=600))
            options: dict[str, Any] = {"server": server, "timeout": 600.0, "transport": Counting(), "retries": 2}
            loaded = stack.enter_context(load_model(f"openai:{model}@{base}", **options))

        def ask(request: Mapping[str, Any], name: str) -> None:
            if time.perf_counter() - start > seconds:
                return
            tools = [{**each, "parameters": to_json_schema(each["parameters"])} for each in request["functions"]]
            if name == "plain":
                result = plain(client, model, request, tools, max_tokens)
            else:
                result = constrained(loaded, request, tools, max_tokens)
            known[label, request["id"], name] = result

        pool = stack.enter_context(ThreadPoolExecutor(at_once))
        asked = [
            pool.submit(copy_context().run, ask, request, name)
            for request in drawn(data, requests)
            for name in ("plain", "toolgrammar")
            if (label, request["id"], name) not in known
        ]
        for each in asked:
            each.result()
    show("remote_servers", {"servers": counted(known), "max_tokens": max_tokens}, keep=keep)
    passed = {result["passed"] for (*_, name), result in known.items() if name == "toolgrammar"}
    return 1 if passed & {"no call", "invented name", "broken JSON", "wrong arguments"} else 0
