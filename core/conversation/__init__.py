"""Messages, tool calls, and the typed events of a streamed answer.

These are plain values: every adapter translates its framework's messages to them, and models speak nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import lazy

if TYPE_CHECKING:
    from .bound import (
        Copied as Copied,
        Seen as Seen,
        of_conversation as of_conversation,
        require_formed as require_formed,
    )
    from .equal_calls import UnequalCalls as UnequalCalls
    from .events import (
        ArgumentsDelta as ArgumentsDelta,
        CallEnd as CallEnd,
        CallStart as CallStart,
        CallSureness as CallSureness,
        ChoiceMade as ChoiceMade,
        Event as Event,
        Finish as Finish,
        FinishReason as FinishReason,
        Generation as Generation,
        MessageBuilder as MessageBuilder,
        ReasoningDelta as ReasoningDelta,
        TextDelta as TextDelta,
        TokenWritten as TokenWritten,
        Usage as Usage,
        ValueMass as ValueMass,
    )
    from .message_dicts import (
        message_of as message_of,
        parts_of as parts_of,
        past_call as past_call,
        role_of as role_of,
    )
    from .messages import (
        Fault as Fault,
        ImagePart as ImagePart,
        Message as Message,
        Part as Part,
        ReasoningBlock as ReasoningBlock,
        Role as Role,
        TextPart as TextPart,
        ToolCall as ToolCall,
        as_shown as as_shown,
        new_call_id as new_call_id,
    )
    from .reasoning import ReasoningMarkers as ReasoningMarkers, ReasoningSplitter as ReasoningSplitter
    from .trace import ForbiddenToken as ForbiddenToken, Trace as Trace, TracedToken as TracedToken

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "bound": "Copied Seen of_conversation require_formed",
            "equal_calls": "UnequalCalls",
            "events": (
                "ArgumentsDelta CallEnd CallStart CallSureness ChoiceMade Event Finish FinishReason Generation "
                "MessageBuilder ReasoningDelta TextDelta TokenWritten Usage ValueMass"
            ),
            "message_dicts": "message_of parts_of past_call role_of",
            "messages": ("Fault ImagePart Message Part ReasoningBlock Role TextPart ToolCall as_shown new_call_id"),
            "reasoning": "ReasoningMarkers ReasoningSplitter",
            "trace": "ForbiddenToken Trace TracedToken",
        },
    )
