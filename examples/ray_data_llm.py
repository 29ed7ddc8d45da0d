"""Ray Data LLM over vLLM with the plug-in: a JSON answer of a schema for each row of a data set.

Run it: python examples/ray_data_llm.py MODEL [cpu]
Every machine of the cluster needs `toolgrammar[vllm]` beside vLLM; nothing else is shared.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import ray
from ray.data.llm import build_processor, vLLMEngineProcessorConfig

model, *device = sys.argv[1:]
if device:
    ray.init(num_cpus=8)  # slots for processes; a small machine has fewer cores than a pipeline has actors
options: dict[str, Any] = {"dtype": "float32", "enforce_eager": True, "max_num_seqs": 8} if device else {}

schema = {
    "type": "object",
    "properties": {
        "colours": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "uniqueItems": True, "minItems": 1},
        "stars": {"type": "integer", "minimum": 1, "maximum": 5},
    },
    "required": ["colours", "stars"],
    "additionalProperties": False,
}
processor = build_processor(
    vLLMEngineProcessorConfig(
        model_source=model,
        engine_kwargs={"structured_outputs_config": {"backend": "outlines"}, "max_model_len": 1024, **options},
        concurrency=1,
        batch_size=8,
        **({"placement_group_config": {"bundles": [{"CPU": 1}]}} if device else {}),
        chat_template_stage=False,
        tokenize_stage=False,
        detokenize_stage=False,
    ),
    preprocess=lambda row: {
        "prompt": f"Judge {row['item']}. ",
        "sampling_params": {"max_tokens": 200, "structured_outputs": {"json": schema}},
    },
    postprocess=lambda row: {"written": row["generated_text"]},
)
for row in processor(ray.data.from_items(["a kite", "a boat", "a bell", "a lamp"])).take_all():
    print("judged:", json.loads(row["written"]))
