"""One public list: each package shows exactly what its sorted ``__all__`` names."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import inspect
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = sorted(
    "toolgrammar." + ".".join(path.parent.relative_to(ROOT).parts)
    if path.parent.name != "toolgrammar"
    else "toolgrammar"
    for folder in ("core", "tools", "adapters")
    for path in (ROOT / folder).rglob("__init__.py")
)
MODULES = ["toolgrammar.core.testing"]


#: Packages that need what is not among the packages of the tests; they are tested where it is installed.
OPTIONAL = {f"toolgrammar.adapters.{name}": name for name in ("litellm", "pydantic_ai", "ag2")}


def load(name: str) -> ModuleType:
    """The module of a name."""
    if name in OPTIONAL and importlib.util.find_spec(OPTIONAL[name]) is None:
        pytest.skip(f"{OPTIONAL[name]} is not installed")
    return importlib.import_module(name)


def shown(module: ModuleType) -> list[str]:
    """The names that a package shows: its ``__all__``; without one, as ``adapters._shared``, all that it imports."""
    return getattr(module, "__all__", None) or sorted(visible(module))


def visible(module: ModuleType) -> set[str]:
    """The names that a reader takes for public: ours, no underscore, no module; in a plain module, made there."""
    home = "toolgrammar." if hasattr(module, "__path__") else module.__name__
    return {
        name
        for name in dir(module)
        if not name.startswith("_")
        and not inspect.ismodule(value := getattr(module, name))
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__.startswith(home)
    }


@pytest.mark.parametrize("name", [*PACKAGES, *MODULES])
def test_public_list_is_what_is_visible(name: str) -> None:
    """Every name in ``__all__`` exists, and nothing else looks public (ruff keeps it sorted)."""
    module = load(name)
    listed = shown(module)
    assert len(listed) == len(set(listed))
    assert all(hasattr(module, item) for item in listed)
    assert visible(module) <= set(listed)


@pytest.mark.parametrize("name", PACKAGES)
def test_each_package_explains_itself(name: str) -> None:
    """Every package says in its docstring what it is and what it is not for."""
    documentation = inspect.getdoc(load(name)) or ""
    assert len(documentation.split()) >= 15


@pytest.mark.parametrize("name", PACKAGES)
def test_public_things_are_documented(name: str) -> None:
    """Every public class and function has a docstring, and so has each public method of a public class."""
    module = load(name)
    silent = []
    for item in shown(module):
        value = getattr(module, item)
        if not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        if not inspect.getdoc(value):
            silent.append(item)
        if inspect.isclass(value):
            silent += [
                f"{item}.{attribute}"
                for attribute, member in vars(value).items()
                if not attribute.startswith("_")
                and (inspect.isfunction(member) or isinstance(member, (property, classmethod, staticmethod)))
                and not inspect.getdoc(getattr(value, attribute, member))
            ]
    assert silent == []


@pytest.mark.parametrize("name", ["toolgrammar", "toolgrammar.core"])
def test_unknown_name_is_an_attribute_error(name: str) -> None:
    """The lazy front door refuses a name that it does not have, as any module does."""
    module = importlib.import_module(name)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = module.Nothing


def test_the_package_has_the_names_of_engine_and_tools() -> None:
    """Each public name of core and of tools can be imported from ``toolgrammar``, and is the same object."""
    package = importlib.import_module("toolgrammar")
    homes = [importlib.import_module(f"toolgrammar.{name}") for name in ("core", "tools")]
    names = [name for home in homes for name in home.__all__]
    assert sorted(names) == package.__all__ == dir(package) and len(set(names)) == len(names)
    assert all(getattr(package, name) is getattr(home, name) for home in homes for name in home.__all__)
    starred: dict[str, object] = {}
    exec("from toolgrammar import *", starred)
    assert set(names) <= set(starred)


def test_the_package_knows_its_version_and_its_packages() -> None:
    """``__version__`` is that of the installed package, and a package below is an attribute without being imported."""
    program = "import toolgrammar; print(toolgrammar.__version__, toolgrammar.adapters.__name__)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert found.split() == [importlib.metadata.version("toolgrammar"), "toolgrammar.adapters"]


def test_the_package_runs_the_command_line() -> None:
    """``python -m toolgrammar`` is the command ``toolgrammar``."""
    command = [sys.executable, "-m", "toolgrammar", "--version"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert found.split() == ["toolgrammar", importlib.metadata.version("toolgrammar")]
