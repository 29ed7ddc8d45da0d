"""``toolgrammar doctor``: what is installed, and what is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from .output import AsJson, print_json
from .output import console as make_console

if TYPE_CHECKING:
    from .installation import Installation, Package


def doctor(as_json: AsJson = False) -> None:
    """Report on this installation: compiled modules, Python, packages, models and caches; and each problem with its
    remedy.

    Nothing is fetched and nothing is left behind. Exit code: 0 it works (perhaps with warnings), 1 something does not
    work.
    """
    from .installation import inspect

    found = inspect()
    if as_json:
        print_json(found.to_json())
    else:
        _show(found)
    raise typer.Exit(0 if found.is_sound else 1)


def _show(found: Installation) -> None:
    """Print the report for people."""
    from rich.text import Text

    python, kernel, cache = found.python, found.kernel, found.cache
    threads = "" if not python["free_threaded"] else ", free-threaded" + (" with its GIL on" if python["gil"] else "")
    rows = [
        ("library", f"{found.library['version']} in {found.library['folder']}"),
        ("python", f"{python['version']} ({python['implementation']}, {python['platform']}){threads}"),
        ("kernel", f"{kernel['compiled']} of {kernel['modules']} modules are compiled"),
    ]
    if cache:
        rows.append(("cache", f"{cache['folder'] or 'off'}: {cache['files']} files, {cache['bytes'] / 1e6:.1f} MB"))
    rows += [("model", f"{address} in {path}") for address, path in found.models.items()]
    rows += [("set", f"{name}={value}") for name, value in found.variables.items()]
    if found.packages:
        rows.append(("requires", _versions(found.packages)))
    rows += [
        ("extra", f"{extra}: {_versions(packages)}")
        for extra, packages in found.extras.items()
        if any(package.installed for package in packages)
    ]
    absent = [extra for extra, packages in found.extras.items() if not any(each.installed for each in packages)]
    if absent:
        rows.append(("absent", f"extras {', '.join(absent)}"))
    console = make_console()
    for title, row in rows:
        console.print(Text.assemble((f"{title:9}", "bold"), row))
    for finding in found.findings:
        style = "bold red" if finding.level == "error" else "bold yellow"
        console.print(
            Text.assemble((f"{finding.level:9}", style), finding.message, (f"\n         {finding.remedy}", "dim"))
        )
    if not found.findings:
        console.print(Text("nothing is wrong", "green"))


def _versions(packages: list[Package]) -> str:
    """Return the names and versions of packages in one line."""
    return ", ".join(
        f"{package.name} {package.installed or 'is not installed'}"
        + ("" if package.is_tested or package.installed is None else f" (tested: {package.wanted})")
        for package in packages
    )
