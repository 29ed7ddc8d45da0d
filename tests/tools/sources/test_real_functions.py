"""Functions that other people wrote: each becomes a tool whose arguments its signature takes, or is refused by name."""

from __future__ import annotations

import abc
import importlib
import inspect
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from toolgrammar.core import Grammar, InvalidArgumentsError, SchemaError, ToolGrammarError
from toolgrammar.core.grammar.sampling import random_text
from toolgrammar.tools import ToolSet

from .common import only, run

#: Modules of the standard library and of packages that the tests have installed.
MODULES = (
    "asyncio",
    "importlib.metadata",
    "importlib.resources",
    "json",
    "pathlib",
    "statistics",
    "textwrap",
    "tomllib",
    "anyio",
    "httpx",
    "huggingface_hub.file_download",
    "huggingface_hub.hf_api",
    "langchain_core.documents",
    "langchain_core.prompts",
    "langchain_core.tools",
    "langchain_core.utils.function_calling",
    "langchain_core.utils.strings",
    "mcp.server.fastmcp",
    "mcp.types",
    "platformdirs",
    "rich.console",
    "rich.prompt",
    "rich.table",
    "starlette.responses",
)

#: Minimum numbers of functions with annotations, and of tools among them.
LEAST, LEAST_TOOLS = 200, 100


def functions(name: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the public functions of a module with annotations, and the methods of its public classes, bound."""
    module = importlib.import_module(name)
    package = name.partition(".")[0]
    for key, value in sorted(vars(module).items()):
        if key.startswith("_") or (getattr(value, "__module__", None) or "").partition(".")[0] != package:
            continue
        members = sorted(vars(value).items()) if inspect.isclass(value) else [("", value)]
        for inner, member in members:
            function = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
            if inner.startswith("_") or not inspect.isfunction(function):
                continue
            if not getattr(function, "__annotations__", {}).keys() - {"return"}:
                continue
            is_method = inner and not isinstance(member, staticmethod)
            yield f"{name}.{key}.{inner}".rstrip("."), function.__get__(object()) if is_method else function


def outcome(function: Callable[..., Any]) -> str:
    """Return "tool", "refused", or a description of the fault."""
    try:
        tool = only(function)
        ToolSet([tool]).grammar()
        grammar = Grammar.from_json_schema(tool.parameters)
    except ToolGrammarError as error:
        return "refused" if error.place.parameter or error.place.pointer else f"refused without a place: {error}"
    assert tool.binder is not None
    for number in range(3):
        arguments = json.loads(random_text(grammar, random.Random(number), 20 * number))
        try:
            positional, named = tool.binder(arguments)
            inspect.signature(function).bind(*positional, **named)
        except (ToolGrammarError, TypeError) as error:
            if "instantiate abstract class" in str(error):  # Pydantic's unions try such a class all the same
                continue
            return f"{arguments} is not accepted: {error}"
    return "tool"


@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore")  # modules of others warn of what they will drop
def test_functions_of_others_are_tools_or_are_refused_by_name() -> None:
    """Random arguments of each tool are accepted by the function's signature; an error names the parameter."""
    seen: dict[int, str] = {}
    outcomes: dict[str, str] = {}
    for module in MODULES:
        try:
            found = list(functions(module))
        except ImportError:  # another version of Python, or a package that is not installed
            continue
        for name, function in found:
            if seen.setdefault(id(getattr(function, "__func__", function)), name) == name:
                outcomes[name] = outcome(function)
    assert {name: each for name, each in outcomes.items() if each not in ("tool", "refused")} == {}
    assert len(outcomes) >= LEAST and [*outcomes.values()].count("tool") >= LEAST_TOOLS


class Abstract(BaseModel, abc.ABC):
    """A model without instances."""

    size: int

    @abc.abstractmethod
    def area(self) -> float:
        """Return the area."""


def test_a_class_without_instances_is_refused() -> None:
    """The error names the parameter; in a union, the class is left out."""

    def draw(shape: Abstract) -> None: ...

    def draw_any(shape: Abstract | None) -> Any:
        return shape

    with pytest.raises(SchemaError, match="the class Abstract is abstract") as caught:
        only(draw)
    assert caught.value.place.parameter == "shape"
    with pytest.raises(SchemaError, match="the class Abstract is abstract"):
        only(Abstract)
    assert not Grammar.from_json_schema(only(draw_any).parameters).matches('{"shape": {"size": 1}}')
    assert run(draw_any, shape=None) is None


class Fragile(BaseModel):
    """A model whose code raises."""

    size: int

    def model_post_init(self, context: Any) -> None:
        """Raise what no validator raises."""
        raise TypeError("no size fits")


def test_what_the_code_of_a_type_raises_is_an_error_of_the_arguments() -> None:
    """A parameter's own type may raise anything when it is built."""

    def draw(shape: Fragile) -> None: ...

    for source, arguments in ((draw, {"shape": {"size": 1}}), (Fragile, {"size": 1})):
        with pytest.raises(InvalidArgumentsError, match="no size fits") as caught:
            run(source, **arguments)
        assert isinstance(caught.value.__cause__, TypeError)
