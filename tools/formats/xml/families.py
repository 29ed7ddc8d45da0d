"""The families with a tag for each argument, as data. Sources: their chat templates."""

from __future__ import annotations

from dataclasses import replace

from toolgrammar.core.conversation import reasoning

from .calls import XmlCalls

_WORD = r"[A-Za-z0-9_.\-]+"
_KEY = r"""(?P<key>[^\s<>"'=]+)"""

QWEN3_CODER = XmlCalls(
    name="qwen3-coder",
    call="<tool_call>\n<function=$name>\n$args</function>\n</tool_call>",
    separator="\n",
    joint="\n",
    # Models often forget the first tag.
    triggers=("<tool_call>", "<function="),
    openers=("<function=",),
    head=rf"(?P<name>{_WORD})\s*>",
    skips=("</function>", "</tool_call>"),
    end_tokens=("<|im_end|>",),
    names=_WORD,
    parameter="<parameter=$key>\n$value\n</parameter>\n",
    parameter_head=rf"<parameter={_KEY}>\n?",
    parameter_end="</parameter>",
    padding="\n",
    call_ends=("</function>", "</tool_call>"),
    thinking=reasoning.THINK,
    result="<tool_response>\n$content\n</tool_response>",
    signs=("<function=", "<parameter="),
    signs_against=("<seed:",),
)

MIMO_2 = replace(
    QWEN3_CODER,
    name="mimo-2",
    call="<tool_call><function=$name>$args</function></tool_call>",
    separator="",
    joint="",
    parameter="<parameter=$key>$value</parameter>",
    parameter_head=rf"<parameter={_KEY}>",
    padding="",
    signs=(),
)

GLM_45 = XmlCalls(
    name="glm-4.5",
    call="<tool_call>$name\n$args</tool_call>",
    separator="\n",
    joint="\n",
    leads=True,
    triggers=("<tool_call>",),
    special=("<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
    head=rf"\s*(?P<name>{_WORD})(?=\s*<)",
    end_tokens=("<|observation|>", "<|user|>"),
    names=_WORD,
    parameter="<arg_key>$key</arg_key>\n<arg_value>$value</arg_value>\n",
    parameter_head=rf"<arg_key>\s*{_KEY}\s*</arg_key>\s*<arg_value>",
    parameter_end="</arg_value>",
    call_ends=("</tool_call>",),
    thinking=reasoning.THINK,
    result="<|observation|>\n<tool_response>\n$content\n</tool_response>",
    signs=("<arg_key>", "\\n<arg_value>"),
)

GLM_47 = replace(
    GLM_45,
    name="glm-4.7",
    call="<tool_call>$name$args</tool_call>",
    separator="",
    joint="",
    leads=False,
    parameter="<arg_key>$key</arg_key><arg_value>$value</arg_value>",
    result="<|observation|><tool_response>$content</tool_response>",
    signs=("<arg_key>",),
    signs_against=("\\n<arg_value>",),
)

MINIMAX_M2 = XmlCalls(
    name="minimax-m2",
    begin="<minimax:tool_call>\n",
    call='<invoke name="$name">\n$args</invoke>\n',
    finish="</minimax:tool_call>",
    joint="\n",
    leads=True,
    triggers=("<minimax:tool_call>",),
    openers=("<invoke name=",),
    head=rf"""["']?(?P<name>{_WORD})["']?\s*>""",
    skips=("</invoke>",),
    end_tokens=("[e~[",),
    names=_WORD,
    parameter='<parameter name="$key">$value</parameter>\n',
    parameter_head=rf"""<parameter name=["']?{_KEY}["']?>""",
    parameter_end="</parameter>",
    call_ends=("</invoke>", "</minimax:tool_call>"),
    thinking=reasoning.THINK,
    result="<response>$content</response>",
    signs=("<minimax:tool_call>",),
)

SEED_OSS = XmlCalls(
    name="seed-oss",
    call="<seed:tool_call>\n<function=$name>\n$args</function>\n</seed:tool_call>",
    separator="\n",
    joint="\n",
    leads=True,
    triggers=("<seed:tool_call>",),
    openers=("<function=",),
    head=rf"(?P<name>{_WORD})\s*>",
    skips=("</function>", "</seed:tool_call>"),
    end_tokens=("<seed:eos>",),
    names=_WORD,
    parameter="<parameter=$key>$value</parameter>\n",
    parameter_head=rf"<parameter={_KEY}>",
    parameter_end="</parameter>",
    call_ends=("</function>", "</seed:tool_call>"),
    thinking=reasoning.SEED,
    signs=("<seed:tool_call>",),
)

DEEPSEEK_V32 = XmlCalls(
    name="deepseek-v3.2",
    begin="<｜DSML｜function_calls>\n",
    call='<｜DSML｜invoke name="$name">\n$args</｜DSML｜invoke>',
    separator="\n",
    finish="\n</｜DSML｜function_calls>",
    joint="\n\n",
    leads=True,
    triggers=("<｜DSML｜function_calls>",),
    openers=('<｜DSML｜invoke name="',),
    head=rf'(?P<name>{_WORD})"\s*>',
    skips=("</｜DSML｜invoke>",),
    end_tokens=("<｜end▁of▁sentence｜>",),
    names=_WORD,
    parameter='<｜DSML｜parameter name="$key" string="$raw">$value</｜DSML｜parameter>\n',
    parameter_head=rf'<｜DSML｜parameter name="{_KEY}" string="(?P<raw>true|false)">',
    parameter_end="</｜DSML｜parameter>",
    call_ends=("</｜DSML｜invoke>", "</｜DSML｜function_calls>"),
    thinking=reasoning.THINK,
    result="<result>$content</result>",
    signs=("｜DSML｜", "function_calls"),
)

#: Every family here.
XML_FAMILIES: tuple[XmlCalls, ...] = (
    DEEPSEEK_V32,
    MINIMAX_M2,
    SEED_OSS,
    GLM_45,
    GLM_47,
    QWEN3_CODER,
    MIMO_2,
)
