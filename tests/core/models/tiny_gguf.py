"""GGUF files of tiny Llamas, and of Qwen2."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

gguf = pytest.importorskip("gguf", reason="the gguf package is not installed")


def interleaved(weight: np.ndarray, heads: int) -> np.ndarray:
    """A projection as llama.cpp wants it: the two halves of each head's rotary pairs lie side by side."""
    return weight.reshape(heads, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)


def write_gguf(
    path: Path,
    model: Any,
    tokens: Any,
    template: str | None,
    kinds: Mapping[str, str] = MappingProxyType({}),
    change: Callable[[Any], None] = lambda writer: None,
) -> None:
    """Write a Llama and its byte-level BPE tokenizer as GGUF.

    Args:
        path: of the file.
        model: under transformers.
        tokens: the tokenizer, likewise.
        template: the chat template.
        kinds: the types of weights, by parts of their names in transformers; the first that fits counts.
        change: is given the writer before it writes.
    """
    writer = gguf.GGUFWriter(path, model.config.model_type)
    backend = json.loads(tokens.backend_tokenizer.to_str())
    names = {token_id: name for name, token_id in tokens.get_vocab().items()}
    forms = {added["id"]: 3 if added["special"] else 4 for added in backend["added_tokens"]}
    size = model.config.vocab_size
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([names.get(token_id, f"[PAD{token_id}]") for token_id in range(size)])
    writer.add_token_types([forms.get(token_id, 1 if token_id in names else 5) for token_id in range(size)])
    writer.add_token_merges([" ".join(merge) for merge in backend["model"]["merges"]])
    writer.add_eos_token_id(tokens.eos_token_id)
    writer.add_bos_token_id(tokens.convert_tokens_to_ids("<|im_start|>"))
    writer.add_add_bos_token(False)
    if template is not None:
        writer.add_chat_template(template)
    finish_gguf(writer, model, kinds, change)


def finish_gguf(
    writer: Any,
    model: Any,
    kinds: Mapping[str, str] = MappingProxyType({}),
    change: Callable[[Any], None] = lambda writer: None,
) -> None:
    """Add a Llama to a file that has its tokenizer, and write it."""

    def add(name: str, own: str, weight: np.ndarray) -> None:
        kind = next((kind for part, kind in kinds.items() if part in own), None)
        if kind is None:
            writer.add_tensor(name, weight)
        else:
            number = gguf.GGMLQuantizationType[kind]
            writer.add_tensor(name, gguf.quants.quantize(weight, number), raw_dtype=number)

    config = model.config
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(config.vocab_size)
    renamed = {
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
    }
    state = {name: tensor.detach().cpu().numpy() for name, tensor in model.state_dict().items()}
    add("token_embd.weight", "embed", state["model.embed_tokens.weight"])
    add("output_norm.weight", "norm", state["model.norm.weight"])
    if not config.tie_word_embeddings:
        add("output.weight", "lm_head", state["lm_head.weight"])
    for layer in range(config.num_hidden_layers):
        for old, new in renamed.items():
            weight = state[f"model.layers.{layer}.{old}.weight"]
            if new in ("attn_q", "attn_k") and config.model_type == "llama":
                weight = interleaved(
                    weight, config.num_attention_heads if new == "attn_q" else config.num_key_value_heads
                )
            add(f"blk.{layer}.{new}.weight", old, np.ascontiguousarray(weight))
            if (bias := state.get(f"model.layers.{layer}.{old}.bias")) is not None:
                writer.add_tensor(f"blk.{layer}.{new}.bias", bias)
    change(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_projector(path: Path, kind: str, width: int, side: int = 56) -> None:
    """Write a projector of random weights.

    Args:
        path: of the file.
        kind: its type: ``mlp`` (LLaVA; each image has the same number of tokens), ``idefics3`` (tiles, with marks
            between them), ``gemma3`` (the tokens of an image see each other), or ``qwen2vl_merger`` (the number of tokens
            follows the size of the image, and their positions are rows and columns).
        width: size of the model's embeddings.
        side: size of an image, or a tile, in pixels.
    """
    make = np.random.default_rng(7)
    writer = gguf.GGUFWriter(path, "clip")
    size, hidden, patch = 32, 64, 14
    writer.add_string("clip.projector_type", kind)
    writer.add_bool("clip.has_vision_encoder", True)
    for name, value in {
        "image_size": side,
        "patch_size": patch,
        "embedding_length": size,
        "feed_forward_length": hidden,
        "projection_dim": width,
        "block_count": 2,
        "attention.head_count": 2,
        "projector.scale_factor": 2,
        "preproc_image_size": 2 * side,
    }.items():
        writer.add_uint32(f"clip.vision.{name}", value)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-5)
    writer.add_array("clip.vision.image_mean", [0.5, 0.5, 0.5])
    writer.add_array("clip.vision.image_std", [0.5, 0.5, 0.5])
    writer.add_bool("clip.use_gelu", True)

    def add(name: str, *shape: int, bias: bool = False) -> None:
        scale = 0.5 if len(shape) > 1 else 0.1
        writer.add_tensor(f"{name}.weight", (make.standard_normal(shape) * scale).astype(np.float32))
        if bias:
            writer.add_tensor(f"{name}.bias", (make.standard_normal(shape[:1]) * 0.1).astype(np.float32))

    count = (side // patch) ** 2
    add("v.patch_embd", size, 3, patch, patch)
    if kind == "qwen2vl_merger":
        second = make.standard_normal((size, 3, patch, patch)) * 0.5
        writer.add_tensor("v.patch_embd.weight.1", second.astype(np.float32))
    if kind != "qwen2vl_merger":
        add("v.position_embd", count + (kind == "mlp"), size)
    if kind == "mlp":
        writer.add_tensor("v.class_embd", make.standard_normal(size).astype(np.float32))
        add("v.pre_ln", size, bias=True)
    add("v.post_ln", size, bias=True)
    for layer in range(2):
        for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
            add(f"v.blk.{layer}.{name}", size, size, bias=True)
        add(f"v.blk.{layer}.ln1", size, bias=True)
        add(f"v.blk.{layer}.ln2", size, bias=True)
        add(f"v.blk.{layer}.ffn_up", hidden, size, bias=True)
        add(f"v.blk.{layer}.ffn_down", size, hidden, bias=True)
    if kind == "mlp":
        add("mm.0", width, size, bias=True)
        add("mm.2", width, width, bias=True)
    elif kind == "idefics3":
        add("mm.model.fc", width, 4 * size)
    elif kind == "gemma3":
        writer.add_tensor("mm.input_projection.weight", make.standard_normal((size, width)).astype(np.float32))
        add("mm.soft_emb_norm", size)
    else:
        add("mm.0", 4 * size, 4 * size, bias=True)
        add("mm.2", width, 4 * size, bias=True)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
