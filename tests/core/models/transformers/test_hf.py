"""`hf:` models: tiny random ones, made here, saved and loaded like any other."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from toolgrammar.core import JsonMode, Message, ModelError, ToolCall, load_model

from ..tiny import TEMPLATE, llama, tokenizer

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 8}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["city", "days"],
    "additionalProperties": False,
}


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
    with pytest.raises(ModelError, match="names no model"):
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
