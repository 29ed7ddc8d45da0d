"""Names in the prompt with real backends: after a declaration is inserted, each token is chosen as if the model had read
the new prompt from the beginning."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import GenerateParams, Message, ToolCall, load_model
from toolgrammar.core.generation.insertions import NamesRead
from toolgrammar.core.generation.plan import resolve_params
from toolgrammar.core.models import LocalModel
from toolgrammar.tools import Tool, ToolSet

from ..core.models import tiny

TOOLS = ToolSet(
    [
        Tool("rain", "Is there rain?", {"type": "object", "properties": {"x": {"enum": ["Rome", "Oslo", "Bonn"]}}}),
        Tool("snow", "Is there snow?", {"type": "object", "properties": {"deep": {"type": "boolean"}}}),
    ]
)
QUESTION = Message("user", "What weather is there, and where? Tell me.")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved Llama of random weights, whose template shows tools."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    path = tmp_path_factory.mktemp("llama")
    tiny.tokenizer().save_pretrained(path)
    tiny.llama(max_position_embeddings=4096).save_pretrained(path)
    return path


@pytest.fixture(params=["numpy", "transformers", "transformers, shared passes", "llama.cpp"])
def model(request: pytest.FixtureRequest) -> Iterator[LocalModel]:
    """A model with random weights and a prefix cache."""
    if request.param == "numpy":
        made: Any = load_model("embedded")
    else:
        path = request.getfixturevalue("folder")
        if request.param == "llama.cpp":
            tiny_gguf = pytest.importorskip("tests.core.models.tiny_gguf")
            pytest.importorskip("xllamacpp")
            tokens = tiny.tokenizer(special=("<|end|>", "<|im_start|>"))
            file = path / "tiny.gguf"
            weights = tiny.llama(vocab_size=len(tokens), hidden_size=64, max_position_embeddings=4096)
            tiny_gguf.write_gguf(file, weights, tokens, tiny.TEMPLATE)
            made = load_model(f"gguf:{file}")
        else:
            made = load_model(f"hf:{path}", max_rows=1 if request.param == "transformers" else 4)
    with made:
        yield made


def logits_after(model: LocalModel, ids: list[int]) -> Any:
    """What the model gives after tokens that it reads at once."""
    session = model.backend.start()
    try:
        return session.extend(ids).astype(np.float64)
    finally:
        session.close()


def test_tokens_are_chosen_as_if_the_new_prompt_was_read_from_the_beginning(model: LocalModel) -> None:
    """The log-probability of each chosen token is that of a fresh sequence: the names before, the declaration after the
    name of a tool."""
    options: dict[str, Any] = {
        "tools": TOOLS, "tools_in_prompt": "names", "tool_choice": "required", "parallel_tool_calls": False,
        "tool_format": "hermes", "temperature": 1.0, "logprobs": 0, "jump_forward": False,
    }  # fmt: skip
    resolved = resolve_params(GenerateParams(), options)
    wire = model._wire(resolved)
    matcher = TOOLS.grammar(wire.format, tool_choice="required", parallel=False).bind(model.vocabulary)
    names: set[str] = set()
    answers = model.generate_batch([[QUESTION]] * 10, [GenerateParams(**options, seed=seed) for seed in range(10)])
    for answer in answers:
        (call,) = answer.tool_calls
        names.add(call.name)
        prompts = [model._encode_prompt([QUESTION], resolved, wire, called) for called in ((), (call.name,))]
        assert len(prompts[0]) < len(prompts[1]) == answer.usage.prompt_tokens
        state = matcher.matcher()
        chosen = 0
        for index, token in enumerate(answer.tokens):
            before = list(answer.token_ids[:index])
            # Its first letter decides the name, so the rest of it is forced.
            is_named = f'"name": "{call.name[0]}'.encode() in model.vocabulary.decode(before)
            allowed = np.array(state.allowed_tokens())
            if not token.forced:
                chosen += is_named
                scores = logits_after(model, prompts[is_named] + before)[allowed]
                share = (scores - np.logaddexp.reduce(scores))[allowed == token.token_id].item()
                assert token.logprob == pytest.approx(share, abs=1e-3), (index, is_named)
            assert state.accept(token.token_id)
        assert chosen
    assert names


def test_the_next_turn_reuses_what_was_read(model: LocalModel) -> None:
    """After a call whose declaration was inserted, the prompt of the next turn is in the cache up to the call."""
    options: Any = {"tools": TOOLS, "tools_in_prompt": "names", "tool_format": "hermes", "max_tokens": 60}
    first = model.generate([QUESTION], tool_choice="rain", parallel_tool_calls=False, **options)
    turns = [QUESTION, first.message, Message("tool", "Yes.", tool_call_id=first.tool_calls[0].id, name="rain")]
    second = model.generate(turns, tool_choice="none", **options)
    assert second.usage.cached_tokens >= first.usage.prompt_tokens - 2


def test_nothing_is_read_twice_when_all_tools_were_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is read for names only while the prompt lacks the description of some tool."""
    made: list[NamesRead] = []
    monkeypatch.setattr(NamesRead, "rest_after_name", lambda self, certain: made.append(self) or 0)
    monkeypatch.setattr(NamesRead, "foresee", lambda self, certain: made.append(self))
    calls = (ToolCall("1", "rain", {}), ToolCall("2", "snow", {}))
    with load_model("embedded") as model:
        for count in (1, 2):
            made.clear()
            results = [Message("tool", "No", tool_call_id=call.id) for call in calls[:count]]
            turns = [QUESTION, Message("assistant", "", tool_calls=calls[:count]), *results, QUESTION]
            model.generate(turns, tools=TOOLS, tools_in_prompt="names", tool_choice="required", max_tokens=60)
            assert bool(made) == (count == 1)
