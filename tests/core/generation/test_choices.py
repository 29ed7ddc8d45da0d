"""Exact choice: where few words may follow, each is scored whole, and the choice follows these probabilities."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest

from toolgrammar.core import GenerateParams, Grammar, Message, load_model
from toolgrammar.core.generation.choices import place_at
from toolgrammar.core.generation.driver import look_ahead
from toolgrammar.core.generation.pending_text import PendingText
from toolgrammar.core.generation.retokenise import Speller
from toolgrammar.core.generation.sampler import Sampler
from toolgrammar.core.generation.token_sequence import Forward, TokenSequence
from toolgrammar.core.models import LocalModel
from toolgrammar.core.validation import is_valid
from toolgrammar.tools import ToolSet

from ..backends import Noise

UNITS = ["celsius", "centi", "kelvin", "kelvins", "fahrenheit", "f"]


@pytest.fixture(scope="module")
def model() -> LocalModel:
    """The embedded model."""
    loaded = load_model("embedded")
    assert isinstance(loaded, LocalModel)
    return loaded


def read(model: LocalModel, ids: list[int]) -> np.ndarray[Any, Any]:
    """Return the log-probabilities after some tokens, read in a sequence of their own."""
    session = model.backend.start()
    logits = session.extend(ids).astype(np.float64)
    session.close()
    values: np.ndarray[Any, Any] = logits - np.logaddexp.reduce(logits)
    return values


def enumerated(model: LocalModel, prompt: list[int], words: list[str], head: str, ends: str) -> dict[str, float]:
    """Return the probability of each word given that it is one of them, token by token.

    Args:
        prompt: the tokens before.
        words: the words.
        head: what stands before each.
        ends: the characters that may end it; empty: only the end of the text.
    """
    totals = []
    for word in words:
        ids = model.encode(head + word)
        total = sum(read(model, [*prompt, *ids[:number]])[token] for number, token in enumerate(ids))
        if any(other != word and other.startswith(word) for other in words):
            after = read(model, [*prompt, *ids])
            chosen = [
                token
                for token, data in enumerate(model.vocabulary.tokens)
                if (data and data[:1] in [end.encode() for end in ends]) or (not ends and token in model.vocabulary.eos)
            ]
            total += np.logaddexp.reduce(after[chosen])
        totals.append(total)
    shares = np.exp(np.array(totals) - np.logaddexp.reduce(totals))
    return dict(zip(words, map(float, shares), strict=True))


def prompt_of(model: LocalModel, text: str) -> list[int]:
    """Return the tokens of a prompt."""
    return model.backend.encode_prompt([Message("user", text)])


@pytest.mark.parametrize("prompt", ["How warm?", "Which one?", "x"])
def test_probabilities_are_those_of_enumeration(model: LocalModel, prompt: str) -> None:
    """Whole words, in a text and in JSON: total variation to enumeration is rounding; the likeliest is taken."""
    text = Grammar.choice(*map(Grammar.literal, UNITS))
    for grammar, head, ends in ((text, "", ""), (Grammar.from_json_schema({"enum": UNITS}), '"', '"')):
        answer = model.generate(prompt, grammar=grammar, exact_choice=True)
        (made,) = answer.choices
        wanted = enumerated(model, prompt_of(model, prompt), UNITS, head, ends)
        assert sorted(made.probabilities) == sorted(UNITS)
        assert sum(abs(made.probabilities[unit] - wanted[unit]) for unit in UNITS) / 2 < 1e-4
        assert made.value == answer.raw.strip('"') == max(wanted, key=wanted.__getitem__)
        assert answer.raw[made.start :].startswith(made.value)
        assert 0 < made.mass <= 1 and made.passes == 1


def test_small_integers_end_where_others_go_on(model: LocalModel) -> None:
    """A number that others begin with counts with what may follow it."""
    numbers = ["1", "10", "100", "12", "3"]
    schema = {"type": "array", "items": {"enum": [int(one) for one in numbers]}, "minItems": 1, "maxItems": 1}
    grammar = Grammar.from_json_schema(schema, whitespace="compact")
    answer = model.generate("How many?", grammar=grammar, exact_choice=True)
    (made,) = answer.choices
    prompt = [*prompt_of(model, "How many?"), *model.encode("[")]
    wanted = enumerated(model, prompt, numbers, "", "]")
    assert sum(abs(made.probabilities[one] - wanted[one]) for one in numbers) / 2 < 1e-4
    assert json.loads(answer.raw) == [int(made.value)]


def test_draws_follow_the_probabilities(model: LocalModel) -> None:
    """With temperature 1 words come as often as their probabilities say; equal seeds draw equally."""
    grammar = Grammar.choice(*map(Grammar.literal, ["yes", "no", "yesterday", "nobody"]))
    drawn: dict[str, int] = {}
    bias = {token: 9.0 for word in ("yes", "nobody") for token in model.encode(word)[:1]}
    for seed in range(400):
        options: dict[str, Any] = {"temperature": 1.0, "seed": seed, "logit_bias": bias}
        answer = model.generate("Is it?", grammar=grammar, exact_choice=True, **options)
        drawn[answer.text] = drawn.get(answer.text, 0) + 1
        (made,) = answer.choices
    again = model.generate("Is it?", grammar=grammar, exact_choice=True, **options)
    assert again.text == answer.text and len(drawn) > 1
    assert sum(abs(drawn.get(word, 0) / 400 - share) for word, share in made.probabilities.items()) / 2 < 0.08


def get_weather(city: Literal["Oslo", "Rome"], unit: Literal["celsius", "centi", "kelvin"], now: bool) -> str:
    """Look up the weather."""


def get_weather_forecast(days: Literal[1, 2, 10, 14]) -> str:
    """Look up the weather to come."""


def get_time(zone: Literal["UTC", "CET", "CEST"]) -> str:
    """Look up the time."""


TOOLS = ToolSet.from_any([get_weather, get_weather_forecast, get_time])


def test_calls_are_chosen_whole(model: LocalModel) -> None:
    """The tool and each value is a choice; each takes one pass more at most, and one token of it is the model's."""
    for prompt in ("Weather?", "Time?", "Next days?"):
        answer = model.generate(
            prompt, tools=TOOLS, tool_choice="required", parallel_tool_calls=False, exact_choice=True
        )
        (call,) = answer.tool_calls
        assert answer.choices[0].value == call.name
        assert sorted(answer.choices[0].probabilities) == sorted(TOOLS.names)
        values = [str(value).lower() if isinstance(value, bool) else str(value) for value in call.arguments.values()]
        assert [made.value for made in answer.choices[1:]] == values
        assert all(made.passes <= 1 for made in answer.choices)
        assert all(answer.raw[made.start :].startswith(made.value) for made in answer.choices)
        free = answer.usage.completion_tokens - answer.usage.forced_tokens
        assert free >= len(answer.choices)
        assert answer.usage.forward_passes <= 2 * len(answer.choices) + free


def test_it_is_off_by_default(model: LocalModel) -> None:
    """Without the option nothing is looked ahead, and no choices are told."""
    assert model.generate("Time?", tools=TOOLS, tool_choice="required").choices == ()


def test_token_logprobs_hold_the_choice(model: LocalModel) -> None:
    """The first token of a word carries the log-probability of the word, the others none."""
    grammar = Grammar.choice(*map(Grammar.literal, UNITS))
    answer = model.generate("How warm?", grammar=grammar, exact_choice=True, logprobs=2, temperature=2.0, seed=5)
    (made,) = answer.choices
    assert sum(token.logprob or 0.0 for token in answer.tokens) == pytest.approx(
        np.log(made.probabilities[made.value]), abs=1e-6
    )


def test_a_tree_is_read_as_its_branches(model: LocalModel) -> None:
    """One pass over a tree gives the logits of passes along each branch, and changes nothing."""
    draw = random.Random(3)
    session = model.backend.start()
    session.extend([draw.randrange(5, 500) for _ in range(40)])
    for size in (1, 2, 7, 30):
        parents = [-1]
        for number in range(1, size):  # each after its parent, as a walk along the branches meets them
            chain = [number - 1]
            while chain[-1] >= 0:
                chain.append(parents[chain[-1]])
            parents.append(draw.choice(chain))
        forward = Forward(tuple(draw.randrange(5, 500) for _ in range(size)), parents=tuple(parents))
        together = look_ahead(session, forward)
        assert forward.passes == 1 and session.length == 40

        class Plain:
            """The same session without a tree of its own."""

            length = property(lambda self: session.length)
            extend, crop = session.extend, session.crop

        apart: Any = Plain()
        single = look_ahead(apart, forward)
        assert forward.passes == size and session.length == 40
        assert np.abs(together - single).max() < 1e-3 * np.abs(single).max()
    session.close()


SCHEMAS: list[Any] = [
    {"type": "object", "properties": {"a": {"enum": ["x", "xy", "x y"]}, "b": {"type": "boolean"}}, "required": ["a"]},
    {"type": "array", "items": {"type": "integer", "minimum": -3, "maximum": 12}, "maxItems": 3},
    {"oneOf": [
        {"type": "object", "properties": {"t": {"const": "circle"}, "r": {"type": "integer"}}, "required": ["t", "r"]},
        {"type": "object", "properties": {"t": {"const": "cube"}, "w": {"type": "boolean"}}, "required": ["t"]},
    ]},
    {"enum": ["a\"b", "a\\c", "a\nd", "", "é", "ä", 1, 10, None, True, {"k": 1}]},
    {"anyOf": [{"type": "string", "maxLength": 4}, {"enum": [1, 2]}]},
    {"type": "object", "additionalProperties": {"enum": ["p", "pq"]}, "propertyNames": {"enum": ["n", "nm"]}},
]  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_answers_stay_valid_and_within_the_budget(model: LocalModel, schema: Any) -> None:
    """At any temperature and budget the answer is valid, whatever the choices are."""
    for seed in range(25):
        draw = random.Random(seed)
        budget = draw.choice([12, 16, 24, 60])
        answer = model.generate(
            "Go.",
            output_type=schema,
            exact_choice=True,
            temperature=draw.choice([0.0, 1.0, 3.0]),
            seed=seed,
            max_tokens=budget,
            jump_forward=draw.random() < 0.8,
        )
        assert is_valid(json.loads(answer.text), schema), answer.text
        assert answer.usage.completion_tokens <= budget


def test_where_choices_are(model: LocalModel) -> None:
    """Free text, open numbers and punctuation are no choices among words; words inside of strings may have anything."""

    def words(schema: Any, written: str) -> list[str] | None:
        matcher = Grammar.from_json_schema(schema).bind(model.vocabulary).matcher()
        assert matcher.accept_bytes(written.encode())
        place = place_at(matcher, written.encode())
        return None if place is None else sorted(place.names())

    cities = ["New York, NY", "New Jersey", "Rome"]
    assert words({"enum": cities}, '"') == sorted(cities)
    assert words({"enum": cities}, '"New ') == sorted(cities[:2])
    assert words({"type": "boolean"}, "") == ["false", "true"]
    assert words({"type": "integer", "minimum": 1, "maximum": 12}, "") == sorted(map(str, range(1, 13)))
    assert words({"type": "integer"}, "") is None
    assert words({"type": "string"}, '"') is None
    assert words({"type": "array", "items": {"type": "boolean"}}, "[") is None
    assert words({"enum": [f"value {number}" for number in range(65)]}, '"') is None


def test_a_word_that_cannot_end_the_text_is_refused(model: LocalModel) -> None:
    """A word after which the output was to end, and may not, changes nothing, as any word that is refused."""
    sequence = TokenSequence([], model.vocabulary.size, Sampler(GenerateParams()), None, lambda: False)
    pending = PendingText(model.backend, Speller(model.backend), sequence, 0)
    matcher = Grammar.from_regex("ab|abc|ad!").bind(model.vocabulary).matcher()
    assert not pending.add_word(matcher, b"ad", -1, lambda: True)
    assert pending.text == b"" and set(matcher.next_bytes()) == set(b"a")
    assert pending.add_word(matcher, b"ab", -1, lambda: True)
    assert pending.text == b"ab" and matcher.is_finished


def test_choices_come_after_a_string_that_ends_with_a_backslash(model: LocalModel) -> None:
    """An escaped backslash before a quote does not escape the quote: the text is outside of strings."""
    schema = {"type": "array", "prefixItems": [{"const": "a\\"}, {"type": "boolean"}], "minItems": 2, "items": False}
    matcher = Grammar.from_json_schema(schema).bind(model.vocabulary).matcher()
    written = b'["a\\\\", '
    assert matcher.accept_bytes(written)
    place = place_at(matcher, written)
    assert place is not None and sorted(place.names()) == ["false", "true"]


class Opening(Noise):
    """Noise that likes to go on with the opening of a call, in any tokens."""

    opening = b"<tool_call>"

    def logits(self, ids: Sequence[int]) -> npt.NDArray[np.float32]:
        """Noise, and more for what goes on with the opening."""
        logits = super().logits(ids) * np.float32(0.3)
        text = self.vocabulary.decode(ids)
        size = next(size for size in range(len(self.opening), -1, -1) if text.endswith(self.opening[:size]))
        rest = self.opening[size:]
        for token, data in enumerate(self.vocabulary.tokens):
            if data and rest and (rest.startswith(data) or data.startswith(rest)):
                logits[token] += 5.5
        return logits


@pytest.mark.parametrize("exact", [False, True])
def test_calls_beside_text_are_as_likely_as_their_opening(exact: bool) -> None:
    """Beside free text calls are drawn as often as all token paths that spell their opening have probability."""
    texts = ("<tool", "_call>", "tool_", "call>", "<tool_call>", "call>\n", ">.", "l>", "<t")
    backend = Opening(texts=texts, scale=1.0)
    model, vocabulary = LocalModel(backend), backend.vocabulary
    grammar = TOOLS.grammar("hermes", tool_choice="auto")
    matcher = grammar.bind(vocabulary).matcher()
    prompt, paths = prompt_of(model, "Weather?"), 0

    def opened(path: list[int], rest: bytes) -> float:
        """Return the probability that a call is opened, after the tokens of a path that leave this rest of it."""
        nonlocal paths
        allowed = sorted(matcher.allowed_tokens())
        shares = np.exp(backend.logits([*prompt, *path])[allowed].astype(np.float64))
        total = 0.0
        for token, share in zip(allowed, shares / shares.sum(), strict=True):
            data = vocabulary.tokens[token] or b"."
            if data.startswith(rest):
                paths += 1
                total += share
            elif rest.startswith(data):
                assert matcher.accept(token)
                total += share * opened([*path, token], rest[len(data) :])
                matcher.rollback(1)
        return total

    wanted = opened([], backend.opening)
    assert paths > 10 and 0.2 < wanted < 0.8
    options: dict[str, Any] = {"temperature": 1.0, "exact_choice": exact, "max_tokens": 120}
    answers = [model.generate("Weather?", grammar=grammar, seed=seed, **options) for seed in range(200)]
    drawn = sum(answer.raw.encode().startswith(backend.opening) for answer in answers)
    assert abs(drawn / 200 - wanted) < 0.12
