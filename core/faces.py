"""Faces of packages: public names that are imported on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` (PEP 562) and ``__all__`` of a package that imports a name on first use.

    A type checker does not see these names: the package imports them under ``TYPE_CHECKING`` too, each by its own name
    (``import X as X``), which makes it public. No name may be that of a module of the package, which would replace it
    once it is imported.

    Args:
        package: the name of the package.
        homes: the public names, with spaces between, by the modules that have them: relative to the package, without
            the first dot.
    """
    home = {name: module for module, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f".{home[name]}", package), name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted(sys.modules[package].__all__), sorted(home)
