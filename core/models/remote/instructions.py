"""Instructions for the model: the schema of an answer, and the errors of the last one."""

from __future__ import annotations

import json
from typing import Any

from ...conversation.messages import Message
from .answer import Answer
from .answer_judge import Verdict


def correction(answer: Answer, verdict: Verdict) -> list[Message]:
    """Return turns that show the model its answer and the errors of it.

    Calls are shown as text, because servers and templates fail on calls with invalid JSON or unknown tools.
    """
    calls = [f"{call.name}({call.arguments})" for call in answer.calls]
    said = "\n".join([answer.text, *calls] if answer.text else calls) or "(nothing)"
    what = "call again, with arguments that are valid" if answer.calls else "answer again"
    return [
        Message("assistant", said[:8_000]),
        Message("user", f"That is not valid: {'; '.join(verdict.wrong[:5])[:2_000]}. Please {what}."),
    ]


def schema_text(schema: Any, beside_tools: bool) -> str:
    """Return the instruction with the schema of the answer."""
    start = "When you call no tool, answer" if beside_tools else "Answer"
    if schema is None or schema is True:
        return f"{start} with JSON alone."
    return f"{start} with JSON alone, valid under this JSON Schema:\n{json.dumps(schema, ensure_ascii=False)}"
