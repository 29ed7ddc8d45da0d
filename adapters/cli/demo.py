"""``toolgrammar demo``: a guaranteed call, token by token, its result, and an answer."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .model import fetched_model
from .output import console as make_console
from .output import traced, working, writable, write_trace

if TYPE_CHECKING:
    from rich.console import Console

    from toolgrammar.core.conversation import Finish, Message
    from toolgrammar.core.generation import GenerateParams
    from toolgrammar.core.models import Model
    from toolgrammar.tools import ToolSet


def demo(
    prompt: Annotated[str, typer.Argument(help="Request to the model.")] = "Weather in Oslo?",
    model: Annotated[
        str,
        typer.Option(
            help="Address of the model: 'smollm2' (fetched once), 'embedded' (random weights), 'numpy:PATH', "
            "'hf:NAME-OR-PATH', 'gguf:PATH', or 'openai:MODEL@URL'."
        ),
    ] = "smollm2",
    seed: Annotated[int, typer.Option(help="Seed of the random draw.")] = 1,
    temperature: Annotated[
        float | None,
        typer.Option(
            help="Temperature; 0 is greedy. By default 0, and 1 for random weights.",
            show_default=False,
        ),
    ] = None,
    max_tokens: Annotated[int, typer.Option(help="Token budget of the call; a call cut short is valid too.")] = 120,
    trace: Annotated[
        Path | None,
        typer.Option(callback=writable, help="Write an HTML page that traces the grammar at each token."),
    ] = None,
) -> None:
    """Let a model call one of three tools, show each token as it is written, run the tool, and let the model answer."""
    from rich.text import Text

    from toolgrammar.core.conversation import Message
    from toolgrammar.core.errors import ModelError
    from toolgrammar.core.generation import GenerateParams
    from toolgrammar.core.models import load_model
    from toolgrammar.tools import ToolSet

    from .demo_tools import book_table, convert_currency, get_weather

    console = make_console()
    tools = ToolSet.from_any([get_weather, convert_currency, book_table])
    try:
        fetched_model(model)
    except ModelError as error:
        console.print(Text(f"{error.message}\n{error.hint}\nThe embedded model takes its place.\n", "yellow"))
        model = "embedded"
    with working(f"loading {model}"):
        opened = load_model(model)
    with opened as loaded:
        is_noise = model == "embedded"
        traced(trace, loaded)  # ends the command if the model shows none
        console.print(Text.assemble(("model    ", "bold"), _described(model, loaded)))
        console.print(Text.assemble(("tools    ", "bold"), ", ".join(tools.names)))
        console.print(Text.assemble(("request  ", "bold"), prompt))
        if is_noise:
            console.print(
                "         The weights are noise: what is chosen is random. That it is a valid call is guaranteed.",
                style="dim",
            )
        console.print()
        params = GenerateParams(
            tools=tools,
            tool_choice="required",
            parallel_tool_calls=False,
            temperature=(1.0 if is_noise else 0.0) if temperature is None else temperature,
            seed=seed,
            max_tokens=max_tokens,
            trace=loaded.capabilities.logits,  # a server shows no tokens
        )
        begin = time.perf_counter()
        finish, answer = _show_call(console, loaded, prompt, params, tools)
        (call,) = answer.tool_calls
        if not call.cut:
            result = str(tools.call(call))
            console.print(Text.assemble(("result   ", "bold"), result))
            if not is_noise:
                tool_message = Message("tool", result, tool_call_id=call.id, name=call.name)
                conversation = [Message("user", prompt), answer, tool_message]
                last_turn = replace(params, tool_choice="none", trace=False)
                text = loaded.generate(conversation, last_turn).text
                console.print(Text.assemble(("answer   ", "bold"), text.strip() or "none: the model ended its turn"))
        usage = finish.usage
        share = usage.forced_tokens / max(1, usage.completion_tokens)
        console.print(
            Text.assemble(
                ("cost     ", "bold"),
                f"the call has {usage.completion_tokens} tokens, {usage.forced_tokens} of them forced ({share:.0%}), "
                f"and took {usage.forward_passes} forward passes; {time.perf_counter() - begin:.2f} s in all",
            )
        )
    if trace is not None and finish.trace is not None:
        write_trace(finish.trace, trace, console)


def _described(address: str, loaded: Model) -> str:
    """Return a line about a model."""
    description = getattr(getattr(loaded, "backend", None), "description", None)
    if description is not None:
        return f"{loaded.name}: {description}"
    if address == "smollm2":
        return "smollm2: SmolLM2-135M-Instruct, 135 million parameters, on this machine"
    return loaded.name


def _show_call(
    console: Console, model: Model, prompt: str, params: GenerateParams, tools: ToolSet
) -> tuple[Finish, Message]:
    """Write the tokens of a call as they come, then the call; return the last event, and the model's turn."""
    from rich.text import Text

    from toolgrammar.core.conversation import CallEnd, Finish, Message, TokenWritten

    call = None
    events = model.stream(prompt, params)
    with working("reading the request"):
        first = next(events)
    for event in chain([first], events):
        if isinstance(event, TokenWritten):
            text = event.data.decode("utf-8", "replace")
            # Readable without colour too: what the model chose stands in guillemets.
            console.print(Text(text, "dim") if event.forced else Text(f"«{text}»", "bold cyan"), end="")
        elif isinstance(event, CallEnd):
            call = event.call
        elif isinstance(event, Finish):
            finish = event
    console.print("\n")
    console.print(
        "         plain = fixed by the grammar, the model was not asked; «token» = chosen by the model", style="dim"
    )
    assert call is not None, "tool_choice='required' gives a call"
    valid = tools.validate(call)
    arguments = json.dumps(dict(valid.arguments), ensure_ascii=False)
    console.print(Text.assemble(("call     ", "bold"), (f"{valid.name}({arguments})", "green")))
    cut = "; cut short by the budget" if call.cut else ""
    console.print(Text.assemble(("valid    ", "bold"), f"yes, checked against the tool's JSON Schema{cut}"))
    return finish, Message("assistant", "", tool_calls=(call,))
