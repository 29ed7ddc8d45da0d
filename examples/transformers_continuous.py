"""Continuous batching of transformers, in which each request has a grammar of its own.

Run it: python examples/transformers_continuous.py
"""

from __future__ import annotations

import json

import torch
from transformers import ContinuousBatchingConfig, GenerationConfig, LlamaConfig, LlamaForCausalLM

from toolgrammar.core import Grammar, Vocabulary
from toolgrammar.core.models.transformers.continuous import ConstrainedText, ContinuousMasks

# A model of noise whose tokens are bytes, so that the example runs offline. For a real one:
# AutoModelForCausalLM.from_pretrained(NAME), Vocabulary.from_transformers(tokenizer, size=model.config.vocab_size).
END = 256
torch.manual_seed(0)
model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=257,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        initializer_range=0.5,
        eos_token_id=END,
    )
).eval()
vocabulary = Vocabulary([*(bytes((byte,)) for byte in range(256)), None], eos=[END])

SCHEMAS = {
    "Where is it raining?": {
        "type": "object",
        "properties": {"city": {"enum": ["Oslo", "Rome"]}, "hours": {"type": "integer", "minimum": 1, "maximum": 24}},
        "required": ["city", "hours"],
        "additionalProperties": False,
    },
    "Which keys?": {"type": "array", "items": {"enum": ["C", "D", "G"]}, "uniqueItems": True, "minItems": 2},
    "A year, please.": {"type": "integer", "minimum": 1000, "maximum": 2100},
}

manager = model.init_continuous_batching(
    generation_config=GenerationConfig(do_sample=True, max_new_tokens=200, eos_token_id=END),
    continuous_batching_config=ContinuousBatchingConfig(num_blocks=16, max_batch_tokens=128, use_async_batching=False),
)
ContinuousMasks(manager, vocabulary)
manager.start()
asked = {}
try:
    for prompt, schema in SCHEMAS.items():
        text = ConstrainedText(Grammar.from_json_schema(schema, whitespace="single").bind(vocabulary))
        asked[manager.add_request(list(prompt.encode()), text=text)] = prompt, text
    for _ in SCHEMAS:
        output = manager.get_result(timeout=60)
        prompt, text = asked[output.request_id]
        assert text.is_whole(output), output.error  # not where max_new_tokens has cut the text
        written = bytes(token for token in output.generated_tokens if token != END)
        print(f"{prompt:22}{json.loads(written)}")
finally:
    manager.stop(block=True)
