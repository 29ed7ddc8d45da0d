"""The families whose calls have a syntax of their own, as data. Sources: their chat templates and model cards."""

from __future__ import annotations

from dataclasses import replace

from ..reasoning import Thinking
from .calls import BareCalls, PythonicCalls

_DOTTED = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_GEMMA_NAME = r"[\w.\-]+"

PYTHONIC = PythonicCalls(
    name="pythonic",
    begin="[",
    call="$name($args)",
    separator=", ",
    finish="]",
    triggers=("[", "```python"),
    anchored=True,
    prose=False,
    skips=(",", "[", "]", "```python", "```"),
    names=_DOTTED,
    end_tokens=("<|eot_id|>", "<|end|>"),
    result="$json",
)

LLAMA_4 = replace(
    PYTHONIC,
    name="llama-4",
    triggers=("[", "<|python_start|>"),
    skips=(",", "[", "]", "<|python_start|>", "<|python_end|>"),
    end_tokens=("<|eot|>", "<|eom|>"),
    signs=("<|header_start|>",),
)

LFM_2 = replace(
    PYTHONIC,
    name="lfm2",
    begin="<|tool_call_start|>[",
    finish="]<|tool_call_end|>",
    triggers=("<|tool_call_start|>",),
    special=("<|tool_call_start|>", "<|tool_call_end|>"),
    anchored=False,
    prose=True,
    skips=("[", "]", ","),
    end_tokens=("<|im_end|>",),
    thinking=Thinking(),
    result="<|tool_response_start|>$content<|tool_response_end|>",
    signs=("<|tool_call_start|>",),
)

OLMO_3 = replace(
    PYTHONIC,
    name="olmo-3",
    begin="<function_calls>\n",
    separator="\n",
    finish="\n</function_calls>",
    triggers=("<function_calls>",),
    anchored=False,
    prose=True,
    skips=(",", "</function_calls>"),
    end_tokens=("<|im_end|>",),
    thinking=Thinking(),
    result="$content",
    signs=("<function_calls>",),
)

FUNCTION_GEMMA = BareCalls(
    name="functiongemma",
    call="<start_function_call>call:$name$args<end_function_call>",
    triggers=("<start_function_call>",),
    special=("<start_function_call>", "<end_function_call>", "<escape>"),
    openers=("<start_function_call>",),
    head=rf"\s*call:\s*(?P<name>{_GEMMA_NAME})\s*(?=\{{)",
    quote="<escape>",
    names=_GEMMA_NAME,
    end_tokens=("<start_function_response>", "<end_of_turn>"),
    result="<start_function_response>response:$name{value:<escape>$content<escape>}<end_function_response>",
    signs=("<start_function_call>",),
)

GEMMA_4 = BareCalls(
    name="gemma-4",
    call="<|tool_call>call:$name$args<tool_call|>",
    triggers=("<|tool_call>",),
    special=("<|tool_call>", "<tool_call|>", '<|"|>', "<|channel>", "<channel|>"),
    openers=("<|tool_call>",),
    head=rf"\s*call:\s*(?P<name>{_GEMMA_NAME})\s*(?=\{{)",
    quote='<|"|>',
    names=_GEMMA_NAME,
    end_tokens=("<|tool_response>", "<turn|>"),
    thinking=Thinking("<|channel>thought\n", "<channel|>"),
    result='<|tool_response>response:$name{value:<|"|>$content<|"|>}<tool_response|>',
    signs=("<|tool_call>", "<tool_call|>"),
)

#: Every family here.
LITERAL_FAMILIES: tuple[PythonicCalls | BareCalls, ...] = (
    GEMMA_4,
    FUNCTION_GEMMA,
    LFM_2,
    OLMO_3,
    LLAMA_4,
    PYTHONIC,
)
