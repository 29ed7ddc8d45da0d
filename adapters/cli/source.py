"""Schemas and grammars as users name them: a file, standard input (``-``), or an object of a Python module."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgrammar.core.basics import cached_property

from .json_input import read_json
from .output import ended, fail
from .siblings import bundled, in_folder

if TYPE_CHECKING:
    from toolgrammar.core.errors import ToolGrammarError
    from toolgrammar.core.grammar import Grammar
    from toolgrammar.core.schema import Unread
    from toolgrammar.tools.tool_findings import ToolFinding

    Finding = ToolGrammarError | Unread | ToolFinding

#: Notations of grammars, by the endings of their files.
SYNTAXES = {".lark": "lark", ".gbnf": "gbnf", ".ebnf": "ebnf"}

#: A text of GBNF or Lark, which is no JSON: the rule with which texts begin.
_GRAMMAR = re.compile(r"^(?:root\s*::=|start\s*:)", re.MULTILINE)

#: An object of a module.
_OBJECT = re.compile(r"\w+(?:\.\w+)*:\w+(?:\.\w+)*")

#: Endings of files that hold no grammar, whatever their lines look like.
_NO_GRAMMAR = (".json", ".yaml", ".yml")

#: The argument of every command that takes a schema.
SchemaArgument = Annotated[
    str,
    typer.Argument(
        metavar="SCHEMA",
        help="A file with a JSON Schema, or with a grammar (.lark, .gbnf, .ebnf, output of Grammar.dumps), or the "
        "text itself; - is standard input; module:object is a Pydantic class, a function, a dict or a Grammar of a "
        "Python module, which is imported.",
    ),
]

#: The arguments of every command that takes a text.
TextArgument = Annotated[str | None, typer.Argument(help="The text; - is standard input, as is a pipe.")]
FileOption = Annotated[Path | None, typer.Option("--file", help="A file with the text.")]


@dataclass
class Source:
    """A schema or a grammar, and where it came from.

    Attributes:
        name: as the user named it.
        schema: the JSON Schema, or a Pydantic class; None for a grammar.
        text: the file's text; None if it is no file.
        grammar_form: the grammar, in a form that `Grammar.from_any` takes; None for a schema.
    """

    name: str
    schema: Any
    text: str | None = None
    grammar_form: Any = None

    def grammar(self, **options: Any) -> Grammar:
        """Return the grammar.

        Args:
            options: of `Grammar.from_json_schema`, for a schema.

        Raises:
            ToolGrammarError: it is malformed, or cannot be enforced.
        """
        from toolgrammar.core.grammar import Grammar

        if self.grammar_form is not None:
            return Grammar.from_any(self.grammar_form)
        return Grammar.from_json_schema(self.schema, **options)

    def require_schema(self, what: str) -> None:
        """End the command with one line if this is a grammar; ``what`` needs tools or a schema."""
        if self.grammar_form is not None:
            fail(f"{self.name} is a grammar, but {what} needs tools or a JSON Schema", "pass one of these")

    @cached_property
    def document(self) -> Any:
        """The JSON Schema itself, that of a class included."""
        from toolgrammar.core.generation import schema_of

        return None if self.schema is None else schema_of(self.schema)  # null is no schema, where None is any value

    @cached_property
    def _starts(self) -> dict[str, int]:
        from toolgrammar.core.generation import values_of

        return {} if self.text is None else {value.pointer: value.start for value in values_of(self.text)}

    def place(self, pointer: str | None, keyword: str | None = None) -> tuple[int, int] | None:
        """Return line and column of a place in the schema's file, from 1; None if they are not known."""
        if self.text is None or pointer is None:
            return None
        start = self._starts.get(f"{pointer}/{keyword}", self._starts.get(pointer))
        if start is None:
            return None
        return self.text.count("\n", 0, start) + 1, start - self.text.rfind("\n", 0, start)

    def _position(self, problem: Finding) -> tuple[int | None, int | None]:
        own = problem.place.line, problem.place.column  # of a grammar as text
        return own if own[0] is not None else self.place(problem.place.pointer, problem.place.keyword) or own

    def finding(self, problem: Finding) -> dict[str, Any]:
        """Return what is wrong, and where, as JSON data."""
        line, column = self._position(problem)
        return {
            "code": problem.code,
            "pointer": problem.place.pointer,
            "keyword": problem.place.keyword,
            "line": line,
            "column": column,
            "message": problem.message,
            "hint": problem.hint,
        }

    def where(self, problem: Finding) -> str:
        """Return the place of a problem for people."""
        number, column = self._position(problem)
        line = "" if number is None else f"line {number}, column {column}"
        if self.grammar_form is not None and problem.place.pointer is None:
            return line or "the grammar"
        return f"{line}: " * bool(line) + f"{problem.place.pointer or '(root)'} {problem.place.keyword or ''}".rstrip()


#: How to name a schema.
_NAMES = "give a file with a JSON Schema, its text, - for standard input, or module:object"


def load(name: str) -> Source:
    """Return the schema that a user names; what cannot be read ends the command with one line."""
    path = Path(name)
    if name != "-" and not _exists(path):
        if name.lstrip()[:1] == "{" or _GRAMMAR.search(name):  # the text itself
            return _read("the argument", name)
        if _OBJECT.fullmatch(name):
            return _source(name, _imported(name))
    if path.suffix == ".py":
        module = path.stem if path.is_absolute() else ".".join(path.with_suffix("").parts)
        fail(f"{name} is a file of Python, not of JSON", f"name an object in it: {module}:NAME")
    shown = "standard input" if name == "-" else name or "an empty name"
    try:
        text = sys.stdin.read() if name == "-" else path.read_text(encoding="utf-8-sig")
    except OSError as error:
        hint = f"nothing is fetched; give its text to standard input: curl -s {name} | toolgrammar COMMAND -"
        fail(f"{shown} cannot be read: {error.strerror}", hint if is_url(name) else _NAMES)
    except ValueError as error:
        fail(f"{shown} is not UTF-8: {error}", "save the file as UTF-8")
    source = _read(shown, text, path.suffix)
    if name != "-":  # its references may name files beside it
        source.schema = bundled(source.schema, in_folder(path.parent))
    return source


def is_url(name: str) -> bool:
    """Return whether a name is an address of the web."""
    return name.startswith(("http://", "https://"))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # too long for a name
        return False


def _read(name: str, text: str, suffix: str = "") -> Source:
    """Return the schema or grammar of a text.

    Args:
        name: as messages name it.
        text: the text.
        suffix: the ending of its file; without one that tells, the text is a grammar if it has the first rule of one.
    """
    if not text.strip():
        fail(f"{name} is empty", "a schema that allows every value is {}")
    if suffix in SYNTAXES:
        return Source(name, None, text, grammar_form={"syntax": SYNTAXES[suffix], "definition": text})
    if suffix not in _NO_GRAMMAR and _GRAMMAR.search(text):
        return Source(name, None, text, grammar_form=text)
    return _source(name, read_json(name, text, "check the text with a JSON editor"), text)


def _source(name: str, value: Any, text: str | None = None) -> Source:
    from toolgrammar.core.grammar import Grammar, is_grammar

    if isinstance(value, Grammar) or is_grammar(value):
        return Source(name, None, text, grammar_form=value)
    return Source(name, value, text)


def _imported(name: str) -> Any:
    """Return the schema of an object of a module; the module is imported, also from the working directory."""
    module_name, _, path = name.partition(":")
    example = "give module:object, for example myapp.models:Order"
    sys.path.insert(0, str(Path.cwd()))
    try:
        with _executing(module_name, lambda: _file_of(module_name)):
            try:
                value: Any = importlib.import_module(module_name)
            except ModuleNotFoundError as error:
                if not error.name or not f"{module_name}.".startswith(f"{error.name}."):
                    raise  # the module is there, but one that it imports is not
                fail(f"{module_name} cannot be imported: {error}", example)
            try:
                for step in path.split("."):
                    value = getattr(value, step)
            except AttributeError as error:
                fail(f"{name} does not exist: {error}", example)
    finally:
        sys.path.pop(0)
    from toolgrammar.core.grammar import Grammar

    if isinstance(value, Grammar):
        return value
    if isinstance(value, str):
        return read_json(name, value, "the object is a string, which is read as JSON")
    if isinstance(value, (dict, bool)) or hasattr(value, "model_json_schema"):
        return value
    if callable(value) and not isinstance(value, type):
        from toolgrammar.tools import ToolSet, close_objects

        (tool,) = ToolSet.from_any([value])
        return close_objects(tool.parameters)  # as a tool set reads it
    from toolgrammar.core.generation import schema_of

    return schema_of(value)


def _file_of(module_name: str) -> Path | None:
    """Return the file of a module; None if there is none."""
    try:
        found = find_spec(module_name)
    except (ImportError, ValueError):
        return None
    return None if found is None or not found.origin else Path(found.origin)


@contextmanager
def _executing(name: str, file: Callable[[], Path | None]) -> Iterator[None]:
    """Execute code of the user: what it prints is not our output, and what it raises ends the command with one line.

    Args:
        name: as the user named it.
        file: returns the file that is executed, for the line in an error. It is called only after one: to find the
            file of a module imports the packages around it.
    """
    try:
        with redirect_stdout(sys.stderr):
            yield
    except typer.Exit:
        raise
    except (Exception, SystemExit) as error:
        path = file()
        line = "" if path is None else line_of(error, path)
        if isinstance(error, SystemExit):
            hint = "let it run its program only as a script: if __name__ == '__main__'"
            fail(f"{name}{line} ended the process by {ended(error)}", hint)
        missing = isinstance(error, ModuleNotFoundError) and error.name
        hint = f"install the package of {missing}, or correct the import" if missing else "correct the file"
        fail(f"{name}{line} cannot be executed: {type(error).__name__}: {error}", hint)


def line_of(error: BaseException, path: Path) -> str:
    """Return the last line of a Python file on the way to an error, as ``, line N``; empty if it is not on it."""
    path = path.resolve()
    if isinstance(error, SyntaxError) and error.lineno is not None and Path(error.filename or "").resolve() == path:
        return f", line {error.lineno}"
    lines = [frame.lineno for frame in extract_tb(error.__traceback__) if Path(frame.filename).resolve() == path]
    return f", line {lines[-1]}" if lines else ""


def executed(path: Path) -> ModuleType:
    """Return the module of a Python file, which is executed; an error in it ends the command with one line."""
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))  # as for a script: it may import what is beside it
    sys.modules[path.stem] = module  # where the annotations of its classes are looked up
    try:
        with _executing(str(path), lambda: path):
            spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    return module


def text_of(schema: str, text: str | None, file: Path | None) -> str:
    """Return the text that a user names beside a schema; what cannot be read ends the command with one line."""
    if text is None and file is None and schema != "-" and not sys.stdin.isatty():  # a pipe
        text = sys.stdin.read().removesuffix("\n") or None
    hint = "give one: TEXT, -, or --file FILE"
    if text is None and file is None:
        fail("the text is missing", hint)
    if text is not None and file is not None:
        fail("both a text and a file are given", hint)
    if text == "-" and schema == "-":
        fail("schema and text cannot both come from standard input", "put the text into a file: --file FILE")
    if text is not None and text != "-":
        return text
    try:
        return (sys.stdin.read() if file is None else file.read_text(encoding="utf-8-sig")).removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{file or 'standard input'} cannot be read: {error}")
