"""Whether a model that only knows its tokenizer's spelling is as right under a grammar as on free text.

    OMP_NUM_THREADS=1 python -m benchmarks answers/facts [--steps 700] [--prompts 60] [--json FILE]

A Llama of two layers, with a byte-level BPE under the pre-tokenizer of Qwen 2.5, is trained here to turn five facts
into JSON (a few minutes). Such a model has seen no other spelling of a text than its tokenizer's, so it shows at once
when it must go on from another one. Held prompts are answered greedily: as free text, under a schema, and as any JSON,
each of these with jumps over forced text and without. An answer is right if it is the JSON of the facts.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from toolgrammar.core import GenerateParams, JsonMode, Model, load_model

#: From Qwen 2.5's ``tokenizer.json``.
QWEN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
NAMES = ["Ada", "Bob", "Carl", "Dora", "Emil", "Frida", "Gil", "Hanna", "Ivo", "June"]
PLACES = ["Oslo", "Rome", "/home", "Paris", "Lima", "Kyoto", "#7", "Bergen", "Quito", "Accra"]
TEMPLATE = "{% for m in messages %}{{ m.content }}\n{% endfor %}"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "place": {"type": "string"},
        "days": {"type": "integer"},
        "ok": {"type": ["boolean", "null"]},
        "more": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name", "place", "days", "ok", "more"],
    "additionalProperties": False,
}


def example(draw: random.Random) -> tuple[str, dict[str, Any]]:
    """A prompt and its answer."""
    facts: dict[str, Any] = {
        "name": draw.choice(NAMES),
        "place": draw.choice(PLACES),
        "days": draw.randrange(-9, 10),
        "ok": draw.choice([True, False, None]),
        "more": draw.choice([[], ["x"], ["y"], ["x", "y"]]),
    }
    more = " and ".join(facts["more"]) or "nothing"
    word = {True: "yes", False: "no", None: "unknown"}[facts["ok"]]
    return f"{facts['name']} in {facts['place']} for {facts['days']} ok {word} more {more}", facts


def train(folder: Path, steps: int) -> None:
    """Train a tokenizer and a model, and save both as transformers does."""
    import torch
    import transformers
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    draw = random.Random(0)
    texts = [f"{prompt}\n{json.dumps(facts)}" for prompt, facts in (example(draw) for _ in range(6000))]
    raw = Tokenizer(models.BPE())
    raw.decoder = decoders.ByteLevel()
    split = pre_tokenizers.Split(Regex(QWEN), "isolated")
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    raw.pre_tokenizer = pre_tokenizers.Sequence([split, level])
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=420, special_tokens=["<|end|>"], initial_alphabet=alphabet, show_progress=False
    )
    raw.train_from_iterator(texts[:1000], trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<|end|>")
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=96,
            intermediate_size=256,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=4,
            max_position_embeddings=256,
            eos_token_id=tokenizer.eos_token_id,
            bos_token_id=None,
        )
    )
    rows = [[*tokenizer.encode(text), tokenizer.eos_token_id] for text in texts]
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
    for step in range(steps):
        batch = draw.choices(rows, k=24)
        width = max(map(len, batch))
        ids = torch.tensor([row + [0] * (width - len(row)) for row in batch])
        labels = torch.tensor([row + [-100] * (width - len(row)) for row in batch])
        loss = model(input_ids=ids, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 99:
            print(f"step {step + 1}: loss {loss.item():.3f}", file=sys.stderr, flush=True)
    model.save_pretrained(folder)


def right(model: Model, prompts: int, params: GenerateParams) -> tuple[int, int, int]:
    """How many held prompts are answered rightly, and the tokens and forward passes of all."""
    draw = random.Random(1)
    count = tokens = passes = 0
    for _ in range(prompts):
        prompt, facts = example(draw)
        generation = model.generate(prompt, params)
        count += generation.text.strip() == json.dumps(facts)
        tokens += generation.usage.completion_tokens
        passes += generation.usage.forward_passes
    return count, tokens, passes


def main() -> int:
    """Run the benchmark; 1 if a grammar made the model less right than it is on free text."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=700, help="of training")
    parser.add_argument("--prompts", type=int, default=60)
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    ways = {
        "free text": GenerateParams(max_tokens=100),
        "schema": GenerateParams(max_tokens=100, json_mode=JsonMode(SCHEMA)),
        "schema, no jumps": GenerateParams(max_tokens=100, json_mode=JsonMode(SCHEMA), jump_forward=False),
        "any JSON": GenerateParams(max_tokens=100, json_mode=JsonMode()),
        "any JSON, no jumps": GenerateParams(max_tokens=100, json_mode=JsonMode(), jump_forward=False),
    }
    with tempfile.TemporaryDirectory() as folder:
        train(Path(folder), options.steps)
        model = load_model(f"hf:{folder}")
        rows = [(name, *right(model, options.prompts, params)) for name, params in ways.items()]
    shown = Table(title=f"Five facts to JSON, {options.prompts} held prompts, greedy")
    for name in ("way", "right", "tokens", "passes"):
        shown.add_column(name, justify="left" if name == "way" else "right")
    for way, count, tokens, passes in rows:
        shown.add_row(way, f"{count}", f"{tokens:,}", f"{passes:,}")
    Console(width=None if sys.stdout.isatty() else 120).print(shown)
    if options.json:
        keys = ("way", "right", "tokens", "passes")
        options.json.write_text(json.dumps([dict(zip(keys, row, strict=True)) for row in rows], indent=2) + "\n")
    return int(min(row[1] for row in rows[1:]) < rows[0][1])
