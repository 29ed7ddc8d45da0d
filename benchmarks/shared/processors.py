"""Peers as logits processors of transformers: the masks of one required call in the Hermes format."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from benchmarks.shared.engines import LLGuidance, XGrammar
from toolgrammar.tools import ToolSet
from toolgrammar.tools.closed_schema import close_objects

#: Makes the processor of a request.
Maker = Callable[[ToolSet], Any]
_END = '"}\\n</tool_call>"'


def _calls(tools: ToolSet) -> list[tuple[str, Any]]:
    """Return what stands before the arguments of each tool, quoted, and the closed schema of the arguments."""
    heads = [json.dumps(f'<tool_call>\n{{"name": {json.dumps(tool.name)}, "arguments": ') for tool in tools]
    return list(zip(heads, (close_objects(tool.parameters) for tool in tools), strict=True))


def xgrammar(backend: Any) -> Maker:
    """Return what makes xgrammar's own processor."""
    import xgrammar as library

    of, engine = library.Grammar, XGrammar(backend.vocabulary, cache=True)

    def processor(tools: ToolSet) -> Any:
        calls = [
            of.concat(
                of.from_ebnf(f"root ::= {head}"),
                of.from_json_schema(json.dumps(schema), any_whitespace=False),
                of.from_ebnf(f"root ::= {_END}"),
            )
            for head, schema in _calls(tools)
        ]
        return library.contrib.hf.LogitsProcessor(engine.compiler.compile_grammar(of.union(*calls)))

    return processor


def llguidance(backend: Any) -> Maker:
    """Return what makes a processor over llguidance's matcher, which fills the mask and applies it."""
    import llguidance.torch as llt

    engine = LLGuidance(backend.vocabulary, backend.encode)

    def processor(tools: ToolSet) -> Any:
        calls = _calls(tools)
        rules = ["start: " + " | ".join(f"call{number}" for number in range(len(calls)))]
        for number, (head, schema) in enumerate(calls):
            options = {**(schema if isinstance(schema, dict) else {}), "x-guidance": {"whitespace_flexible": False}}
            rules += [f"call{number}: {head} args{number} {_END}", f"args{number}: %json {json.dumps(options)}"]
        matcher = engine.load("\n".join(rules))
        mask = llt.allocate_token_bitmask(1, engine.tokenizer.vocab_size)
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

    return processor


PEERS: dict[str, Callable[[Any], Maker]] = {"xgrammar": xgrammar, "llguidance": llguidance}
