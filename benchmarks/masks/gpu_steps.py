"""What masks add to a decoding step of a GPU, beside llguidance and xgrammar.

    python -m benchmarks masks/gpu_steps [--rows 1,8,32,128] [--steps 60] [--keep]

A transformer of the shape of Llama 2 7B (random weights, bfloat16, Tekken's 131,072 tokens) is one CUDA graph a step,
with 1,024 tokens in each row's cache. Each row writes calls of ten tools, each its own. A step:

1. the graph is launched; it reads the last tokens from the device;
2. meanwhile the host computes the masks of all rows, from the tokens before;
3. the masks are put on the logits, and a token is drawn on the device;
4. the tokens are read back, and each row's matcher accepts its own.

"free" does 1, 3 without masks, and 4 without matchers. The ways take turns, step by step, so that they meet the same
clocks of the device; medians. The difference to "free" in percent is what a constraint costs.
"""

from __future__ import annotations

import random
import statistics
import time
from typing import Any

import numpy as np
import torch

from benchmarks.masks.batch import Rows, begun, call, ours, peers, tool
from benchmarks.shared.engines import Ours
from benchmarks.shared.peers import tekken
from benchmarks.shared.tables import show

#: The shape of Llama 2 7B.
WIDTH, INNER, HEADS, LAYERS = 4_096, 11_008, 32, 32
#: Tokens in each row's cache.
CONTEXT = 1_024


class Network:
    """One decoding step of a transformer with random weights, as a CUDA graph."""

    def __init__(self, rows: int, layers: int, weights: dict[str, Any]) -> None:
        self.tokens = torch.zeros(rows, dtype=torch.long, device="cuda")
        self.rows, self.layers, self.weights = rows, layers, weights
        shape = (rows, HEADS, CONTEXT, WIDTH // HEADS)
        self.keys = torch.randn(shape, dtype=torch.bfloat16, device="cuda")
        self.values = torch.randn(shape, dtype=torch.bfloat16, device="cuda")
        side = torch.cuda.Stream()
        with torch.cuda.stream(side), torch.inference_mode():
            for _ in range(3):
                self.logits = self._forward()
        torch.cuda.synchronize()
        self._graph = torch.cuda.CUDAGraph()
        with torch.inference_mode(), torch.cuda.graph(self._graph):
            self.logits = self._forward()

    def _forward(self) -> Any:
        """Return logits, ``[rows, V]``. All layers read one cache; the traffic is that of caches of their own."""
        functional, hidden = torch.nn.functional, self.weights["embed"][self.tokens]
        for layer in range(self.layers):
            normal = functional.rms_norm(hidden, (WIDTH,))
            query, key, value = functional.linear(normal, self.weights[f"qkv{layer}"]).chunk(3, dim=-1)
            self.keys[:, :, -1] = key.view(self.rows, HEADS, -1)
            self.values[:, :, -1] = value.view(self.rows, HEADS, -1)
            mixed = functional.scaled_dot_product_attention(query.view(self.rows, HEADS, 1, -1), self.keys, self.values)
            hidden = hidden + functional.linear(mixed.reshape(self.rows, WIDTH), self.weights[f"out{layer}"])
            normal = functional.rms_norm(hidden, (WIDTH,))
            gate, up = functional.linear(normal, self.weights[f"up{layer}"]).chunk(2, dim=-1)
            hidden = hidden + functional.linear(functional.silu(gate) * up, self.weights[f"down{layer}"])
        return functional.linear(functional.rms_norm(hidden, (WIDTH,)), self.weights["head"])

    def launch(self) -> Any:
        """Begin a step, and return its logits, which are not there yet."""
        self._graph.replay()
        return self.logits


def weights_of(vocabulary: int, layers: int) -> dict[str, Any]:
    """Return random weights."""
    torch.manual_seed(0)
    draw = lambda *shape: torch.randn(shape, dtype=torch.bfloat16, device="cuda") * 0.02  # noqa: E731 - a short name
    found = {"embed": draw(vocabulary, WIDTH), "head": draw(vocabulary, WIDTH)}
    for layer in range(layers):
        found[f"qkv{layer}"] = draw(3 * WIDTH, WIDTH)
        found[f"out{layer}"] = draw(WIDTH, WIDTH)
        found[f"up{layer}"] = draw(2 * INNER, WIDTH)
        found[f"down{layer}"] = draw(WIDTH, INNER)
    return found


class Way:
    """A way to choose the next tokens: masks by an engine, or none.

    Args:
        texts: what the rows write over and over, in tokens.
        judge: this library's constraint; each token drawn under a mask is checked by it, outside the time.
        engine: the engine; without it, everything is allowed.

    Attributes:
        forbidden: number of tokens drawn that the judge forbids; peers allow more white space than it.
    """

    def __init__(self, texts: list[list[int]], judge: Rows, engine: Rows | None = None) -> None:
        self.texts, self.judge, self.engine = texts, judge, engine
        self.at = [1 + (index * 3) % (len(text) - 1) for index, text in enumerate(texts)]
        self.forbidden = 0
        self.judges = begun(judge, texts, self.at)
        self.matchers = [] if engine is None else begun(engine, texts, self.at)

    def step(self, network: Network) -> float:
        """Do one step; return milliseconds.

        The token drawn is read back, then replaced by that of the row's text, so that all ways write the same.
        """
        engine = self.engine
        network.tokens.copy_(torch.tensor([text[at - 1] for text, at in zip(self.texts, self.at, strict=True)]))
        torch.cuda.synchronize()
        begin = time.perf_counter()
        logits = network.launch()
        masks = None if engine is None else engine.fill(self.matchers)
        logits = logits.clone()
        if engine is not None:
            engine.put(logits, masks)
        drawn = torch.multinomial(torch.softmax(logits.float(), dim=-1), 1).view(-1).tolist()
        for matcher, text, at in zip(self.matchers, self.texts, self.at, strict=False):
            assert engine is not None and engine.accept(matcher, text[at])
        spent = (time.perf_counter() - begin) * 1e3
        for row, text in enumerate(self.texts):
            if engine is not None and not self.judges[row].fork().accept(drawn[row]):
                self.forbidden += 1
            assert self.judges[row].accept(text[self.at[row]])
            self.at[row] += 1
            if self.at[row] == len(text):  # begin anew
                self.at[row] = 1
                (self.judges[row],) = begun(self.judge, [text], [1])
                if engine is not None:
                    (self.matchers[row],) = begun(engine, [text], [1])
        return spent


def main(rows: str = "1,8,32,128", steps: int = 60, layers: int = LAYERS, keep: bool = False) -> None:
    """Run, and print a table."""
    vocabulary, encode = tekken()
    schema = {"anyOf": [tool(number) for number in range(10)]}
    constraint, weights = Ours(vocabulary, whitespace="flexible").compile(schema), weights_of(vocabulary.size, layers)
    results: dict[str, Any] = {"device": torch.cuda.get_device_name(), "context": CONTEXT, "steps": steps}
    for count in map(int, rows.split(",")):
        seed = random.Random(count)
        texts = [encode(call(seed)) for _ in range(count)]
        network = Network(count, layers, weights)
        judge = ours(vocabulary, constraint, "cuda")
        engines = {"free": None, "toolgrammar": judge, **peers(vocabulary, encode, schema, count)}
        ways = {name: Way(texts, judge, engine) for name, engine in engines.items()}
        spent: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(10 + steps):
            for name, way in ways.items():
                taken = way.step(network)
                if number >= 10:  # the first ones compile kernels
                    spent[name].append(taken)
        assert not ways["toolgrammar"].forbidden
        medians = {name: statistics.median(each) for name, each in spent.items()}
        worst = {name: float(np.quantile(each, 0.95)) for name, each in spent.items()}
        results[str(count)] = {"median_ms": medians, "p95_ms": worst}
        del network
        torch.cuda.empty_cache()
    show("gpu_steps", results, keep=keep)
