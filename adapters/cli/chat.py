"""``toolgrammar chat``: a conversation with a model that may call the user's own functions."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .output import AsJson, fail, located, print_text, traced, writable, write_trace
from .output import console as make_console
from .source import executed, read_json

if TYPE_CHECKING:
    from toolgrammar.core import GenerateParams, Message, Model, ToolCall, Trace
    from toolgrammar.tools import ToolResult, ToolSet

#: Maximum number of turns of the model after one message of the user.
MAX_STEPS = 8

#: What a tool's result says where nobody allowed the call.
DECLINED = "The user did not allow this call."

#: Message to the user about a declined call.
NOBODY_ASKED = "declined: nobody can be asked here; with --yes every call runs"


def chat(
    model: Annotated[
        str, typer.Argument(help="Address of the model: 'smollm2', 'hf:NAME-OR-PATH', 'openai:MODEL@URL'")
    ],
    tools: Annotated[
        Path | None,
        typer.Option(
            help="A Python file, whose public functions are the tools (the file is executed), or a JSON file of tools."
        ),
    ] = None,
    message: Annotated[
        str | None,
        typer.Option("--message", "-m", help="One message; without it, messages are read line by line."),
    ] = None,
    system: Annotated[str, typer.Option(help="System message of the conversation.")] = "",
    tool_choice: Annotated[str, typer.Option(help="Use of tools: auto, required, none, or a name.")] = "auto",
    yes: Annotated[bool, typer.Option("--yes", help="Run every call without asking.")] = False,
    temperature: Annotated[float, typer.Option(help="Temperature of the random draw; 0 is greedy.")] = 0.0,
    seed: Annotated[int | None, typer.Option(help="Seed of the random draw.")] = None,
    max_tokens: Annotated[int, typer.Option(help="Token budget of one turn.")] = 400,
    trace: Annotated[
        Path | None, typer.Option(callback=writable, help="Write the page of the trace, of all turns.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Talk with a model, which may call your functions.

    The Python file of --tools is executed, since you name it; a call of one of its functions runs only after you say
    yes, or with --yes. Where nobody can be asked (messages come from a pipe), calls are declined. With --json, each
    message is one line of JSON.

    Exit code: 0 done, 2 the model or the tools cannot be loaded.
    """
    from toolgrammar.core import GenerateParams, load_model
    from toolgrammar.tools import ToolSet

    tool_set = _tools_of(tools) if tools is not None else ToolSet.from_any([])
    with make_console(stderr=True).status(f"loading {model}"):
        loaded = load_model(model)
    with loaded:
        params = GenerateParams(
            tools=tool_set if tool_set.names else None,
            tool_choice=tool_choice if tool_set.names else "auto",
            parallel_tool_calls=False,
            temperature=temperature,
            seed=seed,
            max_tokens=max_tokens,
            trace=traced(trace, loaded),
        )
        talk = _Talk(loaded, tool_set, params, yes, as_json, system)
        for text in [message] if message is not None else _lines(as_json):
            talk.ask(text)
        if trace is not None and talk.traces:
            whole = replace(talk.traces[-1], earlier=tuple(talk.traces[:-1]))
            write_trace(whole, trace, make_console(stderr=True))


class _Talk:
    """A conversation.

    Args:
        model: who answers.
        tools: what it may call.
        params: how it writes.
        yes: calls run without asking.
        as_json: messages are printed as lines of JSON.
        system: the system's message; empty for none.
    """

    def __init__(
        self, model: Model, tools: ToolSet, params: GenerateParams, yes: bool, as_json: bool, system: str
    ) -> None:
        from toolgrammar.core import Message

        self._model = model
        self._tools = tools
        self._params = params
        self._yes = yes
        self._as_json = as_json
        self._console = make_console()
        self._messages: list[Message] = [Message("system", system)] if system else []
        self.traces: list[Trace] = []

    def ask(self, text: str) -> None:
        """Answer one message of the user, with all calls on the way."""
        from toolgrammar.core import Message

        self._add(Message("user", text))
        params = self._params
        for _ in range(MAX_STEPS):
            answer = self._turn(params)
            self._add(answer)
            if not answer.tool_calls:
                return
            for call in answer.tool_calls:
                result = self._run(call)
                self._add(result.to_message())
                self._show(result)
            params = replace(params, tool_choice="auto" if params.tool_choice != "none" else "none")
        self._console.print(f"(no more than {MAX_STEPS} turns after one message)", style="dim")

    def _turn(self, params: GenerateParams) -> Message:
        """Let the model write one turn; its text is shown as it comes."""
        from toolgrammar.core import CallStart, Finish, TextDelta
        from toolgrammar.core.conversation import MessageBuilder

        built = MessageBuilder()
        has_text = False
        with make_console(stderr=True).status("reading") as status:  # only in a terminal
            for event in self._model.stream(self._messages, params):
                built.add(event)
                if isinstance(event, TextDelta) and not self._as_json:
                    status.stop()
                    has_text = True
                    self._console.print(event.text, end="", markup=False)
                elif isinstance(event, CallStart):
                    if has_text:
                        self._console.print()
                        has_text = False
                    status.update(f"calling {event.name}")
                    status.start()
                elif isinstance(event, Finish) and event.trace is not None:
                    self.traces.append(event.trace)
        if has_text:
            self._console.print()
        return built.message()

    def _run(self, call: ToolCall) -> ToolResult:
        """Run a call if the user allows it."""
        from toolgrammar.tools import ToolResult

        written = (
            f"{call.name}({', '.join(f'{name}={json.dumps(value)}' for name, value in (call.arguments or {}).items())})"
        )
        tool = self._tools[call.name]
        if not self._as_json:
            from rich.text import Text

            self._console.print(Text.assemble(("call     ", "bold"), (written, "green")))
        if tool.function is None and tool.model is None:
            if not _can_ask():
                return ToolResult(call, error="This tool is only described: nobody is there to answer it.")
            return ToolResult(call, typer.prompt("         its result", err=True))
        if not self._yes and not _can_ask():
            make_console(stderr=True).print(f"         {NOBODY_ASKED}", style="yellow")
            return ToolResult(call, error=DECLINED)
        if not self._yes and not typer.confirm("         run it?", err=True):
            return ToolResult(call, error=DECLINED)
        return self._tools.execute(call)

    def _show(self, result: ToolResult) -> None:
        if not self._as_json:
            from rich.text import Text

            style = "red" if result.is_error else ""
            self._console.print(Text.assemble(("result   ", "bold"), (result.to_message().text, style)))

    def _add(self, message: Message) -> None:
        self._messages.append(message)
        if self._as_json:
            plain: dict[str, Any] = {"role": message.role, "content": message.text}
            if message.tool_calls:
                shown = [(call, dict(call.arguments or {})) for call in message.tool_calls]
                calls = [{"id": call.id, "name": call.name, "arguments": arguments} for call, arguments in shown]
                plain["tool_calls"] = calls
            if message.role == "tool":
                plain |= {"tool_call_id": message.tool_call_id, "is_error": message.is_error}
            print_text(json.dumps(plain, ensure_ascii=False, default=str))


def _can_ask() -> bool:
    return sys.stdin.isatty()


def _lines(as_json: bool) -> Iterator[str]:
    """Yield the user's messages until the end of the input."""
    asks = _can_ask() and not as_json
    if asks:
        make_console(stderr=True).print("Write a message; an empty line or Ctrl-D ends.", style="dim")
    while True:
        try:
            text = input("> " if asks else "")
        except (EOFError, KeyboardInterrupt):
            return
        if not text.strip():
            if asks:
                return
            continue
        yield text


def _tools_of(path: Path) -> ToolSet:
    """Return the tools of a file; a Python file is executed."""
    from toolgrammar.core import ToolGrammarError
    from toolgrammar.tools import ToolSet

    if not path.is_file():
        fail(f"{path} is not a file", "give a Python file with functions, or a JSON file of tools")
    hint = "give a Python file with functions, or a JSON file of tools"
    try:
        if path.suffix == ".py":
            tools = ToolSet(executed(path))
        else:
            return ToolSet.from_any(read_json(str(path), path.read_text(encoding="utf-8-sig"), hint))
    except ToolGrammarError as error:
        fail(f"{path}: {located(error)}", error.hint)
    except ValueError as error:
        fail(f"{path} is not UTF-8: {error}", hint)
    if not tools:
        fail(f"{path} has no public function", "define a function with type annotations and a docstring")
    return tools
