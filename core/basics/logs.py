"""Loggers: ``toolgrammar`` and its children, one for each package; silent until an application configures ``logging``.

Messages above ``DEBUG`` have no data of users: no prompts, texts, arguments, schemas or responses of a server, only
counts, durations, and names of models, forms and declared tools. ``DEBUG`` messages add the errors of an answer and the
responses of a server, which may quote all of these. API keys are never logged.
"""

from __future__ import annotations

import logging

ROOT = "toolgrammar"

logging.getLogger(ROOT).addHandler(logging.NullHandler())


def report(logger: logging.Logger, message: str, *arguments: object) -> None:
    """Log an error that must be visible: to the console if the application has not configured logging."""
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
    """Return the logger ``toolgrammar.<room>``.

    Args:
        room: ``"models"``, ``"remote"``, ``"grammars"``, ...
    """
    return logging.getLogger(f"{ROOT}.{room}")
