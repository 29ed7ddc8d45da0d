"""A loaded model writes calls in the format that its own tokenizer shows."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from toolgrammar.core import GenerateParams, Message, ToolCall, Vocabulary, load_model
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.formats import choose_format

from .common import byte_vocabulary, token_ids
from .templates import FAMILIES

EDIT = Tool(
    "edit",
    "",
    {"type": "object", "properties": {"on": {"type": "boolean"}, "text": {"enum": ["x", "y z"]}}, "required": ["text"]},
)
TOOLS = ToolSet([EDIT, Tool("now", "", {})])
CALLS = (ToolCall("c00000001", "edit", {"on": True, "text": "y z"}), ToolCall("c00000002", "now", {}))
HISTORY = (
    Message("user", "Go."),
    Message("assistant", "", tool_calls=CALLS),
    Message("tool", "42", tool_call_id="c00000001", name="edit"),
)
each_family = pytest.mark.parametrize(
    ("name", "template", "special", "result"), FAMILIES, ids=[each[0] for each in FAMILIES]
)


def tokenizer_of(template: str | None, special: tuple[str, ...]) -> Any:
    """A tokenizer of single bytes with these control tokens."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    raw = Tokenizer(models.BPE({char: number for number, char in enumerate(alphabet)}, []))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    raw.decoder = decoders.ByteLevel()
    raw.add_special_tokens([AddedToken(each, special=True, normalized=False) for each in ("<|end|>", *special)])
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<|end|>")
    tokenizer.chat_template = template
    return tokenizer


@pytest.fixture
def load(tmp_path: Path) -> Any:
    """Makes a model of random weights with a template, and loads it."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    numbers = itertools.count()

    def make(template: str | None, special: tuple[str, ...], **options: Any) -> Any:
        path = tmp_path / str(next(numbers))
        tokenizer = tokenizer_of(template, special)
        tokenizer.save_pretrained(path)
        torch.manual_seed(0)
        config = transformers.LlamaConfig(
            vocab_size=len(tokenizer), hidden_size=16, intermediate_size=16, num_hidden_layers=1,
            num_attention_heads=2, max_position_embeddings=2048, eos_token_id=tokenizer.eos_token_id,
        )  # fmt: skip
        transformers.LlamaForCausalLM(config).save_pretrained(path)
        return load_model(f"hf:{path}", **options)

    return make


@each_family
def test_the_template_writes_what_the_format_writes(
    name: str, template: str, special: tuple[str, ...], result: str
) -> None:
    """The history form of calls and results is that of the chat template, and the grammar admits it, token by token."""
    wire = choose_format(None, template, special)
    assert wire.name == name
    tokenizer = tokenizer_of(template, special)
    turns = [
        {
            "role": "assistant",
            "tool_calls": [
                {"type": "function", "function": {"name": each.name, "arguments": each.arguments}} for each in CALLS
            ],
        },
        {"role": "tool", "content": "42", "name": "edit"},
    ]
    text = tokenizer.apply_chat_template(turns, tokenize=False)
    written = wire.render("", CALLS)
    assert written in text
    assert result in text
    assert wire.render_result(HISTORY[2]) in text
    vocabulary = byte_vocabulary(special)
    matcher = TOOLS.grammar(wire, tool_choice="required").bind(vocabulary).matcher()
    assert all(matcher.accept(token_id) for token_id in token_ids(written, vocabulary))
    assert matcher.is_accepting


@each_family
def test_models_write_the_format_that_their_tokenizer_shows(
    name: str, template: str, special: tuple[str, ...], result: str, load: Any
) -> None:
    """Without being told, a model of noise writes valid calls with the markup of its family."""
    model = load(template, special)
    generation = model.generate(HISTORY, tools=TOOLS, tool_choice="required", temperature=1.0, seed=1, max_tokens=300)
    assert generation.tool_calls
    assert all(call.error is None for call in generation.tool_calls)
    assert generation.text == ""
    spelled = {number: each for each, number in model.vocabulary.special.items()}
    tokens = (spelled.get(each) or model.vocabulary.decode([each]).decode() for each in generation.token_ids)
    wire = choose_format(None, template, special)
    assert "".join(tokens).startswith(wire.render("", generation.tool_calls)[:8])


def prompt_of(model: Any, **options: Any) -> list[int]:
    """Return the prompt that a history with calls becomes."""
    params = GenerateParams(tools=TOOLS, **options)
    return list(model._encode_prompt(HISTORY, params, model._wire(params)))


def test_a_format_that_was_asked_for_wins(load: Any) -> None:
    """At loading or in a request, the name of a format is stronger than the template; the prompt then tells of it."""
    _, template, special, _ = FAMILIES[0]
    model = load(template, special)
    options: dict[str, Any] = {"tools": TOOLS, "tool_choice": "now", "max_tokens": 200}
    assert model.generate("x", **options).raw == '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
    assert model.generate("x", tool_format="pythonic", **options).raw == "[now()]"
    assert load(template, special, tool_format="llama-json").generate("x", **options).raw.startswith('{"name": "now"')
    prompt = prompt_of(model, tool_format="pythonic")
    shown = b"".join(model.vocabulary.tokens[each] or b"" for each in prompt).decode()
    assert '[edit(on=True, text="y z"), now()]' in shown
    assert "<tool_call>" not in shown
    assert '"name":"edit"' in shown


def test_a_template_without_calls_is_given_text(load: Any) -> None:
    """Where the chat template knows no calls, calls and results are written into the conversation as text."""
    template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: "
    model = load(template, ())
    prompt = prompt_of(model)
    shown = model.vocabulary.decode(prompt).decode()
    assert shown.startswith("system: # Tools")
    assert '<tool_call>\n{"name": "edit", "arguments": {"on": true, "text": "y z"}}\n</tool_call>' in shown
    assert "user: <tool_response>\n42\n</tool_response>\n" in shown


def test_tokens_that_end_a_turn() -> None:
    """A turn may end with the family's own end tokens, which are no part of its text."""
    special = ("<|channel|>", "<|constrain|>", "<|message|>", "<|start|>", "<|end|>", "<|call|>", "<|return|>")
    vocabulary = byte_vocabulary(special)
    wire = choose_format("harmony", special=vocabulary.special)
    matcher = TOOLS.grammar(wire, tool_choice="required").bind(vocabulary).matcher()
    for token in token_ids(wire.render("", CALLS[:1]), vocabulary):
        assert matcher.accept(token)
    assert matcher.fork().accept(vocabulary.special["<|call|>"])
    message = TOOLS.parse(wire.render("", CALLS[:1]) + "<|call|>", wire)
    assert (message.text, len(message.tool_calls)) == ("", 1)
    assert TOOLS.parse(wire.render("Done.", []) + "<|return|>", wire).text == "Done."


def test_markers_that_a_vocabulary_does_not_have_are_text() -> None:
    """A format may be asked for whose control tokens the model lacks: its markers are then spelled."""
    plain = Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos=[256])
    model = ScriptedModel(["[TOOL_CALLS]now[ARGS]{}"], vocabulary=plain)
    result = model.generate("x", tools=TOOLS, tool_choice="required", tool_format="mistral-v13", max_tokens=200)
    assert [call.name for call in result.tool_calls] == ["now"]


def test_a_template_that_asks_for_content_that_is_none(load: Any) -> None:
    """transformers leaves out members that are None; calls are in the history of such a template all the same."""
    call = "{{ c.function.name }}{{ c.function.arguments | tojson }}"
    template = (
        "{{ bos_token }}{% for m in messages %}{% if m.role == 'assistant' and m.content is none %}"
        f"{{% for c in m.tool_calls %}}<call>{call}</call>{{% endfor %}}"
        "{% elif m.role != 'assistant' or not m.tool_calls %}{{ m.role }}:{{ m.content }};{% endif %}{% endfor %}"
    )
    model = load(template, ())
    shown = model.vocabulary.decode(prompt_of(model)).decode()
    assert '<call>edit{"on": true, "text": "y z"}</call><call>now{}</call>tool:42;' in shown
