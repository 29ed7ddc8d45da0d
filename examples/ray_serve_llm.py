"""Ray Serve LLM over vLLM with the plug-in: replicas that answer any OpenAI client with valid calls.

Run it: python examples/ray_serve_llm.py MODEL [cpu]
Every machine of the cluster needs `toolgrammar[vllm]` beside vLLM; nothing else is shared.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import openai
import ray
from ray import serve
from ray.serve.llm import LLMConfig, build_openai_app

model, *device = sys.argv[1:]
if device:
    ray.init(num_cpus=8)  # slots for processes; a small machine has fewer cores than Ray Serve LLM has actors
on_cpu: dict[str, Any] = {"placement_group_config": {"bundles": [{"CPU": 1}]}, "accelerator_config": {"kind": "cpu"}}

config = LLMConfig(
    model_loading_config={"model_id": "served", "model_source": model},
    deployment_config={"num_replicas": 1},
    # What `vllm serve` has as options.
    engine_kwargs={
        "structured_outputs_config": {"backend": "outlines"},
        "enable_auto_tool_choice": True,
        "tool_call_parser": "toolgrammar-hermes",
        "max_model_len": 2048,
        **({"dtype": "float32", "enforce_eager": True, "max_num_seqs": 8} if device else {}),
    },
    **(on_cpu if device else {}),
)
serve.run(build_openai_app({"llm_configs": [config]}), blocking=False)

weather = {
    "type": "object",
    "properties": {"city": {"enum": ["Oslo", "Rome"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
client = openai.OpenAI(base_url="http://127.0.0.1:8000/v1", api_key="none", max_retries=0)
answer = client.chat.completions.create(
    model="served",
    messages=[{"role": "user", "content": "The weather in Oslo for two days, please."}],
    tools=[{"type": "function", "function": {"name": "get_weather", "parameters": weather}}],
    tool_choice="required",
    max_tokens=300,
)
for call in answer.choices[0].message.tool_calls or []:
    if call.type == "function":
        print(f"called: {call.function.name}({json.loads(call.function.arguments)})")
serve.shutdown()
