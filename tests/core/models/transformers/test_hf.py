"""`hf:` models: tiny random ones, made here, saved and loaded like any other."""

from __future__ import annotations

import functools
import inspect
import json
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import JsonMode, Message, ModelError, ToolCall, load_model

from ..local_checks import SCHEMA
from ..tiny import TEMPLATE, llama, tokenizer

pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")


def test_next_turn_reuses_the_last_one(hf_folder: Path) -> None:
    """A longer prompt reads only what is new, another one with the same beginning gets a copy, and neither disturbs the
    other."""
    backend, plain = load_model(f"hf:{hf_folder}").backend, load_model(f"hf:{hf_folder}", prefix_cache=0).backend
    first = backend.encode('the weather in Rome {"city": "Paris"} ' * 4)
    more = backend.encode(" and then")
    for ids, reused in (
        (first, 0),
        (first + more, len(first)),
        (first[:40] + backend.encode(" something else"), 40),
        (first + more + first, len(first + more)),
        (first + more + first, len(first + more + first) - 1),
    ):
        session, fresh = backend.start(), plain.start()
        np.testing.assert_allclose(session.extend(ids), fresh.extend(ids), atol=1e-4)
        assert session.cached_tokens == reused
        np.testing.assert_allclose(session.extend([5]), fresh.extend([5]), atol=1e-4)
        session.crop(len(ids))
        session.close()
    counters = backend.prefixes.counters()
    assert (counters.sessions, counters.hits, counters.misses) == (2, 4, 1)
    assert plain.prefixes.counters().sessions == 0


def renamed(given: str | None) -> Any:
    """A forward pass of Llama that takes its cache by another name, and gives it back by that; None: takes none."""
    forward = transformers.LlamaForCausalLM.forward
    (own,) = {"cache", "past_key_values"} & set(inspect.signature(forward).parameters)

    @functools.wraps(forward)
    def passed(self: Any, input_ids: Any, position_ids: Any = None, logits_to_keep: Any = 0, **options: Any) -> Any:
        held = {own: options.get(given)} if given else {"use_cache": False}
        output = forward(self, input_ids, position_ids=position_ids, logits_to_keep=logits_to_keep, **held)
        return types.SimpleNamespace(logits=output.logits, **({given: output[own]} if given else {}))

    names = ["self", "input_ids", "attention_mask", "position_ids", "use_cache", "logits_to_keep"]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    passed.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, kind) for name in (names if given is None else [*names, given])]
    )
    return passed


@pytest.mark.parametrize("given", ["cache", "past_key_values"])
def test_the_cache_has_two_names(hf_folder: Path, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    """transformers renamed it: by either name tokens are read once, beginnings are kept, and passes are shared."""
    monkeypatch.setattr(transformers.LlamaForCausalLM, "forward", renamed(given))
    model = load_model(f"hf:{hf_folder}")
    first, second = (model.generate("weather in Rome?", max_tokens=4) for _ in range(2))
    assert first.usage.cached_tokens == 0 and second.usage.cached_tokens == second.usage.prompt_tokens - 1
    assert first.text == second.text and model.scheduler is not None


def test_a_model_without_a_cache_is_a_warning(hf_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a model with attention takes no cache, the texts are the same, and warnings name what is lost and why."""
    expected = load_model(f"hf:{hf_folder}").generate("weather in Rome?", max_tokens=4).text
    monkeypatch.setattr(transformers.LlamaForCausalLM, "forward", renamed(None))
    with pytest.warns(RuntimeWarning, match="reads the whole sequence again.*takes no cache"):
        model = load_model(f"hf:{hf_folder}")
    with pytest.warns(RuntimeWarning, match="one after another, since its forward pass takes no cache"):
        assert model.scheduler is None
    assert model.generate("weather in Rome?", max_tokens=4).text == expected


def test_failed_forward_pass_leaves_the_sequence_as_it_was(hf_folder: Path) -> None:
    """After an error in the middle of the model, the sequence goes on as if nothing had happened."""
    backend = load_model(f"hf:{hf_folder}", prefix_cache=0).backend
    session, fresh = backend.start(), backend.start()
    session.extend([5, 6, 7])
    layer = backend._model.model.layers[1]
    handle = layer.register_forward_pre_hook(lambda *_: (_ for _ in ()).throw(RuntimeError("device lost")))
    with pytest.raises(RuntimeError, match="device lost"):
        session.extend([8])
    handle.remove()
    assert session.length == 3
    np.testing.assert_allclose(session.extend([9]), fresh.extend([5, 6, 7, 9]), atol=1e-4)


def test_generates_json_that_is_valid(hf_folder: Path) -> None:
    """A model of noise writes JSON of the schema, with ids beyond the tokenizer never chosen."""
    model = load_model(f"hf:{hf_folder}")
    assert model.vocabulary.size == 512
    for seed in range(5):
        generation = model.generate("weather?", json_mode=JsonMode(SCHEMA), temperature=1.0, seed=seed)
        value = json.loads(generation.text)
        assert set(value) == {"city", "days"} and len(value["city"]) <= 8 and 1 <= value["days"] <= 9
        assert generation.usage.forward_passes < generation.usage.completion_tokens


def test_prompt_goes_through_the_models_template(hf_folder: Path) -> None:
    """Tools, roles and calls reach the model's own chat template."""
    backend = load_model(f"hf:{hf_folder}").backend
    messages = [
        Message("user", "hi"),
        Message("assistant", "", tool_calls=(ToolCall("1", "f", {"a": 1}),)),
        Message("tool", "42", tool_call_id="1"),
    ]
    ids = backend.encode_prompt(messages, [{"type": "function", "function": {"name": "f"}}], "unused")
    text = backend.vocabulary.decode(ids).decode()
    assert text.startswith("TOOLS [{") and text.endswith("user: hiassistant:  CALL ftool: 42assistant: ")


def test_template_that_takes_one_call_a_turn(hf_folder: Path) -> None:
    """A turn with two calls becomes two turns where the template refuses it."""
    backend = load_model(f"hf:{hf_folder}").backend
    backend._tokenizer.chat_template = (
        "{% for m in messages %}{{ m.role }}: {{ m.content }}{% if m.tool_calls %}"
        "{% if m.tool_calls | length > 1 %}{{ raise_exception('one call') }}{% endif %} CALL "
        "{{ m.tool_calls[0].function.name }}{% endif %}{% endfor %}"
    )
    calls = (ToolCall("1", "f", {"a": 1}), ToolCall("2", "g", {}))
    messages = [
        Message("user", "hi"),
        Message("assistant", "", tool_calls=calls),
        Message("tool", "42", tool_call_id="1"),
        Message("tool", "43", tool_call_id="2"),
    ]
    text = backend.vocabulary.decode(backend.encode_prompt(messages)).decode()
    assert text == "user: hiassistant:  CALL ftool: 42assistant:  CALL gtool: 43"


def test_template_that_changes_its_own_list(hf_folder: Path) -> None:
    """Such a template, which transformers' sandbox refuses, is rendered in the library's own; a user's text that spells
    a control token stays text, and one that would change the messages is refused."""
    backend = load_model(f"hf:{hf_folder}").backend
    backend._tokenizer.chat_template = (
        "{% set box = namespace(ids=[]) %}{% for m in messages %}{% set _ = box.ids.append(m.role) %}"
        "{{ m.role }}: {{ m.content }}<|end|>{% endfor %}{{ box.ids | join('+') }}"
    )
    ids = backend.encode_prompt([Message("user", "say <|end|>"), Message("assistant", "no")])
    assert backend.vocabulary.decode(ids).decode() == "user: say <|end|>assistant: nouser+assistant"
    assert ids.count(backend._tokenizer.convert_tokens_to_ids("<|end|>")) == 2
    backend._tokenizer.chat_template = "{% set _ = messages.append(1) %}{{ messages | length }}"
    with pytest.raises(ModelError, match="unsafe"):
        backend.encode_prompt([Message("user", "hi")])


def test_plain_prompt_without_a_template(tmp_path: Path, hf_folder: Path) -> None:
    """A tokenizer without a template gets a plain prompt with the tools described."""
    import shutil

    shutil.copytree(hf_folder, tmp_path / "plain")
    for name in ("chat_template.jinja",):
        (tmp_path / "plain" / name).unlink(missing_ok=True)
    tokenizer(None).save_pretrained(tmp_path / "plain")
    backend = load_model(f"hf:{tmp_path / 'plain'}").backend
    text = backend.vocabulary.decode(backend.encode_prompt([Message("user", "hi")], [], "use tools")).decode()
    assert text == "system: use tools\n\nuser: hi\n\nassistant:"


def test_missing_model_is_a_clear_error(tmp_path: Path) -> None:
    """A folder without a model is named, with a way out."""
    with pytest.raises(ModelError, match="cannot load"):
        load_model(f"hf:{tmp_path}")


def test_unknown_addresses_and_options_are_named() -> None:
    """Unknown schemes and options name what is known."""
    with pytest.raises(ModelError, match="known ones: 'smollm2', 'embedded'"):
        load_model("ftp:x")
    with pytest.raises(ModelError, match="lacks a model"):
        load_model("hf:")
    with pytest.raises(ModelError, match="does not take the option colour"):
        load_model("embedded", colour="red")


def test_a_template_is_told_whether_to_reason(tmp_path: Path) -> None:
    """``thinking`` reaches the template: reasoning that it begins is finished, and none is begun where none is wanted."""
    template = TEMPLATE + "{% if add_generation_prompt and enable_thinking | default(true) %}<think>\n{% endif %}"
    tokens = tokenizer(template)
    tokens.save_pretrained(tmp_path)
    llama(num_hidden_layers=1, eos_token_id=tokens.eos_token_id).save_pretrained(tmp_path)
    model = load_model(f"hf:{tmp_path}")
    request = {"json_mode": JsonMode({"enum": ["a", "b"]}), "thinking_markers": ("<think>", "</think>")}
    begun = model.generate("x", thinking=20, **request)
    assert begun.usage.reasoning_tokens > 0 and not begun.raw.startswith("<think>")
    assert begun.raw.endswith("</think>" + begun.text) or "</think>" in begun.raw
    assert model.generate("x", **request, max_tokens=60).usage.reasoning_tokens > 0
    without = model.generate("x", thinking=False, **request)
    assert without.usage.reasoning_tokens == 0 and without.raw in ('"a"', '"b"')
    assert model.generate("x", thinking="auto", max_tokens=60, **request).usage.reasoning_tokens > 0
