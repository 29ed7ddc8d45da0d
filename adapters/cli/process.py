"""The process around a command: its standard streams and its exit code.

A script reads 0 and 1 as a verdict, so nothing that goes wrong ends with them: `EXIT_USAGE` is a wrong request or an
error that the library raises on purpose, `EXIT_FAILED` everything that ends a command before its result is written.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
import traceback
import warnings
from itertools import takewhile
from typing import Any

import typer

from .output import EXIT_USAGE, complain, ended, located

#: A command ended before its result was written: a full disk, no memory, a fault of the library (``EX_SOFTWARE``).
EXIT_FAILED = 70

#: The user interrupted a command (128 + SIGINT).
EXIT_INTERRUPTED = 130

#: The reader of a pipe went away (128 + SIGPIPE).
EXIT_BROKEN_PIPE = 141

#: The error handler that writes a character which an encoding lacks as JSON's escape.
_ESCAPES = "toolgrammar.escapes"


def main() -> None:
    """The console script: an error is one line and a hint, never a traceback (but with ``--debug``)."""
    _prepare_streams()
    warnings.showwarning = _show_warning
    code = _run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError as error:
        code = _failed(error)
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    """Run a command, and return the exit code; the verdict of a command is its `typer.Exit`."""
    from toolgrammar.core.errors import ToolGrammarError

    from .app import app

    try:
        code = typer.main.get_command(app).main(arguments, prog_name="toolgrammar", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except typer.Abort:  # also the end of the input where something was asked
        return EXIT_INTERRUPTED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # the framework of the command line turns it into this
            return _failed(error.__context__)
        _traced(arguments)
        complain(f"the process was ended by {ended(error)}", "a verdict was not reached: look for that call")
        return EXIT_FAILED
    except ToolGrammarError as error:
        _traced(arguments)
        complain(located(error), error.hint)
        return EXIT_USAGE
    except Exception as error:
        if hasattr(error, "format_message"):  # of the framework of the command line: a wrong option or argument
            from typer.rich_utils import rich_format_error

            rich_format_error(error)  # type: ignore[arg-type]  # its class has no public name
            return EXIT_USAGE
        _traced(arguments)
        return _failed(error)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Show a warning as one line, without the line of the library that gave it."""
    complain(" ".join(str(message).split()), level="warning")


def _failed(error: BaseException) -> int:
    """Say why no result was written, and return the exit code. A broken pipe is no error: its reader has enough."""
    if isinstance(error, OSError):  # perhaps of standard output itself, which then can take nothing more
        _discard_output()
    if isinstance(error, BrokenPipeError):
        return EXIT_BROKEN_PIPE
    if isinstance(error, OSError):
        where = error.filename or "input or output failed"
        complain(f"{where}: {error.strerror or error}", "the output is not complete")
    elif isinstance(error, MemoryError):
        complain("not enough memory", "the output is not complete")
    else:
        text = " ".join(str(error).split())
        complain(
            f"toolgrammar failed: {type(error).__name__}{': ' * bool(text)}{text}",
            "this is a fault of toolgrammar: report it with the traceback that `toolgrammar --debug COMMAND` shows",
        )
    return EXIT_FAILED


def _traced(arguments: list[str]) -> None:
    """Print the traceback of the current exception if ``--debug`` is given."""
    if "--debug" in takewhile(lambda argument: argument.startswith("-"), arguments):
        traceback.print_exc()


def _prepare_streams() -> None:
    """Give the process streams that take every character.

    Pipes and files are UTF-8, as JSON is (RFC 8259), unless ``PYTHONIOENCODING`` names an encoding; terminals keep
    theirs. A character that the encoding lacks is written as JSON's escape, so that JSON stays JSON. A closed stream
    is an empty one.
    """
    codecs.register_error(_ESCAPES, _escaped)
    named = bool(os.environ.get("PYTHONIOENCODING", "").partition(":")[0])
    for name in ("stdin", "stdout", "stderr"):
        stream: Any = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "r+", encoding="utf-8"))  # noqa: SIM115  # until the process ends
        elif isinstance(stream, io.TextIOWrapper):
            encoding = stream.encoding if named or stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="strict" if name == "stdin" else _ESCAPES)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """Return JSON's escapes of the characters that cannot be encoded."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4)), error.end


def _discard_output() -> None:
    """Send standard output to the null device: the interpreter flushes it at its end, and would complain again."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):  # not a file, as in tests
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)
