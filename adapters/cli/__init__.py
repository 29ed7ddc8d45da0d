"""The command line, ``toolgrammar``: one module for each command.

Each module holds the options of its command, and imports the engine only when the command runs, so that ``--help`` is
quick. Exit codes of all commands: 0 yes or done, 1 no (a schema that cannot be enforced, a text that does not match),
2 a wrong request or an error, 70 the command failed before its result was written. An error is one line and a hint,
never a traceback.
"""

from __future__ import annotations

from .app import app
from .process import main

__all__ = ["app", "main"]
