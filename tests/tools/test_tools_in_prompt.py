"""Tools at the price of their names: what the model reads, when, and what follows from it."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from toolgrammar.core import (
    ContextOverflowError,
    Finish,
    GenerateParams,
    Message,
    ModelError,
    ToolCall,
    Vocabulary,
)
from toolgrammar.core.conversation.events import CallStart
from toolgrammar.core.generation.loop import Decoding
from toolgrammar.core.generation.sampler import Sampler
from toolgrammar.core.generation.token_sequence import TokenSequence
from toolgrammar.core.models import LocalModel
from toolgrammar.core.testing import ScriptedModel, render_reply
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.formats import get_format
from toolgrammar.tools.formats.registry import format_names
from toolgrammar.tools.tool import MAX_SUMMARY

Logits = npt.NDArray[np.float32]

WEATHER = Tool(
    "weather",
    "Get the weather of a city. The forecast is for today.",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "unit": {"enum": ["C", "F"]}},
        "required": ["city"],
    },
)
WEATHER_OF_DAY = Tool(
    "weather_of_day", "Weather of a day", {"type": "object", "properties": {"day": {"type": "integer"}}}
)
PING = Tool("ping")
TOOLS = ToolSet([WEATHER, WEATHER_OF_DAY, PING])


def declared(*tools: Tool) -> str:
    """What stands in the prompt before the first call of some tools, told apart from what makes it."""
    texts = (
        json.dumps(
            {
                key: value
                for key, value in (
                    ("name", tool.name),
                    ("description", tool.description),
                    ("parameters", tool.parameters),
                )
                if value
            },
            separators=(",", ":"),
        )
        for tool in tools
    )
    return "\n".join(("Declaration of the function to call:", *texts, "", ""))


class Recorded:
    """A backend that keeps what its model reads, and chooses by a function of all tokens of the sequence.

    Attributes:
        reads: the whole sequence at each forward pass, as text.
        crops: number of sequences that were shortened.
    """

    name = "recorded"
    chat_template = None
    takes_thinking = False

    def __init__(
        self,
        logits: Callable[[Sequence[int]], Logits],
        *,
        more: Sequence[bytes] = (),
        tool_format: str = "hermes",
        window: int = 4096,
        batches: bool = False,
    ) -> None:
        tokens: list[bytes | None] = [*(bytes((byte,)) for byte in range(256)), *more, None]
        self.vocabulary = Vocabulary(tokens, eos=[len(tokens) - 1])
        self.tool_format = tool_format
        self.context_window = window
        self.logits = logits
        self.reads: list[str] = []
        self.crops = 0
        self._batches = batches

    def encode(self, text: str) -> list[int]:
        """The bytes."""
        return list(text.encode())

    def encode_prompt(self, messages: Sequence[Message], tools: Sequence[Any] = (), tool_prompt: str = "") -> list[int]:
        """The turns, one a line."""
        turns = "".join(f"{message.role}: {render_reply(message)}\n" for message in messages)
        return self.encode(f"{tool_prompt}\n{turns}assistant: ")

    def start(self) -> Any:
        """An empty sequence."""
        return RecordedSession(self)

    def close(self) -> None:
        """Nothing to free."""
        return

    def can_batch(self) -> bool:
        """As the test says."""
        return self._batches

    def begin(self, prompt: Sequence[int]) -> Any:
        """An empty sequence."""
        return RecordedSession(self)

    def extend_many(self, rows: Sequence[tuple[Any, Sequence[int]]]) -> list[Logits]:
        """One after the other."""
        return [session.extend(ids) for session, ids in rows]


class RecordedSession:
    """A sequence of `Recorded`."""

    cached_tokens = 0

    def __init__(self, backend: Recorded) -> None:
        self.backend = backend
        self.ids: list[int] = []

    @property
    def length(self) -> int:
        """Number of tokens."""
        return len(self.ids)

    def extend(self, token_ids: Sequence[int]) -> Logits:
        """Append tokens, and keep the sequence."""
        assert len(self.ids) + len(token_ids) <= self.backend.context_window
        self.ids += token_ids
        self.backend.reads.append(self.backend.vocabulary.decode(self.ids).decode())
        return self.backend.logits(self.ids)

    def crop(self, length: int) -> None:
        """Shorten the sequence."""
        assert length <= len(self.ids)
        self.backend.crops += length < len(self.ids)
        del self.ids[length:]

    def close(self) -> None:
        """Nothing to free."""
        return


def noise(ids: Sequence[int]) -> Logits:
    """Logits that depend on the whole sequence, and on nothing else."""
    random = np.random.default_rng(zlib.crc32(repr(list(ids)).encode()))
    return random.normal(size=257).astype(np.float32) * 2


def wanted(text: str) -> Callable[[Sequence[int]], Logits]:
    """Logits of a model that wants to write a text of bytes after ``assistant: ``."""

    def logits(ids: Sequence[int]) -> Logits:
        said = bytes(ids).rpartition(b"assistant: ")[2]
        scores = np.zeros(257, dtype=np.float32)
        scores[text.encode()[len(said)] if len(said) < len(text) else 256] = 9.0
        return scores

    return logits


def call(name: str, **arguments: Any) -> str:
    """A call as the format ``hermes`` writes it."""
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


NAMES_PROMPT = TOOLS.prompt("hermes", brief=TOOLS.names)


# -- what the model reads ------------------------------------------------------------------------------------------


def test_the_prompt_has_names_and_one_line() -> None:
    """The first sentence of a description stands beside a name, and no schema."""
    assert "weather: Get the weather of a city.\nweather_of_day: Weather of a day\nping\n" in NAMES_PROMPT
    assert "city" not in NAMES_PROMPT.replace("a city.", "") and "day:" not in NAMES_PROMPT.replace("of_day:", "")


def test_a_declaration_is_read_before_the_arguments() -> None:
    """The model reads names, writes a name, and reads the declaration before it chooses anything more."""
    text = "Yes.\n" + call("weather", city="Rome")
    backend = Recorded(wanted(text))
    answer = LocalModel(backend).generate("Hi", tools=TOOLS, tools_in_prompt="names")
    assert answer.raw == text
    names = f"{NAMES_PROMPT}\nuser: Hi\nassistant: "
    given = f"{NAMES_PROMPT}\nuser: {declared(WEATHER)}Hi\nassistant: "
    at = backend.reads.index(f'{given}Yes.\n<tool_call>\n{{"name": "weather", "arguments": {{"city": "')
    assert backend.reads[at - 1] == f'{names}Yes.\n<tool_call>\n{{"name": "weather'
    assert all(read.startswith(names) for read in backend.reads[:at])
    assert all(read.startswith(given) for read in backend.reads[at:])
    assert backend.crops == 1
    assert answer.usage.prompt_tokens == len(given)
    assert answer.usage.completion_tokens == len(text)


def test_each_declaration_is_inserted_once() -> None:
    """Of several calls in a turn, the first of each tool inserts its declaration, behind the earlier ones."""
    text = "\n".join(
        (call("weather", city="R"), call("weather_of_day", day=3), call("weather", city="O"), call("ping"))
    )
    backend = Recorded(wanted(text))
    answer = LocalModel(backend).generate("Hi", tools=TOOLS, tools_in_prompt="names")
    assert [one.name for one in answer.tool_calls] == ["weather", "weather_of_day", "weather", "ping"]
    assert backend.crops == 3
    begins = [f"{NAMES_PROMPT}\nuser: {told}Hi\nassistant: " for told in (
        "", declared(WEATHER), declared(WEATHER, WEATHER_OF_DAY), declared(WEATHER, WEATHER_OF_DAY, PING)
    )]  # fmt: skip
    order = [next(number for number, begin in enumerate(begins) if read.startswith(begin)) for read in backend.reads]
    assert order == sorted(order) and set(order) == {0, 1, 2, 3}


def test_a_name_that_is_fixed_is_declared_from_the_beginning() -> None:
    """With a tool's name as the choice, or one tool, the model reads the declaration at once, and nothing twice."""
    backend = Recorded(wanted(call("weather", city="R")))
    LocalModel(backend).generate("Hi", tools=TOOLS, tools_in_prompt="names", tool_choice="weather")
    assert backend.crops == 0
    assert all(read.startswith(f"{NAMES_PROMPT}\nuser: {declared(WEATHER)}Hi\nassistant: ") for read in backend.reads)


@pytest.mark.parametrize("choice", ["none", "auto"])
def test_without_a_call_nothing_is_inserted(choice: str) -> None:
    """A text answer reads the prompt with names alone."""
    backend = Recorded(wanted("Hello."))
    answer = LocalModel(backend).generate("Hi", tools=TOOLS, tools_in_prompt="names", tool_choice=choice)
    assert answer.text == "Hello." and backend.crops == 0
    assert all(read.startswith(f"{NAMES_PROMPT}\nuser: Hi\nassistant: ") for read in backend.reads)


def test_the_next_turn_begins_with_what_the_model_has_read() -> None:
    """In a conversation the declaration stands before the first call of its tool, so that the prefix cache is kept."""
    text = call("weather", city="R")
    backend = Recorded(wanted(text))
    model = LocalModel(backend)
    first = model.generate("Hi", tools=TOOLS, tools_in_prompt="names")
    read = backend.reads[-1]
    turns = [Message("user", "Hi"), first.message, Message("tool", "Sunny", tool_call_id=first.tool_calls[0].id)]
    backend.logits = wanted(call("weather", city="O"))
    backend.reads.clear()
    model.generate([*turns, Message("user", "And Oslo?")], tools=TOOLS, tools_in_prompt="names")
    assert backend.crops == 1  # of the first turn: the tool is declared already
    assert backend.reads[0].startswith(read) and read.endswith(text)


@pytest.mark.parametrize("jump", [True, False])
@pytest.mark.parametrize("exact", [True, False])
def test_other_options_see_the_declaration_too(jump: bool, exact: bool) -> None:
    """With whole words chosen, or without jumps, no token after a name is chosen without the declaration."""
    text = call("weather", city="R", unit="F")
    backend = Recorded(wanted(text))
    options: Any = {"jump_forward": jump, "exact_choice": exact, "tools_in_prompt": "names"}
    answer = LocalModel(backend).generate("Hi", tools=TOOLS, tool_choice="required", **options)
    assert answer.raw == text
    with_arguments = [read for read in backend.reads if '"weather"' in read.rpartition("assistant: ")[2]]
    assert with_arguments and all(declared(WEATHER) in read for read in with_arguments)


def test_a_stream_has_the_same_events() -> None:
    """The events of a stream do not show that a declaration was inserted."""
    text = "Yes.\n" + call("weather", city="Rome") + "\n" + call("ping")
    events = {}
    for mode in ("schemas", "names"):
        model = LocalModel(Recorded(wanted(text)))
        streamed = [*model.stream("Hi", tools=TOOLS, tools_in_prompt=mode)]
        assert isinstance(streamed[-1], Finish)
        events[mode] = [str(event).replace(getattr(event, "id", "") or "-", "") for event in streamed[:-1]]
        events[mode] = [event for event in events[mode] if "CallEnd" not in event]
    assert events["schemas"] == events["names"]


def test_reasoning_names_no_tool() -> None:
    """A call inside of reasoning inserts nothing; the call after it does."""
    reply = "<think>" + call("ping") + "</think>" + call("weather", city="R")
    tokens: list[bytes | None] = [*(bytes((byte,)) for byte in range(256)), None]
    vocabulary = Vocabulary(tokens, eos=[256])
    model = ScriptedModel(lambda messages: reply, vocabulary=vocabulary)
    options: Any = {"thinking": True, "thinking_markers": ("<think>", "</think>")}
    answer = model.generate("Hi", tools=TOOLS, tools_in_prompt="names", **options)
    assert answer.message.reasoning and "ping" in answer.message.reasoning
    assert [one.name for one in answer.tool_calls] == ["weather"]
    start = len(f"{NAMES_PROMPT}user: Hi\nassistant: ")
    assert answer.usage.prompt_tokens == start + len(declared(WEATHER))


def test_only_deferred_tools_are_brief_by_default() -> None:
    """A deferred tool has its name in the prompt, and its declaration when it is called; the others have theirs."""
    tools = ToolSet([WEATHER, WEATHER_OF_DAY.changed(deferred=True)])
    prompt = tools.prompt("hermes", brief=["weather_of_day"])
    assert '"city"' in prompt and '"day"' not in prompt
    backend = Recorded(wanted(call("weather_of_day", day=3)))
    LocalModel(backend).generate("Hi", tools=tools)
    assert backend.reads[0].startswith(f"{prompt}\nuser: Hi\nassistant: ")
    assert backend.reads[-1].startswith(f"{prompt}\nuser: {declared(WEATHER_OF_DAY)}Hi\nassistant: ")


def test_auto_goes_by_the_size_of_the_declarations() -> None:
    """Few tools have their schemas in the prompt; many have their names."""
    model = LocalModel(Recorded(noise, window=32_768))
    many = ToolSet([WEATHER.renamed(f"weather_{number}") for number in range(200)])
    few = ToolSet([WEATHER.renamed(f"weather_{number}") for number in range(40)])
    assert model.count_tokens("Hi", few, "auto") == model.count_tokens("Hi", few)
    assert model.count_tokens("Hi", many, "auto") == model.count_tokens("Hi", many, "names")
    assert model.count_tokens("Hi", many, "names") < model.count_tokens("Hi", many) / 3


# -- limits --------------------------------------------------------------------------------------------------------


def test_a_declaration_does_not_count_as_output() -> None:
    """A budget that the call just fits in is enough, however long the declaration is."""
    text = call("weather", city="Rome")
    model = LocalModel(Recorded(wanted(text)))
    options: Any = {"tool_choice": "required", "parallel_tool_calls": False, "max_tokens": len(text)}
    answer = model.generate("Hi", tools=TOOLS, tools_in_prompt="names", **options)
    assert answer.raw == text and answer.finish_reason == "tool_calls"


def test_a_declaration_that_does_not_fit_is_an_error_that_names_it() -> None:
    """The error has the tool, the size and the window; with a little more room the answer is closed validly."""
    text = call("weather", city="R" * 400)
    whole = len(f"{NAMES_PROMPT}\nuser: {declared(WEATHER)}Hi\nassistant: ")
    least = len(call("weather", city=""))
    options: Any = {"tools": TOOLS, "tools_in_prompt": "names", "tool_choice": "required"}
    with pytest.raises(ContextOverflowError, match=rf"description of 'weather' the prompt has {whole} tokens"):
        LocalModel(Recorded(wanted(text), window=whole + least - 1)).generate("Hi", **options)
    answer = LocalModel(Recorded(wanted(text), window=whole + least + 5)).generate("Hi", **options)
    assert answer.finish_reason == "length" and answer.tool_calls[0].cut == ("/city",)
    assert answer.tool_calls[0].error is None and answer.usage.completion_tokens <= least + 5


def test_a_word_that_is_none() -> None:
    """Anything else is an error."""
    with pytest.raises(ModelError, match="tools_in_prompt is 'name'"):
        LocalModel(Recorded(noise)).generate("Hi", tools=TOOLS, tools_in_prompt="name")  # type: ignore[arg-type]


# -- laws ----------------------------------------------------------------------------------------------------------

CHOICES = ToolSet(
    [
        Tool("ab", "A", {"type": "object", "properties": {"x": {"enum": ["p", "qr"]}, "z": {"type": "boolean"}}}),
        Tool("ac", "B", {"type": "object", "properties": {"y": {"type": "boolean"}}, "required": ["y"]}),
    ]
)


def answers_of(backend: Recorded, prompt_of: Callable[[str], str]) -> Iterator[tuple[str, float]]:
    """Yield each answer of one call and its probability, by the chain rule over all allowed tokens.

    Args:
        backend: the model.
        prompt_of: the prompt under which the token after a text is chosen.
    """
    grammar = CHOICES.grammar("hermes", tool_choice="required", parallel=False)
    eos = min(backend.vocabulary.eos)

    def follow(text: bytes, probability: float) -> Iterator[tuple[str, float]]:
        matcher = grammar.bind(backend.vocabulary).matcher()
        assert not text or matcher.accept_bytes(text)
        allowed = matcher.allowed_tokens()
        scores = backend.logits([*prompt_of(text.decode()).encode(), *text]).astype(np.float64)[np.array(allowed)]
        shares = np.exp(scores - np.logaddexp.reduce(scores))
        for token, share in zip(allowed, shares, strict=True):
            if token == eos:
                yield text.decode(), probability * share
            else:
                yield from follow(text + bytes((token,)), probability * share)

    return follow(b"", 1.0)


#: A prompt for which noise gives each answer at least 0.5%, so that the counts can be compared.
SAID = "And,"


def prompt_with_declaration(text: str) -> str:
    """Return the prompt under which the token after a text is to be chosen."""
    name = next((tool for tool in CHOICES if f'{{"name": "{tool.name}"' in text), None)
    brief = CHOICES.prompt("hermes", brief=CHOICES.names)
    return f"{brief}\nuser: {'' if name is None else declared(name)}{SAID}\nassistant: "


@pytest.mark.parametrize("batched", [False, True])
def test_the_rest_is_distributed_as_given_the_declaration(batched: bool) -> None:
    """The probability of each answer is the product of those of its name given the names, and of its arguments given
    the declaration; answers come as often."""
    backend = Recorded(noise, batches=batched)
    law = dict(answers_of(backend, prompt_with_declaration))
    without = dict(answers_of(backend, lambda text: prompt_with_declaration("")))
    assert len(law) == 11 and sum(law.values()) == pytest.approx(1) == sum(without.values())
    assert max(abs(law[text] - without[text]) for text in law) > 0.05
    params = GenerateParams(
        tools=CHOICES, tools_in_prompt="names", tool_choice="required", parallel_tool_calls=False, temperature=1.0,
        logprobs=0,
    )  # fmt: skip
    model = LocalModel(backend, max_running_tokens=1_700)
    draws = 600
    many = [GenerateParams(**{**vars(params), "seed": seed}) for seed in range(draws)]
    counts = dict.fromkeys(law, 0)
    for answer in model.generate_batch([SAID] * draws, many):
        counts[answer.raw] += 1
        told = sum(token.logprob or 0.0 for token in answer.tokens)
        assert np.exp(told) == pytest.approx(law[answer.raw], rel=1e-4)
    distance = sum((counts[text] - draws * share) ** 2 / (draws * share) for text, share in law.items())
    assert distance < 30  # 10 degrees of freedom: a wrong law has hundreds
    assert sum((counts[text] - draws * share) ** 2 / (draws * share) for text, share in without.items()) > 60
    if batched:
        assert model.scheduler is not None and model.scheduler.counters().preempted > 0


@pytest.mark.parametrize("jump", [True, False])
def test_a_token_over_the_end_of_a_name_is_kept_up_to_it(jump: bool) -> None:
    """Where a token ends a name and begins the arguments, the model chooses these anew with the declaration."""
    more = [b"(b", b"(a", b"(b=1"]
    tools = ToolSet([Tool(name, "", {"type": "object", "properties": {
        "a": {"enum": [1]}, "b": {"enum": [1]}}}) for name in ("f", "fg")])  # fmt: skip

    def logits(ids: Sequence[int]) -> Logits:
        scores = np.zeros(260, dtype=np.float32)
        is_declared = b"Declaration" in vocabulary.decode(ids)
        scores[[257, 97] if is_declared else [256, 258]] = 9.0  # with the declaration (a, without it (b or (b=1
        scores[[40, 41]] = 5.0
        return scores

    backend = Recorded(logits, more=more, tool_format="pythonic")
    vocabulary = backend.vocabulary
    options: Any = {"tool_choice": "required", "parallel_tool_calls": False, "jump_forward": jump}
    answer = LocalModel(backend).generate("Hi", tools=tools, tools_in_prompt="names", **options)
    (made,) = answer.tool_calls
    assert answer.raw.startswith("[f(a=1") and "a" in made.arguments
    assert not any("(b" in read.rpartition("assistant: ")[2] for read in backend.reads[: backend.reads.index(
        next(read for read in backend.reads if "Declaration" in read)) + 1])  # fmt: skip
    schemas = LocalModel(Recorded(logits, more=more, tool_format="pythonic")).generate("Hi", tools=tools, **options)
    assert schemas.raw.startswith("[f(b=1")  # without the option the token stays whole


@pytest.mark.parametrize("name", format_names())
def test_in_every_format_a_name_is_complete_before_the_first_argument(name: str) -> None:
    """A parser that has read what all calls of a tool begin with has begun the call."""
    parameters: Any = {"type": "object", "properties": {"ab": {"type": "integer"}, "ac": {"type": "integer"}}}
    tools = ToolSet([Tool("get", "", parameters), Tool("get_all", "", parameters)])
    wire = get_format(name)
    arguments: tuple[dict[str, int], ...] = ({}, {"ab": 5}, {"ac": 5})
    calls = [ToolCall("call_1", "get", given) for given in arguments]
    texts = [wire.render("", [one]) for one in calls]
    common = "".join(one for one, *_ in takewhile(lambda row: len({*row}) == 1, zip(*texts, strict=False)))
    parser = tools.parser(wire, names_only=True)
    begun = [event for piece in common for event in parser.feed(piece) if isinstance(event, CallStart)]
    assert [event.name for event in begun] == ["get"]


def test_the_repetition_penalty_counts_the_new_prompt() -> None:
    """Tokens of the old prompt count no more, and those of the new one do."""
    sampler = Sampler(GenerateParams(repetition_penalty=1.5))
    sequence = TokenSequence([1, 2, 2, 3], 300, sampler, None, lambda: False)
    sampler.saw(sequence.prompt)
    sequence.append(7, False)
    sequence.replace_prompt([1, 2, 4, 4, 3])
    assert sampler._seen == Counter([1, 2, 4, 4, 3, 7])
    request = next(sequence.read())
    assert request.token_ids == (1, 2, 4, 4, 3, 7) and request.kept is None
    sequence.append(8, False)
    sequence.replace_prompt([1, 2, 4, 5, 3])
    request = next(sequence.read())
    assert request.token_ids == (5, 3, 7, 8) and request.kept == 3
    assert sampler._seen == Counter([1, 2, 4, 5, 3, 7, 8])


# -- the tool set --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("description", "line"),
    [
        ("", ""),
        ("Add two numbers.", "Add two numbers."),
        ("Add two numbers. Then more.", "Add two numbers."),
        ("Uses v1.2 of e.g. this API. Then more.", "Uses v1.2 of e.g. this API."),
        ("First line\n\nArgs:\n    x: a number", "First line Args: x: a number"),
        ("word " * 50, ("word " * 19).rstrip() + " ..."),
    ],
)
def test_one_line_of_a_tool(description: str, line: str) -> None:
    """The first sentence, in one line of bounded length."""
    assert Tool("t", description).summary == line
    assert len(line) <= MAX_SUMMARY


def test_tools_for_templates_are_brief_too() -> None:
    """A chat template gets the name and one line."""
    assert TOOLS.to_openai(brief=["weather"])[0] == {
        "type": "function",
        "function": {"name": "weather", "description": "Get the weather of a city."},
    }
    assert TOOLS.to_openai(brief=["weather"], closed=True)[1]["function"]["parameters"]["properties"]


@pytest.mark.parametrize(
    "source",
    [
        {"type": "function", "defer_loading": True, "function": {"name": "f", "parameters": WEATHER.parameters}},
        {"type": "function", "name": "f", "parameters": WEATHER.parameters, "defer_loading": True},
        {"name": "f", "input_schema": WEATHER.parameters, "defer_loading": True},
        {"type": "custom", "name": "f", "defer_loading": True},
    ],
)
def test_providers_dicts_of_deferred_tools(source: dict[str, Any]) -> None:
    """``defer_loading`` of OpenAI's and Anthropic's tools is read."""
    assert ToolSet.from_any([source])["f"].deferred
    assert not ToolSet.from_any([{**source, "defer_loading": False}])["f"].deferred
    assert ToolSet.from_any([source]).brief_names() == {"f"}


def test_a_loop_without_insertions_reads_no_names() -> None:
    """Other requests pay nothing: their decoding has no reader of names."""
    made: list[Any] = []
    original = Decoding.steps

    def steps(self: Decoding) -> Any:
        made.append(self.names)
        return original(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Decoding, "steps", steps)
        LocalModel(Recorded(wanted("Hi."))).generate("Hi", tools=TOOLS)
        LocalModel(Recorded(wanted("Hi."))).generate("Hi", tools=TOOLS, tools_in_prompt="names", tool_choice="none")
    assert made == [None, None]
