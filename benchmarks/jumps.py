"""What jumping over forced text does to calls: right calls and forward passes, with and without, by a real model.

    python benchmarks/jumps.py path/to/bfcl-dev.jsonl.gz --model hf:PATH [--requests 100] [--json FILE]

Requests of the Berkeley Function Calling Leaderboard that one call answers, spread over the file. The model writes the
call greedily, once with ``jump_forward`` and once without. A call is right if its function is the one that is wanted
and each argument is one of the accepted values (``""`` accepts that it is left out); text is compared without case,
spaces and punctuation, as the leaderboard does.

The law behind it: at each choice of the model its tokens are those with which the tokenizer writes the text. So where
the model alone spells as its tokenizer does, both ways give the same call; ``differing`` counts the others, and
``respelled`` the calls that were not spelled so without jumps.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.metadata
import json
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from toolgrammar.core import GenerateParams, Generation, ToolGrammarError, load_model
from toolgrammar.tools import ToolSet


@dataclass
class Row:
    """One way of writing, over all requests.

    Attributes:
        name: of the way.
        whole: calls that were not cut by the budget.
        functions: calls of the right function.
        right: calls that are right in all.
        tokens: written.
        passes: forward passes, the prompt's included.
        forced: tokens that were not asked for.
    """

    name: str
    whole: int = 0
    functions: int = 0
    right: int = 0
    tokens: int = 0
    passes: int = 0
    forced: int = 0


def requests(path: Path, count: int) -> Iterator[dict[str, Any]]:
    """Requests with one answer, spread over the file."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        found = [json.loads(line) for line in file if line.strip()]
    single = [each for each in found if len(each["answers"]) == 1 and len(each["question"][0]) == 1]
    step = max(1, len(single) // count)
    for first in range(step):  # those far apart come first
        yield from single[first::step]


def plain(value: Any) -> Any:
    """A value as it is compared."""
    if isinstance(value, str):
        return re.sub(r"[ ,./\-_*^]", "", value).lower().replace("'", '"')
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value


def accepts(accepted: list[Any], value: Any) -> bool:
    """Whether a value is one of those that are accepted; those of an object are lists again."""
    for each in accepted:
        if isinstance(each, Mapping) and isinstance(value, Mapping):
            if matches(each, value):
                return True
        elif plain(each) == plain(value) and isinstance(each, bool) == isinstance(value, bool):
            return True
    return False


def matches(wanted: Mapping[str, list[Any]], given: Mapping[str, Any]) -> bool:
    """Whether arguments are right."""
    return all(name in wanted and accepts(wanted[name], value) for name, value in given.items()) and all(
        name in given or "" in accepted for name, accepted in wanted.items()
    )


def judge(row: Row, generation: Generation, answer: Mapping[str, Mapping[str, list[Any]]]) -> None:
    """Count what one call is."""
    row.tokens += generation.usage.completion_tokens
    row.passes += generation.usage.forward_passes
    row.forced += generation.usage.forced_tokens
    if len(generation.tool_calls) != 1 or generation.finish_reason == "length":
        return
    row.whole += 1
    ((name, wanted),) = answer.items()
    (call,) = generation.tool_calls
    if call.name != name:
        return
    row.functions += 1
    row.right += matches(wanted, call.arguments)


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path, help="requests with answers, one JSON object a line, gzip or not")
    parser.add_argument("--model", required=True, help="as load_model takes it")
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--max-tokens", type=int, default=150, help="budget of a call")
    parser.add_argument(
        "--most-prompt", type=int, default=1500, help="leave out requests with longer prompts, in tokens"
    )
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 120)
    model = load_model(options.model)
    jumping, alone = Row("with jumps"), Row("without")
    asked = differing = respelled = 0
    refused: list[str] = []
    for request in requests(options.data, options.requests):
        if asked >= options.requests:
            break
        try:
            tools = ToolSet.from_any(request["functions"])
            if model.count_tokens(request["question"][0][-1]["content"], tools) > options.most_prompt:
                continue
            texts = []
            for row, jump in ((jumping, True), (alone, False)):
                generation = model.generate(
                    request["question"][0][-1]["content"],
                    GenerateParams(
                        tools=tools, tool_choice="required", parallel_tool_calls=False, max_tokens=options.max_tokens,
                        jump_forward=jump,
                    ),
                )  # fmt: skip
                judge(row, generation, request["answers"][0])
                texts.append(generation)
        except ToolGrammarError as error:
            refused.append(f"{request['id']}: {type(error).__name__}")
            continue
        asked += 1
        differing += texts[0].raw != texts[1].raw
        respelled += tuple(model.backend.encode(texts[1].raw)) != tuple(texts[1].token_ids)
        print(f"{asked}: right {jumping.right} and {alone.right}", file=sys.stderr, flush=True)
    shown = Table(title=f"{asked} requests, one call each, greedy")
    for name in ("way", "whole", "right function", "right call", "tokens", "passes", "passes/token", "forced"):
        shown.add_column(name, justify="left" if name == "way" else "right")
    for row in (jumping, alone):
        shown.add_row(
            row.name, f"{row.whole}", f"{row.functions}", f"{row.right}", f"{row.tokens:,}", f"{row.passes:,}",
            f"{row.passes / max(1, row.tokens):.3f}", f"{row.forced:,}",
        )  # fmt: skip
    console.print(shown)
    console.print(f"differing texts: {differing}; refused: {refused or 'none'}")
    console.print(f"without jumps, spelled otherwise than the tokenizer spells it: {respelled}")
    if options.json:
        found = {
            "model": options.model.rpartition("/")[2], "asked": asked, "differing": differing, "respelled": respelled,
            "python": platform.python_version(), "machine": platform.machine(), "refused": refused,
            "versions": {name: importlib.metadata.version(name) for name in ("toolgrammar", "torch", "transformers")},
            "rows": [asdict(jumping), asdict(alone)],
        }  # fmt: skip
        options.json.write_text(json.dumps(found, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
