"""The law of programs of calls, along random walks: what the grammar admits is Python that type checkers accept.

    python -m tests.tools.programs.law [--seconds SECONDS]

A walk writes a program token by token under the grammar of random tools with output schemas. Each mask is what `accept`
takes, each beginning has a completion, each budget that is enough ends in a whole program.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from toolgrammar.core import BudgetError, GenerateParams, Grammar, Matcher, Vocabulary
from toolgrammar.core.generation.loop import Decoding
from toolgrammar.core.generation.token_sequence import Forward
from toolgrammar.tools import Tool, ToolSet, program_tool

from ...whole_masks import check_mask

#: Scalars of parameters and results, by what a program may tell apart.
SCALARS: tuple[dict[str, Any], ...] = (
    {"type": "string"},
    {"type": "string", "x-type": "UserId"},
    {"type": "string", "x-type": "OrderId"},
    {"type": "integer"},
    {"type": "integer", "minimum": 0, "maximum": 9},
    {"type": "integer", "x-type": "RowId"},
    {"type": "number"},
    {"type": "boolean"},
    {"enum": ["open", "paid"]},
    {"type": "string", "pattern": "^[A-Z]{2}$"},
    {"type": ["string", "null"]},
)
WORDS = (
    b"return ", b"return", b"print(", b" = ", b"\n", b"\\n", b"\\nreturn ", b"\nx", b")", b"))", b'"', b'\\"', b"('",
    b"')\\n", b"a", b"id", b".id", b"[0]", b'["', b'"]', b"[-1].", b", ", b"0", b"12", b"x = ", b"y = ", b"x", b"x.", b"y",
    b"U-1", b"True", b"f0(", b"f1(", b"f2(", b"f3(", b"f0", b"f1(f0(", b"p0=", b"p1=", b"a=", b"())", b"\n\n", b"def ",
)  # fmt: skip
EOS = 256 + len(WORDS)
#: Tokens that walks prefer: letters and digits alone would never end a name.
LIKELY = frozenset((*range(256, EOS + 1), *b'"].,()\n'))
MAX_WALK = 70


class LawError(AssertionError):
    """A breach of the law, with everything needed to see it again."""


def vocabulary(special: Sequence[str] = ()) -> Vocabulary:
    """Return one of bytes and of pieces of programs, with control tokens."""
    tokens: list[bytes | str | None] = [bytes((byte,)) for byte in range(256)]
    return Vocabulary([*tokens, *WORDS, None, *[None] * len(special)], eos=[EOS], special={
        name: EOS + 1 + number for number, name in enumerate(special)
    })  # fmt: skip


def random_tools(rng: random.Random) -> list[Tool]:
    """Return some tools, of which one at least can be called first."""

    def result(depth: int) -> dict[str, Any]:
        draw = rng.random()
        if depth == 0 or draw < 0.3:
            return dict(rng.choice(SCALARS))
        if draw < 0.5:
            return {"type": "array", "items": result(depth - 1)}
        names = rng.sample(("id", "a", "b", "name", "left-over"), rng.randint(1, 3))
        return {"type": "object", "properties": {name: result(depth - 1) for name in names}, "required": names[:1]}

    tools = []
    for number in range(rng.randint(1, 4)):
        kinds = [dict(rng.choice(SCALARS)) for _ in range(rng.randint(0, 3))]
        kinds = [{"type": "array", "items": one} if rng.random() < 0.15 else one for one in kinds]
        names = [f"p{index}" for index in range(len(kinds))]
        parameters = {
            "type": "object",
            "properties": dict(zip(names, kinds, strict=True)),
            "required": [name for name in names if rng.random() < 0.6],
        }
        output = result(3) if rng.random() < 0.9 else None
        tools.append(Tool(f"f{number}", "", parameters, output_schema=output))
    first = {"type": "object", "properties": {"p0": {"type": "string"}}, "required": []}
    return [*tools, Tool("f9", "", first, output_schema=result(2))]


def walk(grammar: Grammar, vocabulary: Vocabulary, rng: random.Random, *, masks: int = 4) -> bytes:
    """Write a text at random; return it.

    Args:
        grammar: of the text.
        vocabulary: its tokens.
        rng: the choices.
        masks: each how many tokens the mask is compared with the matcher; 0: never.

    Raises:
        LawError: a dead end, or a completion or a token that is refused.
    """
    matcher, written = grammar.bind(vocabulary).matcher(), b""
    for step in range(MAX_WALK):
        if masks and step % masks == 0:
            allowed = np.flatnonzero(check_mask(matcher)).tolist()
            _check_completion(matcher, written)
        else:
            allowed = matcher.allowed_tokens()
        if not allowed:
            raise LawError(f"a dead end after {written!r}")
        likely = [token for token in allowed if token in LIKELY]
        token = rng.choice(likely if likely and rng.random() < 0.85 else allowed)
        if step % 6 == 5:
            matcher.accept(token)
            matcher.rollback(1)
        if not matcher.accept(token):
            raise LawError(f"the mask allows {vocabulary.tokens[token]!r} after {written!r}, accept refuses")
        if token == EOS:
            return written
        written += vocabulary.tokens[token] or b""
    return written + _check_completion(matcher, written)


def _check_completion(matcher: Matcher, written: bytes) -> bytes:
    parts = matcher.shortest_parts()
    other, special = matcher.fork(), matcher.constraint.vocabulary.special
    for part in parts:
        if not (other.accept_bytes(part) if isinstance(part, bytes) else other.accept(special[part])):
            raise LawError(f"the completion {parts!r} of {written!r} is refused")
    if not other.is_accepting:
        raise LawError(f"{written!r} with its completion {parts!r} may not end")
    return b"".join(part for part in parts if isinstance(part, bytes))


class _Noise:
    """A backend whose model has no idea."""

    name, tool_format, chat_template, takes_thinking, context_window = "noise", "hermes", None, False, 10_000

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text."""
        return list(text.encode())


def generated(grammar: Grammar, vocabulary: Vocabulary, budget: int, rng: random.Random) -> bytes | None:
    """Return what a model without an idea writes under a budget; None: the budget is too small."""
    params = GenerateParams(max_tokens=budget, temperature=1.0, seed=rng.randrange(2**31))
    noise = np.random.default_rng(rng.randrange(2**31))
    decoding = Decoding(_Noise(vocabulary), [0], grammar.bind(vocabulary).matcher(), params)  # type: ignore[arg-type]
    try:
        steps, logits = decoding.steps(), None
        while True:
            step = steps.send(logits)
            size = vocabulary.size
            logits = noise.random(size, dtype=np.float32) * 4 if isinstance(step, Forward) else None
    except StopIteration:
        return b"".join(vocabulary.tokens[token] or b"" for token in decoding.token_ids)
    except BudgetError:
        return None


def program_tools(rng: random.Random) -> ToolSet:
    """Return the tool of programs over random tools."""
    return ToolSet([program_tool(random_tools(rng), statements=5, nested=2)])


def run_against_fakes(tools: list[Tool], count: int, vocabulary: Vocabulary, rng: random.Random) -> Counter[str]:
    """Run random programs over fakes, which return examples of their results; return how many ended in which way.

    Raises:
        LawError: a program fails, but for an index or a field that a result does not have.
    """

    def fake(tool: Tool) -> Tool:
        schema = tool.output_schema or {"enum": [None, 1, "x", {"id": 1}]}
        values = [
            json.loads(one.text) for one in Grammar.from_json_schema(schema).examples(8, seed=rng.randrange(2**31))
        ]
        return tool.changed(function=lambda **_: rng.choice(values))

    faked = ToolSet([program_tool([fake(tool) for tool in tools], statements=5, nested=2)])
    grammar = faked.grammar("program", tool_choice="required")
    counts = Counter[str]()
    for _ in range(count):
        text = walk(grammar, vocabulary, rng, masks=0).decode()
        (call,) = faked.parse(text, "program").tool_calls
        result = faked.execute(call)
        error = result.error or ""
        if result.is_error and not any(kind in error for kind in ("IndexError", "KeyError", " has no ")):
            raise LawError(f"{text!r}: {error}")
        counts["ran" if not result.is_error else "missing index or field"] += 1
    return counts


def main(seconds: float) -> None:
    """Judge programs for some seconds."""
    import time

    begun, seed, counts = time.monotonic(), 0, Counter[str]()
    words = vocabulary()
    while time.monotonic() - begun < seconds:
        rng = random.Random(seed)
        tools = program_tools(rng)
        grammar = Grammar.from_json_schema(tools["run_program"].parameters)
        try:
            for _ in range(3):
                text = walk(grammar, words, rng)
                if not grammar.matches(text):
                    raise LawError(f"{text!r} was written, and is not in the grammar")
                counts["walks"] += 1
            counts += run_against_fakes(random_tools(rng), 5, words, rng)
            for budget in sorted(rng.sample(range(8, 90), 6)):
                text = generated(grammar, words, budget, rng)
                if text is not None and not grammar.matches(text):
                    raise LawError(f"{text!r} was written under a budget of {budget}")
                counts["budgets"] += text is not None
        except Exception:
            print("seed", seed)
            raise
        seed += 1
    print(seed, "tool sets,", dict(counts))


if __name__ == "__main__":
    import sys

    main(float(sys.argv[1]) if len(sys.argv) > 1 else 30)
