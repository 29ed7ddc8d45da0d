"""Writes folders of transformers from GGUF files, and those of onnxruntime-genai by its own builder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def need_onnx() -> None:
    """Skip where onnxruntime-genai, or a package of its builder, is not installed."""
    for name in ("onnxruntime_genai", "onnx", "onnx_ir", "torch", "transformers"):
        pytest.importorskip(name, reason=f"{name} is not installed")


def unpack_gguf(file: Path, target: Path) -> Path:
    """Write the weights and the tokenizer of a Llama in a GGUF file as a folder of transformers."""
    for name in ("torch", "transformers", "accelerate", "gguf"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    import transformers

    packed = transformers.AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name)
    shape = {key: value for key, value in packed.config.to_dict().items() if key != "quantization_config"}
    plain = transformers.LlamaForCausalLM(transformers.LlamaConfig(**shape))
    plain.load_state_dict(packed.state_dict())
    plain.float().save_pretrained(target)
    transformers.AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(target)
    return target


def write_onnx(source: Path, target: Path) -> Path:
    """Convert a folder of transformers in single precision, for the CPU."""
    need_onnx()
    options = ["-i", str(source), "-o", str(target), "-p", "fp32", "-e", "cpu", "-c", str(target / "cache")]
    built = subprocess.run(
        [sys.executable, "-m", "onnxruntime_genai.models.builder", *options],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert built.returncode == 0, built.stderr[-2000:]
    return target
