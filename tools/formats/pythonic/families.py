"""The families whose calls are Python, as data. Sources: their chat templates and model cards."""

from __future__ import annotations

from dataclasses import replace

from toolgrammar.core.conversation import reasoning

from .calls import PythonicCalls

_DOTTED = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"

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
    thinking=reasoning.THINK,
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
    thinking=reasoning.THINK,
    result="$content",
    signs=("<function_calls>",),
)

#: Every family here.
PYTHONIC_FAMILIES: tuple[PythonicCalls, ...] = (
    LFM_2,
    OLMO_3,
    LLAMA_4,
    PYTHONIC,
)
