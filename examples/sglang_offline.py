"""SGLang without a server: JSON under a schema with `uniqueItems`, and a pattern, by the backend that SGLang finds by
itself.

Run it: python examples/sglang_offline.py MODEL [cpu]
"""

from __future__ import annotations

import json
import sys
from typing import Any

import sglang


def main(model: str, *device: str) -> None:
    """Write four lists and a code together."""
    on_cpu: dict[str, Any] = {
        "device": "cpu",
        "attention_backend": "torch_native",
        "dtype": "float32",
        "mem_fraction_static": 0.2,
        "max_total_tokens": 4096,
        "disable_cuda_graph": True,
        "disable_overlap_schedule": True,
    }
    options: dict[str, Any] = {"context_length": 1024, "max_running_requests": 8, **(on_cpu if device else {})}
    engine = sglang.Engine(model_path=model, grammar_backend="toolgrammar", **options)
    colours = {"type": "array", "items": {"enum": ["red", "green"]}, "uniqueItems": True, "minItems": 1}
    asked: list[dict[str, Any]] = [{"json_schema": json.dumps(colours)}] * 4 + [{"regex": "[A-C]{2}-[0-9]{2}"}]
    sampling = [{"temperature": 1.0, "max_new_tokens": 60, **one} for one in asked]
    *lists, code = engine.generate(["Colours, please. "] * len(asked), sampling)
    for output in lists:
        print("colours:", json.loads(output["text"]))
    print("code:", code["text"])
    engine.shutdown()


if __name__ == "__main__":  # SGLang starts processes that import this file
    main(*sys.argv[1:])
