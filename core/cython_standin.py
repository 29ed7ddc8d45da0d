"""What interpreted modules need of the ``cython`` module when Cython is not installed: names that do nothing; and the
way to have compiled modules interpreted."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

compiled = False

#: Whether compiled modules are to run interpreted.
INTERPRETED = os.environ.get("TOOLGRAMMAR_INTERPRETED", "") not in ("", "0")


def _unchanged(target: T) -> T:
    return target


cclass = cfunc = inline = ccall = _unchanged

int = uint = short = ushort = uchar = schar = longlong = ulonglong = bint = int
void = None
nogil = nullcontext()


def exceptval(*_: Any, **__: Any) -> Callable[[T], T]:
    """A decorator that does nothing."""
    return _unchanged


def declare(_: Any, value: Any = None, **_options: Any) -> Any:
    """The value itself."""
    return value


def cast(_: Any, value: T) -> T:
    """The value itself."""
    return value


def fused_type(*kinds: Any) -> Any:
    """The first of the types: a name that does nothing."""
    return kinds[0]


def load_interpreted(package: str, *names: str) -> None:
    """Load modules of a package from their source, although compiled ones lie beside it and would be found first.

    Args:
        package: its name; it is being imported.
        names: its compiled modules, each after those that it imports; those that are loaded already stay.
    """
    folder = Path(str(sys.modules[package].__file__)).parent
    for name in names:
        if f"{package}.{name}" in sys.modules:
            continue
        spec = importlib.util.spec_from_file_location(f"{package}.{name}", folder / f"{name}.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
