"""A running server of vLLM, asked by real clients: is every call valid, or named as cut, and in how many steps?

    python benchmarks/engines.py path/to/bfcl-dev.jsonl.gz --url http://127.0.0.1:8000/v1 --model NAME
        [--clients openai langchain toolgrammar] [--requests 168] [--at-once 16] [--first 20]
        [--strict] [--sheets FILE] [--label NAME --keep] [--json FILE]

The requests are spread evenly over those of the Berkeley Function Calling Leaderboard, in turn under ``required``, a
named tool and ``auto``, streamed and whole, with budgets from tiny to ample; 42 of them have each of these together
once. Each call is checked by the ``jsonschema`` library. An answer counts as one of:

- ``valid``: all its calls are valid; ``text``: it has none, and needs none;
- ``closed``: its calls are valid, and the server says that its token budget ended it;
- ``cut``: the server says that its token budget ended it, and a call (or a text, under ``auto``) is not whole;
- ``refused``: an error of the request (400), or a client's own error that names the budget;
- ``invalid``, ``lost`` (no call where one was demanded) and ``error``: what must not be.

Of those that are closed or cut, ``named`` counts the ones whose ``stop_reason`` names the places, which only OpenAI's
own client shows. With ``--sheets`` each answer is written there as it comes, and a run that was stopped goes on.

Steps are the engine's own count (``vllm:iteration_tokens_total``). With ``--first``, tool sets that the server has not
seen are asked for one token each, one after the other, and then again: the difference is what the first request of a
tool set pays for its grammar. With ``--keep`` the result stands under its label in ``results/engines.json``, beside
those of other servers, and ``results/engines.md`` has them as tables.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import statistics
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from threading import Lock
from typing import Any

import httpx
import jsonschema
import results_io
from answer_tables import engines

from toolgrammar.core import BudgetError, ContextOverflowError, GenerateParams, Message, load_model
from toolgrammar.tools import ToolSet

BUDGETS = (4, 24, 48, 64, 96, 192, 400)
TIMEOUT = 3600.0  # seconds; an answer that is not streamed is silent to its end, and 16 of them share a busy machine
BAD = ("invalid", "lost", "error")
KINDS = ("valid", "text", "closed", "cut", "refused", *BAD)
CHOICES = ("required", "named", "auto")


@dataclass(frozen=True)
class Asked:
    """One request.

    Attributes:
        name: id of the request in the file.
        text: what the user says.
        tools: OpenAI-style dicts.
        choice: ``required``, ``auto`` or the name of a tool.
        budget: maximum number of tokens.
        stream: ask for a stream.
    """

    name: str
    text: str
    tools: list[dict[str, Any]]
    choice: str
    budget: int
    stream: bool


@dataclass(frozen=True)
class Answered:
    """What came: calls as name and text of the arguments, and whether the server says that they are cut, and where."""

    calls: list[tuple[str, str]]
    is_cut: bool
    tokens: int
    is_named: bool = False


def requests(path: Path, count: int) -> list[Asked]:
    """Requests from all over the file, each with a choice, a budget and a form of its own."""
    asked: list[Asked] = []
    budgets, streams, choices = cycle(BUDGETS), cycle([True, False]), cycle(CHOICES)
    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = list(file)
    for number in range(count):
        given = json.loads(lines[number * len(lines) // count])
        tools = ToolSet.from_any(given["functions"]).to_openai()
        text = "\n".join(turn["content"] for turn in given["question"][0] if turn["role"] == "user")
        choice = next(choices)
        choice = tools[0]["function"]["name"] if choice == "named" else choice
        asked.append(Asked(given["id"], text, tools, choice, next(budgets), next(streams)))
    return asked


def with_openai(url: str, model: str) -> Any:
    """Ask by OpenAI's SDK."""
    from openai import BadRequestError, OpenAI

    client = OpenAI(base_url=url, api_key="none", max_retries=0, timeout=TIMEOUT)

    def ask(asked: Asked) -> Answered | str:
        choice: Any = asked.choice
        if choice not in ("required", "auto"):
            choice = {"type": "function", "function": {"name": choice}}
        body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": asked.text}]}
        body |= {"tools": asked.tools, "tool_choice": choice, "max_tokens": asked.budget, "temperature": 0}
        try:
            if not asked.stream:
                whole = client.chat.completions.create(**body)
                (one,) = whole.choices
                calls = [(call.function.name, call.function.arguments) for call in one.message.tool_calls or ()]
                return Answered(calls, _is_cut(one), whole.usage.completion_tokens, _is_named(one))
            parts: dict[int, list[str]] = {}
            is_cut, is_named, tokens = False, False, 0
            for event in client.chat.completions.create(stream=True, stream_options={"include_usage": True}, **body):
                tokens = event.usage.completion_tokens if event.usage else tokens
                for one in event.choices:
                    is_cut |= _is_cut(one)
                    is_named |= _is_named(one)
                    for call in one.delta.tool_calls or ():
                        held = parts.setdefault(call.index, ["", ""])
                        held[0] += call.function.name or ""
                        held[1] += call.function.arguments or ""
            return Answered([(name, text) for name, text in parts.values()], is_cut, tokens, is_named)
        except BadRequestError as error:
            return f"refused: {error}"

    return ask


def _is_cut(choice: Any) -> bool:
    return choice.finish_reason == "length" or _is_named(choice)


def _is_named(choice: Any) -> bool:
    return "toolgrammar" in str(getattr(choice, "stop_reason", ""))


def with_langchain(url: str, model: str) -> Any:
    """Ask by LangChain's ``ChatOpenAI``."""
    from langchain_openai import ChatOpenAI
    from openai import BadRequestError

    def ask(asked: Asked) -> Answered | str:
        chat = ChatOpenAI(
            model=model,
            base_url=url,
            api_key="none",
            max_tokens=asked.budget,
            temperature=0,
            max_retries=0,
            timeout=TIMEOUT,
        ).bind_tools(asked.tools, tool_choice=asked.choice)
        try:
            if asked.stream:
                message: Any = None
                for piece in chat.stream(asked.text):
                    message = piece if message is None else message + piece
            else:
                message = chat.invoke(asked.text)
        except BadRequestError as error:
            return f"refused: {error}"
        calls = [(call["name"], json.dumps(call["args"])) for call in message.tool_calls]
        calls += [(call["name"] or "", call["args"] or "") for call in message.invalid_tool_calls]
        reason = message.response_metadata.get("finish_reason")
        # It drops `stop_reason`: beside `tool_calls` a cut is not shown, but then the arguments are valid all the same.
        tokens = (message.usage_metadata or {}).get("output_tokens", 0)
        return Answered(calls, reason == "length", tokens)

    return ask


def with_toolgrammar(url: str, model: str) -> Any:
    """Ask by our ``vllm:`` address."""
    remote = load_model(f"vllm:{model}@{url}", timeout=TIMEOUT)

    def ask(asked: Asked) -> Answered | str:
        params = GenerateParams(
            tools=ToolSet.from_any(asked.tools), tool_choice=asked.choice, max_tokens=asked.budget, temperature=0
        )
        try:
            if asked.stream:
                calls: list[Any] = []
                end: Any = None
                for end in remote.stream([Message("user", asked.text)], params):
                    if type(end).__name__ == "CallEnd":
                        calls.append(end.call)
            else:
                end = remote.generate([Message("user", asked.text)], params)
                calls = list(end.tool_calls)
        except (BudgetError, ContextOverflowError) as error:
            return f"refused: {error}"
        is_cut = end.finish_reason == "length" if hasattr(end, "finish_reason") else end.reason == "length"
        is_cut |= any(call.cut for call in calls)
        return Answered(
            [(call.name, json.dumps(dict(call.arguments))) for call in calls], is_cut, end.usage.completion_tokens
        )

    return ask


CLIENTS = {"openai": with_openai, "langchain": with_langchain, "toolgrammar": with_toolgrammar}


def verdict(asked: Asked, answered: Answered | str) -> tuple[str, str]:
    """What an answer counts as, and why."""
    if isinstance(answered, str):
        return "refused", answered
    tools = {tool["function"]["name"]: tool["function"]["parameters"] for tool in asked.tools}
    wrong = ""
    for name, text in answered.calls:
        if asked.choice not in ("required", "auto", name) or name not in tools:
            wrong = f"{name!r} was called"
            continue
        try:
            jsonschema.Draft202012Validator(tools[name]).validate(json.loads(text))
        except (ValueError, jsonschema.ValidationError) as error:
            wrong = f"{name}: {str(error)[:120]}; {text[:120]}"
    if wrong:
        return ("cut" if answered.is_cut else "invalid"), wrong
    if answered.calls:
        return ("closed" if answered.is_cut else "valid"), ""
    if asked.choice == "auto":
        return ("cut" if answered.is_cut else "text"), ""
    return ("cut" if answered.is_cut else "lost"), f"{answered.tokens} tokens of {asked.budget}"


def steps(url: str) -> float:
    """The engine's steps so far; 0 if it does not say."""
    text = httpx.get(re.sub(r"/v1/?$", "/metrics", url), timeout=60).text
    return sum(float(count) for count in re.findall(r"^vllm:iteration_tokens_total_count\S* (\S+)$", text, re.M))


def measure(
    label: str, name: str, url: str, model: str, asked: list[Asked], at_once: int, sheet: Path | None
) -> dict[str, Any]:
    """Ask everything by one client; return the counts.

    Args:
        label: name of the server in the sheet.
        name: the client.
        url: address of the server.
        model: name of the model there.
        asked: the requests.
        at_once: number of requests at a time.
        sheet: file of answers, one JSON object a line, each written as it comes; those of an earlier run are taken.
    """
    ask = CLIENTS[name](url, model)
    done = {} if sheet is None else earlier(sheet, label, name)
    run = max((answer["run"] for answer in done.values()), default=-1) + 1
    lock, before, begin = Lock(), steps(url), time.monotonic()

    def one(number: int) -> None:
        request, start = asked[number], time.monotonic()
        answered: Answered | str | None = None
        try:
            answered = ask(request)
            kind, why = verdict(request, answered)
        except Exception as error:
            kind, why = "error", repr(error)[:400]
        got = answered if isinstance(answered, Answered) else Answered([], False, 0)
        seconds = time.monotonic() - start
        answer = {"label": label, "client": name, "number": number, "run": run, "kind": kind, "why": why}
        answer |= {"tokens": got.tokens, "calls": len(got.calls), "named": got.is_named, "seconds": seconds}
        with lock:  # the counts of the run so far: the last line of each run has its sums
            done[number] = {**answer, "steps": steps(url) - before, "wall": time.monotonic() - begin}
            if sheet is not None:
                with sheet.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(done[number]) + "\n")

    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(one, [number for number in range(len(asked)) if number not in done]))
    kinds: dict[str, Counter[str]] = {choice: Counter() for choice in CHOICES}
    examples = []
    for request, answer in ((asked[number], answer) for number, answer in sorted(done.items())):
        kinds[request.choice if request.choice in CHOICES else "named"][answer["kind"]] += 1
        if answer["kind"] in (*BAD, "refused"):
            told = f"{answer['kind']} {request.name} {request.choice} {request.budget} {request.stream}"
            examples.append(f"{told}: {answer['why']}")
    counts = sum(kinds.values(), Counter())
    runs = {number: [a for a in done.values() if a["run"] == number] for number in range(run + 1)}
    return {
        "client": name,
        "requests": len(asked),
        **{kind: counts[kind] for kind in KINDS},
        "named": sum(answer["named"] for answer in done.values()),
        "by_choice": {choice: dict(found) for choice, found in kinds.items()},
        **{what: sum(answer[what] for answer in done.values()) for what in ("calls", "tokens")},
        "steps": sum(max((a["steps"] for a in answers), default=0) for answers in runs.values()),
        "seconds": round(sum(max((a["wall"] for a in answers), default=0) for answers in runs.values()), 1),
        "seconds_longest": round(max(answer["seconds"] for answer in done.values()), 1),
        "examples": sorted(examples)[:12],
    }


def earlier(sheet: Path, label: str, client: str) -> dict[int, dict[str, Any]]:
    """The answers of earlier runs, by the number of the request."""
    if not sheet.exists():
        return {}
    answers = [json.loads(line) for line in sheet.read_text(encoding="utf-8").splitlines()]
    return {a["number"]: a for a in answers if (a["label"], a["client"]) == (label, client)}


def first_requests(url: str, model: str, asked: list[Asked]) -> dict[str, Any]:
    """Ask for one token under each tool set, twice; return what each time took, in milliseconds.

    A request without a grammar comes before, so that the prompt is in the engine's prefix cache both times.
    """
    from openai import BadRequestError, OpenAI

    client = OpenAI(base_url=url, api_key="none", max_retries=0, timeout=TIMEOUT)
    times: tuple[list[float], list[float]] = ([], [])
    refused = 0
    for request in asked:
        for choice, kept in (("none", None), ("required", times[0]), ("required", times[1])):
            begin = time.monotonic()
            try:
                client.chat.completions.create(
                    model=model,
                    messages=[{"role": "user", "content": request.text}],
                    tools=request.tools,
                    tool_choice=choice,
                    max_tokens=1,
                )
            except BadRequestError:
                refused += 1
                break
            if kept is not None:
                kept.append(1e3 * (time.monotonic() - begin))
    first, again = times
    return {
        "tool_sets": len(asked),
        "refused": refused,
        "first_ms_median": round(statistics.median(first), 1),
        "again_ms_median": round(statistics.median(again), 1),
        "more_ms_median": round(statistics.median(a - b for a, b in zip(first, again, strict=True)), 1),
        "first_ms_max": round(max(first), 1),
    }


def keep(label: str, results: list[dict[str, Any]], first: dict[str, Any] | None) -> None:
    """Put the results of a server beside those of others, and write all of them as tables."""
    path = results_io.RESULTS / "engines.json"
    report = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    report.pop("machine", None)
    servers = report.setdefault("servers", {})
    servers[label] = {"clients": results, **({} if first is None else {"first": first})}
    results_io.show("engines", report, engines(report), keep=True)


def main() -> int:
    """Ask, print, and fail if an answer was invalid, lost or an error."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--clients", nargs="*", choices=CLIENTS, default=list(CLIENTS))
    parser.add_argument("--requests", type=int, default=168)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--strict", action="store_true", help="ask for each tool to be enforced (OpenAI's `strict`)")
    parser.add_argument("--sheets", type=Path, help="file of answers as they come, from which a run goes on")
    parser.add_argument("--label", default="server")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    asked = requests(options.data, options.requests)
    later = requests(options.data, options.requests + options.first)
    seen = {one.name for one in asked}
    first = [one for one in later if one.name not in seen][: options.first]
    for tool in (tool for one in (*asked, *first) for tool in one.tools if options.strict):
        tool["function"]["strict"] = True
    begun = first_requests(options.url, options.model, first) if first else None
    print(json.dumps(begun), flush=True)
    results = []
    for name in options.clients:
        client = options.label, name, options.url, options.model
        results.append(measure(*client, asked, options.at_once, options.sheets))
        print(json.dumps(results[-1], indent=1), flush=True)
        if options.keep:
            keep(options.label, results, begun)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return int(any(result[kind] for result in results for kind in BAD))


if __name__ == "__main__":
    sys.exit(main())
