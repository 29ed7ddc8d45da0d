"""vLLM's engine in this process: forced text as drafts, the share of masks in a step, and budgets that must hold.

    python -m benchmarks engines/engine_steps DATA --models FOLDER [--parts drafts share budgets thinking]
        [--calls 24] [--max-tokens 160] [--keep]

``FOLDER`` has the models ``smollm2``, ``noise`` and ``thinking`` of `engine_models.py`. Each engine is started in a
process of its own, one after the other.

- ``drafts``: greedy calls without drafts, with forced text as drafts (``ForcedText``), and with forced text offered as
  drafts (``OfferedText``). The last must write the tokens of the first. In each, every token must be the model's first
  choice under its mask, by transformers: what the drafts change is that mask alone. A step of a call writes one sampled
  token and the drafts that were accepted.
- ``share``: JSON of functions' arguments with our masks and with xgrammar's: the time of masks and of accepting tokens,
  as a share of the engine's step. On a CPU, for 16 texts together.
- ``budgets``: schemas whose validity depends on the text so far, noise at temperature 1, every budget from the
  shortest answer on: each answer must be valid.
- ``thinking``: JSON behind reasoning that ends at random places (a bias on ``</think>``). If the reasoning has left as
  many tokens as the shortest answer has bytes, the answer must be valid.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.shared import results_io
from benchmarks.shared.data import is_valid, rows
from benchmarks.shared.pool import alone
from toolgrammar.core import Grammar, Vocabulary
from toolgrammar.tools import ToolSet

DRAFTS = 12
PROPOSERS = ("ForcedText", "OfferedText")
BUDGETS = (0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144)  # tokens beyond the shortest answer
THINKING = (40, 80, 200, 600)
END_OF_THINKING = "</think>"
BIAS = 4.5  # noise hardly ever ends its reasoning without

#: Schemas of which the rest depends on what was written.
DYNAMIC: list[dict[str, Any]] = [
    {"type": "array", "items": {"enum": ["red", "green", "blue", "grey"]}, "uniqueItems": True, "minItems": 3},
    {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 40}, "uniqueItems": True, "minItems": 4},
    {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 3},
    {
        "type": "object",
        "propertyNames": {"pattern": "^[ab]{1,2}$"},
        "patternProperties": {"^a": {"type": "string", "minLength": 2}, "^b": {"type": "array", "minItems": 2}},
        "minProperties": 2,
    },
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 8},
            "age": {"type": "integer", "minimum": 0, "maximum": 150, "not": {"multipleOf": 10}},
            "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True},
        },
        "required": ["name", "age", "tags"],
        "additionalProperties": False,
    },
]


# -- in the engine's process ---------------------------------------------------------------------------------------


def sampling(most: int, rule: dict[str, Any], **options: Any) -> Any:
    """vLLM's parameters of an answer under a rule of structured output."""
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    return SamplingParams(max_tokens=most, structured_outputs=StructuredOutputsParams(**rule), **options)


def engine(model: Path, rows: int, length: int, **options: Any) -> Any:
    """vLLM's engine in this process."""
    from vllm import LLM

    return LLM(
        str(model),
        dtype="float32",
        max_model_len=length,
        max_num_seqs=rows,
        enforce_eager=True,
        disable_log_stats=False,
        **options,
    )


def written(made: Any, prompts: list[Any], params: list[Any]) -> list[Any]:
    """What the engine writes."""
    return [output.outputs[0] for output in made.generate(prompts, params, use_tqdm=False)]


def counter(made: Any, name: str) -> float:
    """One of the engine's own counts."""
    for metric in made.get_metrics():
        if metric.name == name:
            return float(metric.count if hasattr(metric, "count") else metric.value)
    return 0.0


def run_drafts(options: SimpleNamespace, proposer: str) -> dict[str, Any]:
    """Greedy calls; the tokens of each."""
    drafts = {
        "method": "custom_class",
        "model": f"toolgrammar.adapters.vllm.drafts.{proposer}",
        "num_speculative_tokens": DRAFTS,
    }
    made = engine(
        options.models / "smollm2",
        16,
        4096,
        structured_outputs_config={"backend": "outlines"},
        **({"speculative_config": drafts} if proposer in PROPOSERS else {}),
    )
    tokenizer = made.get_tokenizer()
    prompts, params = [], []
    for text, tools in requests(options.data, options.calls):
        prompts.append(
            tokenizer.apply_chat_template(
                [{"role": "user", "content": text}], tools=tools, add_generation_prompt=True, tokenize=False
            )
        )
        params.append(sampling(options.max_tokens, {"grammar": calls_of(tools)}, temperature=0))
    begin = time.monotonic()
    outputs = made.generate(prompts, params, use_tqdm=False)
    return {
        "seconds": time.monotonic() - begin,
        "prompts": [list(output.prompt_token_ids) for output in outputs],
        "tokens": [list(output.outputs[0].token_ids) for output in outputs],
        "texts": [output.outputs[0].text for output in outputs],
        "accepted": counter(made, "vllm:spec_decode_num_accepted_tokens"),
        "drafted": counter(made, "vllm:spec_decode_num_draft_tokens"),
        "steps": counter(made, "vllm:iteration_tokens_total"),
    }


def calls_of(tools: list[dict[str, Any]]) -> str:
    """The envelope of the drafts' requests."""
    from toolgrammar.adapters.vllm import envelope

    return envelope(tools, tool_choice="required", parallel_tool_calls=False, format="hermes")


def run_share(options: SimpleNamespace, backend: str) -> dict[str, Any]:
    """JSON of arguments; the time of what structured output does in the engine's loop."""
    from vllm.v1.structured_output import StructuredOutputManager

    spent: Counter[str] = Counter()

    def timed(name: str) -> None:
        inner = getattr(StructuredOutputManager, name)

        def outer(*arguments: Any, **given: Any) -> Any:
            begin = time.perf_counter()
            try:
                return inner(*arguments, **given)
            finally:
                spent[name] += time.perf_counter() - begin  # type: ignore[assignment]

        setattr(StructuredOutputManager, name, outer)

    made = engine(options.models / "smollm2", 16, 4096, structured_outputs_config={"backend": backend})
    timed("grammar_bitmask")
    timed("accept_tokens")
    prompts, params, schemas = [], [], []
    for text, tools in requests(options.data, options.calls):
        schemas.append(tools[0]["function"]["parameters"])
        prompts.append(f"{text}\nAnswer as JSON: ")
        params.append(sampling(options.max_tokens, {"json": schemas[-1]}, temperature=1, seed=len(prompts)))
    found: dict[str, Any] = {}
    for attempt in ("first", "again"):
        spent.clear()
        before, begin = counter(made, "vllm:iteration_tokens_total"), time.perf_counter()
        outputs = written(made, prompts, params)
        wall = time.perf_counter() - begin
        steps = counter(made, "vllm:iteration_tokens_total") - before
        found[attempt] = {
            "steps": steps,
            "tokens": sum(len(output.token_ids) for output in outputs),
            "step_ms": 1e3 * wall / steps,
            "masks_ms": 1e3 * spent["grammar_bitmask"] / steps,
            "accept_ms": 1e3 * spent["accept_tokens"] / steps,
            "share": (spent["grammar_bitmask"] + spent["accept_tokens"]) / wall,
            "valid": sum(is_valid(schema, output.text) for schema, output in zip(schemas, outputs, strict=True)),
            "answers": len(outputs),
        }
    return found


def run_budgets(options: SimpleNamespace) -> dict[str, Any]:
    """Schemas that depend on the text, under every budget."""
    made = engine(options.models / "noise", 16, 1024, structured_outputs_config={"backend": "outlines"})
    vocabulary = Vocabulary.from_transformers(made.get_tokenizer())
    asked = [
        (schema, shortest(schema, vocabulary) + more, seed)
        for schema in DYNAMIC
        for more in BUDGETS
        for seed in range(4)
    ]
    random.Random(1).shuffle(asked)  # different ones in each batch
    params = [sampling(most, {"json": schema}, temperature=1, seed=seed) for schema, most, seed in asked]
    counts: Counter[str] = Counter()
    examples = []
    for (schema, most, _), output in zip(asked, written(made, ["Hello there"] * len(params), params), strict=True):
        if not is_valid(schema, output.text):
            counts["invalid"] += 1
            examples.append(f"{most} tokens: {output.text[:200]!r} under {json.dumps(schema)[:200]}")
        else:
            counts["closed" if "toolgrammar" in str(output.stop_reason) else "valid"] += 1
    return {
        "answers": len(asked),
        **{name: counts[name] for name in ("valid", "closed", "invalid")},
        "examples": examples,
    }


def run_thinking(options: SimpleNamespace) -> dict[str, Any]:
    """JSON behind reasoning."""
    made = engine(
        options.models / "thinking",
        16,
        1024,
        structured_outputs_config={"backend": "outlines", "reasoning_parser": "qwen3"},
    )
    tokenizer = made.get_tokenizer()
    (end,) = tokenizer.encode(END_OF_THINKING, add_special_tokens=False)
    vocabulary = Vocabulary.from_transformers(tokenizer)
    found: dict[str, Any] = {}
    for most in THINKING:
        schemas = [schema for schema, _ in zip(cycle(DYNAMIC), range(options.calls * 2), strict=False)]
        more = {"temperature": 1, "logit_bias": {end: BIAS}, "skip_special_tokens": False}
        params = [sampling(most, {"json": schema}, seed=seed, **more) for seed, schema in enumerate(schemas)]
        counts: Counter[str] = Counter()
        examples = []
        for schema, output in zip(schemas, written(made, ["<think>"] * len(params), params), strict=True):
            ids = list(output.token_ids)
            if end not in ids:
                counts["reasoning_only"] += 1
                continue
            at = ids.index(end) + 1
            text = tokenizer.decode(ids[at:], skip_special_tokens=True)
            if is_valid(schema, text):
                counts["valid"] += 1
            elif most - at < shortest(schema, vocabulary):
                counts["too_little_left"] += 1
            else:
                counts["invalid"] += 1
                examples.append(f"{most} tokens, {at} of reasoning: {text[:200]!r} under {json.dumps(schema)[:200]}")
        names = ("valid", "reasoning_only", "too_little_left", "invalid")
        found[str(most)] = {"answers": len(schemas), **{name: counts[name] for name in names}, "examples": examples}
    return found


def requests(path: Path, count: int) -> list[tuple[str, list[dict[str, Any]]]]:
    """What users say, and the tools."""
    found = []
    for given in rows(path)[:count]:
        text = "\n".join(turn["content"] for turn in given["question"][0] if turn["role"] == "user")
        found.append((text, ToolSet.from_any(given["functions"]).to_openai(closed=True)))
    return found


def shortest(schema: Any, vocabulary: Vocabulary) -> int:
    """Number of bytes of the shortest value, which is no less than its tokens."""
    grammar = Grammar.from_json_schema(schema, plain_integers=True)
    return grammar.bind(vocabulary).matcher().shortest_length()


# -- around it -----------------------------------------------------------------------------------------------------


def compared(options: SimpleNamespace, runs: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Compare the runs with each other, and with the model's own first choices."""
    calls = len(runs["without"]["tokens"])
    found: dict[str, Any] = {"calls": calls}
    for name, run in runs.items():
        tokens = sum(map(len, run["tokens"]))
        pairs = [*zip(runs["without"]["tokens"], run["tokens"], strict=True)]
        texts = [*zip(runs["without"]["texts"], run["texts"], strict=True)]
        found[name] = {
            "tokens": tokens,
            "steps_per_call": round((tokens - run["accepted"]) / calls, 1),
            **{count: int(run[count]) for count in ("steps", "drafted", "accepted")},
            "same_tokens": sum(plain == other for plain, other in pairs),
            "same_texts": sum(plain == other for plain, other in texts),
            **choices(options, run, is_narrowed=name == "ForcedText"),
        }
    return found


def choices(options: SimpleNamespace, run: dict[str, Any], *, is_narrowed: bool) -> dict[str, Any]:
    """How many of the tokens the model chose among several, and how many are not its first choice under their mask."""
    import numpy as np
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from toolgrammar.adapters.vllm.envelope import Tokens, read_envelope
    from toolgrammar.adapters.vllm.sequence import Ends
    from toolgrammar.adapters.vllm.sequence import Sequence as Text
    from toolgrammar.adapters.vllm.spelling import Spelling

    path = options.models / "smollm2"
    tokenizer = AutoTokenizer.from_pretrained(path)
    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    vocabulary = Vocabulary.from_transformers(tokenizer, size=model.config.vocab_size)
    spelling = Spelling(vocabulary, lambda text: list(tokenizer.encode(text, add_special_tokens=False)))
    counts: Counter[str] = Counter()
    examples = []
    asked = requests(options.data, options.calls)
    for (_, tools), prompt, tokens in zip(asked, run["prompts"], run["tokens"], strict=True):
        with torch.inference_mode():
            logits = model(torch.tensor([[*prompt, *tokens]])).logits[0, len(prompt) - 1 : -1].numpy()
        constraint = read_envelope(calls_of(tools), Tokens("", vocabulary)).grammar.bind(vocabulary)
        text = Text(constraint, spelling, Ends(spelling, {tokenizer.eos_token_id}))
        text.room = lambda text=text: options.max_tokens - text.steps  # type: ignore[misc]
        drafts: list[int] = []
        for at, token in enumerate(tokens):
            row = np.zeros((model.config.vocab_size + 31) // 32, np.uint32)
            text.fill(row)
            allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
            first = int(allowed[logits[at][allowed].argmax()])
            counts["chosen"] += len(allowed) > 1
            if first != token:
                counts["otherwise"] += 1
                margin = float(logits[at][first] - logits[at][token])
                examples.append(f"token {at}: {token} for {first}, by {margin:.4f}, {text.tokens[-4:]}")
            text.accept([token])
            is_draft = bool(drafts) and drafts.pop(0) == token
            if is_narrowed and not drafts and not is_draft:  # the engine's step ends with the token behind its drafts
                drafts = text.jump(DRAFTS)
    return {"chosen": counts["chosen"], "otherwise": counts["otherwise"], "examples": examples[:8]}


#: Of the processes of the engines.
ENVIRONMENT = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "2", "HF_HUB_OFFLINE": "1"}


def in_a_process(run: Callable[..., dict[str, Any]], *given: Any) -> dict[str, Any]:
    """Return what a part finds, in a process of its own."""
    found: dict[str, Any] = alone(run, *given, **ENVIRONMENT)
    shown = {name: each for name, each in found.items() if name not in ("prompts", "tokens", "texts")}
    print(run.__name__, *given[1:], json.dumps(shown), flush=True)
    return found


def main(
    data: Path,
    *,
    models: Path,
    parts: Sequence[str] = ("drafts", "share", "budgets", "thinking"),
    calls: int = 24,
    max_tokens: int = 160,
    keep: bool = False,
) -> int:
    """Measure, print, and fail if a token is not the model's choice, or a text was not valid though it could be.

    Args:
        models: a folder with models of `engine_models.py`
        parts: of drafts, share, budgets and thinking
    """
    options = SimpleNamespace(data=data, models=models, calls=calls, max_tokens=max_tokens)
    path = results_io.RESULTS / "engine_steps.json"
    report = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    report.pop("machine", None)
    for part in parts:
        if part == "drafts":
            runs = {name: in_a_process(run_drafts, options, name) for name in ("without", *PROPOSERS)}
            report[part] = compared(options, runs)
        elif part == "share":
            names = {"toolgrammar": "outlines", "xgrammar": "xgrammar"}
            report[part] = {name: in_a_process(run_share, options, place) for name, place in names.items()}
        else:
            report[part] = in_a_process({"budgets": run_budgets, "thinking": run_thinking}[part], options)
        results_io.show("engine_steps", report, keep=keep)
    drafts = {name: run for name, run in report.get("drafts", {}).items() if name != "calls"}
    bad = sum(run["otherwise"] for run in drafts.values())
    bad += sum(run["same_tokens"] < report["drafts"]["calls"] for name, run in drafts.items() if name != "ForcedText")
    bad += report.get("budgets", {}).get("invalid", 0)
    bad += sum(one["invalid"] for one in report.get("thinking", {}).values())
    return int(bad > 0)
