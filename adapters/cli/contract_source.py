"""Tools as users name them: a file, a server, an object of a Python module, or a file of an earlier revision of git."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from .json_input import read_json
from .output import fail, located
from .siblings import Reader, bundled, in_folder
from .source import SYNTAXES, Source, executed, is_url, load

if TYPE_CHECKING:
    from toolgrammar.tools import ToolSet
    from toolgrammar.tools.mcp import McpServer

#: Members of a document that describes operations, whatever it has beside them.
_OF_DOCUMENTS = {"openapi", "swagger"}

#: Members of a dict that is a tool, or holds tools.
_OF_TOOLS = {"tools", "functions", "function", "function_declarations", "functionDeclarations"}
_OF_TOOLS |= {"parameters", "inputSchema", "input_schema"}

#: Keywords that only a JSON Schema has beside such members.
_OF_SCHEMAS = {"$schema", "$ref", "$defs", "definitions", "properties", "required", "allOf", "anyOf", "oneOf", "enum"}

#: Endings of files that hold no JSON.
_SUFFIXES = (".py", ".ts", ".yaml", ".yml")

#: A file of a revision, as ``git show`` takes it.
_REVISION = re.compile(r"([\w./~^@{}-]+):([\w./-]+\.(?:json|py|ts|ya?ml))")

#: A variable of the environment before a command.
_VARIABLE = re.compile(r"[A-Za-z_]\w*=")

_HINT = "give a file (.json, .py, .ts, .yaml), URL or command of an MCP server, module:object, or REVISION:FILE of git"


def contracts_of(name: str) -> ToolSet | Any:
    """Return the tools that a user names, or a JSON Schema as a dict; what cannot be read ends the command."""
    from toolgrammar.core.errors import ToolGrammarError
    from toolgrammar.tools import ToolSet

    try:
        value = _read(name)
        if _is_schema(value):
            return bundled(value, _siblings(name))
        if isinstance(value, (ToolSet, bool)):
            return value
    except ToolGrammarError as error:
        fail(f"{name}: {located(error)}", error.hint)
    return _tools_of(name, value)


def _tools_of(name: str, value: Any) -> ToolSet:
    """Return a value as tools, those left out that cannot be read; what is no tools ends the command."""
    from toolgrammar.core.errors import ToolGrammarError
    from toolgrammar.tools import ToolSet

    try:
        return ToolSet.from_any(value, on_unusable="skip")
    except ToolGrammarError as error:
        fail(f"{name}: {located(error)}", error.hint)


def tools_or_schema(name: str) -> ToolSet | Source:
    """Return the tools that a user names, or a schema or a grammar; what cannot be read ends the command."""
    if _is_server(name) or (Path(name).suffix in _SUFFIXES and not is_url(name)):
        found = contracts_of(name)
        return Source(name, found) if _is_schema(found) or isinstance(found, bool) else found
    source = load(name)  # JSON, whose lines errors name, or a grammar as text
    value = source.schema
    is_list = isinstance(value, list) and all(isinstance(each, Mapping) for each in value)
    is_tools = is_list or (isinstance(value, Mapping) and not _is_schema(value))
    return _tools_of(name, value) if is_tools else source


def _is_server(name: str) -> bool:
    """Return whether a URL is an MCP server's, not a file's, which is never fetched."""
    return is_url(name) and Path(urlsplit(name).path).suffix not in (".json", *_SUFFIXES, *SYNTAXES)


def _is_schema(value: Any) -> bool:
    """Return whether a value is a JSON Schema, and neither tools nor a document that describes them."""
    if not isinstance(value, Mapping) or not _OF_DOCUMENTS.isdisjoint(value):
        return False
    return _OF_TOOLS.isdisjoint(value) or not _OF_SCHEMAS.isdisjoint(value)


def _read(name: str) -> Any:
    """Return what a user names, not yet as tools."""
    if _is_server(name):
        return _served(name)
    path = Path(name)
    if name != "-" and not is_url(name) and not path.exists():
        if (revision := _REVISION.fullmatch(name)) is not None:
            return _of_revision(*revision.groups())
        words = shlex.split(name) if " " in name and name.lstrip()[:1] not in "{[" else []
        if words:
            return _served(words)
    return _of_file(path) if path.suffix in _SUFFIXES and path.is_file() else _loaded(name)


def _loaded(name: str) -> Any:
    if Path(name).is_file():
        return read_json(name, Path(name).read_text(encoding="utf-8-sig"), _HINT)
    source = load(name)
    source.require_schema("a comparison")
    return source.document


def openapi_of(name: str) -> Mapping[str, Any] | None:
    """Return the OpenAPI document of a file that a user names; None: it is no such file."""
    path = Path(name)
    if path.suffix not in (".json", ".yaml", ".yml") or not path.is_file():
        return None
    value = _read(name)
    return value if isinstance(value, Mapping) and not value.keys().isdisjoint(("openapi", "swagger")) else None


def _of_file(path: Path) -> Any:
    """Return the tools of a file of Python, which is executed, TypeScript or YAML."""
    from toolgrammar.tools import ToolSet

    if path.suffix == ".py":
        return ToolSet(executed(path))
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix == ".ts":
        return ToolSet.from_typescript(text)
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError:
        fail(f"{path} is YAML, and PyYAML is not installed", "pip install pyyaml, or convert the file to JSON")
    return yaml.safe_load(text)


def _of_revision(revision: str, file: str) -> Any:
    """Return the tools of a file as a revision of git has it; what a Python file imports is that of today."""
    shown = _shown(revision, file)
    if shown.returncode:
        errors = shown.stderr.decode("utf-8", "replace").strip().splitlines()
        fail(f"{revision}:{file} cannot be read: {errors[0] if errors else 'git failed'}", _HINT)
    with TemporaryDirectory() as folder:
        path = Path(folder) / Path(file).name
        path.write_bytes(shown.stdout)
        return _of_file(path) if path.suffix != ".json" else _loaded(str(path))


def _siblings(name: str) -> Reader:
    """Return the reader of the files beside one that a user names: in its folder, or for ``HEAD~1:a/b.json`` in ``a/``
    as that revision of git has it."""
    found = None if Path(name).exists() else _REVISION.fullmatch(name)
    if found is None:
        return in_folder(Path(name).parent)
    revision, own_file = found.groups()

    def read(file: str) -> Any:
        path = (PurePosixPath(own_file).parent / file).as_posix()
        shown = _shown(revision, path)
        return None if shown.returncode else read_json(path, shown.stdout.decode("utf-8", "replace"), _HINT)

    return read


def _shown(revision: str, file: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", "show", f"{revision}:{file}"], capture_output=True, check=False)


def _http_client(url: str) -> Any:
    from mcp.client import streamable_http

    client = getattr(streamable_http, "streamable_http_client", None) or streamable_http.streamablehttp_client
    return client(url)


def _served(address: str | list[str]) -> ToolSet:
    """Return the tools of an MCP server at a URL, or of one that a command starts."""
    with server_at(address) as server:
        return server.tools


def server_at(address: str | list[str], call_timeout: float | None = None) -> McpServer:
    """Return a connection to an MCP server at a URL, or to one that a command starts; it is not yet open."""
    from toolgrammar.tools.mcp import McpServer

    if isinstance(address, str):
        return McpServer(lambda: _http_client(address), call_timeout=call_timeout)
    variables = list(takewhile(_VARIABLE.match, address))  # NAME=VALUE before the command, as in a shell
    command = address[len(variables) :] or fail("the command of the server is empty", _HINT)
    env = dict(variable.split("=", 1) for variable in variables)
    return McpServer.stdio(command[0], command[1:], env=env, call_timeout=call_timeout)
