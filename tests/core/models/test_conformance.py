"""Every backend keeps the laws of `Backend`, and `check_backend` sees each law that one breaks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from toolgrammar.core.models.numpy_llama.embedded import EmbeddedBackend
from toolgrammar.core.testing import ScriptedModel, check_backend

from ..backends import Noise
from .tiny import TEMPLATE, llama, tokenizer


def test_embedded() -> None:
    """The embedded model, with and without kept sequences."""
    check_backend(EmbeddedBackend(context_window=256))
    check_backend(EmbeddedBackend(context_window=256, prefix_cache=0))


def test_scripted() -> None:
    """The model that follows a script."""
    check_backend(ScriptedModel(lambda _: '"yes"', context_window=2_000).backend)


def test_noise() -> None:
    """The noise of these tests."""
    check_backend(Noise(["<a>"]))


def test_transformers(hf_folder: Path) -> None:
    """A tiny Llama, with and without kept sequences, in batches too."""
    from toolgrammar.core.models.transformers.backend import HFBackend

    backend = HFBackend(str(hf_folder))
    if "sanitize_control_tokens" not in inspect.signature(backend._tokenizer.apply_chat_template).parameters:
        pytest.skip("this transformers writes control tokens for messages that spell them")
    check_backend(backend)
    check_backend(HFBackend(str(hf_folder), prefix_cache=0, context_window=64))


@pytest.mark.llama_cpp
def test_llama_cpp(tmp_path: Path) -> None:
    """A tiny Llama in a GGUF file; its cache has half precision."""
    if find_spec("llama_cpp") is None:
        pytest.importorskip("xllamacpp", reason="neither llama-cpp-python nor xllamacpp is installed")
    pytest.importorskip("gguf", reason="the gguf package is not installed")
    pytest.importorskip("torch", reason="torch is not installed")
    from toolgrammar.core.models.llama_cpp.backend import GGUFBackend

    from .tiny_gguf import write_gguf

    tokens = tokenizer(None, ("<|im_end|>", "<|im_start|>"))
    write_gguf(tmp_path / "tiny.gguf", llama(vocab_size=len(tokens), hidden_size=64), tokens, TEMPLATE)
    check_backend(GGUFBackend(str(tmp_path / "tiny.gguf"), threads=1), tolerance=0.02)


def test_onnx(hf_folder: Path, tmp_path: Path) -> None:
    """A tiny Llama in a folder of onnxruntime-genai, with and without kept sequences."""
    from .tiny_onnx import write_onnx

    folder = str(write_onnx(hf_folder, tmp_path))
    from toolgrammar.core.models.onnx_genai.backend import OnnxBackend

    check_backend(OnnxBackend(folder, threads=1))
    check_backend(OnnxBackend(folder, threads=1, prefix_cache=0, context_window=64))


def test_mlx(hf_folder: Path) -> None:
    """A tiny Llama under mlx-lm, with and without kept sequences, in batches too."""
    pytest.importorskip("mlx_lm", reason="mlx_lm is not installed")
    pytest.importorskip("mlx.core", reason="MLX is not installed (on Linux, it needs mlx[cpu])")
    from toolgrammar.core.models.mlx_lm.backend import MlxBackend

    backend = MlxBackend(str(hf_folder))
    assert backend.can_batch()
    check_backend(backend)
    check_backend(MlxBackend(str(hf_folder), prefix_cache=0, context_window=64))


class Spoiled(Noise):
    """A backend that breaks one law."""

    def __init__(self, method: str, change: Callable[[Any], Any]) -> None:
        super().__init__(["<a>"])
        self._method, self._change = method, change

    def start(self) -> Any:
        """A session with a method changed."""
        session = super().start()
        setattr(session, self._method, self._change(session))
        return session


def extend_by_calls(session: Any) -> Callable[[Sequence[int]], Any]:
    """Logits that depend on how the tokens came."""
    extend = session.extend
    return lambda ids: extend(ids) + len(ids)


@pytest.mark.parametrize(
    ("method", "change", "law"),
    [
        ("extend", extend_by_calls, "one by one"),
        ("extend", lambda session: lambda ids: type(session).extend(session, ids)[:-1], "for each token"),
        ("crop", lambda session: lambda length: None, "crop shortens"),
        ("close", lambda session: lambda: None, "closed session"),
    ],
)
def test_broken_laws_are_seen(method: str, change: Callable[[Any], Any], law: str) -> None:
    """A session that breaks a law is refused, and the law is named."""
    with pytest.raises(AssertionError, match=law):
        check_backend(Spoiled(method, change))


def test_spelled_control_tokens_are_seen() -> None:
    """A tokenizer that writes a control token for its spelling is refused."""

    class Naive(Noise):
        def encode(self, text: str) -> list[int]:
            return [self.vocabulary.special["<a>"]] if "<a>" in text else super().encode(text)

    with pytest.raises(AssertionError, match="no control token"):
        check_backend(Naive(["<a>"]))
