"""A light front door: what an import pulls in, and what it does not."""

from __future__ import annotations

import functools
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable

import pytest

# Each test starts a process that imports a framework: seconds, and minutes on a busy machine.
pytestmark = [pytest.mark.begin_first, pytest.mark.timeout(700)]

#: The package that each adapter needs.
FRAMEWORKS = {
    "langchain": "langchain_core",
    "crewai": "crewai",
    "autogen": "autogen_core",
    "agent_framework": "agent_framework",
    "pydantic_ai": "pydantic_ai",
    "ag2": "ag2",
}
# Installed beside us, and heavy, or a framework that not every user has.
HEAVY = {"torch", "transformers", "langchain", *FRAMEWORKS.values()}
COMMAND_LINE = {"typer", "rich", "click"}
NETWORK = {"httpx", "requests", "aiohttp", "huggingface_hub"}

# What `toolgrammar.core` may load once its names are used: the base dependencies and what they load themselves.
BASE = {
    "annotated_types",
    "attr",
    "attrs",
    "charset_normalizer",  # jsonschema's optional format checkers look for requests' helpers
    "idna",
    "jsonpointer",
    "jsonschema",
    "jsonschema_specifications",
    "numpy",
    "pydantic",
    "pydantic_core",
    "referencing",
    "rpds",
    "typing_extensions",
    "typing_inspection",
}

PROGRAM = """
import json, sys, time
costs = []
for code in sys.argv[1:]:
    before = set(sys.modules)
    start = time.perf_counter()
    exec(code)
    seconds = time.perf_counter() - start
    names = {name.partition(".")[0] for name in set(sys.modules) - before}
    ours = {"toolgrammar", "__mp_main__", "cython_runtime", "__editable__"}
    costs.append([seconds, sorted(
        name for name in names
        if name not in sys.stdlib_module_names and name not in ours and not name.startswith(("_", "__editable__"))
    )])
print(json.dumps(costs))
"""


@functools.cache
def costs(*programs: str) -> list[tuple[float, set[str]]]:
    """Seconds and third-party packages that each of some programs costs, one after the other in a fresh process."""
    result = subprocess.run(
        [sys.executable, "-I", "-c", PROGRAM, *programs], capture_output=True, text=True, timeout=300, check=False
    )
    assert result.returncode == 0, result.stderr
    return [(seconds, set(names)) for seconds, names in json.loads(result.stdout.splitlines()[-1])]


def load(code: str) -> tuple[float, set[str]]:
    """Seconds and third-party packages that running ``code`` costs in a fresh process."""
    return costs(code)[0]


@pytest.mark.parametrize("program", ["import toolgrammar", "import toolgrammar.core", "import toolgrammar.adapters"])
def test_importing_loads_no_third_party_package(record_property: Callable[[str, object], None], program: str) -> None:
    """An import loads nothing but the standard library, in well under a second; each adapter has a name of its own."""
    seconds, names = load(program)
    record_property("seconds", round(seconds, 3))
    assert names == set()
    assert seconds < 1  # 0.01 s where it was written; the bound only catches a heavy import that slips in


@pytest.mark.parametrize("package", ["toolgrammar", "toolgrammar.core"])
def test_using_all_names_loads_base_dependencies_only(package: str) -> None:
    """Every public name together loads base dependencies only: no model library, framework or command line."""
    _, names = load(f"import {package} as package\nfor name in package.__all__: getattr(package, name)")
    assert names <= BASE


@pytest.mark.parametrize("package", ["toolgrammar", "toolgrammar.core"])
def test_making_a_grammar_is_light(package: str) -> None:
    """A grammar from a schema needs no model library, no framework, no command line and no network client."""
    program = f"from {package} import Grammar\nassert Grammar.from_json_schema({{'type': 'integer'}}).matches('1')"
    _, names = load(f"{program}\nassert 'toolgrammar.tools' not in sys.modules")
    assert names & (HEAVY | COMMAND_LINE | NETWORK) == set()


def test_importing_tools_is_light() -> None:
    """Importing the tools and reading plain dicts loads neither Pydantic, NumPy, jsonschema nor asyncio."""
    _, names = load(
        "from toolgrammar.tools import ToolSet\n"
        "assert len(set(sys.modules) - before) < 400\n"
        "ToolSet.from_any([{'name': 'f', 'parameters': {'type': 'object', 'properties': {'x': {'type': 'integer'}}}}])\n"
        "assert 'asyncio' not in sys.modules"
    )
    assert names <= {"attr", "attrs", "referencing", "rpds", "typing_extensions"}


def test_command_line_loads_no_framework() -> None:
    """The command line loads neither a framework nor a model library."""
    _, names = load("import toolgrammar.adapters.cli")
    assert names & HEAVY == set()


#: What each adapter uses of its framework.
USED = {
    "langchain": "import langchain_core.language_models.chat_models, langchain_core.tools, langchain_core.runnables",
    "crewai": "import crewai",
    "autogen": "import autogen_core.models, autogen_core.tools",
    "agent_framework": "from agent_framework import BaseChatClient, ChatResponse, FunctionTool, Message",
    "pydantic_ai": "import pydantic_ai, pydantic_ai.direct",
    "ag2": "import ag2, ag2.config, ag2.compact, ag2.tools.final",
    "server": "import starlette.applications, starlette.responses, starlette.requests, anyio",
    "openai": "import openai, starlette.applications, starlette.responses, starlette.requests, anyio",
    "anthropic": "import anthropic, starlette.applications, starlette.responses, starlette.requests, anyio",
    "litellm": "import litellm, httpx, httpx_sse, starlette.applications, starlette.responses, starlette.requests, anyio",
}


def adapter_costs(adapter: str) -> tuple[set[str], set[str]]:
    """Packages that what an adapter uses of its framework loads, and those that the adapter loads after it."""
    program = USED[adapter]
    if importlib.util.find_spec(framework := program.split()[1].partition(".")[0].rstrip(",")) is None:
        pytest.skip(f"{framework} is not installed")
    imported = f"import toolgrammar.adapters.{adapter}\nassert 'toolgrammar.tools.typescript' not in sys.modules"
    (_, own), (_, added) = costs(program, imported)
    return own, added


@pytest.mark.parametrize("adapter", USED)
def test_adapter_adds_base_dependencies_only(adapter: str) -> None:
    """Beside its framework, an adapter loads base dependencies and none of the other packages that are installed, and
    no reader of TypeScript."""
    own, added = adapter_costs(adapter)
    assert added - own - BASE == set()


@pytest.mark.parametrize(("adapter", "framework"), FRAMEWORKS.items())
def test_adapter_loads_only_its_own_framework(adapter: str, framework: str) -> None:
    """Importing one adapter with what it uses of its framework loads no other, and no model library."""
    own, added = adapter_costs(adapter)
    assert framework in own
    assert (own | added) & ({"torch", *FRAMEWORKS.values()} - {framework}) == set()
