"""Chat templates in the shape of some families', written for these tests; short, and with the parts that matter."""

from __future__ import annotations

_TOOLS = "{% if tools %}{{ tools | tojson }}\n{% endif %}"
_ARGUMENTS = "{{ c.function.arguments | tojson }}"


def _template(head: str, plain: str, calls: str, result: str, prompt: str) -> str:
    """A template from what stands before the turns, a turn of text, one of calls, a result, and the beginning of the
    assistant's turn."""
    return (
        f"{head}{{% for m in messages %}}{{% if m.role == 'tool' %}}{result}"
        f"{{% elif m.tool_calls %}}{calls}{{% else %}}{plain}{{% endif %}}{{% endfor %}}"
        f"{{% if add_generation_prompt %}}{prompt}{{% endif %}}"
    )


def _each(call: str, between: str = "") -> str:
    """All calls of a turn."""
    return f"{{% for c in m.tool_calls %}}{call}{{{{ '' if loop.last else {between!r} }}}}{{% endfor %}}"


_CHATML = "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
_JSON_CALL = '{"name": "{{ c.function.name }}", "arguments": ' + _ARGUMENTS + "}"
_LITERAL = (
    "{{ c.function.name }}({% for k, v in c.function.arguments.items() %}{{ k }}="
    '{% if v is string %}"{{ v }}"{% else %}{{ v }}{% endif %}'
    "{% if not loop.last %}, {% endif %}{% endfor %})"
)
_PARAMETERS = (
    "{% for k, v in c.function.arguments.items() %}<parameter={{ k }}>\n"
    "{{ v if v is string else v | tojson }}\n</parameter>\n{% endfor %}"
)
_BARE = (
    "{% for k, v in c.function.arguments | dictsort %}{{ k }}:"
    '{% if v is string %}<|"|>{{ v }}<|"|>{% else %}{{ v | tojson }}{% endif %}'
    "{% if not loop.last %},{% endif %}{% endfor %}"
)

#: Format, template, control tokens, and how the template writes a result ``42``.
FAMILIES: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    (
        "hermes",
        _template(
            _TOOLS,
            _CHATML,
            "<|im_start|>assistant\n" + _each("<tool_call>\n" + _JSON_CALL + "\n</tool_call>", "\n") + "<|im_end|>\n",
            "<|im_start|>user\n<tool_response>\n{{ m.content }}\n</tool_response><|im_end|>\n",
            "<|im_start|>assistant\n",
        ),
        ("<|im_start|>", "<|im_end|>"),
        "<tool_response>\n42\n</tool_response>",
    ),
    (
        "qwen3-coder",
        _template(
            _TOOLS,
            _CHATML,
            "<|im_start|>assistant\n"
            + _each("<tool_call>\n<function={{ c.function.name }}>\n" + _PARAMETERS + "</function>\n</tool_call>", "\n")
            + "<|im_end|>\n",
            "<|im_start|>user\n<tool_response>\n{{ m.content }}\n</tool_response><|im_end|>\n",
            "<|im_start|>assistant\n",
        ),
        ("<|im_start|>", "<|im_end|>"),
        "<tool_response>\n42\n</tool_response>",
    ),
    (
        "mistral-v13",
        _template(
            "[AVAILABLE_TOOLS]" + _TOOLS + "[/AVAILABLE_TOOLS]",
            "{% if m.role == 'user' %}[INST]{{ m.content }}[/INST]{% else %}{{ m.content }}</s>{% endif %}",
            _each("[TOOL_CALLS]{{ c.function.name }}[ARGS]" + _ARGUMENTS) + "</s>",
            "[TOOL_RESULTS]{{ m.content }}[/TOOL_RESULTS]",
            "",
        ),
        ("[INST]", "[/INST]", "[TOOL_CALLS]", "[ARGS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "</s>"),
        "[TOOL_RESULTS]42[/TOOL_RESULTS]",
    ),
    (
        "deepseek-v3.1",
        _template(
            _TOOLS,
            "<｜{{ m.role }}｜>{{ m.content }}",
            "<｜Assistant｜><｜tool▁calls▁begin｜>"
            + _each("<｜tool▁call▁begin｜>{{ c.function.name }}<｜tool▁sep｜>" + _ARGUMENTS + "<｜tool▁call▁end｜>")
            + "<｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
            "<｜tool▁output▁begin｜>{{ m.content }}<｜tool▁output▁end｜>",
            "<｜Assistant｜></think>",
        ),
        (
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁call▁begin｜>",
            "<｜tool▁sep｜>",
            "<｜tool▁call▁end｜>",
            "<｜tool▁calls▁end｜>",
            "<｜tool▁output▁begin｜>",
            "<｜tool▁output▁end｜>",
            "<｜end▁of▁sentence｜>",
        ),
        "<｜tool▁output▁begin｜>42<｜tool▁output▁end｜>",
    ),
    (
        "llama-4",
        _template(
            _TOOLS,
            "<|header_start|>{{ m.role }}<|header_end|>\n\n{{ m.content }}<|eot|>",
            "<|header_start|>assistant<|header_end|>\n\n[" + _each(_LITERAL, ", ") + "]<|eot|>",
            "<|header_start|>ipython<|header_end|>\n\n{{ m.content | tojson }}<|eot|>",
            "<|header_start|>assistant<|header_end|>\n\n",
        ),
        ("<|header_start|>", "<|header_end|>", "<|eot|>", "<|python_start|>", "<|python_end|>"),
        '"42"',
    ),
    (
        "lfm2",
        _template(
            _TOOLS,
            _CHATML,
            "<|im_start|>assistant\n<|tool_call_start|>[" + _each(_LITERAL, ", ") + "]<|tool_call_end|><|im_end|>\n",
            "<|im_start|>tool\n<|tool_response_start|>{{ m.content }}<|tool_response_end|><|im_end|>\n",
            "<|im_start|>assistant\n",
        ),
        ("<|im_start|>", "<|im_end|>", "<|tool_call_start|>", "<|tool_call_end|>"),
        "<|tool_response_start|>42<|tool_response_end|>",
    ),
    (
        "gemma-4",
        _template(
            _TOOLS,
            "<|turn>{{ m.role }}\n{{ m.content }}<turn|>\n",
            "<|turn>model\n" + _each("<|tool_call>call:{{ c.function.name }}{{ '{' }}" + _BARE + "}<tool_call|>"),
            '<|tool_response>response:{{ m.name }}{value:<|"|>{{ m.content }}<|"|>}<tool_response|>',
            "<|turn>model\n",
        ),
        ("<|turn>", "<turn|>", "<|tool_call>", "<tool_call|>", '<|"|>', "<|tool_response>", "<tool_response|>"),
        '<|tool_response>response:edit{value:<|"|>42<|"|>}<tool_response|>',
    ),
    (
        "granite-3",
        _template(
            _TOOLS,
            "<|start_of_role|>{{ m.role }}<|end_of_role|>{{ m.content }}<|end_of_text|>\n",
            "<|start_of_role|>assistant<|end_of_role|><|tool_call|>[" + _each(_JSON_CALL, ", ") + "]<|end_of_text|>\n",
            "<|start_of_role|>tool<|end_of_role|>{{ m.content }}<|end_of_text|>\n",
            "<|start_of_role|>assistant<|end_of_role|>",
        ),
        ("<|start_of_role|>", "<|end_of_role|>", "<|tool_call|>", "<|end_of_text|>"),
        "42",
    ),
)
