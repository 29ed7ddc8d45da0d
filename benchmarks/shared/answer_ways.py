"""The ways in which `bfcl_v4.py` asks a model for a call, and what an answer is worth.

Each request is answered greedily in every way of `WAYS`: free text that is parsed, free text with one more attempt
after an error, under the grammar, and under the grammar with one thing changed (exact choice,
spacing, order of properties, a draft before the call, jumps). Peers mask the logits of the
same model for the same language (`peer_way`).

An answer is *valid* if it has calls, all of tools that were given, with arguments that satisfy the tool's schema by
``jsonschema``; a call that the budget closed counts. A case without a judge of its own (`Case.check`) takes exactly one
call, whole, and it is right as the leaderboard has it: its function is the one that is wanted, and each argument is one
of the accepted values (``""`` accepts that it is left out); text is compared without case, spaces and punctuation.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np

from benchmarks.masks.tool_sets import LLGuidance
from benchmarks.shared.data import rows
from benchmarks.shared.engines import XGrammar
from benchmarks.shared.sheets import Sheet
from toolgrammar.core import Generation, Grammar, Message, ToolCall, ToolGrammarError
from toolgrammar.core.conversation import TextDelta
from toolgrammar.core.models import Model
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.closed_schema import close_objects


@dataclass(frozen=True)
class Case:
    """One request.

    Attributes:
        id: of the request.
        question: what the user says, or a conversation.
        tools: the tools.
        answer: the name of the right function and the accepted values of each argument.
        check: judges the calls of an answer instead, of which there may be any number.
    """

    id: str
    question: str | Sequence[Message]
    tools: ToolSet
    answer: Mapping[str, Mapping[str, list[Any]]]
    check: Callable[[Sequence[ToolCall]], bool] | None = None


def cases(path: Path, count: int) -> Iterator[Case]:
    """Yield requests with one call as the answer, spread over the file."""
    single = [one for one in rows(path) if len(one["answers"]) == 1 and len(one["question"][0]) == 1]
    step = max(1, len(single) // count)
    for first in range(step):  # those far apart come first
        for one in single[first::step]:
            try:
                tools = ToolSet.from_any(one["functions"])
                tools.grammar(tool_choice="required")
            except ToolGrammarError:
                continue
            yield Case(one["id"], one["question"][0][-1]["content"], tools, one["answers"][0])


# -- judging -------------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """Return a value as it is compared."""
    if isinstance(value, str):
        return re.sub(r"[ ,./\-_*^]", "", value).lower().replace("'", '"')
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def accepts(accepted: Any, value: Any) -> bool:
    """Return True if a value is one of the accepted ones; those of an object are lists again, or single values."""
    for wanted in accepted if isinstance(accepted, list) else [accepted]:
        if isinstance(wanted, Mapping) and isinstance(value, Mapping):
            if matches(wanted, value):
                return True
        elif plain(wanted) == plain(value) and isinstance(wanted, bool) == isinstance(value, bool):
            return True
    return False


def matches(wanted: Mapping[str, list[Any]], given: Mapping[str, Any]) -> bool:
    """Return True if arguments are right."""
    return all(name in wanted and accepts(wanted[name], value) for name, value in given.items()) and all(
        name in given or (isinstance(accepted, list) and "" in accepted) for name, accepted in wanted.items()
    )


def is_valid(case: Case, call: ToolCall) -> bool:
    """Return True if a call is of a tool that was given, and its arguments satisfy the tool's schema."""
    if call.name not in case.tools or call.error is not None:
        return False
    schema = close_objects(case.tools[call.name].parameters)
    return bool(jsonschema.Draft202012Validator(schema).is_valid(dict(call.arguments)))


def judge(case: Case, calls: Sequence[ToolCall], *, whole: bool) -> Sheet:
    """Return what an answer is worth."""
    sheet = {"called": bool(calls), "valid": False, "cut": bool(calls) and not whole, "function": False, "right": False}
    if case.check is not None:
        sheet["valid"] = bool(calls) and all(is_valid(case, call) for call in calls)
        sheet["function"] = sheet["valid"] and sorted(call.name for call in calls) == sorted(case.answer)
        sheet["right"] = case.check(calls)
        return sheet
    if len(calls) != 1 or not whole:
        return sheet
    (call,) = calls
    ((name, wanted),) = case.answer.items()
    sheet["valid"] = is_valid(case, call)
    sheet["function"] = sheet["valid"] and call.name == name
    sheet["right"] = sheet["function"] and matches(wanted, call.arguments)
    return sheet


def spent(*answers: Generation) -> Sheet:
    """Return the last text, and what the answers cost."""
    usages = [answer.usage for answer in answers]
    return {
        "text": answers[-1].raw,
        "tokens": sum(one.completion_tokens for one in usages),
        "passes": sum(one.forward_passes for one in usages),
        "forced": sum(one.forced_tokens for one in usages),
    }


# -- tool sets with one thing changed ------------------------------------------------------------------------------


class Verbatim:
    """A parser that reads everything as text."""

    leniencies = ()

    def feed(self, text: str) -> list[Any]:
        """Return the text."""
        return [TextDelta(text)]

    def close(self) -> list[Any]:
        """Return nothing."""
        return []


class Free(ToolSet):
    """Tools that the prompt describes and no grammar enforces."""

    def grammar(self, *_: Any, **__: Any) -> Grammar:
        """Return the grammar of any text."""
        return Grammar.text()

    def parser(self, *_: Any, **__: Any) -> Any:
        """Return a parser that finds no calls."""
        return Verbatim()


class Flexible(ToolSet):
    """Tools whose arguments may have any white space."""

    def grammar(self, *given: Any, **options: Any) -> Grammar:
        """Return the union grammar with flexible white space."""
        return super().grammar(*given, **{**options, "whitespace": "flexible"})


class Compact(ToolSet):
    """Tools whose arguments have no white space."""

    def grammar(self, *given: Any, **options: Any) -> Grammar:
        """Return the union grammar without white space."""
        return super().grammar(*given, **{**options, "whitespace": "compact"})


class AnyOrder(ToolSet):
    """Tools whose arguments may come in any order; in the format ``hermes``."""

    def grammar(self, *_: Any, **__: Any) -> Grammar:
        """Return the grammar of one call."""
        return Grammar.choice(
            *(
                Grammar.sequence(
                    Grammar.literal(f'<tool_call>\n{{"name": {json.dumps(tool.name)}, "arguments": '),
                    Grammar.from_json_schema(close_objects(tool.parameters), property_order="any", whitespace="single"),
                    Grammar.literal("}\n</tool_call>"),
                )
                for tool in self
            )
        )


# -- the ways ------------------------------------------------------------------------------------------------------


#: Options of `Model.generate` that ask for exactly one call.
ONE_CALL = {"tool_choice": "required", "parallel_tool_calls": False}


@dataclass(frozen=True)
class Bench:
    """What all ways share.

    Attributes:
        model: the model.
        max_tokens: budget of an answer.
        options: of `Model.generate`, for every way that does not set them itself.
    """

    model: Model
    max_tokens: int
    options: Mapping[str, Any] = field(default_factory=lambda: dict(ONE_CALL))

    @property
    def format(self) -> str:
        """Name of the wire format of the model's calls."""
        return getattr(self.model, "backend").tool_format or "hermes"  # noqa: B009 - only a local model has one

    def write(self, prompt: Any, tools: ToolSet, **options: Any) -> Generation:
        """Return an answer."""
        options = {**self.options, "max_tokens": self.max_tokens, **options}
        return self.model.generate(prompt, tools=tools, **options)

    def read(self, text: str, tools: ToolSet) -> tuple[tuple[ToolCall, ...], str]:
        """Return the calls in a free text, and what is wrong with it, if anything is."""
        try:
            calls = tools.parse(text, self.format).tool_calls
        except ToolGrammarError as error:
            return (), str(error)
        errors = [call.error for call in calls if call.error is not None]
        return calls, errors[0] if errors else "" if calls else "there is no tool call in the answer"


def constrained(kind: type[ToolSet] = ToolSet, **options: Any) -> Callable[[Bench, Case], Sheet]:
    """Return the way of writing under the grammar, with a kind of tool set and options of `Model.generate`."""

    def write(bench: Bench, case: Case) -> Sheet:
        answer = bench.write(case.question, kind(case.tools), **options)
        return {**judge(case, answer.tool_calls, whole=answer.finish_reason != "length"), **spent(answer)}

    return write


def conversation(case: Case) -> list[Message]:
    """Return the messages of a request."""
    return [Message("user", case.question)] if isinstance(case.question, str) else list(case.question)


def free(bench: Bench, case: Case) -> Sheet:
    """Write free text, and parse it."""
    answer = bench.write(case.question, Free(case.tools))
    return {**judge(case, bench.read(answer.text, case.tools)[0], whole=True), **spent(answer)}


def free_twice(bench: Bench, case: Case) -> Sheet:
    """Write free text, parse it, and ask once more with the error if it is not valid."""
    answers = [bench.write(case.question, Free(case.tools))]
    calls, error = bench.read(answers[0].text, case.tools)
    if error:
        messages = [
            *conversation(case),
            Message("assistant", answers[0].text),
            Message("user", f"That is not a valid tool call: {error}. Answer with one valid tool call."),
        ]
        answers.append(bench.write(messages, Free(case.tools)))
        calls, _ = bench.read(answers[1].text, case.tools)
    return {**judge(case, calls, whole=True), **spent(*answers)}


WAYS: dict[str, Callable[[Bench, Case], Sheet]] = {
    "free text, parsed": free,
    "free text, one retry with the error": free_twice,
    "grammar": constrained(),
    "grammar, without jumps": constrained(jump_forward=False),
    "grammar, exact choice": constrained(exact_choice=True),
    "grammar, after a draft of 64 tokens": constrained(draft=64),
    "grammar, compact": constrained(Compact),
    "grammar, any white space": constrained(Flexible),
    "grammar, properties in any order": constrained(AnyOrder),
}


class OneCall(XGrammar):
    """xgrammar, of one call in the Hermes format, with the spacing of the library's default."""

    def prepare(self, tools: Sequence[Tool]) -> Any:
        """Return the grammar."""
        import xgrammar

        of, end = xgrammar.Grammar, xgrammar.Grammar.from_ebnf('root ::= "}\\n</tool_call>"')
        calls = []
        for tool in tools:
            head = json.dumps(f'<tool_call>\n{{"name": {json.dumps(tool.name)}, "arguments": ')
            schema = of.from_json_schema(json.dumps(close_objects(tool.parameters)), any_whitespace=False)
            calls.append(of.concat(of.from_ebnf(f"root ::= {head}"), schema, end))
        return of.union(*calls)

    def compile(self, grammar: Any) -> Any:
        """Compile the grammar."""
        return self.compiler.compile_grammar(grammar)


#: Engines that mask the logits of a model instead of this library.
PEERS: dict[str, Callable[..., Any]] = {"xgrammar": OneCall, "llguidance": LLGuidance}


def peer_way(name: str, model: Any) -> Callable[[Bench, Case], Sheet]:
    """Return the way of masking the model's logits by a peer."""
    backend = model.backend
    engine = PEERS[name](backend.vocabulary, backend.encode)

    def write(bench: Bench, case: Case) -> Sheet:
        state = engine.start(engine.compile(engine.prepare(list(case.tools))))
        prompt = backend.encode_prompt(conversation(case), case.tools.to_openai(), case.tools.prompt(bench.format))
        session = backend.start()
        written: list[int] = []
        try:
            logits = session.extend(prompt)
            while len(written) < bench.max_tokens:
                engine.fill(state)
                allowed = np.unpackbits(engine.bits.view(np.uint8), count=len(logits), bitorder="little")
                token = int(np.where(allowed, logits, -np.inf).argmax())
                if token in backend.vocabulary.eos:
                    break
                engine.step(state, token)
                written.append(token)
                logits = session.extend([token])
        finally:
            session.close()
        text = b"".join(backend.vocabulary.tokens[token] or b"" for token in written).decode("utf-8", "replace")
        calls, _ = bench.read(text, case.tools)
        cost = {"text": text, "tokens": len(written), "passes": len(written) + 1, "forced": 0}
        return {**judge(case, calls, whole=len(written) < bench.max_tokens), **cost}

    return write


# -- one answer -------------------------------------------------------------------------------------------------------


def answered(way: Callable[[Bench, Case], Sheet], bench: Bench, case: Case) -> Sheet:
    """Return the sheet of one answer, with its processor time, or with the error that ended it."""
    started = time.process_time()
    try:
        sheet = way(bench, case)
    except Exception as error:  # a peer may refuse a schema, each in its own way
        sheet = {"error": f"{type(error).__name__}: {error}"}
    return {**sheet, "seconds": time.process_time() - started}


# -- many answers -----------------------------------------------------------------------------------------------------


def sign_test(more: int, less: int) -> float:
    """Return how likely a difference of this size or a greater one is by chance, if both ways are equally right."""
    count = more + less
    tail = sum(math.comb(count, k) for k in range(min(more, less) + 1)) / 2**count
    return min(1.0, 2 * tail)


def rows_of(ways: Mapping[str, Mapping[Any, Sheet]], base: str, counted: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the row of each way: the sums of its sheets, and how it compares with one of the ways.

    ``more`` and ``less`` count the requests of both that only this way, or only the base, has right; ``chance`` is the
    probability of such a difference if both are equally right.

    Args:
        ways: the sheets of each way, by request.
        base: the way that all are compared with.
        counted: the keys of sheets that are added up; a sheet without one, such as that of an error, has 0.
    """
    rows = {}
    for way, sheets in ways.items():
        right = {at: bool(sheet.get("right")) for at, sheet in sheets.items()}
        theirs = {at: bool(sheet.get("right")) for at, sheet in ways.get(base, {}).items() if at in right}
        more = sum(right[at] and not other for at, other in theirs.items())
        less = sum(other and not right[at] for at, other in theirs.items())
        rows[way] = {
            "requests": len(sheets),
            "errors": sum("error" in sheet for sheet in sheets.values()),
            **{name: sum(sheet.get(name, 0) for sheet in sheets.values()) for name in counted},
            "more": more,
            "less": less,
            "chance": sign_test(more, less),
        }
    return rows
