"""Requests at the same time: tokens a second of a transformers model at 1, 4 and 16 requests, beside transformers.

    python -m benchmarks servers/serving [--requests 16] [--tokens 48] [--keep]
    python -m benchmarks servers/serving --model smollm2       # only ours, free text: gguf:PATH, numpy:PATH

A Llama of 88 million random weights in single precision on the CPU, one thread of PyTorch; prompts of about a hundred
tokens that have no beginning in common. Measured is processor time of the whole process, so that others who use the
machine do not change much. A request of free text writes `--tokens` tokens; one with a grammar writes a JSON object, of
whose tokens the grammar fixes some. `transformers` has `generate`, one request after another, and its own continuous
batching (`generate_batch`, what `transformers serve --continuous-batching` runs on), with its default settings.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from benchmarks.shared.results_io import show
from toolgrammar.core import Generation, JsonMode, load_model

ROOT = Path(__file__).resolve().parents[2]
SHAPE = {
    "hidden_size": 768,
    "intermediate_size": 2048,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "num_key_value_heads": 4,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": True,
}
SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 40},
        "days": {"type": "integer", "minimum": 1, "maximum": 99},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        "remark": {"type": "string", "maxLength": 60},
    },
    "required": ["city", "days", "unit", "remark"],
    "additionalProperties": False,
}


def save_model(folder: Path) -> int:
    """Save a model of random weights, with a byte-level tokenizer trained on the documentation; return its size."""
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=16_384, special_tokens=["<|end|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    raw.train([str(path) for path in sorted([*ROOT.glob("docs/**/*.md"), *ROOT.glob("core/**/*.py")])], trainer)
    transformers.PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<|end|>").save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(vocab_size=16_384, eos_token_id=0, bos_token_id=0, pad_token_id=0, **SHAPE)
    model = transformers.LlamaForCausalLM(config)
    model.save_pretrained(folder)
    return int(model.num_parameters())


def prompts(count: int) -> list[str]:
    """Prompts of about a hundred tokens, different from the first on."""
    draw = random.Random(0)
    words = [
        "weather",
        "forecast",
        "city",
        "temperature",
        "please",
        "tell",
        "wind",
        "rain",
        "compare",
        "average",
        "table",
    ]
    return [f"{number} " + " ".join(draw.choice(words) for _ in range(80)) for number in range(count)]


@contextmanager
def measured(row: dict[str, Any]) -> Iterator[None]:
    """Add processor time and wall time of the process."""
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    row["seconds"], row["wall_seconds"] = time.process_time() - cpu, time.perf_counter() - wall


def ours(address: str, requests: list[str], at_once: int, **options: Any) -> dict[str, Any]:
    """Run requests, so many at once."""
    single: dict[str, Any] = (
        {"dtype": "float32"} if address.startswith("hf:") else {} if address == "embedded" else {"threads": 1}
    )
    with load_model(address, prefix_cache=0, **single) as model:
        ask: Callable[[tuple[int, str]], Generation] = lambda numbered: model.generate(  # noqa: E731
            numbered[1], seed=numbered[0], temperature=1.0, **options
        )
        ask((0, "warm up"))
        before = model.scheduler.counters() if model.scheduler else None
        row: dict[str, Any] = {}
        with measured(row), ThreadPoolExecutor(at_once) as pool:
            answers = list(pool.map(ask, enumerate(requests)))
        assert model.scheduler is not None and before is not None
        row["tokens"] = sum(answer.usage.completion_tokens for answer in answers)
        row["passes"] = model.scheduler.counters().passes - before.passes
        return row


def theirs(folder: Path, requests: list[str], tokens: int, *, together: bool) -> dict[str, Any]:
    """Run requests by transformers: one after another, or by its continuous batching."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = [tokenizer(prompt)["input_ids"] for prompt in requests]
    config = transformers.GenerationConfig(
        max_new_tokens=tokens, do_sample=True, eos_token_id=-1, pad_token_id=0, temperature=1.0, top_k=0
    )
    row: dict[str, Any] = {}
    if together:
        options: dict[str, Any] = {"generation_config": config, "persistent_manager": True}
        model.generate_batch(inputs=ids[:1], **options)  # it reserves its memory here
        with measured(row):
            outputs = model.generate_batch(inputs=ids, **options)
        row["tokens"] = sum(len(output.generated_tokens) for output in outputs.values())
        return row
    config.eos_token_id = None
    with measured(row), torch.inference_mode():
        row["tokens"] = sum(
            model.generate(torch.tensor([one]), generation_config=config).shape[1] - len(one) for one in ids
        )
    row["passes"] = row["tokens"]
    return row


def main(requests: int = 16, tokens: int = 48, keep: bool = False, model: str = "") -> None:
    """Run, and print a table.

    Args:
        model: address of a model, which is measured instead, without transformers
    """
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    asked = prompts(requests)
    measures: list[dict[str, Any]] = []

    def add(engine: str, what: str, at_once: int, row: dict[str, Any]) -> None:
        measures.append({"engine": engine, "what": what, "at_once": at_once, **row})
        print(json.dumps(measures[-1]), flush=True)

    if model:
        for at_once in (1, 4, 16):
            row = ours(model, asked, at_once, max_tokens=tokens)
            add("toolgrammar", f"{row['tokens'] / row['seconds']:.1f} tokens a second", at_once, row)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parameters = save_model(folder)
        free = {"max_tokens": tokens, "logit_bias": {0: -100.0}}
        bound = {"json_mode": JsonMode(SCHEMA), "max_tokens": 200}
        add("transformers, generate", "free text", 1, theirs(folder, asked, tokens, together=False))
        for at_once in (1, 4, 16):
            add("toolgrammar", "free text", at_once, ours(f"hf:{folder}", asked, at_once, **free))
        add("transformers, generate_batch", "free text", 16, theirs(folder, asked, tokens, together=True))
        for at_once in (1, 4, 16):
            add("toolgrammar", "JSON of a schema", at_once, ours(f"hf:{folder}", asked, at_once, **bound))
    versions = {name: version(name) for name in ("torch", "transformers")}
    report = {"parameters": parameters, "requests": requests, "engines": versions, "measures": measures}
    show("serving", report, keep=keep)
