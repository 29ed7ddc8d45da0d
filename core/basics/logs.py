"""Loggers: ``toolgrammar`` and its children, one for each room; silent until an application configures ``logging``.

What is logged above ``DEBUG`` holds no data of users: no prompts, texts, arguments, schemas or words of a server, only
counts, durations, names of models, forms and declared tools. ``DEBUG`` adds what was wrong with an answer and what a
server said, which may quote all of these; keys are never shown.
"""

from __future__ import annotations

import logging

ROOT = "toolgrammar"

logging.getLogger(ROOT).addHandler(logging.NullHandler())


def report(logger: logging.Logger, message: str, *arguments: object) -> None:
    """Log an error that must be seen: it goes to the console if the application has configured no logging."""
    logger.error(message, *arguments)
    above: logging.Logger | None = logger
    while above is not None:
        if any(not isinstance(handler, logging.NullHandler) for handler in above.handlers):
            return
        above = above.parent if above.propagate else None
    if logging.lastResort is not None and logger.isEnabledFor(logging.ERROR):
        record = logger.makeRecord(logger.name, logging.ERROR, "", 0, message, arguments, None)
        logging.lastResort.handle(record)


def logger_of(room: str) -> logging.Logger:
    """Return the logger ``toolgrammar.ROOM``.

    Args:
        room: ``"models"``, ``"remote"``, ``"grammars"``, ...
    """
    return logging.getLogger(f"{ROOT}.{room}")
