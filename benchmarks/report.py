"""Writes the tables of the documentation from the results that are kept beside this file, and draws the picture.

    python -m benchmarks report [--check]

A table stands between two comments, ``<!-- NAME: written by benchmarks/report.py -->`` and ``<!-- end of NAME -->``,
and shows ``benchmarks/results/NAME.json``. What is between them is written anew; the prose around it is by hand. A
table whose result is not kept stays as it is. With ``--check`` nothing is written: the exit status says whether
something would be.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from pathlib import Path

from benchmarks.shared.answer_tables import (
    bfcl_calls,
    bfcl_multi_turn,
    bfcl_v4,
    decisions_table,
    engine_steps,
    exports_table,
    llama_cpp_table,
    mask_verifier,
    matrix,
    over_constraint,
    repair,
    seen_ids,
    servers_table,
    sglang_engine,
    sureness,
    templates_table,
    tokens_table,
    tools_in_prompt,
    turns_table,
    verdicts_by_family,
    verdicts_table,
    vllm_faults,
    vllm_parsers_table,
)
from benchmarks.shared.cost_tables import (
    COSTS,
    PICTURE,
    batch,
    costs_picture,
    decoding,
    engine_rows,
    gpu_steps,
    growth,
    growth_picture,
    masks,
    memory,
    numpy_model,
    server_attack,
    serving,
    serving_http,
    summary,
    text_grammars,
    tool_sets,
    vocabulary,
)
from benchmarks.shared.results_io import RESULTS, Result, below_machine

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
#: The pages with tables: each result is shown on one of them.
_PAGES = (
    "performance",
    "evidence",
    "adapters",
    "decisions",
    "decoding",
    "formats",
    "repair",
    "servers",
    "text-grammars",
    "tools",
)
PAGES = (*(DOCS / f"{name}.md" for name in _PAGES), RESULTS / "README.md")
BLOCK = re.compile(r"(<!-- ([\w-]+): written by benchmarks/report\.py -->\n)(.*?)(<!-- end of \2 -->\n)", re.DOTALL)
#: The results that the summary is made of.
SUMMARISED = ("maskbench", "bfcl_calls")
TABLES: dict[str, Callable[[Result], str]] = {
    "summary": summary,
    "maskbench": masks,
    "maskbench_order": masks,
    "maskbench_all": masks,
    "maskbench_all_order": masks,
    "maskbench_peers": masks,
    "gpu_steps": gpu_steps,
    "over_constraint": over_constraint,
    "verdicts": below_machine(verdicts_by_family),
    "matrix": matrix,
    "mask_verifier": mask_verifier,
    "decisions": below_machine(decisions_table),
    "text_grammars": text_grammars,
    "growth": growth,
    "batch": batch,
    "serving": serving,
    "server_attack": below_machine(server_attack),
    "serving_http": below_machine(serving_http),
    "decoding": decoding,
    "tool_sets": tool_sets,
    "memory": memory,
    "engine_rows": below_machine(engine_rows),
    "sureness": below_machine(sureness),
    "seen_ids": below_machine(seen_ids),
    "tools_in_prompt": below_machine(tools_in_prompt),
    "bfcl_v4": below_machine(bfcl_v4),
    "bfcl_calls": below_machine(bfcl_calls),
    "bfcl_multi_turn": below_machine(bfcl_multi_turn),
    "engine_steps": below_machine(engine_steps),
    "sglang_engine": below_machine(sglang_engine),
    "vllm_faults": below_machine(vllm_faults),
    "vocabulary_cost": vocabulary,
    "numpy_model": numpy_model,
    "templates": below_machine(templates_table),
    "turns": below_machine(turns_table),
    "vllm_parsers": below_machine(vllm_parsers_table),
    "sglang_parsers": below_machine(vllm_parsers_table),
    "llama_cpp_cases": below_machine(llama_cpp_table),
    "exports": below_machine(exports_table),
    "remote_servers": below_machine(servers_table),
    "text_grammar_tokens": below_machine(tokens_table),
    "text_grammar_verdicts": below_machine(verdicts_table),
    "repair": repair,
}


def kept(name: str) -> Result | None:
    """A result, if it is kept; that of the summary is several."""
    if name == "summary":
        results = {each: kept(each) for each in SUMMARISED}
        return None if None in results.values() else results
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def written(page: str, results: Callable[[str], Result | None] = kept) -> str:
    """A page with its tables as the results have them.

    Raises:
        ValueError: a table that nobody writes, a comment without its other half.
    """
    found = [match[2] for match in BLOCK.finditer(page)]
    if unknown := set(found) - set(TABLES):
        raise ValueError(f"nobody writes the table {sorted(unknown)[0]}; there are {', '.join(TABLES)}")
    if page.count(": written by benchmarks/report.py -->") != len(found):
        raise ValueError("a table's first comment has no last one")

    def anew(match: re.Match[str]) -> str:
        result = results(match[2])
        return match[0] if result is None else f"{match[1]}{TABLES[match[2]](result)}\n{match[4]}"

    return BLOCK.sub(anew, page)


def main() -> int:
    """Write the page and the picture, or say whether they are as the results are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if something would change")
    options = parser.parse_args()
    texts = {page: written(page.read_text(encoding="utf-8")) for page in PAGES}
    if (result := kept("growth")) is not None:
        texts[PICTURE] = growth_picture(result)
    if (result := kept("maskbench")) is not None:
        texts[COSTS] = costs_picture(result)
    stale = [path for path, text in texts.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        if not options.check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(texts[path], encoding="utf-8")
        print(f"{'stale' if options.check else 'written'}: {path.relative_to(HERE.parent)}")
    return 1 if stale and options.check else 0
