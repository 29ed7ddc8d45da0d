"""Modules for every package: checks of arguments, options, a memo, logs, pauses, and an event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import lazy

if TYPE_CHECKING:
    from .cached import cached_property as cached_property
    from .event_loop import EventLoop as EventLoop
    from .forks import shared_lock as shared_lock
    from .logs import logger_of as logger_of, report as report
    from .options import (
        ENVELOPE_VERSION as ENVELOPE_VERSION,
        SERVERS as SERVERS,
        OnUnsupported as OnUnsupported,
        PropertyOrder as PropertyOrder,
        Whitespace as Whitespace,
        option_meant as option_meant,
        require_known as require_known,
        require_word as require_word,
    )
    from .pauses import ended_by as ended_by, is_long as is_long, pause as pause
    from .recent_memo import RecentMemo as RecentMemo, TextMemo as TextMemo, memoised_if_short as memoised_if_short
    from .resident import held as held
    from .spans import Span as Span

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "cached": "cached_property",
            "event_loop": "EventLoop",
            "forks": "shared_lock",
            "logs": "logger_of report",
            "options": (
                "ENVELOPE_VERSION OnUnsupported PropertyOrder SERVERS Whitespace "
                "option_meant require_known require_word"
            ),
            "pauses": "ended_by is_long pause",
            "resident": "held",
            "spans": "Span",
            "recent_memo": "RecentMemo TextMemo memoised_if_short",
        },
    )
