"""Models for whole engines on a CPU, in the layout of Hugging Face: a small real one, and one of noise.

    python -m benchmarks engines/engine_models smollm2|noise FOLDER

- ``smollm2``: SmolLM2-135M-Instruct, its weights (float32) of the GGUF file that ``toolgrammar model pull smollm2``
  fetches, and a chat template that shows tools in the Hermes format, which its own does not.
- ``noise``: a Llama of two layers with random weights, and the embedded model's 4,096 tokens.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

#: Shows tools and calls in the Hermes format, over the markers of ChatML.
HERMES = Path(__file__).with_name("hermes.jinja").read_text(encoding="utf-8")
PLAIN = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: "


def smollm2(folder: Path) -> None:
    """Write SmolLM2-135M-Instruct."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

    from toolgrammar.core.models import published

    file = published.SMOLLM2.pull()
    read = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
    config = read.config.to_dict()
    config.pop("quantization_config", None)  # the weights are not quantised any more, and transformers forgets it
    plain = LlamaForCausalLM(LlamaConfig(**config)).to(torch.float32)
    plain.load_state_dict(read.state_dict())
    plain.save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    tokenizer.chat_template = HERMES
    tokenizer.save_pretrained(folder)


def noise(folder: Path) -> None:
    """Write a model with random weights."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    from toolgrammar.core.models import load_model
    from toolgrammar.core.vocabulary.token_bytes import byte_alphabet

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
    tokenizer.chat_template = PLAIN
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {
        "vocab_size": len(tokenizer),
        "hidden_size": 128,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "max_position_embeddings": 2048,
        "eos_token_id": eos,
        "bos_token_id": eos,
    }
    LlamaForCausalLM(LlamaConfig(**sizes)).to(torch.float32).save_pretrained(folder)


def main(model: Literal["smollm2", "noise"], folder: Path) -> None:
    """Make a model."""
    {"smollm2": smollm2, "noise": noise}[model](folder)
