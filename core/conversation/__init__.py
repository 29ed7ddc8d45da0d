"""Messages, tool calls, and the typed events of a streamed answer.

These are plain values: every adapter translates its framework's messages to them, and models speak nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import lazy

if TYPE_CHECKING:
    from .bound import (
        Copied,
        Seen,
        of_conversation,
        require_formed,
    )
    from .builder import MessageBuilder
    from .equal_calls import UnequalCalls
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
    from .message_dicts import ROLES, image, message_of, parts_of, past_call
    from .messages import (
        ENDS_INSIDE,
        MALFORMED,
        Fault,
        ImagePart,
        Message,
        Part,
        ReasoningBlock,
        Role,
        TextPart,
        ToolCall,
        new_call_id,
    )
    from .reasoning import ReasoningMarkers, ReasoningSplitter
    from .shown import as_shown
    from .trace import ForbiddenToken, Trace, TracedToken

__all__ = [
    "ENDS_INSIDE",
    "MALFORMED",
    "ROLES",
    "ArgumentsDelta",
    "CallEnd",
    "CallStart",
    "CallSureness",
    "ChoiceMade",
    "Copied",
    "Event",
    "Fault",
    "Finish",
    "FinishReason",
    "ForbiddenToken",
    "Generation",
    "ImagePart",
    "Message",
    "MessageBuilder",
    "Part",
    "ReasoningBlock",
    "ReasoningDelta",
    "ReasoningMarkers",
    "ReasoningSplitter",
    "Role",
    "Seen",
    "TextDelta",
    "TextPart",
    "TokenWritten",
    "ToolCall",
    "Trace",
    "TracedToken",
    "UnequalCalls",
    "Usage",
    "ValueMass",
    "as_shown",
    "image",
    "message_of",
    "new_call_id",
    "of_conversation",
    "parts_of",
    "past_call",
    "require_formed",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "bound": "Copied Seen of_conversation require_formed",
            "builder": "MessageBuilder",
            "equal_calls": "UnequalCalls",
            "events": (
                "ArgumentsDelta CallEnd CallStart CallSureness ChoiceMade Event Finish FinishReason Generation "
                "ReasoningDelta TextDelta TokenWritten Usage ValueMass"
            ),
            "message_dicts": "ROLES image message_of parts_of past_call",
            "messages": (
                "ENDS_INSIDE Fault ImagePart MALFORMED Message Part ReasoningBlock Role TextPart ToolCall new_call_id"
            ),
            "reasoning": "ReasoningMarkers ReasoningSplitter",
            "shown": "as_shown",
            "trace": "ForbiddenToken Trace TracedToken",
        },
    )
