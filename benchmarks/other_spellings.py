"""Does a model that writes calls in another family's spelling call, and does it call where it should not?

    python benchmarks/other_spellings.py path/to/bfcl-dev.jsonl.gz [--model gguf:PATH] [--requests 60] [--keep]

The option ``other_spellings`` (on, off), under ``tool_choice="auto"`` and greedily, with requests of the Berkeley
Function Calling Leaderboard that one call answers (judged as in ``real_model.py``); with the same questions beside the
tools of other requests, which cannot answer them (a call is wrong); and with questions that ask for JSON or code as
text (a call is wrong, too).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

from real_model import Case, cases, judge
from report import other_spellings
from results_io import show

from toolgrammar.core import load_model
from toolgrammar.core.models import Model
from toolgrammar.tools import ToolSet

#: Questions that ask for text with code; `{name}` is a tool that is there.
SHOWN = (
    "Write an example of a JSON object that describes a person.",
    "Explain in one sentence what the tool {name} does. Do not call it.",
    "Show me the JSON Schema of the arguments of {name}, as text.",
    "Write a Python function that adds two numbers.",
    "What is JSON? Give a short example.",
    "Write a bash command that lists files.",
    "Give me a JSON list of three colours.",
    "Write package.json for a project named demo.",
    "Which tools do you have? Answer in words.",
    "Write an SQL query that counts the rows of the table users.",
)


def answer(model: Model, question: str, tools: ToolSet, most: int, *, on: bool) -> Any:
    """Return the model's answer."""
    return model.generate(question, tools=tools, max_tokens=most, temperature=0, other_spellings=on)


def main() -> int:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--name", help="the model's name in the results")
    parser.add_argument("--requests", type=int, default=60)
    parser.add_argument("--max-tokens", type=int, default=160)
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results/other_spellings.{json,md}")
    options = parser.parse_args()
    model = load_model(options.model)
    asked: list[Case] = list(islice(cases(options.data, options.requests), options.requests))
    found: dict[str, dict[str, Any]] = {}
    for on in (False, True):
        counts: Counter[str] = Counter()
        started = time.process_time()
        for index, case in enumerate(asked):
            made = answer(model, case.question, case.tools, options.max_tokens, on=on)
            sheet = judge(case, made.message.tool_calls, whole=made.finish_reason == "tool_calls")
            counts["requests"] += 1
            counts["calls"] += bool(made.message.tool_calls)
            counts["valid"] += sheet["valid"]
            counts["right"] += sheet["right"]
            counts["spelled"] += bool(made.message.leniencies)
            counts["passes"] += made.usage.forward_passes
            other = asked[(index + len(asked) // 2) % len(asked)]
            if set(other.tools.names).isdisjoint(case.tools.names):
                made = answer(model, case.question, other.tools, options.max_tokens, on=on)
                counts["unanswerable"] += 1
                counts["called_anyway"] += bool(made.message.tool_calls)
            if index < 3 * len(SHOWN):
                question = SHOWN[index % len(SHOWN)].format(name=case.tools.names[0])
                made = answer(model, question, case.tools, options.max_tokens, on=on)
                counts["shown"] += 1
                counts["shown_called"] += bool(made.message.tool_calls)
            if index % 10 == 9:
                print(f"{'on' if on else 'off'}: {index + 1} of {len(asked)}: {dict(counts)}", file=sys.stderr)
        found["on" if on else "off"] = {**counts, "seconds": round(time.process_time() - started)}
    report = {"model": options.name or options.model, "ways": found}
    show("other_spellings", report, other_spellings(report), keep=options.keep)
    return 0


if __name__ == "__main__":
    sys.exit(main())
