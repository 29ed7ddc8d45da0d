"""Tiny models of transformers with random weights, and their tokenizers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...devices import DEVICE

TEMPLATE = (
    "{% if tools %}TOOLS {{ tools | tojson }}\n{% endif %}"
    "{% for m in messages %}{{ m.role }}: {{ m.content }}"
    "{% for c in m.tool_calls or [] %} CALL {{ c.function.name }}{% endfor %}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)

#: With calls and tools in full, and control tokens around turns.
FULL_TEMPLATE = (
    "{% if tools %}TOOLS {{ tools | tojson }}\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}: {{ m.content }}"
    "{% for c in m.tool_calls or [] %} CALL {{ c.function.name }} {{ c.function.arguments | tojson }}{% endfor %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"
)


def tokenizer(template: str | None = TEMPLATE, special: Sequence[str] = ("<|end|>",)) -> Any:
    """A byte-level BPE tokenizer trained on a few lines; the first control token ends the text."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=list(special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(['{"city": "Paris", "days": 3}', "the weather in Rome", '"name": "x"'] * 5, trainer)
    made = transformers.PreTrainedTokenizerFast(tokenizer_object=raw, eos_token=special[0])
    made.chat_template = template
    return made


def llama(**options: Any) -> Any:
    """A Llama of random weights, the same each time, on `DEVICE`."""
    import torch
    import transformers

    torch.manual_seed(0)
    shape = {
        "vocab_size": 512,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "max_position_embeddings": 512,
    }
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**shape, **options})).to(DEVICE).eval()


def write_llama(folder: Path, **options: Any) -> Path:
    """Write a Llama of random weights whose logits differ clearly, with `FULL_TEMPLATE` and three ids more than its
    tokenizer has."""
    own = tokenizer(FULL_TEMPLATE, ("<|im_end|>", "<|im_start|>"))
    own.save_pretrained(folder)
    llama(
        vocab_size=len(own) + 3,
        hidden_size=64,
        num_attention_heads=4,
        num_key_value_heads=2,
        initializer_range=0.3,
        eos_token_id=own.eos_token_id,
        max_position_embeddings=2048,
        **options,
    ).save_pretrained(folder)
    return folder
