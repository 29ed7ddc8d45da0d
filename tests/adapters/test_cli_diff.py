"""The command ``diff``: what it reads, what it prints, and its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from .test_cli_schemas import invoke

READ = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
OLD = {"tools": [{"name": "read", "inputSchema": READ}, {"name": "gone", "inputSchema": {"type": "object"}}]}
WIDER = {"type": "object", "properties": {**READ["properties"], "head": {"type": "integer"}}}  # type: ignore[dict-item]
SWAGGER = {"swagger": "2.0", "paths": {"/a": {"get": {"operationId": "a"}}}, "definitions": {"A": {"type": "object"}}}
SERVER = Path(__file__).parents[1] / "tools" / "mcp_server.py"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with some descriptions of tools."""
    monkeypatch.chdir(tmp_path)
    files = {
        "old.json": json.dumps(OLD),
        "new.json": json.dumps({"tools": [{"name": "read", "inputSchema": WIDER}]}),
        "text.json": json.dumps({"type": "string"}),
        "short.json": json.dumps({"type": "string", "maxLength": 2}),
        "host.json": json.dumps({"type": "string", "format": "hostname"}),
        "unmarked.json": json.dumps({"type": "string", "not": {"pattern": "^xn--"}}),
        "one.py": 'def add(a: int, b: int = 0) -> int:\n    "Add."\n    return a + b\n',
        "two.py": 'def add(a: int, b: int) -> int:\n    "Add."\n    return a + b\n',
        "swagger.json": json.dumps(SWAGGER),
        "tools.json": json.dumps({"type": "object", "properties": {"a": {}}, "tools": 1}),
        "api.yaml": "openapi: 3.1.0\npaths:\n  /a:\n    get:\n      operationId: a\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_a_broken_call_is_shown(folder: Path) -> None:
    """A removed tool and a smallest call that breaks are shown, with its reason; the exit code is 1."""
    code, output, _ = invoke("diff", "old.json", "new.json")
    assert code == 1
    assert "removed    gone" in output
    assert "takes more: {}" in output
    code, output, _ = invoke("diff", "new.json", "old.json")
    assert code == 1
    assert "breaks this call: {}" in output
    assert "'path' is a required property" in output


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("old.json", "new.json", "2 tools: 1 removed, 1 compatible"),
        ("one.py", "two.py", "1 tool: 1 breaks"),
        ("text.json", "short.json", "1 schema: 1 breaks"),
    ],
)
def test_last_line_counts_tools_or_the_schema(folder: Path, old: str, new: str, expected: str) -> None:
    """The last line says how many tools there are, or that it is one schema, and how many of each verdict."""
    assert invoke("diff", old, new)[1].splitlines()[-1] == expected


@pytest.mark.parametrize(
    ("file", "compared", "checked"),
    [("swagger.json", "1 tool: 1 same", "1 checked"), ("tools.json", "1 schema: 1 same", "constrain nothing: tools")],
)
def test_commands_agree_on_what_a_schema_is(folder: Path, file: str, compared: str, checked: str) -> None:
    """``diff`` and ``check`` take a document of operations for its tools, whatever it has beside them, and a schema
    with a member of tools for a schema."""
    assert compared in invoke("diff", file, file)[1]
    assert checked in invoke("check", file)[1]


def test_json_for_programs(folder: Path) -> None:
    """With ``--json`` the same is data."""
    code, output, _ = invoke("diff", "text.json", "short.json", "--json")
    report = json.loads(output)
    assert code == 1
    assert report["compatible"] is False
    assert report["tools"][0]["breaks"][0]["value"] == "aaa"
    assert invoke("diff", "short.json", "text.json", "--json")[0] == 0


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("text.json", "text.json", 0),
        ("host.json", "unmarked.json", 3),
        ("one.py", "two.py", 1),
        ("two.py", "one.py", 0),
        ("text.json", "old.json", 2),
        ("absent.json", "old.json", 2),
        ("api.yaml", "api.yaml", 0),
        ('{"type": "integer"}', '{"type": "number"}', 0),
    ],
)
def test_exit_codes(folder: Path, old: str, new: str, expected: int) -> None:
    """0: nothing breaks, 1: something does, 2: nothing to compare, 3: not decided."""
    if "yaml" in old:
        pytest.importorskip("yaml", reason="PyYAML is not installed")
    assert invoke("diff", old, new)[0] == expected


def test_a_revision_of_git(folder: Path) -> None:
    """A file is compared with what a revision of git has."""

    def git(*arguments: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)

    (folder / "whole.json").write_text('{"$ref": "text.json"}', encoding="utf-8")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    (folder / "one.py").write_text((folder / "two.py").read_text())
    assert invoke("diff", "HEAD:one.py", "one.py")[0] == 1
    assert invoke("diff", "HEAD:two.py", "one.py")[0] == 0
    (folder / "text.json").write_text('{"type": "string", "maxLength": 2}', encoding="utf-8")
    assert 'breaks this value: "aaa"' in invoke("diff", "HEAD:whole.json", "whole.json")[1]
    code, _, complaint = invoke("diff", "HEAD:none.json", "old.json")
    assert code == 2
    assert "none.json" in complaint


def test_a_schema_breaks_values(folder: Path) -> None:
    """A JSON Schema has values and no calls, for people and for programs."""
    assert 'breaks this value: "aaa"' in invoke("diff", "text.json", "short.json")[1]
    (change,) = json.loads(invoke("diff", "text.json", "short.json", "--json")[1])["tools"]
    assert change["breaks"][0]["kind"] == "value"


@pytest.mark.parametrize("draft", ["", *(f"http://json-schema.org/draft-0{age}/schema#" for age in (4, 6, 7))])
@pytest.mark.parametrize("identity", [None, "https://example.com/schemas/root.json"])
def test_references_to_files_of_the_folder(folder: Path, draft: str, identity: str | None) -> None:
    """Files below the folder of a schema are read where they are referred to, by each other and in circles too."""
    (folder / "sub").mkdir()
    said: dict[str, Any] = {"$schema": draft} if draft else {}
    if identity is not None:
        said["id" if "draft-04" in draft else "$id"] = identity
    files = {
        "root.json": {**said, "$ref": "sub/list.json"},
        "other.json": {
            **said,
            "type": "array",
            "items": {"$ref": "parts.json#/definitions/some%20count"},
            "maxItems": 2,
        },
        "sub/list.json": {"type": "array", "items": {"$ref": "count.json"}},
        "sub/count.json": {"$ref": "../parts.json#/definitions/some%20count"},
        "parts.json": {"definitions": {"some count": {"type": "integer"}, "again": {"$ref": "sub/list.json"}}},
    }
    for name, schema in files.items():
        (folder / name).write_text(json.dumps(schema), encoding="utf-8")
    code, output, _ = invoke("diff", "root.json", "other.json")
    assert (code, "breaks this value: [0, 0, 0]" in output) == (1, True)
    assert invoke("diff", "other.json", "root.json")[0] == 0
    assert invoke("check", "root.json")[0] == 0


def test_references_to_other_files_are_refused(folder: Path) -> None:
    """What is not below the folder is never read, nor what a link leads to elsewhere; the error says what helps."""
    (folder / "in").mkdir()
    (folder / "in" / "link.json").symlink_to(folder / "text.json")
    for name in ("../text.json", "link.json", str(folder / "text.json"), "https://example.com/text.json", "none.json"):
        (folder / "in" / "a.json").write_text(json.dumps({"$ref": name}), encoding="utf-8")
        code, output, _ = invoke("diff", "in/a.json", "text.json")
        assert code == 3, name
        assert "put it into a .json file in the same folder or below" in output
    for place in ("#/nothing", "#nothing"):
        (folder / "in" / "a.json").write_text(json.dumps({"$ref": f"c.json{place}"}), encoding="utf-8")
        (folder / "in" / "c.json").write_text("{}", encoding="utf-8")
        assert f"$ref 'c.json{place}' points at nothing" in invoke("diff", "in/a.json", "text.json")[1]
    (folder / "in" / "a.json").write_text('{"$ref": "b.json"}', encoding="utf-8")
    (folder / "in" / "b.json").write_text("{", encoding="utf-8")
    code, _, error = invoke("diff", "in/a.json", "text.json")
    assert code == 2
    assert "b.json is not JSON" in error


def test_a_running_server(folder: Path) -> None:
    """The command of an MCP server is started, and its list of tools is compared."""
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    command = f"{sys.executable} {SERVER}"
    code, output, _ = invoke("diff", command, command)
    assert code == 0
    assert "5 tools: 5 same" in output


@contextmanager
def served() -> Iterator[str]:
    """Serve the MCP server of the tests over HTTP; yield its URL."""
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    uvicorn = pytest.importorskip("uvicorn", reason="uvicorn is not installed")
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from ..tools.mcp_server import make_server

    manager = StreamableHTTPSessionManager(app=make_server(), stateless=True)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await manager.handle_request(scope, receive, send)
            return
        await receive()
        async with manager.run():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="on"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.02)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        thread.join(20)


def test_a_server_at_a_url(folder: Path) -> None:
    """The tools of an MCP server at a URL are those of the same server that a command starts."""
    with served() as url:
        code, output, _ = invoke("diff", url, f"{sys.executable} {SERVER}")
    assert code == 0
    assert "5 tools: 5 same" in output


def test_declarations_of_typescript(folder: Path) -> None:
    """Functions of a TypeScript file are compared as tools: an optional parameter more is fine, a required one breaks."""
    said = "/** Search. */\nexport declare function search(query: string{}): Promise<string[]>;\n"
    for name, more in {"old.ts": "", "wider.ts": ", limit?: number", "new.ts": ", limit: number"}.items():
        (folder / name).write_text(said.format(more), encoding="utf-8")
    assert invoke("diff", "old.ts", "wider.ts")[0] == 0
    code, output, _ = invoke("diff", "old.ts", "new.ts")
    assert code == 1
    assert 'breaks this call: {"query": ""}' in output
    assert "'limit' is a required property" in output


def test_objects_of_modules(folder: Path) -> None:
    """``module:object`` compares one class or function of a Python module with another, both closed."""
    (folder / "contracts_of_tests.py").write_text(
        "from pydantic import BaseModel\n\nclass Old(BaseModel):\n    number: int\n\n"
        "class Wider(Old):\n    note: str = ''\n\nclass New(Old):\n    note: str\n\n"
        "def add(a: int, b: int = 0) -> int:\n    return a + b\n\n"
        "def add_all(a: int, b: int) -> int:\n    return a + b\n",
        encoding="utf-8",
    )
    assert invoke("diff", "contracts_of_tests:Old", "contracts_of_tests:Wider")[0] == 0
    assert invoke("diff", "contracts_of_tests:Wider", "contracts_of_tests:Old")[0] == 1
    code, output, _ = invoke("diff", "contracts_of_tests:Old", "contracts_of_tests:New")
    assert code == 1
    assert 'breaks this value: {"number": 0}' in output
    assert invoke("diff", "contracts_of_tests:add_all", "contracts_of_tests:add")[0] == 0
    assert invoke("diff", "contracts_of_tests:add", "contracts_of_tests:add_all")[0] == 1
