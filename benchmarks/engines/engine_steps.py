"""vLLM's engine in this process: forced text as drafts, and the share of masks in a step.

    python -m benchmarks engines/engine_steps DATA --models FOLDER [--parts drafts share]
        [--calls 24] [--max-tokens 160] [--keep]

``FOLDER`` has the model ``smollm2`` of `engine_models.py`. Each engine is started in a process of its own, one after
the other. A part that is not run stays as it is kept.

- ``drafts``: greedy calls without drafts, with forced text as drafts (``ForcedText``), and with forced text offered as
  drafts (``OfferedText``). The last must write the tokens of the first. In each, every token must be the model's first
  choice under its mask, by transformers: what the drafts change is that mask alone. A step of a call writes one sampled
  token and the drafts that were accepted.
- ``share``: JSON of functions' arguments with our masks and with xgrammar's: the time of masks and of accepting tokens,
  as a share of the engine's step. On a CPU, for 16 texts together.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.shared.data import is_valid, rows
from benchmarks.shared.pool import alone
from benchmarks.shared.results_io import RESULTS
from benchmarks.shared.tables import show
from toolgrammar.core import Vocabulary
from toolgrammar.tools import ToolSet

DRAFTS = 12
PROPOSERS = ("ForcedText", "OfferedText")


# -- in the engine's process ---------------------------------------------------------------------------------------


def sampling(most: int, rule: dict[str, Any], **options: Any) -> Any:
    """vLLM's parameters of an answer under a rule of structured output."""
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    return SamplingParams(max_tokens=most, structured_outputs=StructuredOutputsParams(**rule), **options)


def engine(options: SimpleNamespace, backend: str, **more: Any) -> Any:
    """vLLM's engine in this process, with a backend of structured output."""
    from vllm import LLM

    sizes = {"max_model_len": 4096, "max_num_seqs": 16}
    given = {"dtype": "float32", "enforce_eager": True, "disable_log_stats": False, **sizes, **more}
    return LLM(str(options.models / "smollm2"), structured_outputs_config={"backend": backend}, **given)


def counter(made: Any, name: str) -> float:
    """One of the engine's own counts."""
    for metric in made.get_metrics():
        if metric.name == name:
            return float(metric.count if hasattr(metric, "count") else metric.value)
    return 0.0


def run_drafts(options: SimpleNamespace, proposer: str) -> dict[str, Any]:
    """Greedy calls; the tokens of each."""
    drafts = {"method": "custom_class", "model": f"toolgrammar.adapters.vllm.drafts.{proposer}"}
    more = {"speculative_config": {**drafts, "num_speculative_tokens": DRAFTS}} if proposer in PROPOSERS else {}
    made = engine(options, "outlines", **more)
    tokenizer = made.get_tokenizer()
    prompts, params = [], []
    for text, tools in requests(options.data, options.calls):
        given = {"tools": tools, "add_generation_prompt": True, "tokenize": False}
        prompts.append(tokenizer.apply_chat_template([{"role": "user", "content": text}], **given))
        params.append(sampling(options.max_tokens, {"grammar": calls_of(tools)}, temperature=0))
    outputs = made.generate(prompts, params, use_tqdm=False)
    return {
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

    made = engine(options, backend)
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
        outputs = [output.outputs[0] for output in made.generate(prompts, params, use_tqdm=False)]
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


def requests(path: Path, count: int) -> list[tuple[str, list[dict[str, Any]]]]:
    """What users say, and the tools."""
    found = []
    for given in rows(path)[:count]:
        text = "\n".join(turn["content"] for turn in given["question"][0] if turn["role"] == "user")
        found.append((text, ToolSet.from_any(given["functions"]).to_openai(closed=True)))
    return found


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
    parts: Sequence[str] = ("drafts", "share"),
    calls: int = 24,
    max_tokens: int = 160,
    keep: bool = False,
) -> int:
    """Measure, print, and fail if a token is not the model's choice.

    Args:
        models: a folder with models of `engine_models.py`
        parts: of drafts and share
    """
    options = SimpleNamespace(data=data, models=models, calls=calls, max_tokens=max_tokens)
    path = RESULTS / "engine_steps.json"
    report = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    report.pop("machine", None)
    if "drafts" in parts:
        report["drafts"] = compared(
            options, {name: in_a_process(run_drafts, options, name) for name in ("without", *PROPOSERS)}
        )
    if "share" in parts:
        backends = {"toolgrammar": "outlines", "xgrammar": "xgrammar"}  # our plug-in takes the place of outlines
        report["share"] = {name: in_a_process(run_share, options, backend) for name, backend in backends.items()}
    show("engine_steps", report, keep=keep)
    drafts = {name: run for name, run in report.get("drafts", {}).items() if name != "calls"}
    bad = sum(run["otherwise"] for run in drafts.values())
    bad += sum(run["same_tokens"] < report["drafts"]["calls"] for name, run in drafts.items() if name != "ForcedText")
    return int(bad > 0)
