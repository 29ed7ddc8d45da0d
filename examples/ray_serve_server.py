"""The server on Ray Serve: two replicas, on one machine or many, each with the model; any OpenAI client asks them.

Run it: pip install 'toolgrammar[openai]' 'ray[serve]'; python examples/ray_serve_server.py
In use, name your model, and say how many GPUs a replica takes in ray_actor_options.
"""

from __future__ import annotations

import json

import openai
from ray import serve

from toolgrammar.adapters.server import create_app

MODEL = "embedded"  # or "hf:NAME-OR-PATH"


@serve.deployment(num_replicas=2, max_ongoing_requests=32, ray_actor_options={"num_cpus": 0.5})
@serve.ingress(lambda: create_app(MODEL))
class Server:
    """One replica: it makes the application, and loads the model, when it starts."""


serve.run(Server.bind())

seats = {
    "type": "object",
    "properties": {"seats": {"type": "integer", "minimum": 1, "maximum": 4}},
    "required": ["seats"],
    "additionalProperties": False,
}
client = openai.OpenAI(base_url="http://127.0.0.1:8000/v1", api_key="none", max_retries=0)
for _ in range(4):
    answer = client.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "Book a table."}],
        tools=[{"type": "function", "function": {"name": "book", "parameters": seats}}],
        tool_choice="required",
        max_tokens=40,
    )
    for call in answer.choices[0].message.tool_calls or []:
        if call.type == "function":
            print(f"called: {call.function.name}({json.loads(call.function.arguments)})")
serve.shutdown()
