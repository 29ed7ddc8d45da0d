"""The format of Hermes 2 Pro, Hermes 3, Qwen2.5, Qwen3 and QwQ: ``<tool_call>`` around a JSON object.

Prose may come first; several calls are several blocks. In Qwen's vocabularies the two markers are single tokens that
count as ordinary text, so the grammar needs no control token. The prompt is the one that Qwen's chat template renders,
with shorter descriptions of the tools.
"""

from __future__ import annotations

from toolgrammar.core.conversation import reasoning

from .tagged import TaggedJson

HERMES = TaggedJson(
    name="hermes",
    start="<tool_call>",
    end="</tool_call>",
    padding="\n",
    separator="\n",
    thinking=reasoning.THINK,
    result_start="<tool_response>\n",
    result_end="\n</tool_response>",
    instructions=(
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
        "You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n{tools}\n</tools>\n\n"
        "For each function call, return a json object with function name and arguments within "
        "<tool_call></tool_call> XML tags:\n<tool_call>\n"
        '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
    ),
)
