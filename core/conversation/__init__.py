"""Messages, tool calls, and the typed events of a streamed answer.

These are plain values: every adapter translates its framework's messages to them, and models speak nothing else.
"""

from __future__ import annotations

from .events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    CallSureness,
    ChoiceMade,
    Event,
    Finish,
    FinishReason,
    Generation,
    ReasoningDelta,
    TextDelta,
    TokenWritten,
    Usage,
    ValueMass,
)
from .messages import ImagePart, Message, Part, ReasoningBlock, Role, TextPart, ToolCall
from .trace import ForbiddenToken, Trace, TracedToken

__all__ = [
    "ArgumentsDelta",
    "CallEnd",
    "CallStart",
    "CallSureness",
    "ChoiceMade",
    "Event",
    "Finish",
    "FinishReason",
    "ForbiddenToken",
    "Generation",
    "ImagePart",
    "Message",
    "Part",
    "ReasoningBlock",
    "ReasoningDelta",
    "Role",
    "TextDelta",
    "TextPart",
    "TokenWritten",
    "ToolCall",
    "Trace",
    "TracedToken",
    "Usage",
    "ValueMass",
]
