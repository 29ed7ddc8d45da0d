"""Constrained decoding against free generation and against processors in transformers' own loop, on one machine.

    OMP_NUM_THREADS=1 python -m benchmarks engines/decoding DATA [--requests 8] [--keep]

For requests of the Berkeley Function Calling Leaderboard one call is written by

- the library, jumping over what the grammar fixes; once more with a grammar that was met before; and without jumping;
- ``generate`` of transformers, free, for as many tokens as the library wrote (the end of text is banned);
- ``generate`` of transformers with a logits processor over xgrammar, and over llguidance, for the same language: the
  call with its markers, the name bound to its arguments (until it is over, or so many tokens are written).

The model is Llama-shaped, with random weights (about 90 million parameters, a real vocabulary of 131,072 tokens),
float32 on one thread of the CPU. So what it says is noise; strings would hardly ever end. Every way of generating
therefore gets the same bias towards tokens that close. Sampling is greedy everywhere. The prompt is the question alone.
The embedded model runs the library alone, with and without jumping.

Shown: tokens per forward pass, time per token, and how much of the library's time the engine (masks, matcher, budget,
retokenising) and the sampler take. Compiling the grammar is counted. Times are CPU times of the one thread, since a
machine may do other things; wall times are in the file. Passes and tokens are exact.
"""

from __future__ import annotations

import importlib.metadata
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.shared.data import rows
from benchmarks.shared.engines import llguidance_tokenizer, xgrammar_info
from benchmarks.shared.noise import NoiseBackend
from benchmarks.shared.peers import tekken
from benchmarks.shared.results_io import show
from toolgrammar.core import GenerateParams, Message, UnsupportedSchemaError, Vocabulary, load_model
from toolgrammar.core.generation.sampler import Sampler
from toolgrammar.core.models import Model
from toolgrammar.tools import ToolSet

#: Added to the logits of tokens that close a string, an object or an array.
CLOSING = 6.0


@dataclass
class Row:
    """One way of generating, over all requests.

    Attributes:
        name: of the way.
        model: of the model.
        calls: how many calls were written to their end.
        tokens: written.
        passes: forward passes, the prompt's included.
        seconds: CPU time.
        wall: wall time.
        forward: of these, inside the model.
        sampler: of these, inside the sampler.
        forced: tokens that were not asked for.
    """

    name: str
    model: str
    calls: int = 0
    tokens: int = 0
    passes: int = 0
    seconds: float = 0.0
    wall: float = 0.0
    forward: float = 0.0
    sampler: float = 0.0
    forced: int = 0


class TorchSession:
    """One sequence of a model of transformers."""

    cached_tokens = 0

    def __init__(self, backend: Llama) -> None:
        self._backend = backend
        self._cache: Any = None
        self.length = 0

    def extend(self, token_ids: Sequence[int]) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Append tokens in one forward pass."""
        import torch

        backend = self._backend
        started = time.process_time()
        with torch.inference_mode():
            output = backend.model(
                input_ids=torch.tensor([list(token_ids)]), past_key_values=self._cache, use_cache=True, logits_to_keep=1
            )
        self._cache = output.past_key_values
        self.length += len(token_ids)
        logits: np.ndarray[Any, np.dtype[np.float32]] = output.logits[0, -1].numpy() + backend.bias
        backend.seconds += time.process_time() - started
        return logits

    def crop(self, length: int) -> None:
        """Forget tokens."""
        self._cache.crop(length - self.length)
        self.length = length

    def close(self) -> None:
        """Free the cache."""
        self._cache = None


def closing_bias(vocabulary: Vocabulary) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return what is added to the logits of each token."""
    closes = [CLOSING if token and token[:1] in b'"}]' else 0.0 for token in vocabulary.tokens]
    return np.array(closes, dtype=np.float32)


class Llama(NoiseBackend):
    """A random model of Llama's shape with the Tekken vocabulary.

    Attributes:
        seconds: spent in forward passes.
    """

    context_window = 4096

    def __init__(self) -> None:
        import torch
        from transformers import LlamaConfig, LlamaForCausalLM

        super().__init__(*tekken(), "llama-90m")
        torch.set_num_threads(1)
        torch.manual_seed(0)
        config = LlamaConfig(
            vocab_size=self.vocabulary.size, hidden_size=448, intermediate_size=1216, num_hidden_layers=14,
            num_attention_heads=7, num_key_value_heads=7, max_position_embeddings=4096, tie_word_embeddings=True,
            eos_token_id=min(self.vocabulary.eos), pad_token_id=None, bos_token_id=None, initializer_range=0.05,
        )  # fmt: skip
        self.model = LlamaForCausalLM(config).eval()
        self.model.generation_config.pad_token_id = min(self.vocabulary.eos)
        self.parameters = sum(each.numel() for each in self.model.parameters())
        self.bias = closing_bias(self.vocabulary)
        self.seconds = 0.0

    def encode_prompt(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), tool_prompt: str = ""
    ) -> list[int]:
        """The conversation, one paragraph each."""
        return self.encode("\n\n".join([*(message.text for message in messages), ""]))

    def start(self) -> Any:
        """A fresh sequence."""
        return TorchSession(self)


class Biased:
    """The embedded model with the same bias, and a clock.

    Attributes:
        seconds: spent in forward passes.
    """

    def __init__(self) -> None:
        self._inner: Any = load_model("embedded", context_window=16_384).backend
        self.bias = closing_bias(self._inner.vocabulary)
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def can_batch(self) -> bool:
        """Return False: a batch would not run the sessions of `start`."""
        return False

    def start(self) -> Any:
        """A fresh sequence."""
        session, outer = self._inner.start(), self

        class Timed:
            length = property(lambda _: session.length)
            cached_tokens = property(lambda _: session.cached_tokens)

            def extend(self, ids: Sequence[int]) -> Any:
                started = time.process_time()
                logits = session.extend(ids) + outer.bias
                outer.seconds += time.process_time() - started
                return logits

            def crop(self, length: int) -> None:
                session.crop(length)

            def close(self) -> None:
                session.close()

        return Timed()


class TimedSampler:
    """Measures what the sampler takes, while it is entered."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._kept: dict[str, Any] = {}

    def __enter__(self) -> TimedSampler:
        for name in ("choose", "draw_first"):
            self._kept[name] = getattr(Sampler, name)
            setattr(Sampler, name, self._timed(self._kept[name]))
        return self

    def __exit__(self, *error: object) -> None:
        for name, method in self._kept.items():
            setattr(Sampler, name, method)

    def _timed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any) -> Any:
            started = time.process_time()
            try:
                return method(*given)
            finally:
                self.seconds += time.process_time() - started

        return timed


def ours(model: Model, tools: ToolSet, question: str, row: Row, most: int, *, jump: bool) -> int:
    """One call by the library; how many tokens it wrote."""
    backend: Any = model.backend
    before = backend.seconds
    with TimedSampler() as sampler:
        started, wall = time.process_time(), time.perf_counter()
        generation = model.generate(
            question,
            GenerateParams(
                tools=tools, tool_choice="required", parallel_tool_calls=False, max_tokens=most, jump_forward=jump
            ),
        )
        row.seconds += time.process_time() - started
        row.wall += time.perf_counter() - wall
    row.forward += backend.seconds - before
    row.sampler += sampler.seconds
    row.tokens += generation.usage.completion_tokens
    row.passes += generation.usage.forward_passes
    row.forced += generation.usage.forced_tokens
    row.calls += len(generation.tool_calls) == 1
    return generation.usage.completion_tokens


def theirs(
    backend: Llama, prompt: list[int], row: Row, most: int, processors: list[Any], *, free: bool = False
) -> None:
    """One run of transformers' own loop."""
    import torch
    from transformers import LogitsProcessorList

    bias = torch.from_numpy(backend.bias)
    end = min(backend.vocabulary.eos)

    def biased(ids: Any, scores: Any) -> Any:
        scores = scores + bias
        if free:
            scores[:, end] = -torch.inf
        return scores

    started, wall = time.process_time(), time.perf_counter()
    with torch.inference_mode():
        output = backend.model.generate(
            torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long), max_new_tokens=most,
            do_sample=False, logits_processor=LogitsProcessorList([biased, *processors]),
        )  # fmt: skip
    row.seconds += time.process_time() - started
    row.wall += time.perf_counter() - wall
    written = output[0, len(prompt) :].tolist()
    row.calls += end in written
    count = written.index(end) if end in written else len(written)
    row.tokens += count
    row.passes += len(written)


def call_schemas(tools: ToolSet) -> list[tuple[str, Any]]:
    """Name and closed argument schema of each tool, for peers that compile JSON Schema."""
    from toolgrammar.tools.closed_schema import close_objects

    return [(tool.name, close_objects(tool.parameters)) for tool in tools]


class XGrammar:
    """xgrammar's own processor for transformers."""

    name = "transformers + xgrammar"

    def __init__(self, backend: Llama) -> None:
        import xgrammar

        self._library = xgrammar
        self._compiler = xgrammar.GrammarCompiler(xgrammar_info(backend.vocabulary), max_threads=1)

    def processor(self, tools: ToolSet) -> Any:
        """A processor for one call of these tools."""
        calls = [
            self._library.Grammar.concat(
                self._library.Grammar.from_ebnf(
                    "root ::= " + json.dumps(f'<tool_call>\n{{"name": {json.dumps(name)}, "arguments": ')
                ),
                self._library.Grammar.from_json_schema(json.dumps(schema), any_whitespace=False),
                self._library.Grammar.from_ebnf('root ::= "}\\n</tool_call>"'),
            )
            for name, schema in call_schemas(tools)
        ]
        compiled = self._compiler.compile_grammar(self._library.Grammar.union(*calls))
        return self._library.contrib.hf.LogitsProcessor(compiled)


class LLGuidance:
    """A processor over llguidance's matcher, which fills the mask and applies it in one call."""

    name = "transformers + llguidance"

    def __init__(self, backend: Llama) -> None:
        from llguidance import LLMatcher

        self._tokenizer = llguidance_tokenizer(backend.vocabulary, backend.encode)
        self._matcher = LLMatcher

    def processor(self, tools: ToolSet) -> Any:
        """A processor for one call of these tools."""
        import llguidance.torch as llt

        rules, names = [], []
        for number, (name, schema) in enumerate(call_schemas(tools)):
            head = json.dumps(f'<tool_call>\n{{"name": {json.dumps(name)}, "arguments": ')
            options = {**(schema if isinstance(schema, dict) else {}), "x-guidance": {"whitespace_flexible": False}}
            rules.append(
                f'call{number}: {head} args{number} "}}\\n</tool_call>"\nargs{number}: %json {json.dumps(options)}'
            )
            names.append(f"call{number}")
        matcher = self._matcher(self._tokenizer, "start: " + " | ".join(names) + "\n" + "\n".join(rules))
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        mask = llt.allocate_token_bitmask(1, self._tokenizer.vocab_size)
        begun = False

        def process(ids: Any, scores: Any) -> Any:
            nonlocal begun
            if begun:
                matcher.consume_token(int(ids[0, -1]))
            begun = True
            llt.fill_next_token_bitmask(matcher, mask, 0)
            llt.apply_token_bitmask_inplace(scores, mask)
            return scores

        return process


PEERS = {"xgrammar": XGrammar, "llguidance": LLGuidance}


def main(
    data: Path, requests: int = 8, max_tokens: int = 200, peers: str = "xgrammar,llguidance", keep: bool = False
) -> None:
    """Run the benchmark.

    Args:
        requests: how many, spread over the file
    """
    asked = rows(data, requests)
    llama, biased = Llama(), Biased()
    big, small = Model(llama), Model(biased)
    beside = [PEERS[name](llama) for name in filter(None, peers.split(","))]
    jumping, plain = Row("toolgrammar", llama.name), Row("toolgrammar, no jumps", llama.name)
    again = Row("toolgrammar, met before", llama.name)
    free = Row("transformers, free", llama.name)
    small_rows = [Row("toolgrammar", "embedded"), Row("toolgrammar, no jumps", "embedded")]
    peer_rows = [Row(peer.name, llama.name) for peer in beside]
    ours(big, ToolSet.from_any(asked[0]["functions"]), "warm up", Row("", ""), 60, jump=True)
    refused: list[str] = []
    for request in asked:
        tools = ToolSet.from_any(request["functions"])
        question = request["question"][0][-1]["content"]
        try:
            tools.grammar(tool_choice="required")
        except UnsupportedSchemaError as error:
            refused.append(str(error))
            continue
        count = ours(big, tools, question, jumping, max_tokens, jump=True)
        ours(big, tools, question, again, max_tokens, jump=True)
        ours(big, tools, question, plain, max_tokens, jump=False)
        prompt = llama.encode_prompt([Message("user", question)])
        theirs(llama, prompt, free, count, [], free=True)
        for peer, row in zip(beside, peer_rows, strict=True):
            started, wall = time.process_time(), time.perf_counter()
            try:
                processor = peer.processor(tools)
            except Exception as error:  # a peer may refuse a schema, each in its own way
                refused.append(f"{peer.name}: {error}")
                continue
            row.seconds += time.process_time() - started
            row.wall += time.perf_counter() - wall
            theirs(llama, prompt, row, max_tokens, [processor])
        for row, jump in zip(small_rows, (True, False), strict=True):
            ours(small, tools, question, row, max_tokens, jump=jump)
    packages = ("toolgrammar", "torch", "transformers", "numpy", *filter(None, peers.split(",")))
    report = {
        "parameters": llama.parameters,
        "versions": {name: importlib.metadata.version(name) for name in packages},
        "rows": [asdict(row) for row in (jumping, again, plain, free, *peer_rows, *small_rows)],
        "refused": refused,
    }
    show("decoding", report, keep=keep)
