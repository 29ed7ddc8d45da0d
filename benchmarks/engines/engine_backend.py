"""The backend behind vLLM's own manager of structured output, without a model: time of masks, and of compilation.

    python -m benchmarks engines/engine_backend DATA --tokenizer PATH [--json FILE]

``outlines`` is the place that our plug-in takes. Each row writes JSON of the arguments of one function of the Berkeley
Function Calling Leaderboard (so that both backends have the same task), random tokens under its masks. Times are those
of ``StructuredOutputManager.grammar_bitmask`` for the whole batch, by row; the first pass derives the masks,
the second finds them. Then 1,000 tool sets that differ are compiled one after the other, as requests bring them.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import statistics
import time
from concurrent.futures import wait
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.shared.data import tool_sets
from toolgrammar.adapters.vllm import envelope, register
from toolgrammar.core import ConstraintCache

STEPS = 40


def manager(tokenizer: Any, backend: str, rows: int) -> Any:
    """vLLM's manager, its configuration reduced to what it reads."""
    from vllm.v1 import structured_output

    structured_output.cached_tokenizer_from_config = lambda model_config: tokenizer
    config = SimpleNamespace(
        parallel_config=SimpleNamespace(distributed_executor_backend="uni"),
        scheduler_config=SimpleNamespace(max_num_seqs=rows),
        model_config=SimpleNamespace(
            skip_tokenizer_init=False,
            get_vocab_size=lambda: len(tokenizer),
            max_model_len=4096,
            is_diffusion=False,
            hf_config=SimpleNamespace(model_type="llama"),
        ),
        structured_outputs_config=SimpleNamespace(
            backend=backend,
            reasoning_parser_plugin="",
            reasoning_parser="",
            enable_in_reasoning=False,
            disable_any_whitespace=False,
            disable_additional_properties=False,
        ),
        speculative_config=None,
        num_speculative_tokens=0,
    )
    return structured_output.StructuredOutputManager(config)


def request(number: int, backend: str, eos: int, **asked: Any) -> Any:
    """A request of vLLM."""
    from vllm.sampling_params import SamplingParams, StructuredOutputsParams
    from vllm.v1.request import Request

    params = SamplingParams(max_tokens=2048, structured_outputs=StructuredOutputsParams(**asked))
    params.structured_outputs._backend = backend
    params._eos_token_id = eos
    params._all_stop_token_ids = {eos}
    return Request(f"r{number}", prompt_token_ids=[1], sampling_params=params, pooling_params=None)


def compiled(made: Any, requests: list[Any]) -> tuple[dict[str, Any], int]:
    """The requests that could be compiled, and the number of the others."""
    for one in requests:
        made.grammar_init(one)
    wait([one.structured_output_request._grammar for one in requests])
    good = [one for one in requests if not isinstance(one.structured_output_request.grammar, Exception)]
    return {one.request_id: one for one in good}, len(requests) - len(good)


def walk(made: Any, by_id: dict[str, Any], seed: int) -> tuple[list[float], int]:
    """Write random tokens in all rows; return the seconds for each row of each step, and the rows written."""
    rngs = {name: random.Random(f"{seed}{name}") for name in by_id}
    active, times, rows = list(by_id), [], 0
    for _ in range(STEPS):
        if not active:
            break
        begin = time.perf_counter()
        masks = made.grammar_bitmask(by_id, active, {})
        times.append((time.perf_counter() - begin) / len(active))
        rows += len(active)
        for name, mask in zip(list(active), masks, strict=True):
            allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
            token = int(rngs[name].choice(allowed))
            by_id[name].append_output_token_ids(token)
            made.accept_tokens(by_id[name], [token])
            if by_id[name].structured_output_request.grammar.is_terminated():
                active.remove(name)
    return times, rows


def changing(tokenizer: Any, sets: list[Any], max_bytes: int | None = None) -> dict[str, Any]:
    """Compile 1,000 tool sets, one after the other, and write the first mask of each.

    The engine's loop only hands a tool set over and asks for the mask; the rest happens in vLLM's pool of threads.
    """
    made = manager(tokenizer, "outlines", 1)
    loop: list[float] = []
    pool: list[float] = []
    resident: dict[str, float] = {}
    for number in range(1000):
        tools = sets[number % len(sets)] + sets[(7 * number + number // len(sets) + 1) % len(sets)]
        names = {tool["function"]["name"]: tool for tool in tools}
        asked = envelope([*names.values()], tool_choice="required", format="hermes")
        one = request(number, "outlines", tokenizer.eos_token_id, grammar=asked)
        begin = time.perf_counter()
        made.grammar_init(one)
        submitted = time.perf_counter()
        wait([one.structured_output_request._grammar])
        compiled_at = time.perf_counter()
        if not isinstance(one.structured_output_request.grammar, Exception):
            made.grammar_bitmask({one.request_id: one}, [one.request_id], {})
        loop.append(submitted - begin + time.perf_counter() - compiled_at)
        pool.append(compiled_at - submitted)
        if number == 0 and max_bytes is not None:
            made.backend._cache = ConstraintCache(max_bytes=max_bytes)
        if (number + 1) % 250 == 0:
            gc.collect()
            resident[str(number + 1)] = round(resident_mb(), 1)
    seen = made.backend._cache.statistics
    ms = {}
    for name, times in (("pool", pool), ("loop", loop)):
        times = sorted(times[1:])  # the first one reads the vocabulary
        ms |= {f"{name}_ms_median": 1e3 * statistics.median(times), f"{name}_ms_p99": 1e3 * times[989]}
    return {
        **{name: round(value, 2) for name, value in ms.items()},
        "first_ms": round(1e3 * (pool[0] + loop[0]), 1),
        "cache_mb": round(seen.bytes / 2**20, 1),
        "misses": seen.misses,
        "evictions": seen.evictions,
        "resident_mb": resident,
    }


def resident_mb() -> float:
    """Memory of this process (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--backends", nargs="+", default=["outlines", "xgrammar"])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 32, 256])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--parts", nargs="+", choices=("rows", "changing"), default=["rows", "changing"])
    options = parser.parse_args()
    register()
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(options.tokenizer)
    sets = tool_sets(options.data)
    schemas = [tool["function"]["parameters"] for tools in sets for tool in tools]
    results: dict[str, Any] = {}
    for backend in options.backends if "rows" in options.parts else ():
        found = results[backend] = {}
        for rows in options.rows:
            made = manager(tokenizer, backend, rows)
            first: list[float] = []
            for attempt in ("first", "again"):
                asked = [
                    request(number, backend, tokenizer.eos_token_id, json=schemas[number % len(schemas)])
                    for number in range(rows)
                ]
                begin = time.perf_counter()
                by_id, failed = compiled(made, asked)
                seconds = time.perf_counter() - begin
                times, written = walk(made, by_id, 1)
                first.append(seconds)
                found[f"{rows} rows, {attempt}"] = {
                    "compile_ms_per_request": round(1e3 * seconds / rows, 3),
                    "failed": failed,
                    "mask_us_per_row_median": round(1e6 * statistics.median(times), 1),
                    "mask_us_per_row_max": round(1e6 * max(times), 1),
                    "rows": written,
                }
            made.clear_backend()
    if "changing" in options.parts:
        results["1,000 tool sets"] = changing(tokenizer, sets)
        results["1,000 tool sets, a cache of 8 MB"] = changing(tokenizer, sets, 8 << 20)
    print(json.dumps(results, indent=1))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
