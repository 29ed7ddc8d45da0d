"""Modules for every package: checks of arguments, options, a memo, logs, pauses, and an event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import lazy

if TYPE_CHECKING:
    from .event_loop import EventLoop
    from .forks import shared_lock
    from .logs import logger_of, report
    from .option_names import option_meant, require_known
    from .options import ENVELOPE_VERSION, SERVERS, OnUnsupported, PropertyOrder, Whitespace, require_word
    from .pauses import ended_by, is_long, pause
    from .recent_memo import RecentMemo, TextMemo, memoised_if_short
    from .resident import held, keep_little
    from .spans import Span

__all__ = [
    "ENVELOPE_VERSION",
    "SERVERS",
    "EventLoop",
    "OnUnsupported",
    "PropertyOrder",
    "RecentMemo",
    "Span",
    "TextMemo",
    "Whitespace",
    "ended_by",
    "held",
    "is_long",
    "keep_little",
    "logger_of",
    "memoised_if_short",
    "option_meant",
    "pause",
    "report",
    "require_known",
    "require_word",
    "shared_lock",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "event_loop": "EventLoop",
            "forks": "shared_lock",
            "logs": "logger_of report",
            "option_names": "option_meant require_known",
            "options": "ENVELOPE_VERSION OnUnsupported PropertyOrder SERVERS Whitespace require_word",
            "pauses": "ended_by is_long pause",
            "resident": "held keep_little",
            "spans": "Span",
            "recent_memo": "RecentMemo TextMemo memoised_if_short",
        },
    )
