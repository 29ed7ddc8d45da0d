"""Probe of a server with OpenAI's chat completions: what it drops, mangles or ignores.

Each check sends a request that only an honest server answers as asked: its prompt asks for something else. An answer as
the prompt asks shows that the server ignored the field. A model that does not follow its prompt shows nothing, which is
``unclear`` where it matters.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from toolgrammar.core.errors import BudgetError, ToolGrammarError
from toolgrammar.core.models import load_model
from toolgrammar.core.models.remote import Answer, PlainServer, RefusedError
from toolgrammar.core.validation import Validator
from toolgrammar.tools import ToolSet

#: ``works``: as asked. ``ignored``: taken, without effect. ``refused``: an error. ``mangled``: the answer is damaged,
#: or says something wrong about itself. ``unclear``: the model did nothing that would show it. ``not asked``: out of
#: time.
Outcome = Literal["works", "ignored", "refused", "mangled", "unclear", "not asked"]

#: Maximum time in seconds of a whole probe.
SECONDS = 60.0

#: Maximum number of tokens of one answer.
_TOKENS = 64

#: Markers of calls and of reasoning in the formats of many models: a server that parses them leaves none in a text.
_MARKS = re.compile(r"<tool_call>|\[TOOL_CALLS\]|<function=|<\|python_tag\|>|<\|channel\|>|<think>|</think>|<｜tool")


def _tool(name: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": f"{name} of a city.", "parameters": schema}}


_CITY = {"city": {"type": "string"}}
_WEATHER, _TIME = _tool("weather", _CITY), _tool("time", _CITY)
_BOUNDED = _tool("rate", {"stars": {"type": "integer", "maximum": 5}})

#: Keywords of JSON Schema: a member's schema, and a value that it forbids and the prompt asks for.
_KEYWORDS: Mapping[str, tuple[dict[str, Any], Any]] = {
    "type": ({"type": "integer"}, "five"),
    "enum": ({"enum": ["red", "green"]}, "blue"),
    "minimum": ({"type": "integer", "minimum": 100}, 5),
    "maximum": ({"type": "integer", "maximum": 10}, 500),
    "multipleOf": ({"type": "integer", "multipleOf": 7}, 10),
    "minLength": ({"type": "string", "minLength": 12}, "abc"),
    "maxLength": ({"type": "string", "maxLength": 3}, "abcdefghij"),
    "pattern": ({"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"}, "hello"),
    "format": ({"type": "string", "format": "date"}, "tomorrow"),
    "minItems": ({"type": "array", "items": {"type": "integer"}, "minItems": 3}, [1]),
    "maxItems": ({"type": "array", "items": {"type": "integer"}, "maxItems": 2}, [1, 2, 3, 4]),
    "uniqueItems": ({"type": "array", "items": {"enum": [1, 2]}, "minItems": 2, "uniqueItems": True}, [1, 1]),
}


#: The field of earlier versions of vLLM for a schema.
_GUIDED = "guided_json"


@dataclass(frozen=True)
class Row:
    """The result of one check.

    Attributes:
        check: what was asked of the server.
        outcome: what it did.
        detail: what was seen.
        through_us: result of the same request by this library; empty where the server itself works.
    """

    check: str
    outcome: Outcome
    detail: str = ""
    through_us: str = ""


@dataclass(frozen=True)
class Report:
    """What a server does.

    Attributes:
        url: address of its API.
        model: name of the model.
        kind: kind of the server, as ``server="auto"`` detects it.
        seconds: duration of the probe.
        rows: the results.
    """

    url: str
    model: str
    kind: str
    seconds: float
    rows: tuple[Row, ...]

    @property
    def is_sound(self) -> bool:
        """True if nothing was ignored or mangled; what is refused is told to a client."""
        return not any(row.outcome in ("ignored", "mangled") for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON."""
        return asdict(self)


class _OutOfTime(Exception):
    """The time of the probe is over: no further request is sent."""


@dataclass
class Prober:
    """One probe.

    Args:
        url: address of the server's API.
        model: name of the model; None: the first that the server lists.
        headers: headers of every request.
        secrets: texts that must never be shown.
        seconds: maximum time of the probe.
        transport: an httpx transport that replaces the network.
    """

    url: str
    model: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    seconds: float = SECONDS
    transport: Any = None

    def run(self) -> Report:
        """Return the report.

        Raises:
            ServerError: the server does not answer at all.
            NotFoundError: it does not have the model, or nothing is at the address.
            ModelError: it lists no model.
        """
        return asyncio.run(self._run())

    async def _run(self) -> Report:
        """Make one check after the other; repeat the requests of those that failed through this library."""
        self._start = time.monotonic()
        timeout = max(self.seconds / 2, 1.0)
        self._wire = PlainServer(self.url, self.headers, self.secrets, timeout, self.transport)
        self._seen: list[Answer] = []  # all answers so far
        self._counts: list[bool] = []  # for each that was no stream: it has a count of its tokens
        try:
            name = self.model = self.model or await self._listed()
            self._kind = await self._wire.kind(name)
            rows = [await self._compared(await self._row(*check)) for check in self._checks()]
            rows += [await self._compared(row) for row in self._rows_of_all_answers()]
        finally:
            await self._wire.aclose()
        return Report(self.url, name, self._kind, round(time.monotonic() - self._start, 1), tuple(rows))

    async def _listed(self) -> str:
        from toolgrammar.core.errors import ModelError

        names = await self._wire.models()
        if not names:
            raise ModelError("the server lists no model", hint="name one: --model NAME")
        return names[0]

    def _seconds_left(self) -> float:
        return self.seconds - (time.monotonic() - self._start)

    # -- requests ----------------------------------------------------------------------------------------------

    async def _ask(self, prompt: str, *, stream: bool = False, **fields: Any) -> tuple[Answer, int]:
        """Return an answer, and the number of events with a piece of a call's arguments."""
        if self._seconds_left() <= 0:
            raise _OutOfTime
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}],
            "temperature": 0,
        }
        body |= {"max_tokens": _TOKENS, **fields}
        answer, pieces = await self._wire.ask(body, stream=stream)
        self._seen.append(answer)
        if not stream:  # not all servers count streams
            self._counts.append(bool(answer.usage.completion_tokens))
        return answer, pieces

    async def _row(self, name: str, check: Callable[[], Awaitable[tuple[Outcome, str]]]) -> Row:
        """Return the result of a check; what a server refuses or garbles is a result as well."""
        try:
            outcome, detail = await asyncio.wait_for(check(), max(self._seconds_left(), 0.01))
        except (_OutOfTime, asyncio.TimeoutError):
            return Row(name, "not asked", "out of time")
        except RefusedError as refusal:
            return Row(name, "refused", self._wire.shown(f"{refusal.status}: {refusal.reason}")[:160])
        except BudgetError as refusal:
            return Row(name, "refused", self._wire.shown(refusal.message)[:160])
        except ToolGrammarError as error:
            if error.code == "not_found" and not self._seen:  # each check would end so
                raise
            return Row(name, "mangled", self._wire.shown(error.message)[:160])
        return Row(name, outcome, self._wire.shown(detail))

    def _checks(self) -> Iterator[tuple[str, Callable[[], Awaitable[tuple[Outcome, str]]]]]:
        """Yield the name of each check, and the check: it returns an outcome, and what was seen."""
        yield "max_tokens", self._max_tokens
        yield "tool_choice: required", lambda: self._choice("required")
        yield "tool_choice: a name", lambda: self._choice("time")
        yield "tool_choice: none", lambda: self._choice("none")
        yield "parallel_tool_calls: false", self._parallel
        yield "calls in a stream", self._streamed
        yield "max_tokens inside a call", self._cut_call
        yield "schema of a tool", lambda: self._tool_schema("required")
        yield "strict tool under auto", lambda: self._tool_schema("auto")
        yield "tools and response_format", self._tools_and_json
        for keyword in _KEYWORDS:
            yield f"json_schema: {keyword}", lambda keyword=keyword: self._keyword(keyword)  # type: ignore[misc]
        if self._kind == "vllm":
            yield _GUIDED, self._guided

    async def _max_tokens(self) -> tuple[Outcome, str]:
        """Ask for a long answer with a budget of 8 tokens."""
        answer, _ = await self._ask("Count from 1 to 200, in words.", max_tokens=8)
        written, finish = answer.usage.completion_tokens, answer.finish
        if written > 8:
            return "ignored", f"{written} tokens were written, 8 allowed"
        if finish == "length":
            return "works", "the answer ends at its budget, and says so"
        if written == 8:
            return "mangled", f"the answer was cut, and finish_reason says {finish!r}"
        return "unclear", f"the answer ended before its budget ({finish!r})"

    async def _choice(self, choice: str) -> tuple[Outcome, str]:
        """Ask with a tool choice (``"required"``, ``"none"`` or a name) for something else than it says."""
        named = choice not in ("required", "none")
        tool_choice: Any = {"type": "function", "function": {"name": choice}} if named else choice
        prompt = (
            "What is the weather in Oslo? Use the tool weather." if choice != "required" else "Say hello. Use no tool."
        )
        answer, _ = await self._ask(prompt, tools=[_WEATHER, _TIME], tool_choice=tool_choice)
        names = [call.name for call in answer.calls]
        if choice == "none":
            return ("ignored", f"it called {names[0]}") if names else ("works", "no call")
        if not names:
            return ("mangled" if _MARKS.search(answer.text) else "ignored"), f"no call, but text: {answer.text[:80]!r}"
        wrong = [name for name in names if name not in ("weather", "time") or (named and name != choice)]
        return ("ignored", f"it called {wrong[0]!r}") if wrong else ("works", f"it called {names[0]}")

    async def _parallel(self) -> tuple[Outcome, str]:
        """Ask for three calls where one is allowed."""
        prompt = "What is the weather in Oslo, in Rome and in Lima? Call the tool three times now, once for each."
        fields: dict[str, Any] = {"tools": [_WEATHER], "tool_choice": "required"}
        answer, _ = await self._ask(prompt, parallel_tool_calls=False, **fields)
        if len(answer.calls) > 1:
            return "ignored", f"{len(answer.calls)} calls"
        if not answer.calls:
            return "unclear", "no call"
        other, _ = await self._ask(prompt, parallel_tool_calls=True, **fields)
        if len(other.calls) > 1:
            return "works", f"1 call, and {len(other.calls)} if allowed"
        return "unclear", "the model makes one call in any case"

    async def _streamed(self) -> tuple[Outcome, str]:
        """Ask for a call as a stream, and as a whole to compare."""
        fields: dict[str, Any] = {"tools": [_WEATHER], "tool_choice": "required"}
        prompt = "What is the weather in Oslo?"
        whole, _ = await self._ask(prompt, **fields)
        answer, pieces = await self._ask(prompt, stream=True, **fields)
        if not answer.calls:
            return ("mangled", "the stream lost the call") if whole.calls else ("unclear", "no call")
        if answer.finish is None:
            return "mangled", "the stream had no finish_reason"
        call = answer.calls[0]
        try:
            value = json.loads(call.arguments or "{}")
        except ValueError:
            may_be_cut = answer.used_up() is not False
            return ("unclear" if may_be_cut else "mangled"), f"the arguments are no JSON: {call.arguments[:60]!r}"
        if not call.id or not call.name or not isinstance(value, dict):
            return "mangled", "a call without id, name or object"
        return "works", f"arguments in {pieces} pieces" if pieces > 1 else "in one piece"

    async def _cut_call(self) -> tuple[Outcome, str]:
        """Ask for a call whose arguments are longer than the budget."""
        prompt = "What is the weather in Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch?"
        answer, _ = await self._ask(prompt, tools=[_WEATHER], tool_choice="required", max_tokens=10)
        if answer.finish == "length":
            return "works", "finish_reason says length"
        for call in answer.calls:
            if not Validator(_WEATHER["function"]["parameters"]).is_valid(_value(call.arguments)):
                return (
                    "mangled",
                    f"the call was cut ({call.arguments[:40]!r}), and finish_reason says {answer.finish!r}",
                )
        written = answer.usage.completion_tokens
        return ("unclear", "the answer fits") if written <= 10 else ("ignored", f"{written} tokens, 10 allowed")

    async def _tool_schema(self, choice: str) -> tuple[Outcome, str]:
        """Ask for arguments that the schema of a strict tool forbids."""
        tool = {**_BOUNDED, "function": {**_BOUNDED["function"], "strict": True}}
        prompt = "Rate Oslo with 900 stars." if choice == "required" else "Call the tool rate with 900 stars."
        answer, _ = await self._ask(prompt, tools=[tool], tool_choice=choice)
        if not answer.calls:
            return "unclear", "no call"
        outcome, detail = self._judged(answer.calls[0].arguments, _BOUNDED["function"]["parameters"], answer)
        if outcome == "ignored" and self._kind == "vllm":
            detail = f"strict tool calling is off (docs/servers.md, Strict tools of vLLM): {detail}"
        return outcome, detail

    async def _tools_and_json(self) -> tuple[Outcome, str]:
        """Ask for a call, with an answer of JSON as the alternative."""
        schema = _object("n", {"type": "integer"})
        fields: dict[str, Any] = {"tools": [_WEATHER], **_json_schema(schema)}
        answer, _ = await self._ask("What is the weather in Oslo? Use the tool.", **fields)
        if answer.calls:
            return "works", "a call is possible"
        other, _ = await self._ask("Say hello.", **fields)
        if other.calls:
            return "works", "a call is possible"
        outcome, detail = self._judged(other.text, schema, other)
        return ("ignored", detail) if outcome == "ignored" else ("unclear", "the answer is JSON; no call was seen")

    async def _keyword(self, keyword: str) -> tuple[Outcome, str]:
        member, forbidden = _KEYWORDS[keyword]
        schema = _object("value", member)
        wrong = json.dumps({"value": forbidden})
        answer, _ = await self._ask(f"Answer with exactly this JSON and nothing else: {wrong}", **_json_schema(schema))
        return self._judged(answer.text, schema, answer)

    async def _guided(self) -> tuple[Outcome, str]:
        schema = _object("n", {"type": "integer"})
        answer, _ = await self._ask("Say hello.", guided_json=schema)
        return self._judged(answer.text, schema, answer)

    def _judged(self, text: str, schema: Any, answer: Answer) -> tuple[Outcome, str]:
        """Return the outcome for a text of an answer that should be JSON of a schema, and what is wrong with it."""
        try:
            value = json.loads(text)
        except ValueError:
            if answer.used_up() is not False:  # it is cut, or may be
                return "unclear", "the answer was cut"
            return "ignored", f"no JSON: {text[:60]!r}"
        wrong = next(iter(Validator(schema, formats=True).violations(value)), None)
        return ("ignored", wrong) if wrong else ("works", text[:60])

    def _rows_of_all_answers(self) -> list[Row]:
        """Return what all answers show together: marks of calls and reasoning in texts, and missing counts."""
        if not self._seen:
            return []
        marker = next((found for answer in self._seen if (found := _MARKS.search(answer.text))), None)
        parsed: tuple[Outcome, str] = "works", "no marks in texts"
        if marker is not None:
            parsed = "mangled", f"{marker[0]!r} is left in a text"
        elif any(answer.reasoning for answer in self._seen):
            parsed = "works", "reasoning is apart"
        usage: tuple[Outcome, str] = ("works", "") if all(self._counts) else ("mangled", "answers without token counts")
        return [Row("reasoning and calls are parsed", *parsed), Row("usage", *usage)]

    # -- through this library ----------------------------------------------------------------------------------

    async def _compared(self, row: Row) -> Row:
        """Return a row with the result of the same request by this library, if the server did not do as asked."""
        if row.outcome not in ("ignored", "mangled", "refused"):
            return row
        request = _request(row.check)
        if request is None or self._seconds_left() <= 0:
            return row
        prompt, options = request

        def ask() -> str:
            """Return what the same request gives by this library; it blocks."""
            headers = {name: value for name, value in self.headers.items() if name.lower() == "authorization"}
            timeout = max(self._seconds_left(), 1.0)
            address = f"{self._kind}:{self.model}@{self.url}"
            model = load_model(address, headers=headers, timeout=timeout, transport=self.transport)
            try:
                answer: Any = model.generate(prompt, **{"max_tokens": _TOKENS, **options})
            except ToolGrammarError as error:
                reason = error.message.rpartition("no answer was valid: ")[2].partition("; received")[0]
                return f"an error, nothing invalid: {self._wire.shown(reason)[:100]}"
            finally:
                model.close()
            many = "" if answer.attempts == 1 else f", {answer.attempts} requests"
            what = "a cut call, marked" if any(call.cut for call in answer.tool_calls) else "valid"
            return f"{what} (form {answer.form}{many})"

        return Row(row.check, row.outcome, row.detail, await asyncio.to_thread(ask))


def _object(name: str, member: Any) -> dict[str, Any]:
    """Return the schema of an object with one member."""
    return {"type": "object", "properties": {name: member}, "required": [name], "additionalProperties": False}


def _json_schema(schema: Any) -> dict[str, Any]:
    named = {"name": "answer", "schema": schema, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def _request(check: str) -> tuple[str, dict[str, Any]] | None:
    """Return the prompt and the options of a check for this library; None if there are none."""
    from toolgrammar.core.generation import JsonMode

    tools = ToolSet.from_any([_WEATHER, _TIME])
    weather = "What is the weather in Oslo?"
    if check.startswith("json_schema: "):
        member, forbidden = _KEYWORDS[check.removeprefix("json_schema: ")]
        schema = _object("value", member)
        return f"Answer with exactly this JSON: {json.dumps({'value': forbidden})}", {
            "json_mode": JsonMode(schema=schema)
        }
    called: dict[str, Any] = {"tools": tools, "tool_choice": "required"}
    found: Mapping[str, tuple[str, dict[str, Any]]] = {
        "tool_choice: required": (weather, called),
        "tool_choice: a name": (weather, {"tools": tools, "tool_choice": "time"}),
        "tool_choice: none": (weather, {"tools": tools, "tool_choice": "none"}),
        "parallel_tool_calls: false": (weather, {**called, "parallel_tool_calls": False}),
        "calls in a stream": (weather, called),
        "max_tokens inside a call": (weather, {**called, "max_tokens": 10}),
        "schema of a tool": ("Rate Oslo.", {"tools": ToolSet.from_any([_BOUNDED]), "tool_choice": "required"}),
        "strict tool under auto": ("Rate Oslo.", {"tools": ToolSet.from_any([_BOUNDED])}),
        _GUIDED: ("Say hello.", {"json_mode": JsonMode(schema=_object("n", {"type": "integer"}))}),
        "tools and response_format": (weather, {"tools": tools, "output_type": {"type": "object"}}),
        "reasoning and calls are parsed": (weather, called),
    }
    return found.get(check)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
