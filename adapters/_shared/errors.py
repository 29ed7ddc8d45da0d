"""Translation of our errors into those that a framework's agents, middleware and users act on.

An adapter has a table of `Translation`; what is raised is an instance of both classes, so that it is caught by either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from toolgrammar.core.errors import (
    GrammarError,
    LimitError,
    MissingDependencyError,
    ModelError,
    SchemaError,
    ToolGrammarError,
    UnknownToolError,
)

#: The errors of a request that cannot be done, whoever is asked; `ModelError` has subclasses, so list these before.
REQUEST_ERRORS = (SchemaError, GrammarError, LimitError, UnknownToolError, ModelError)


def missing(package: str, extra: str) -> MissingDependencyError:
    """Return the error for a framework that is not installed."""
    return MissingDependencyError(
        f"toolgrammar.adapters.{extra.replace('-', '_')} needs {package}, which is not installed or too old",
        hint=f"pip install 'toolgrammar[{extra}]'",
    )


@dataclass(frozen=True)
class Translation:
    """One row of a framework's table of errors.

    Attributes:
        ours: our classes; their subclasses are translated as well.
        theirs: the framework's.
        words: put before the message, where the framework knows an error by what it says.
    """

    ours: tuple[type[ToolGrammarError], ...]
    theirs: type[BaseException]
    words: str = ""


ErrorTable = Callable[[], Sequence[Translation]]


@contextmanager
def translated(table: ErrorTable) -> Iterator[None]:
    """Raise our errors as the framework's own; all others pass through untouched.

    What is raised has both classes, with our attributes, and can be pickled.

    Args:
        table: returns the rows, most specific first; called only when an error occurs.
    """
    try:
        yield
    except MissingDependencyError:
        raise  # about the installation, not about the request
    except ToolGrammarError as error:
        for row in table():
            if isinstance(error, row.ours):
                if isinstance(error, row.theirs):
                    raise
                if not issubclass(row.theirs, Exception):  # a cancellation, which no handler of errors may swallow
                    raise row.theirs(str(error)) from error
                message = f"{row.words}: {error.message}" if row.words else error.message
                raise _restored(row.theirs, type(error), {**vars(error), "message": message}) from error
        raise


def _both(theirs: type[BaseException], ours: type[ToolGrammarError]) -> type[ToolGrammarError]:
    """Return a class that is both. Its constructor and its text are ours, whatever the framework's are."""

    def reduce(self: ToolGrammarError) -> Any:
        # By its parents: the class itself has no name by which pickle would find it.
        return _restored, (theirs, ours, vars(self))

    members = {
        "__init__": ToolGrammarError.__init__,
        "__str__": Exception.__str__,  # a framework's may leave out place and hint
        "__reduce__": reduce,
        "__module__": ours.__module__,
    }
    return type(ours.__name__, (theirs, ours), members)


def _restored(
    theirs: type[BaseException], ours: type[ToolGrammarError], attributes: dict[str, Any]
) -> ToolGrammarError:
    """Return an error of both classes with these attributes."""
    error = _both(theirs, ours)(attributes["message"], hint=attributes["hint"], place=attributes["place"])
    vars(error).update(attributes)
    return error
