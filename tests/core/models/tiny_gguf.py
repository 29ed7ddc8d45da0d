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
