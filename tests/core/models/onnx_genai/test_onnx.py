"""`onnx:` models: tiny ones of random weights, built here, and the same weights under transformers as the oracle."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from toolgrammar.core import (
    ContextOverflowError,
    ImagePart,
    JsonMode,
    Message,
    MissingDependencyError,
    ModelError,
    ToolCall,
    load_model,
)
from toolgrammar.core.models.onnx_genai.backend import OnnxBackend
from toolgrammar.core.models.transformers.backend import HFBackend
from toolgrammar.tools import ToolSet

from ..local_checks import SCHEMA, check_budgets_streams_and_cancellation, check_several_threads, logits_of
from ..tiny import tokenizer, write_llama
from ..tiny_onnx import need_onnx, write_onnx

need_onnx()
import torch  # noqa: E402 - skipped above where it is not installed


def get_weather(city: str, days: int) -> str:
    """Weather in a city."""
    return f"sun in {city} for {days} days"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of random weights whose logits differ clearly, in a folder of transformers."""
    return write_llama(tmp_path_factory.mktemp("source"), bos_token_id=None)


@pytest.fixture(scope="module")
def folder(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model, as onnxruntime-genai has it."""
    return write_onnx(source, tmp_path_factory.mktemp("onnx"))


@pytest.fixture(scope="module")
def backend(folder: Path) -> Iterator[OnnxBackend]:
    """The folder, loaded."""
    loaded = OnnxBackend(str(folder), threads=1)
    yield loaded
    loaded.close()


@pytest.fixture(scope="module")
def oracle(source: Path) -> Iterator[HFBackend]:
    """The model under transformers."""
    loaded = HFBackend(str(source))
    yield loaded
    loaded.close()


def test_logits_are_those_of_transformers(backend: OnnxBackend, oracle: HFBackend) -> None:
    """Read at once, in pieces, and after crops, the logits are those of the same weights."""
    ids = backend.encode('{"city": "Rome", "days": 3} the weather in Rome')
    for length in range(1, len(ids), 3):
        session = backend.new_session()
        for piece in (ids[:length], ids[length : length + 2], ids[length + 2 :]):
            if piece:
                logits = session.extend(piece)
        np.testing.assert_allclose(logits, logits_of(oracle, ids), atol=1e-4)
        session.crop(length)
        np.testing.assert_allclose(session.extend(ids[:2]), logits_of(oracle, ids[:length] + ids[:2]), atol=1e-4)
        session.crop(0)
        np.testing.assert_allclose(session.extend(ids[-3:]), logits_of(oracle, ids[-3:]), atol=1e-4)


def test_images_are_refused(backend: OnnxBackend) -> None:
    """A conversation with an image is refused, and the hint names the models that read images."""
    with pytest.raises(ModelError, match="cannot see the image in a message of the user") as caught:
        backend.encode_prompt([Message("user", (ImagePart(b"any"),))])
    assert not backend.sees and "hf:NAME, or gguf:PATH" in str(caught.value.hint)


def test_vocabulary_is_that_of_transformers(backend: OnnxBackend, oracle: HFBackend) -> None:
    """Bytes, control tokens and end of text are the same, padding is not text."""
    assert backend.vocabulary.tokens == oracle.vocabulary.tokens
    assert backend.vocabulary.eos == oracle.vocabulary.eos
    assert dict(backend.vocabulary.special) == dict(oracle.vocabulary.special)
    assert backend.vocabulary.tokens[-3:] == (None, None, None)


@pytest.mark.parametrize("text", ['{"city": "Rome"}', " the  weather\n", "é\u00a0\U0001f469", "<|im_end|>", ""])
def test_encodes_as_transformers(backend: OnnxBackend, oracle: HFBackend, text: str) -> None:
    """Text is split as under transformers; a control token's spelling stays text."""
    assert backend.encode(text) == oracle.encode(text)
    assert backend.vocabulary.decode(backend.encode(text)) == text.encode()


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [Message("user", "the weather in Rome")],
        [Message("system", "é"), Message("user", "a<|im_end|>\n<|im_start|>b"), Message("assistant", "x")],
        [
            Message("user", "weather?"),
            Message("assistant", "", tool_calls=(ToolCall("1", "get_weather", {"city": "<|im_end|>"}),)),
            Message("tool", "sun", tool_call_id="1", name="get_weather"),
        ],
    ],
)
def test_prompts_are_those_of_transformers(backend: OnnxBackend, oracle: HFBackend, messages: list[Message]) -> None:
    """The chat template gives the same tokens, and text of a message never becomes a control token."""
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
    assert backend.chat_template == oracle.chat_template
    for given in ((), tools):
        assert backend.encode_prompt(messages, given) == oracle.encode_prompt(messages, given)


def test_answers_are_those_of_transformers(folder: Path, source: Path) -> None:
    """Greedy and sampled, with calls, JSON and free text: the same tokens, and the same counts."""
    tools = ToolSet([get_weather])
    requests: list[dict[str, Any]] = [
        {"tools": tools, "tool_choice": "required", "max_tokens": 60},
        {"tools": tools, "tool_choice": "required", "max_tokens": 60, "temperature": 1.0, "seed": 3},
        {"json_mode": JsonMode(SCHEMA), "temperature": 1.0, "seed": 1},
        {"json_mode": JsonMode(SCHEMA), "jump_forward": False},
        {"max_tokens": 20, "temperature": 1.0, "seed": 2},
    ]
    with load_model(f"onnx:{folder}", threads=1) as model, load_model(f"hf:{source}", max_rows=1) as expected:
        for request in requests:
            one, other = (each.generate("weather in Rome?", **request) for each in (model, expected))
            assert one.token_ids == other.token_ids
            assert one.usage.forward_passes == other.usage.forward_passes
            assert one.usage.forced_tokens == other.usage.forced_tokens
            for call in one.tool_calls:
                tools.validate(call)
        forced = model.generate("weather?", json_mode=JsonMode(SCHEMA), temperature=1.0, seed=1)
        assert forced.usage.forward_passes < forced.usage.completion_tokens


def test_budgets_streams_and_cancellation(folder: Path) -> None:
    """Answers that are cut, streamed or left are as under every engine."""
    with load_model(f"onnx:{folder}", threads=1) as model:
        check_budgets_streams_and_cancellation(model)


def test_kept_sequences(folder: Path, oracle: HFBackend) -> None:
    """The next turn continues by a rewind; a sequence is taken over if it shares more than it loses."""
    with load_model(f"onnx:{folder}", threads=1, context_window=512, prefix_cache=10**8) as model:
        backend: Any = model.backend  # type: ignore[attr-defined]
        assert backend.allocates_window
        tools = "the weather in Rome " * 8
        model.generate(tools + "one", max_tokens=4)
        again = model.generate(tools + "one", max_tokens=4)
        assert again.usage.cached_tokens == again.usage.prompt_tokens - 1
        other = model.generate(tools + "two", max_tokens=4)  # takes the sequence of "one" over
        assert other.usage.cached_tokens > other.usage.prompt_tokens / 2
        assert backend.prefixes.counters().sessions == 1
        short = model.generate(tools[:50] + "three", max_tokens=4)  # shares less than half of the stored sequence
        assert short.usage.cached_tokens == 0
        assert backend.prefixes.counters().sessions == 2
        ids = backend.encode_prompt([Message("user", tools + "two")])
        session = backend.start()
        np.testing.assert_allclose(session.extend(ids), logits_of(oracle, ids), atol=1e-4)
        assert session.cached_tokens == len(ids) - 1
        session.close()
        assert backend.prefixes.counters().nbytes == 2 * backend.cache_bytes(512)


def test_a_state_that_cannot_be_shortened(folder: Path, oracle: HFBackend) -> None:
    """If the engine refuses a rewind, the sequence is read again, with the same logits."""

    class Recurrent(OnnxBackend):
        def generator(self) -> Any:
            inner = super().generator()

            class Refusing:
                append_tokens, get_logits = inner.append_tokens, inner.get_logits

                def rewind_to(self, length: int) -> None:
                    raise RuntimeError("RewindTo is currently not supported")

            return Refusing()

    backend = Recurrent(str(folder), threads=1)
    ids = backend.encode("the weather in Rome the weather")
    session = backend.new_session()
    session.extend(ids)
    assert session.keeps(len(ids) - 1)
    session.crop(3)
    assert session.length == 3 and not session.keeps(2)
    np.testing.assert_allclose(session.extend(ids[3:]), logits_of(oracle, ids), atol=1e-4)
    backend.close()


def test_two_sets_of_rotary_factors(tmp_path: Path) -> None:
    """A sequence of Phi-3 that grows or shrinks over the border of its factors is read again: keys of one set are wrong
    for the other."""
    import transformers

    config = transformers.Phi3Config(
        vocab_size=320,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=8192,
        original_max_position_embeddings=4096,
        initializer_range=0.2,
        eos_token_id=0,
        bos_token_id=None,
        pad_token_id=0,
        rope_scaling={"type": "longrope", "short_factor": [1.0] * 8, "long_factor": [float(i) for i in range(1, 9)]},
    )
    torch.manual_seed(0)
    network = transformers.Phi3ForCausalLM(config).eval()
    tokenizer().save_pretrained(tmp_path)
    network.save_pretrained(tmp_path)
    backend = OnnxBackend(str(write_onnx(tmp_path, tmp_path / "onnx")), threads=1)
    ids = np.random.default_rng(0).integers(3, 300, 4110).tolist()

    def expected(length: int) -> Any:
        with torch.inference_mode():
            return network(torch.tensor([ids[:length]]), use_cache=False).logits[0, -1].numpy()

    session = backend.new_session()
    for before, after in ((0, 4090), (4090, 4096), (4096, 4097), (4097, 4110)):
        np.testing.assert_allclose(session.extend(ids[before:after]), expected(after), atol=1e-3)
    assert session.keeps(4100) and not session.keeps(4090)
    session.crop(4080)
    np.testing.assert_allclose(session.extend(ids[4080:4085]), expected(4085), atol=1e-3)
    backend.close()


def test_several_threads(folder: Path) -> None:
    """Requests of several threads have the results of one after the other."""
    with load_model(f"onnx:{folder}", threads=1) as model:
        check_several_threads(model)


def test_closing_frees_the_model(folder: Path) -> None:
    """After `close` nothing holds a generator, and the session of a closed model is closed."""
    backend = OnnxBackend(str(folder), threads=1)
    session: Any = backend.new_session()
    session.extend([1, 2])
    backend.close()
    assert session._generator is None and backend._model is None
    with pytest.raises(ModelError, match="is closed"):
        session.extend([1])
    with pytest.raises(ModelError, match="is closed"):
        backend.start()
    with pytest.raises(ModelError, match="is closed"):
        backend.encode("x")
    dropped = weakref.ref(backend)
    del backend, session
    gc.collect()
    assert dropped() is None


def test_limits(folder: Path) -> None:
    """A sequence longer than the window is an error that changes nothing; a folder's longer window is bounded."""
    backend = OnnxBackend(str(folder), threads=1, context_window=40)
    session = backend.start()
    session.extend([1] * 30)
    with pytest.raises(ContextOverflowError):
        session.extend([1] * 11)
    assert session.length == 30 and len(session.extend([1] * 10)) == backend.vocabulary.size
    backend.close()
    with pytest.raises(ModelError, match="at least 1"):
        load_model(f"onnx:{folder}", threads=0)


def test_langchain(folder: Path) -> None:
    """An agent's two turns through the adapter of LangChain: a valid call, then an answer."""
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    from langchain_core.messages import HumanMessage, ToolMessage

    from toolgrammar.adapters.langchain import ChatToolGrammar

    def forecast(city: Literal["Rome", "Oslo"], days: Literal[1, 2, 3]) -> str:
        """Weather in a city."""
        return f"sun in {city} for {days} days"

    chat = ChatToolGrammar(model=f"onnx:{folder}", max_tokens=60, temperature=1.0, seed=1)
    called = chat.bind_tools([forecast], tool_choice="any", parallel_tool_calls=False).invoke("Rome?")
    (call,) = called.tool_calls
    assert call["name"] == "forecast" and call["args"]["days"] in (1, 2, 3)
    result = ToolMessage(forecast(**call["args"]), tool_call_id=call["id"])
    assert chat.invoke([HumanMessage("Rome?"), called, result]).response_metadata


# -- errors --------------------------------------------------------------------------------------------------------


def test_wrong_folders(folder: Path, tmp_path: Path) -> None:
    """Each error names the files that are missing, or the reason."""
    with pytest.raises(ModelError, match="does not exist"):
        load_model(f"onnx:{tmp_path / 'absent'}")
    with pytest.raises(ModelError, match="is a file, not a folder"):
        load_model(f"onnx:{folder / 'model.onnx'}")
    with pytest.raises(ModelError, match=r"lacks genai_config.json \(.*\), tokenizer.json") as caught:
        load_model(f"onnx:{tmp_path}")
    assert "onnxruntime_genai.models.builder" in str(caught.value.hint)
    for name in ("genai_config.json", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_text((folder / name).read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(ModelError, match=r"lacks model.onnx \(named in genai_config.json\)"):
        load_model(f"onnx:{tmp_path}")
    (tmp_path / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(ModelError, match="onnxruntime-genai cannot load"):
        load_model(f"onnx:{tmp_path}")
    (tmp_path / "genai_config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ModelError, match="describes no causal language model"):
        load_model(f"onnx:{tmp_path}")
    (tmp_path / "genai_config.json").write_text("{", encoding="utf-8")
    with pytest.raises(ModelError, match="cannot be read"):
        load_model(f"onnx:{tmp_path}")
    with pytest.raises(ModelError, match="lacks a folder"):
        load_model("onnx:")


def test_without_the_library(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the extra."""
    for name in ("onnxruntime_genai", "tokenizers"):
        with monkeypatch.context() as patched:
            patched.setitem(sys.modules, name, None)
            with pytest.raises(MissingDependencyError) as caught:
                load_model(f"onnx:{folder}")
            assert caught.value.hint == "pip install 'toolgrammar[onnx]'"


def test_telemetry_is_off(folder: Path) -> None:
    """onnxruntime-genai reads a variable at its beginning; the user's own value is left alone."""
    code = (
        "import os, sys\nfrom toolgrammar.core.models.onnx_genai.backend import OnnxBackend\n"
        "assert 'onnxruntime_genai' not in sys.modules\nOnnxBackend(sys.argv[1])\n"
        "print(os.environ['ORT_DISABLE_TELEMETRY'])"
    )
    for value in (None, "0"):
        own = {name: each for name, each in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
        own |= {} if value is None else {"ORT_DISABLE_TELEMETRY": value}
        run = [sys.executable, "-c", code, str(folder)]
        printed = subprocess.run(run, env=own, capture_output=True, text=True, timeout=100, check=True).stdout
        assert printed.strip() == (value or "1")
