"""A tiny model of noise for whole engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolgrammar.core.models import load_model
from toolgrammar.core.vocabulary.token_bytes import byte_alphabet


@pytest.fixture(scope="session")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Llama of two layers with random weights, and the embedded model's tokens."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    path: Path = tmp_path_factory.mktemp("tiny")
    vocabulary = load_model("embedded").vocabulary
    shown = {byte: character for character, byte in byte_alphabet().items()}
    (eos, *_) = sorted(vocabulary.eos)
    tokens = {
        "".join(shown[byte] for byte in data) if data else f"<|{number}|>": number
        for number, data in enumerate(vocabulary.tokens)
    }
    made = Tokenizer(models.BPE(vocab=tokens, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, eos_token=f"<|{eos}|>")
    tokenizer.chat_template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: "
    tokenizer.save_pretrained(path)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokens),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=2048,
        eos_token_id=eos,
        bos_token_id=eos,
    )
    LlamaForCausalLM(config).to(torch.float32).save_pretrained(path)
    return str(path)
