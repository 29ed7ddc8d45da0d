"""Translation of our errors into those that a framework's agents, middleware and users act on.

An adapter has a table: for the ``code`` of an error of ours, the class of the framework. It holds for the subclasses of
that error too, if they have no row of their own. What is raised is an instance of both classes, so that it is caught by
either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from toolgrammar.core.errors import MissingDependencyError, ToolGrammarError

#: The codes of errors of a request that cannot be done, whoever is asked; of those of servers, which are kinds of
#: ``model``, a table has rows.
REQUEST_ERRORS = ("schema", "grammar", "limit", "unknown_tool", "model")


def missing(package: str, extra: str) -> MissingDependencyError:
    """Return the error for a framework that is not installed."""
    return MissingDependencyError(
        f"toolgrammar.adapters.{extra.replace('-', '_')} needs {package}, which is not installed or too old",
        hint=f"pip install 'toolgrammar[{extra}]'",
    )


ErrorTable = Callable[[], Mapping[str, type[BaseException]]]


@contextmanager
def translated(table: ErrorTable, words: str = "") -> Iterator[None]:
    """Raise our errors as the framework's own; all others pass through untouched.

    What is raised has both classes, with our attributes, and can be pickled.

    Args:
        table: returns the classes of the framework by the codes of our errors; called only when an error occurs.
        words: put before the message, where the framework knows an error by what it says.
    """
    try:
        yield
    except MissingDependencyError:
        raise  # about the installation, not about the request
    except ToolGrammarError as error:
        classes = table()
        theirs = next((classes[code] for code in error.kinds() if code in classes), None)
        if theirs is None or isinstance(error, theirs):
            raise
        if not issubclass(theirs, Exception):  # a cancellation, which no handler of errors may swallow
            raise theirs(str(error)) from error
        message = f"{words}: {error.message}" if words else error.message
        raise _restored(theirs, type(error), {**vars(error), "message": message}) from error


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
