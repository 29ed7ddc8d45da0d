"""The families whose calls are JSON, as data. Sources: the families' chat templates and model cards."""

from __future__ import annotations

from dataclasses import replace

from toolgrammar.core.conversation import reasoning

from .json.hermes import HERMES
from .template.format import TemplateFormat

_WORD = r"[A-Za-z0-9_.\-]+"
_OBJECT = '{"name": $quoted, "arguments": $args}'
_HERMES_CALL = f"<tool_call>\n{_OBJECT}\n</tool_call>"
_HERMES_RESULT = "<tool_response>\n$content\n</tool_response>"

JSON = TemplateFormat(
    name="json",
    begin="[",
    call=_OBJECT,
    separator=", ",
    finish="]",
    triggers=("[",),
    anchored=True,
    prose=False,
    result="$content",
)

LLAMA_JSON = TemplateFormat(
    name="llama-json",
    call='{"name": $quoted, "parameters": $args}',
    triggers=("{", "<|python_tag|>"),
    anchored=True,
    prose=False,
    parallel=False,
    skips=("<|python_tag|>", ";", "```json", "```"),
    end_tokens=("<|eot_id|>", "<|eom_id|>"),
    result="$json",
    signs=("<|start_header_id|>", '{"name": ', '"parameters"'),
    signs_against=("<tool_call>", "<function="),
)

LLAMA_PYTHON_TAG = TemplateFormat(
    name="llama-python-tag",
    call='<|python_tag|>{"type": "function", "name": $quoted, "parameters": $args}',
    triggers=("<|python_tag|>",),
    special=("<|python_tag|>",),
    parallel=False,
    prose=False,
    skips=(";",),
    end_tokens=("<|eom_id|>", "<|eot_id|>"),
    result="$json",
)

MISTRAL_V3 = TemplateFormat(
    name="mistral-v3",
    begin="[TOOL_CALLS][",
    call='{"name": $quoted, "arguments": $args, "id": "$id"}',
    separator=", ",
    finish="]",
    triggers=("[TOOL_CALLS]",),
    special=("[TOOL_CALLS]",),
    prose=False,
    end_tokens=("</s>",),
    skips=("[",),
    names=r"[a-zA-Z0-9_-]{1,64}",
    ids="[a-zA-Z0-9]{9}",
    result='[TOOL_RESULTS]{"content": $json, "call_id": "$id"}[/TOOL_RESULTS]',
    signs=("[TOOL_CALLS]", "[TOOL_RESULTS]"),
    signs_against=("[ARGS]", "[TOOL_CONTENT]"),
)

MISTRAL_V7 = replace(
    MISTRAL_V3,
    name="mistral-v7",
    prose=True,
    result="[TOOL_RESULTS]$id[TOOL_CONTENT]$content[/TOOL_RESULTS]",
    signs=("[TOOL_CALLS]", "[TOOL_CONTENT]"),
    signs_against=("[ARGS]",),
)

MISTRAL_V11 = TemplateFormat(
    name="mistral-v11",
    call="[TOOL_CALLS]$name[CALL_ID]$id[ARGS]$args",
    triggers=("[TOOL_CALLS]",),
    special=("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"),
    head=r"\s*(?P<name>[A-Za-z0-9_-]{1,64})\s*(?:\[CALL_ID\]\s*(?P<id>[A-Za-z0-9]+)\s*)?\[ARGS\]",
    end_tokens=("</s>",),
    names=r"[a-zA-Z0-9_-]{1,64}",
    ids="[a-zA-Z0-9]{9}",
    call_id="$id",
    result="[TOOL_RESULTS]$id[TOOL_CONTENT]$content[/TOOL_RESULTS]",
    signs=("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"),
)

MISTRAL_V13 = replace(
    MISTRAL_V11,
    name="mistral-v13",
    call="[TOOL_CALLS]$name[ARGS]$args",
    special=("[TOOL_CALLS]", "[ARGS]", "[THINK]", "[/THINK]"),
    ids="",
    thinking=reasoning.MISTRAL,
    result="[TOOL_RESULTS]$content[/TOOL_RESULTS]",
    signs=("[TOOL_CALLS]", "[ARGS]"),
    signs_against=("[CALL_ID]",),
)

_DEEPSEEK_MARKS = (
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁calls▁end｜>",
)

DEEPSEEK_V3 = TemplateFormat(
    name="deepseek-v3",
    begin="<｜tool▁calls▁begin｜>",
    call="<｜tool▁call▁begin｜>function<｜tool▁sep｜>$name\n```json\n$args\n```<｜tool▁call▁end｜>",
    separator="\n",
    finish="<｜tool▁calls▁end｜>",
    triggers=("<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>"),
    special=_DEEPSEEK_MARKS,
    openers=("<｜tool▁call▁begin｜>",),
    head=rf"\s*function<｜tool▁sep｜>(?P<name>{_WORD})[^\S\n]*\n\s*```json",
    skips=("```",),
    end_tokens=("<｜end▁of▁sentence｜>",),
    names=_WORD,
    thinking=reasoning.THINK,
    result="<｜tool▁output▁begin｜>$content<｜tool▁output▁end｜>",
    signs=("<｜tool▁calls▁begin｜>", "<｜tool▁sep｜>", "```json"),
)

DEEPSEEK_V31 = replace(
    DEEPSEEK_V3,
    name="deepseek-v3.1",
    call="<｜tool▁call▁begin｜>$name<｜tool▁sep｜>$args<｜tool▁call▁end｜>",
    separator="",
    head=rf"\s*(?P<name>{_WORD})\s*<｜tool▁sep｜>",
    skips=(),
    signs=("<｜tool▁calls▁begin｜>", "<｜tool▁sep｜>"),
    signs_against=("```json",),
)

KIMI_K2 = TemplateFormat(
    name="kimi-k2",
    begin="<|tool_calls_section_begin|>",
    call="<|tool_call_begin|>functions.$name:$id<|tool_call_argument_begin|>$args<|tool_call_end|>",
    finish="<|tool_calls_section_end|>",
    triggers=("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>", "<|tool_call_begin|>"),
    special=(
        "<|tool_calls_section_begin|>",
        "<|tool_call_begin|>",
        "<|tool_call_argument_begin|>",
        "<|tool_call_end|>",
        "<|tool_calls_section_end|>",
    ),
    openers=("<|tool_call_begin|>",),
    head=rf"\s*(?:functions\.)?(?P<name>{_WORD}):(?P<id>[0-9]+)\s*<\|tool_call_argument_begin\|>",
    skips=("<|tool_call_section_end|>",),
    end_tokens=("<|im_end|>",),
    names=_WORD,
    ids="0|[1-9][0-9]{0,5}",
    counted_ids=True,
    call_id="functions.$name:$id",
    thinking=reasoning.THINK,
    result="## Return of $id\n$content",
    signs=("<|tool_calls_section_begin|>",),
)

HARMONY = TemplateFormat(
    name="harmony",
    call="<|channel|>commentary to=functions.$name <|constrain|>json<|message|>$args",
    triggers=("<|channel|>commentary to=functions.", "<|channel|>analysis to=functions.", " to=functions."),
    special=("<|channel|>", "<|constrain|>", "<|message|>", "<|start|>", "<|end|>"),
    openers=("<|channel|>commentary to=functions.", "<|channel|>analysis to=functions.", "to=functions."),
    head=rf"(?P<name>{_WORD})(?:<\|channel\|>(?:commentary|analysis))?\s*(?:<\|constrain\|>\s*)?(?:json|code)?<\|message\|>",
    skips=("<|call|>",),
    frames=("<|channel|>commentary<|message|>", "<|start|>assistant", "<|end|>", "<|return|>"),
    text_start="<|channel|>final<|message|>",
    prose=False,
    parallel=False,
    names=_WORD,
    end_tokens=("<|call|>", "<|return|>"),
    thinking=reasoning.GPT_OSS,
    result="<|start|>functions.$name to=assistant<|channel|>commentary<|message|>$json<|end|>",
    signs=("<|channel|>", "<|constrain|>"),
)

PHI_4_MINI = TemplateFormat(
    name="phi-4-mini",
    call=f"<|tool_call|>{_OBJECT}<|/tool_call|>",
    triggers=("<|tool_call|>", "functools["),
    special=("<|tool_call|>", "<|/tool_call|>"),
    skips=("[", "]", ","),
    end_tokens=("<|end|>",),
    result="<|tool_response|>$content<|end|>",
    signs=("<|tool|>", "<|/tool|>"),
)

GRANITE_3 = TemplateFormat(
    name="granite-3",
    begin="<|tool_call|>[",
    call=_OBJECT,
    separator=", ",
    finish="]",
    triggers=("<|tool_call|>", "<tool_call>"),
    special=("<|tool_call|>",),
    skips=("[", "</tool_call>"),
    end_tokens=("<|end_of_text|>",),
    thinking=reasoning.THINK,
    signs=("<|start_of_role|>", "<|tool_call|>"),
)

_HERMES_LIKE = TemplateFormat(
    name="granite-4",
    call=_HERMES_CALL,
    separator="\n",
    joint="\n",
    triggers=("<tool_call>",),
    skips=("</tool_call>",),
    end_tokens=("<|end_of_text|>",),
    result=_HERMES_RESULT,
    instructions=HERMES.instructions,
    signs=("<|start_of_role|>", "<tool_call>"),
    signs_against=("<|tool_call|>",),
)
GRANITE_4 = _HERMES_LIKE

SMOLLM3 = replace(
    _HERMES_LIKE,
    name="smollm3",
    end_tokens=("<|im_end|>",),
    thinking=reasoning.THINK,
    result="$content",
    signs=("<tool_call>", "xml_tools"),
    signs_against=(),
)

ERNIE_45 = replace(
    _HERMES_LIKE,
    name="ernie-4.5",
    frames=("<response>", "</response>"),
    end_tokens=("<|im_end|>",),
    thinking=reasoning.THINK,
    signs=("<tool_call>", "<response>"),
    signs_against=(),
)

EXAONE_4 = replace(
    _HERMES_LIKE,
    name="exaone-4",
    call=f"<tool_call>{_OBJECT}</tool_call>",
    end_tokens=("[|endofturn|]",),
    thinking=reasoning.THINK,
    signs=("[|assistant|]", "<tool_call>"),
    signs_against=(),
)

COMMAND_R7B = TemplateFormat(
    name="command-r7b",
    begin="<|START_ACTION|>[\n    ",
    call='{"tool_call_id": "$id", "tool_name": $quoted, "parameters": $args}',
    separator=",\n    ",
    finish="\n]<|END_ACTION|>",
    triggers=("<|START_ACTION|>",),
    special=(
        "<|START_ACTION|>",
        "<|END_ACTION|>",
        "<|START_RESPONSE|>",
        "<|END_RESPONSE|>",
        "<|START_THINKING|>",
        "<|END_THINKING|>",
    ),
    prose=False,
    skips=("[", "]", ","),
    name_key="tool_name",
    ids="0|[1-9][0-9]{0,5}",
    counted_ids=True,
    text_start="<|START_RESPONSE|>",
    text_end="<|END_RESPONSE|>",
    end_tokens=("<|END_OF_TURN_TOKEN|>",),
    thinking=reasoning.COMMAND,
    result='<|START_TOOL_RESULT|>[{"tool_call_id":"$id","results":{"0":$json},"is_error":null}]<|END_TOOL_RESULT|>',
    signs=("<|START_ACTION|>",),
)

FUNCTIONARY_V31 = TemplateFormat(
    name="functionary-v3.1",
    call="<function=$name>$args</function>",
    triggers=("<function=",),
    head=rf"(?P<name>{_WORD})\s*>",
    names=_WORD,
    skips=("</function>",),
    end_tokens=("<|eom_id|>", "<|eot_id|>"),
    signs=("<function=", "</function>"),
    signs_against=("<tool_call>", "<parameter="),
)

INTERNLM_2 = TemplateFormat(
    name="internlm-2",
    call='<|action_start|><|plugin|>\n{"name": $quoted, "parameters": $args}<|action_end|>\n',
    triggers=("<|action_start|>",),
    special=("<|action_start|>", "<|plugin|>", "<|action_end|>"),
    skips=("<|plugin|>", "<|action_end|>"),
    parallel=False,
    end_tokens=("<|im_end|>",),
    result="<|im_start|>environment name=<|plugin|>\n$content<|im_end|>\n",
    signs=("<|action_start|>", "<|plugin|>"),
)

JAMBA = TemplateFormat(
    name="jamba",
    begin="<tool_calls>[\n",
    call=_OBJECT,
    separator=",\n",
    finish="\n]</tool_calls>",
    triggers=("<tool_calls>",),
    skips=("[", "]", ",", "</tool_calls>"),
    end_tokens=("<|eom|>",),
    signs=("<tool_calls>", "<|bom|>"),
)

HUNYUAN_A13B = replace(
    JAMBA,
    name="hunyuan-a13b",
    begin="<tool_calls>[",
    separator=", ",
    finish="]</tool_calls>",
    frames=("<answer>", "</answer>"),
    thinking=reasoning.THINK,
    end_tokens=("<|eos|>",),
    result="<tool_response>$content</tool_response>",
    signs=("<tool_calls>", "<|extra_0|>"),
)

MINIMAX_M1 = TemplateFormat(
    name="minimax-m1",
    begin="<tool_calls>\n",
    call=_OBJECT,
    separator="\n",
    finish="\n</tool_calls>",
    triggers=("<tool_calls>",),
    skips=(",", "</tool_calls>"),
    thinking=reasoning.THINK,
    end_tokens=("<end_of_sentence>",),
    result="tool result: $content",
    signs=("<tool_calls>", "<beginning_of_sentence>"),
)

NEMOTRON_2 = TemplateFormat(
    name="nemotron-2",
    begin="<TOOLCALL>[",
    call=_OBJECT,
    separator=", ",
    finish="]</TOOLCALL>",
    triggers=("<TOOLCALL>",),
    skips=("[", "]", ",", "</TOOLCALL>"),
    thinking=reasoning.THINK,
    end_tokens=("<SPECIAL_12>", "<|eot_id|>"),
    result="<TOOL_RESPONSE>[$content]</TOOL_RESPONSE>",
    signs=("<TOOLCALL>",),
)

XLAM = replace(
    JSON,
    name="xlam",
    skips=("```json", "```"),
    end_tokens=("<|eot_id|>",),
    thinking=reasoning.THINK,
    triggers=("[", "```json"),
)

FIREFUNCTION_2 = TemplateFormat(
    name="firefunction-2",
    begin=" functools[",
    call=_OBJECT,
    separator=", ",
    finish="]",
    triggers=(" functools[",),
    skips=("functools[", "]", ","),
    end_tokens=("<|eot_id|>",),
    signs=("functools[",),
)

APERTUS = TemplateFormat(
    name="apertus",
    begin="<|tools_prefix|>[",
    call="{$quoted: $args}",
    separator=", ",
    finish="]<|tools_suffix|>",
    triggers=("<|tools_prefix|>",),
    special=("<|tools_prefix|>", "<|tools_suffix|>", "<|inner_prefix|>", "<|inner_suffix|>"),
    openers=("{",),
    head=r'\s*(?P<name>(?P<quoted>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))+"))\s*:',
    skips=("[", "}", "]", ","),
    thinking=reasoning.APERTUS,
    signs=("<|tools_prefix|>",),
)

#: Every family here, those first whose signs in a template are the most telling.
JSON_FAMILIES: tuple[TemplateFormat, ...] = (
    JSON,
    HARMONY,
    KIMI_K2,
    DEEPSEEK_V3,
    DEEPSEEK_V31,
    MISTRAL_V11,
    MISTRAL_V13,
    MISTRAL_V7,
    MISTRAL_V3,
    COMMAND_R7B,
    INTERNLM_2,
    APERTUS,
    NEMOTRON_2,
    GRANITE_3,
    GRANITE_4,
    ERNIE_45,
    SMOLLM3,
    EXAONE_4,
    JAMBA,
    HUNYUAN_A13B,
    MINIMAX_M1,
    PHI_4_MINI,
    FIREFUNCTION_2,
    FUNCTIONARY_V31,
    LLAMA_JSON,
    LLAMA_PYTHON_TAG,
    XLAM,
)
