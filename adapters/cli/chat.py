"""``toolgrammar chat``: a conversation with a model that may call the user's own functions."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .json_input import read_json
from .output import AsJson, fail, located, print_text, traced, writable, write_trace
from .output import console as make_console
from .source import executed

if TYPE_CHECKING:
    from toolgrammar.core.conversation import Message, ToolCall, Trace
    from toolgrammar.core.generation import GenerateParams
    from toolgrammar.core.models import Model
    from toolgrammar.tools import ToolResult, ToolSet

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
    from toolgrammar.core.generation import GenerateParams
    from toolgrammar.core.models import load_model
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
        from toolgrammar.core.conversation import Message

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
        from toolgrammar.core.conversation import CallStart, Finish, Message, TextDelta
        from toolgrammar.core.models import RepeatedCall
        from toolgrammar.tools import ToolResult

        run = self._model.run([*self._messages, Message("user", text)], self._params, approve=self._decide)
        in_text = False  # the line of a text is not ended yet
        with make_console(stderr=True).status("reading") as status:  # only in a terminal
            self._status = status
            for event in run:
                self._add(run.messages)
                if isinstance(event, TextDelta):
                    if not self._as_json:
                        status.stop()
                        self._console.print(event.text, end="", markup=False)
                        in_text = True
                    continue
                if in_text:
                    self._console.print()
                    in_text = False
                if isinstance(event, CallStart):
                    status.update(f"calling {event.name}")
                    status.start()
                elif isinstance(event, Finish) and event.trace is not None:
                    self.traces.append(event.trace)
                elif isinstance(event, ToolResult):
                    self._show(event)
                elif isinstance(event, RepeatedCall):
                    self._console.print(
                        f"({event.call.name} was not called again with the same arguments)", style="dim"
                    )
        if run.result.ended_by == "turns":
            self._console.print(
                f"(no more than {len(run.result.turns) - 1} turns with calls after one message)", style="dim"
            )
        self._add(run.messages)

    def _decide(self, call: ToolCall) -> Any:
        """Show a call, and return what `Model.run` asks for: True: it runs; False, or the reason as a text: it does
        not; its result, if the user has written it."""
        from toolgrammar.tools import ToolResult

        self._status.stop()
        if not self._as_json:
            from rich.text import Text

            self._console.print(Text.assemble(("call     ", "bold"), (str(call), "green")))
        if call.name not in self._tools:
            return True  # the model reads that there is no such tool
        tool = self._tools[call.name]
        if tool.function is None and tool.model is None:
            if not _can_ask():
                return "This tool is only described: nobody is there to answer it."
            return ToolResult(call, typer.prompt("         its result", err=True))
        if not self._yes and not _can_ask():
            make_console(stderr=True).print(f"         {NOBODY_ASKED}", style="yellow")
            return False
        return self._yes or typer.confirm("         run it?", err=True)

    def _show(self, result: ToolResult) -> None:
        if not self._as_json:
            from rich.text import Text

            style = "red" if result.is_error else ""
            self._console.print(Text.assemble(("result   ", "bold"), (result.to_message().text, style)))

    def _add(self, messages: Sequence[Message]) -> None:
        """Take the messages of the conversation so far, and print the new ones as lines of JSON, with ``--json``."""
        for message in messages[len(self._messages) :]:
            self._messages.append(message)
            plain: dict[str, Any] = {"role": message.role, "content": message.text}
            if message.tool_calls:
                # Malformed arguments count as none.
                shown = [(call, dict(call.arguments or {})) for call in message.tool_calls]
                calls = [{"id": call.id, "name": call.name, "arguments": arguments} for call, arguments in shown]
                plain["tool_calls"] = calls
            if message.role == "tool":
                plain |= {"tool_call_id": message.tool_call_id, "is_error": message.is_error}
            if self._as_json:
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
    from toolgrammar.core.errors import ToolGrammarError
    from toolgrammar.tools import ToolSet

    hint = "give a Python file with functions, or a JSON file of tools"
    if not path.is_file():
        fail(f"{path} is not a file", hint)
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
