"""Loggers: ``toolgrammar`` and its children, one for each room; silent until an application configures ``logging``.

What is logged above ``DEBUG`` holds no data of users: no prompts, texts, arguments, schemas or words of a server, only
counts, durations, names of models, forms and declared tools. ``DEBUG`` adds what was wrong with an answer and what a
server said, which may quote all of these; keys are never shown.
"""

from __future__ import annotations

import logging

ROOT = "toolgrammar"

logging.getLogger(ROOT).addHandler(logging.NullHandler())


def logger_of(room: str) -> logging.Logger:
    """Return the logger ``toolgrammar.ROOM``.

    Args:
        room: ``"models"``, ``"remote"``, ``"grammars"``, ...
    """
    return logging.getLogger(f"{ROOT}.{room}")
