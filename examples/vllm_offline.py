"""vLLM without a server: calls and JSON under grammars, by the plug-in that vLLM finds by itself.

Run it: python examples/vllm_offline.py MODEL [cpu]
"""

from __future__ import annotations

import json
import sys
from typing import Any

from vllm import LLM, SamplingParams
from vllm.sampling_params import StructuredOutputsParams

from toolgrammar.adapters.vllm import envelope
from toolgrammar.tools import ToolSet


def turn_on(room: str, percent: int) -> str:
    """Turn on the lamps of a room."""
    return f"{room}: {percent}%"


def main(model: str, *device: str) -> None:
    """Write four calls and a JSON value together."""
    options: dict[str, Any] = {"dtype": "float32", "enforce_eager": True, "max_num_seqs": 8} if device else {}
    engine = LLM(model, max_model_len=1024, structured_outputs_config={"backend": "outlines"}, **options)
    tools = ToolSet.from_any([turn_on])
    call = envelope(tools.to_openai(), tool_choice="required", parallel_tool_calls=False, format="hermes")
    colours = {"type": "array", "items": {"enum": ["red", "green"]}, "uniqueItems": True, "minItems": 1}
    asked = [StructuredOutputsParams(grammar=call)] * 4 + [StructuredOutputsParams(json=colours)]
    params = [SamplingParams(max_tokens=300, structured_outputs=one) for one in asked]
    *calls, value = engine.generate(["Lamps, please. "] * len(params), params, use_tqdm=False)
    for output in calls:
        for wanted in tools.parse(output.outputs[0].text, "hermes").tool_calls:
            print("called:", wanted.name, sorted(wanted.arguments))
    print("colours:", json.loads(value.outputs[0].text))


if __name__ == "__main__":  # vLLM starts processes that import this file
    main(*sys.argv[1:])
