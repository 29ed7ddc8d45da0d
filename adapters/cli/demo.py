"""``toolgrammar demo``: a guaranteed call, token by token."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .output import console as make_console
from .output import write_trace

if TYPE_CHECKING:
    from rich.console import Console

    from toolgrammar.core import Finish, GenerateParams, Model
    from toolgrammar.tools import ToolSet


def demo(
    prompt: Annotated[str, typer.Argument(help="What to ask.")] = "What will the weather be in Oslo?",
    model: Annotated[
        str, typer.Option(help="Its address: 'embedded', 'hf:NAME-OR-PATH', 'gguf:PATH', or 'openai:MODEL@URL'.")
    ] = "embedded",
    seed: Annotated[int, typer.Option(help="Of the random draw.")] = 1,
    temperature: Annotated[float, typer.Option(help="0 is greedy.")] = 1.0,
    max_tokens: Annotated[int, typer.Option(help="Token budget; the call is valid whatever it is.")] = 120,
    trace: Annotated[
        Path | None, typer.Option(help="Write a page that shows what the grammar did at each token.")
    ] = None,
) -> None:
    """Let a model call one of three tools, and show each token as it is written."""
    from rich.text import Text

    from toolgrammar.core import GenerateParams, load_model
    from toolgrammar.core.models import LocalModel
    from toolgrammar.core.models.embedded.model import EmbeddedBackend
    from toolgrammar.tools import ToolSet

    from .demo_tools import BookTable, convert_currency, get_weather

    console = make_console()
    tools = ToolSet.from_any([get_weather, convert_currency, BookTable])
    loaded = load_model(model)
    embedded = loaded.backend if isinstance(loaded, LocalModel) else None
    embedded = embedded if isinstance(embedded, EmbeddedBackend) else None
    description = loaded.name if embedded is None else embedded.description
    console.print(Text.assemble(("model    ", "bold"), f"{loaded.name}: {description}"))
    console.print(Text.assemble(("tools    ", "bold"), ", ".join(tools.names)))
    console.print(Text.assemble(("request  ", "bold"), prompt))
    if embedded is not None and not embedded.trained:
        console.print(
            "         The weights are noise: what is chosen is random. That it is a valid call is guaranteed.",
            style="dim",
        )
    console.print()
    params = GenerateParams(
        tools=tools,
        tool_choice="required",
        parallel_tool_calls=False,
        temperature=temperature,
        seed=seed,
        max_tokens=max_tokens,
        trace=loaded.capabilities.logits,  # a server shows no tokens
    )
    finish = _show(console, loaded, prompt, params, tools)
    if trace is not None:
        write_trace(finish.trace, trace, console)


def _show(console: Console, model: Model, prompt: str, params: GenerateParams, tools: ToolSet) -> Finish:
    """Write the tokens as they come, then the result; return the last event."""
    from rich.text import Text

    from toolgrammar.core import CallEnd, Finish, TokenWritten

    begin = time.perf_counter()
    call = None
    for event in model.stream(prompt, params):
        if isinstance(event, TokenWritten):
            text = event.data.decode("utf-8", "replace")
            # Readable without colour too: what the model chose stands in guillemets.
            console.print(Text(text, "dim") if event.forced else Text(f"«{text}»", "bold cyan"), end="")
        elif isinstance(event, CallEnd):
            call = event.call
        elif isinstance(event, Finish):
            finish, usage = event, event.usage
    seconds = time.perf_counter() - begin
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
    if not call.cut:
        result = tools.call(call)
        console.print(Text.assemble(("result   ", "bold"), str(result)))
    share = usage.forced_tokens / max(1, usage.completion_tokens)
    console.print(
        Text.assemble(
            ("cost     ", "bold"),
            f"{usage.completion_tokens} tokens, {usage.forced_tokens} of them forced ({share:.0%});"
            f" {usage.forward_passes} forward passes; {seconds:.2f} s",
        )
    )
    return finish
