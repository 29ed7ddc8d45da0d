"""The table of formats in ``docs/formats.md``: each cell is what a check here says.

python tests/tools/formats/table.py   # writes the table into the page
"""

from __future__ import annotations

from pathlib import Path

from toolgrammar.core import ReasoningDelta, ToolCall
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.formats import WireFormat, detect_format, format_names, get_format
from toolgrammar.tools.formats.gemma import BareCalls
from toolgrammar.tools.formats.nested.calls import NestedCalls
from toolgrammar.tools.formats.pythonic.calls import PythonicCalls
from toolgrammar.tools.formats.template.format import TemplateFormat
from toolgrammar.tools.formats.xml.calls import XmlCalls

PAGE = Path(__file__).resolve().parents[3] / "docs" / "formats.md"
BEGIN, END = "<!-- table: begin -->\n", "<!-- table: end -->\n"

#: What a chat template of each family shows, as far as detection looks.
TEMPLATES = {
    "deepseek-v4.1": "<｜DSML｜ calls>",
    "gigachat-3.5": "<｜GCML｜tool_calls>",
    "hunyuan-3-plain": "<tool_calls><tool_call>f<tool_sep>",
    "hunyuan-4": "<tool_calls><tool_call>f<arg_key>",
    "iquest-q1": "<iquest_tool_call>f<arg_key>",
    "k2-horizon": "<ifm|tool_calls>",
    "step-3": "<steptml:invoke",
    "dots": "<dots_function_call>",
    "muse": "<atem:function_calls>",
    "kimi-k3": '<|open|>call tool="f"',
    "longcat": "<longcat_tool_call>",
    "granite-20b-fc": "<function_call> {",
    "apriel": "<tool_calls>[ [BEGIN FINAL RESPONSE]",
    "phi-4-mini-functools": "<|tool|> functools[",
    "command-r": "Action: tool_name",
    "inkling": '<|content_invoke_tool_json|>{"name":',
    "plamo-3": "<|plamo:begin_tool_requests:plamo|>",
    "harmony": "<|channel|>commentary to=functions.N <|constrain|>json<|message|>",
    "kimi-k2": "<|tool_calls_section_begin|>",
    "deepseek-v3": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>N\n```json",
    "deepseek-v3.1": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>N<｜tool▁sep｜>",
    "deepseek-v3.2": '<｜DSML｜function_calls>\n<｜DSML｜invoke name="N">',
    "deepseek-v4": '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="N">',
    "hunyuan-3": "<tool_calls:opensource>\n<tool_call:opensource>N",
    "minicpm-5": '<function name="N"><param name="K">V</param></function>',
    "solar-open": "<|tool_calls|><|tool_call:begin|>",
    "gigachat-3": "<|message_sep|>\n\nfunction call<|role_sep|>",
    "gigachat-3.1": "<|function_call|>{}<|message_sep|>",
    "mistral-v3": "[AVAILABLE_TOOLS][TOOL_CALLS][TOOL_RESULTS]",
    "mistral-v7": "[TOOL_CALLS][TOOL_RESULTS][TOOL_CONTENT]",
    "mistral-v11": "[TOOL_CALLS]N[CALL_ID]I[ARGS]",
    "mistral-v13": "[TOOL_CALLS]N[ARGS]",
    "qwen3-coder": "<tool_call>\n<function=f>\n<parameter=x>",
    "glm-4.5": "<tool_call>N\\n<arg_key>K</arg_key>\\n<arg_value>V</arg_value>",
    "glm-4.7": "<tool_call>N<arg_key>K</arg_key><arg_value>V</arg_value>",
    "minimax-m2": "<minimax:tool_call><invoke name=",
    "minimax-m1": "<beginning_of_sentence>ai\n<tool_calls>",
    "seed-oss": "<seed:tool_call><function=N><parameter=K>",
    "hermes": "<|im_start|><tool_call>",
    "granite-3": "<|start_of_role|><|tool_call|>",
    "granite-4": "<|start_of_role|><tool_call>",
    "command-r7b": "<|START_ACTION|>",
    "internlm-2": "<|action_start|><|plugin|>",
    "jamba": "<|bom|><tool_calls>",
    "hunyuan-a13b": "<|extra_0|><tool_calls>",
    "nemotron-2": "<TOOLCALL>",
    "needle": "<tools>[]</tools>\n<tool_call>[",
    "apertus": "<|tools_prefix|>",
    "llama-json": '<|start_header_id|> {"name": function name, "parameters": dictionary}',
    "llama-4": "<|header_start|>assistant<|header_end|>",
    "lfm2": "<|im_start|>assistant\n<|tool_call_start|>[<|tool_call_end|>",
    "olmo-3": "<|im_start|>environment\n<function_calls>",
    "functiongemma": "<start_of_turn>model\n<start_function_call>call:",
    "gemma-4": "<|turn>model\n<|tool_call>call:N{}<tool_call|>",
    "functionary-v3.1": "<function=N>{}</function>",
    "functionary-v3.2": "<|start_header_id|>assistant<|end_header_id|>\\n\\n>>>all\\n",
    "phi-4-mini": "<|tool|>[]<|/tool|><|assistant|>",
    "ernie-4.5": "<|im_start|>assistant\n<tool_call><response>",
    "smollm3": "<|im_start|>xml_tools <tool_call>",
    "exaone-4": "[|assistant|]<tool_call>",
    "firefunction-2": " functools[",
}

CITY = Tool("city", "", {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
TOOLS = ToolSet([CITY, Tool("now", "", {})])
CALLS = [ToolCall("c0", "city", {"n": 5}), ToolCall("c1", "now", {})]


def arguments(wire: WireFormat) -> str:
    """How arguments are written."""
    kinds = ((XmlCalls, "tags"), (NestedCalls, "nested tags"), (PythonicCalls, "Python"), (BareCalls, "bare names"))
    return next((words for kind, words in kinds if isinstance(wire, kind)), "JSON")


def plain(name: str) -> WireFormat:
    """The format with all its markers as text."""
    wire = get_format(name)
    return wire.with_special(()) if isinstance(wire, TemplateFormat) else wire


def constrains(wire: WireFormat) -> bool:
    """A valid call is in the grammar, an invalid one is not."""
    grammar = TOOLS.grammar(wire, tool_choice="required")
    return grammar.matches(wire.render("", CALLS[:1])) and not grammar.matches(
        wire.render("", [ToolCall("c0", "city", {"n": None})])
    )


def parses(wire: WireFormat) -> bool:
    """A call comes back."""
    return [dict(call.arguments) for call in TOOLS.parse(wire.render("", CALLS[:1]), wire).tool_calls] == [{"n": 5}]


def thinks(wire: WireFormat) -> bool:
    """Reasoning is told from text."""
    thinking = getattr(wire, "thinking", None)
    if thinking is None:
        return False
    parser = TOOLS.parser(wire)
    events = [*parser.feed(f"{thinking.start}Hm.{thinking.end}"), *parser.close()]
    return "".join(each.text for each in events if isinstance(each, ReasoningDelta)) == "Hm."


def parallel(wire: WireFormat) -> bool:
    """Two calls may stand in one turn."""
    return getattr(wire, "parallel", True) and TOOLS.grammar(wire).matches(wire.render("", CALLS))


def detects(name: str) -> bool:
    """A chat template of the family shows the format."""
    found = detect_format(TEMPLATES[name]) if name in TEMPLATES else None
    return found is not None and found.name == name


def row(name: str) -> str:
    """A line of the table."""
    wire = plain(name)
    cells = (detects(name), constrains(wire), parses(wire), parallel(wire), thinks(wire))
    return f"| `{name}` | {arguments(wire)} | {' | '.join('yes' if each else 'no' for each in cells)} |"


def table() -> str:
    """The whole table."""
    head = "| format | arguments | detect | constrain | parse | parallel | think |\n|---|---|---|---|---|---|---|\n"
    return head + "".join(f"{row(name)}\n" for name in format_names())


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    PAGE.write_text(before + BEGIN + table() + END + rest.split(END)[1], encoding="utf-8")
