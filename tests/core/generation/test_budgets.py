"""Every budget from the least on: the call is valid, within it, and honest about what was cut."""

from __future__ import annotations

import json
import random
import re
from typing import Any, Literal

import jsonschema
import pytest

from toolgrammar.core import BudgetError, Grammar, InvalidArgumentsError, JsonMode, Model, Vocabulary, load_model
from toolgrammar.core.masks.budget import Budget
from toolgrammar.core.models.numpy_llama.bpe import ByteBPE
from toolgrammar.core.models.numpy_llama.embedded import TOKENIZER
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet

from ...counted import at_most


def send_mail(to: list[str], subject: str, body: str, priority: Literal["low", "high"] = "low") -> str:
    """Send a mail."""
    return "sent"


def convert(amount: float, source: str, target: Literal["EUR", "USD", "NOK"]) -> str:
    """Convert money."""
    return "converted"


def plan(goal: str, steps: list[dict[str, str]], dry: bool = True) -> str:
    """Plan a trip."""
    return "planned"


REQUESTS = {"one": [convert], "three": [send_mail, convert, plan], "nested": [plan]}


@pytest.fixture(scope="module")
def noise() -> Model:
    """The embedded model: what it writes does not end by itself."""
    return load_model("embedded")


@pytest.mark.parametrize("name", REQUESTS)
def test_every_budget(noise: Model, name: str) -> None:
    """Below the least budget an error names it; from there on each call is valid, and a cut one is not run."""
    tools = ToolSet.from_any(REQUESTS[name])
    request: dict[str, Any] = {"tools": tools, "tool_choice": "required", "temperature": 1.0}
    with pytest.raises(BudgetError) as caught:
        noise.generate("x", max_tokens=2, **request)
    least = int(re.findall(r"needs (\d+) tokens", str(caught.value))[0])
    with pytest.raises(BudgetError):
        noise.generate("x", max_tokens=least - 1, **request)
    cut = 0
    for budget in range(least, 60, 4):
        generation = noise.generate("x", max_tokens=budget, seed=budget, **request)
        assert generation.usage.completion_tokens <= budget
        for call in generation.tool_calls:
            jsonschema.validate(dict(call.arguments), dict(tools[call.name].parameters))
            if call.cut:
                cut += 1
                assert generation.finish_reason == "length"
                with pytest.raises(InvalidArgumentsError, match="truncated"):
                    tools.call(call)
                assert tools.execute(call).error is not None
                tools.call(call, allow_cut=True)
    assert cut > 2


def test_closing_can_be_refused(noise: Model) -> None:
    """With on_budget="error" nothing is closed by force: either the call is whole, or there is an error."""
    tools = ToolSet.from_any([convert])
    whole = errors = 0
    for seed in range(6):
        try:
            generation = noise.generate(
                "x", tools=tools, tool_choice="required", temperature=1.0, seed=seed, max_tokens=60, on_budget="error"
            )
        except BudgetError as error:
            assert "ran out" in str(error)
            errors += 1
        else:
            assert all(call.cut == () for call in generation.tool_calls)
            whole += 1
    assert whole + errors == 6 and errors > 0


#: Arrays of arrays, and objects of them, without end.
NESTED: dict[str, Any] = {
    "$ref": "#/$defs/tree",
    "$defs": {
        "tree": {
            "anyOf": [
                {"type": "array", "items": {"$ref": "#/$defs/tree"}},
                {
                    "type": "object",
                    "properties": {"left": {"$ref": "#/$defs/tree"}, "ré": {"enum": ["ö€", "yes"]}},
                    "required": ["left", "ré"],
                    "additionalProperties": False,
                },
            ]
        }
    },
}


def opener(text: str, window: int) -> tuple[ScriptedModel, list[int]]:
    """A model that writes one text for ever, with joined tokens; and a list of how many tokens it spelled each time."""
    model = ScriptedModel(lambda _: text * window, context_window=window, vocabulary=ByteBPE.load(TOKENIZER).vocabulary)
    backend, spelled = model._scripted, list[int]()
    encode = backend.encode

    def counted(text: str) -> list[int]:
        ids = encode(text)
        spelled.append(len(ids))
        return ids

    backend.encode = counted  # type: ignore[method-assign]
    return model, spelled


@pytest.mark.parametrize("text", ["[", '{"left":'])
def test_endless_nesting_is_spelled_in_linear_work(text: str) -> None:
    """A model that opens brackets until the window is full makes the completion be spelled in parts, not anew."""
    for window in (500, 1_000, 2_000):
        model, spelled = opener(text, window)
        generation = model.generate("x", json_mode=JsonMode(NESTED))
        assert generation.finish_reason == "length"
        assert window - 20 <= generation.usage.prompt_tokens + generation.usage.completion_tokens <= window
        assert sum(spelled) <= 5 * window


@pytest.mark.parametrize("text", ['[{"left":[', "[[],"])
def test_every_budget_of_endless_nesting(text: str) -> None:
    """A completion that is spelled in parts keeps every budget from the least on."""
    model, _ = opener(text, 1_000)
    grammar = Grammar.from_json_schema(NESTED)
    for budget in range(2, 80):
        generation = model.generate("x", grammar=grammar, max_tokens=budget)
        assert generation.usage.completion_tokens <= budget
        jsonschema.validate(json.loads(generation.text), NESTED)


def test_a_completion_follows_the_text() -> None:
    """Wherever a text goes, the tokens of its completion write just that, within the budget for which they fit."""
    bpe = ByteBPE.load(TOKENIZER).vocabulary
    markers = {"<a>": len(bpe.tokens), "<b>": len(bpe.tokens) + 1}
    vocabulary = Vocabulary([*bpe.tokens, None, None], eos=bpe.eos, special={**bpe.special, **markers})
    tree = Grammar.from_json_schema(NESTED)
    grammar = Grammar.repeat(Grammar.special("<a>") + tree + Grammar.special("<b>"), 3) + tree
    denied = fitted = 0
    for seed in range(12):
        rng = random.Random(seed)
        matcher = grammar.bind(vocabulary).matcher()
        budget, written = Budget(matcher), list[int]()
        room = budget.needed()[0] + rng.randrange(60)
        assert budget.fits(room)
        for _ in range(200):
            allowed = matcher.allowed_tokens()
            token = rng.choice(allowed)
            assert matcher.accept(token)
            if budget.follows(written, token) or budget.fits(room - 1):
                room -= 1
                written.append(token)
                fitted += 1
            else:
                assert budget.needed()[0] >= room
                denied += 1
                matcher.rollback(1)
            tokens = budget.completion(written)
            assert len(tokens) <= room
            ahead = matcher.fork()
            assert all(map(ahead.accept, tokens)) and ahead.is_accepting
            if not tokens:
                break
    assert fitted > 300 and denied > 20, (fitted, denied)


def test_a_completion_far_beyond_the_budget_is_not_made() -> None:
    """Where a lower bound of the shortest text says that it cannot fit, the text is not made to tell."""
    inner = {"type": "object", "minProperties": 300}
    model = load_model("embedded")
    with pytest.raises(BudgetError, match=r"needs at least [0-9]+ tokens, and the budget is 2000"), at_most(200_000):
        model.generate_json("hi", {**inner, "additionalProperties": inner}, max_tokens=2_000)
