"""Model Context Protocol: tools and results of MCP servers, read and written.

`McpServer` starts a server and keeps a session with it in a separate thread, so that its tools run from both ordinary
and async code. If you have a session of the official ``mcp`` package (version 1 or 2), give it to
`tools_from_session`. Dicts and objects of a ``tools/list`` result need neither: `ToolSet.from_any` reads them.

Descriptions and ``annotations`` of a server's tools are claims, not facts: use servers that you trust.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import AbstractAsyncContextManager
from typing import Any

from toolgrammar.core.basics import EventLoop
from toolgrammar.core.conversation import ImagePart, Part, TextPart
from toolgrammar.core.errors import MissingDependencyError, Place, ToolCallError, ToolTimeoutError
from toolgrammar.core.validation import Validator

from .calling import ToolResult, describe_failure, result_text
from .sources.any_source import tools_from_any
from .tool import Tool, ToolList
from .toolset import ToolSet

#: Maximum number of pages of a server's list of tools that are read.
MAX_PAGES = 1_000

#: Maximum number of seconds that closing waits for a server to end by itself.
CLOSING_SECONDS = 10.0

Transport = Callable[[], AbstractAsyncContextManager[Any]]


def result_from_mcp(result: Any, tool: Tool | None = None) -> Any:
    """Return the value of a ``tools/call`` result.

    Args:
        result: a ``CallToolResult`` of the ``mcp`` package, or the same as a dict.
        tool: the tool that was called; its ``output_schema`` is then checked.

    Returns:
        The structured content if there is any; else the text, if all content is text; else the content as parts: texts
        and images, and a line of text for each other part (audio, binary resources, links).

    Raises:
        ToolCallError: the server reports a failure (``isError``), or the structured content does not match the tool's
            ``output_schema``.
    """
    body = result if isinstance(result, Mapping) else result.model_dump(mode="json", by_alias=True)
    place = Place(tool=tool.name if tool is not None else None)
    parts = [_part(block) for block in body.get("content") or ()]
    plain = all(isinstance(part, TextPart) for part in parts)
    text = "\n".join(part.text for part in parts if isinstance(part, TextPart))
    if body.get("isError"):
        raise ToolCallError(text or "the server reports a failure without a reason", place=place)
    structured = body.get("structuredContent")
    if tool is not None and tool.output_schema is not None:
        problem = next(Validator(tool.output_schema).violations(structured), None)
        if problem is not None:
            raise ToolCallError(f"the server's result does not match its output schema: {problem}", place=place)
    if structured is not None:
        return structured
    return text if plain else tuple(parts)


def result_to_mcp(result: ToolResult) -> dict[str, Any]:
    """Return a result as a server sends it: a ``CallToolResult`` as a dict."""
    if result.error is not None:
        return {"content": [{"type": "text", "text": result.error}], "isError": True}
    message = result.to_message()
    parts = (TextPart(message.content),) if isinstance(message.content, str) else message.content
    content = []
    for part in parts:
        if isinstance(part, TextPart):
            content.append({"type": "text", "text": part.text})
        elif part.data is not None:
            data = base64.b64encode(part.data).decode()
            content.append({"type": "image", "data": data, "mimeType": part.type_of_file})
        else:
            content.append({"type": "text", "text": str(part.url)})
    structured = result.to_dict()["result"]
    extra = {"structuredContent": structured} if isinstance(structured, dict) else {}
    return {"content": content, **extra, "isError": False}


def tools_to_mcp(tools: Iterable[Tool]) -> dict[str, Any]:
    """Return tools as a server lists them: a ``ListToolsResult`` as a dict.

    Law: ``ToolSet.from_any(tools_to_mcp(tools))`` has the same names, descriptions and schemas.
    """
    listed = []
    for tool in tools:
        entry: dict[str, Any] = {"name": tool.name}
        for key, value in (("title", tool.title), ("description", tool.description)):
            if value:
                entry[key] = value
        entry["inputSchema"] = _as_json(tool.parameters)
        if tool.output_schema is not None:
            entry["outputSchema"] = _as_json(tool.output_schema)
        if tool.annotations:
            entry["annotations"] = dict(tool.annotations)
        listed.append(entry)
    return {"tools": listed}


def _as_json(schema: dict[str, Any]) -> Any:
    """Return a copy of a schema, as it arrives at the other end: lists instead of tuples, say."""
    return json.loads(json.dumps(schema))


async def tools_from_session(
    session: Any, *, prefix: str = "", timeout: float | None = None, strict: bool = False
) -> ToolSet:
    """Return the tools of an initialised ``mcp.ClientSession``; all pages of the list.

    A tool whose schema cannot be read or has no grammar is left out, and in ``skipped`` of the result.

    Args:
        session: the session. Its tools run in its event loop only: use `ToolSet.acall` there.
        prefix: put before every name, to tell several servers' tools apart.
        timeout: seconds that the server may take for one call, or None.
        strict: raise for such a tool instead. (One without a grammar is refused when `ToolSet.grammar` is asked for.)
    """

    async def call(name: str, arguments: dict[str, Any]) -> Any:
        return await _in_time(session.call_tool(name, arguments), name, timeout)

    return _as_set(await _listed(session, strict), call, prefix)


class McpServer:
    """Connection to a server, open inside a ``with`` block; ``tools`` are its tools, ready to be called.

    A tool whose schema cannot be read or has no grammar is left out, and in ``tools.skipped``.

    Args:
        transport: gives the connection: a function without arguments that returns one of the ``mcp`` package's client
            context managers, for example ``lambda: streamable_http_client(url)``. For a program, see `stdio`.
        prefix: put before every tool's name, to tell several servers' tools apart.
        start_timeout: seconds that starting, greeting and listing may take.
        call_timeout: seconds that one call may take, or None.
        strict: raise for a tool that would be left out, as in `tools_from_session`.

    Raises:
        MissingDependencyError: the extra ``mcp`` is not installed.
        ToolCallError: on entering the block: the server does not start, or does not answer.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        prefix: str = "",
        start_timeout: float = 30.0,
        call_timeout: float | None = None,
        strict: bool = False,
    ) -> None:
        _import_mcp()
        self._transport = transport
        self._prefix = prefix
        self._start_timeout = start_timeout
        self._call_timeout = call_timeout
        self._strict = strict
        self._loop = EventLoop()
        self._stop = asyncio.Event()
        self._session: Any = None
        self._tools = ToolSet()

    @classmethod
    def stdio(
        cls,
        command: str,
        args: Sequence[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        prefix: str = "",
        start_timeout: float = 30.0,
        call_timeout: float | None = None,
        strict: bool = False,
    ) -> McpServer:
        """Return a server that is a program and speaks MCP over its standard input and output.

        Args:
            command: the program.
            args: its arguments.
            env: its environment; None for the few variables that the ``mcp`` package passes on.
            cwd: its working directory.
            prefix: as in the class.
            start_timeout: as in the class.
            call_timeout: as in the class.
            strict: as in the class.
        """
        mcp = _import_mcp()
        parameters = mcp.StdioServerParameters(
            command=command, args=list(args), env=None if env is None else dict(env), cwd=cwd
        )
        return cls(
            lambda: mcp.stdio_client(parameters),
            prefix=prefix,
            start_timeout=start_timeout,
            call_timeout=call_timeout,
            strict=strict,
        )

    @property
    def tools(self) -> ToolSet:
        """The server's tools, as listed when the block was entered. Each is an async function."""
        return self._tools

    def answer(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a call as the server gives it: a ``CallToolResult`` as a dict, not yet judged.

        Raises:
            ToolTimeoutError: it takes more than ``call_timeout``.
            Exception: what the ``mcp`` package raises: an error of the protocol, a closed connection, a malformed
                result, or one that does not match the tool's output schema.
        """
        body: dict[str, Any] = self._begin(name, dict(arguments)).result().model_dump(mode="json", by_alias=True)
        return body

    def __enter__(self) -> McpServer:
        """Start the server and list its tools; the session runs in a thread of its own until `close`."""
        if self._loop.is_running:
            raise ToolCallError("the server is already running", hint="make another McpServer")
        self._stop = asyncio.Event()
        opened: Future[ToolSet] = Future()
        self._loop.submit(self._serve(opened))
        try:
            self._tools = opened.result(self._start_timeout)
        except BaseException as error:
            has_failed = opened.done()  # else the wait ended: by the time, or by an interrupt
            self.close()
            if has_failed:
                raise ToolCallError(
                    f"the MCP server does not work: {describe_failure(error)}", hint="try its command in a terminal"
                ) from error
            if isinstance(error, FutureTimeoutError):
                raise ToolCallError(
                    f"the MCP server did not answer in {self._start_timeout:g} seconds", hint="raise start_timeout"
                ) from None
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the session and the server; a second time does nothing."""
        self._loop.close(self._end if self._session is not None else None, patience=CLOSING_SECONDS)

    async def _end(self) -> None:
        self._stop.set()

    async def _serve(self, opened: Future[ToolSet]) -> None:
        """Keep a session open until the server is closed; ``opened`` gets its tools, or why there is no session."""
        mcp = _import_mcp()
        try:
            async with self._transport() as streams, mcp.ClientSession(streams[0], streams[1]) as session:
                await session.initialize()
                tools = _as_set(await _listed(session, self._strict), self._call, self._prefix)
                self._session = session
                opened.set_result(tools)
                await self._stop.wait()
        except BaseException as error:
            if opened.done():
                raise
            opened.set_exception(error)
        finally:
            self._session = None

    async def _call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call a tool from any event loop; cancelling this cancels the call."""
        return await asyncio.wrap_future(self._begin(name, arguments))

    def _begin(self, name: str, arguments: dict[str, Any]) -> Future[Any]:
        """Begin a call in the thread of the session."""
        session = self._session
        if session is None or not self._loop.is_running:
            raise ToolCallError("the MCP server is not running", hint="call its tools inside the with block")
        return self._loop.submit(_in_time(session.call_tool(name, arguments), name, self._call_timeout))


async def _in_time(work: Awaitable[Any], tool: str, seconds: float | None) -> Any:
    """Return the result of a call, or end it when its seconds are over."""
    # The package's own time-out takes a timedelta in version 1 and seconds in version 2.
    try:
        return await asyncio.wait_for(work, seconds)
    except asyncio.TimeoutError as error:
        raise ToolTimeoutError(
            f"the MCP server did not answer in {seconds:g} seconds", hint="allow more time", place=Place(tool=tool)
        ) from error


async def _listed(session: Any, strict: bool) -> ToolList:
    """Return the tools of every page; ``strict``: raise for a tool that cannot be read, instead of leaving it out."""
    entries: list[Any] = []
    cursor: str | None = None  # where the next page begins
    for _ in range(MAX_PAGES):
        # Version 2 of the package has other attributes and arguments, and the same names on the wire.
        if cursor is None:
            page = await session.list_tools()
        elif "cursor" in inspect.signature(session.list_tools).parameters:
            page = await session.list_tools(cursor)
        else:
            page = await session.list_tools(params=_import_mcp().types.PaginatedRequestParams(cursor=cursor))
        entries += page.tools
        cursor = page.model_dump(by_alias=True).get("nextCursor")
        if not cursor:
            break
    return tools_from_any(entries, skip=not strict)


def _as_set(tools: ToolList, call: Callable[[str, dict[str, Any]], Any], prefix: str) -> ToolSet:
    """Return the tools under prefixed names; ``call`` asks the server: a coroutine of its ``tools/call`` result."""
    return ToolSet(ToolList((_bound(tool, call, prefix) for tool in tools), tools.skipped))


def _bound(tool: Tool, call: Callable[[str, dict[str, Any]], Any], prefix: str) -> Tool:
    """Return the tool under its prefixed name, with a function by which the server runs it."""

    async def run(**arguments: Any) -> Any:
        return result_from_mcp(await call(tool.name, arguments), tool)

    return tool.changed(name=prefix + tool.name, function=run)


def _part(block: Mapping[str, Any]) -> Part:
    """Return a content block as a part of a message."""
    kind = block.get("type")
    if kind == "text":
        return TextPart(str(block.get("text", "")))
    if kind == "image":
        return ImagePart.from_base64(block.get("data", ""), block.get("mimeType"))
    if kind == "resource":
        inner = block.get("resource") or {}
        if "text" in inner:
            return TextPart(str(inner["text"]))
        kind_of = str(inner.get("mimeType") or "application/octet-stream")
        if kind_of.startswith("image/"):
            return ImagePart.from_base64(inner.get("blob", ""), kind_of)
        return TextPart(f"[resource {inner.get('uri')} of type {kind_of}]")
    if kind == "resource_link":
        about = ", ".join(str(block[key]) for key in ("name", "description", "mimeType") if block.get(key))
        return TextPart(f"[link to {block.get('uri')}: {about}]" if about else f"[link to {block.get('uri')}]")
    if kind == "audio":
        return TextPart(f"[audio of type {block.get('mimeType') or 'unknown'}]")
    return TextPart(result_text(dict(block)))


def _import_mcp() -> Any:
    try:
        import mcp
    except ImportError as error:
        raise MissingDependencyError(
            "the official MCP package is not installed", hint="pip install 'toolgrammar[mcp]'"
        ) from error
    return mcp
