"""The tasks of `answers/programs.py`: first turns of BFCL's conversations, tasks of AgentDojo's users, and own ones.

A task of BFCL or AgentDojo has `MOST_TOOLS` tools: those of its ground truth, and others of the same system, drawn by
its name.
"""

from __future__ import annotations

import copy
import importlib
import itertools
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, get_type_hints

from pydantic import TypeAdapter

from benchmarks.answers.agentdojo import suites
from benchmarks.answers.bfcl_multi_turn import as_python, conversations
from benchmarks.answers.seen_ids import IDS, functions, of_results
from benchmarks.answers.seen_ids import bfcl as bfcl_folder
from benchmarks.shared.data import spread
from benchmarks.shared.free_programs import Interpreter
from benchmarks.shared.program_worlds import WORLDS, Failed
from toolgrammar.core import ToolCall
from toolgrammar.tools import Tool, ToolSet

MOST_TOOLS = 5
#: Longest result of a call in the ground truth of a task of AgentDojo, in characters of JSON.
LONGEST_RESULT = 2_500
#: The classes of AgentDojo's results whose ids are parameters elsewhere.
DOJO_IDS = {"Email": "email_id", "CloudDriveFile": "file_id", "CalendarEvent": "event_id", "Transaction": "id"}
_COUNT = itertools.count()


class World(Protocol):
    """A simulated system in the state in which a task begins."""

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Run a call; return plain data, or raise `Failed`."""

    def is_right(self, answer: str) -> bool:
        """Return True if the state and the answer are those that were asked for."""


@dataclass(frozen=True)
class Task:
    """What somebody asks.

    Attributes:
        name: of the task.
        source: where it is from.
        request: what the user says.
        tools: with the schemas of their results, without functions.
        begin: makes the system anew.
    """

    name: str
    source: str
    request: str
    tools: tuple[Tool, ...]
    begin: Callable[[], World]

    @property
    def parameters(self) -> dict[str, list[str]]:
        """The names of the parameters of each tool."""
        return {one.name: list(one.parameters.get("properties", {})) for one in self.tools}


def says(answer: str, wanted: Any) -> bool:
    """Return True if an answer is a text (no whole object or list) that says a value, as a word."""
    if len(answer) > 300 or answer.lstrip()[:1] in ("{", "["):
        return False
    word = re.escape(f"{wanted:g}" if isinstance(wanted, float) else str(wanted))
    tail = r"(?:\.0+)?" if isinstance(wanted, (int, float)) else ""
    return re.search(rf"(?<![\w.-]){word}{tail}(?![\w-]|\.\d)", answer, re.IGNORECASE) is not None


def _offered(name: str, wanted: set[str], tools: list[Tool]) -> tuple[Tool, ...]:
    """Return the tools of a ground truth and some others, in their order, with short descriptions."""
    others = sorted(one.name for one in tools if one.name not in wanted)
    random.Random(name).shuffle(others)
    chosen = wanted | set(others[: max(0, MOST_TOOLS - len(wanted))])
    return tuple(_shortened(one) for one in tools if one.name in chosen)


def _shortened(tool: Tool) -> Tool:
    def short(text: str, length: int) -> str:
        text = " ".join(text.rpartition("Tool description: ")[2].split())
        return text if len(text) <= length else text[:length].rpartition(" ")[0] + " ..."

    parameters = copy.deepcopy(dict(tool.parameters))
    for one in parameters.get("properties", {}).values():
        one.pop("title", None)
        if "description" in one:
            one["description"] = short(one["description"], 60)
    return tool.changed(parameters=parameters, description=short(tool.description, 100))


def inlined(schema: Any, definitions: Mapping[str, Any] | None = None, depth: int = 6) -> dict[str, Any]:
    """Return a schema without references and without null in unions; what is deeper than ``depth`` is anything."""
    if not isinstance(schema, Mapping) or depth == 0:
        return {}
    definitions = schema.get("$defs", definitions) or {}
    if "$ref" in schema:
        return inlined(definitions.get(str(schema["$ref"]).rpartition("/")[2]), definitions, depth - 1)
    options = [inlined(one, definitions, depth) for one in schema.get("anyOf", ())]
    options = [one for one in options if one.get("type") != "null"]
    if len(options) == 1:
        return options[0]
    made = {key: value for key, value in schema.items() if key not in ("$defs", "anyOf")}
    if options:
        made["anyOf"] = options
    if "properties" in made:
        made["properties"] = {key: inlined(one, definitions, depth - 1) for key, one in made["properties"].items()}
    for key in ("items", "additionalProperties"):
        if key in made:
            made[key] = inlined(made[key], definitions, depth - 1)
    return made


# -- own tasks -----------------------------------------------------------------------------------------------------


@dataclass
class OwnWorld:
    """One of `WORLDS`, with the program that does what is asked."""

    system: Any
    parameters: Mapping[str, list[str]]
    make: Callable[[], Any]
    program: str

    @classmethod
    def of(cls, make: Callable[[], Any], parameters: Mapping[str, list[str]], program: str) -> OwnWorld:
        """Return the system as it is before a task."""
        return cls(make(), parameters, make, program)

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Run a call."""
        try:
            return copy.deepcopy(getattr(self.system, name)(**arguments))
        except TypeError as error:
            raise Failed(f"wrong arguments: {error}") from None

    def is_right(self, answer: str) -> bool:
        """Return True if the program ends in the same state, and with this answer."""
        other = replace(self, system=self.make())
        wanted = Interpreter(other.call, self.parameters).run(self.program)
        if vars(self.system) != vars(other.system):
            return False
        return "return" not in self.program or says(answer, wanted)


def own() -> Iterator[list[Task]]:
    """Yield the tasks of each system."""
    for name, (make, asked) in WORLDS.items():
        system = make()
        tools = []
        for one in ToolSet([getattr(system, key) for key in vars(make) if key[0] != "_"]):
            given = get_type_hints(getattr(make, one.name), include_extras=True)["return"]
            tools.append(one.changed(function=None, output_schema=TypeAdapter(given).json_schema()))
        names = {one.name: list(one.parameters.get("properties", {})) for one in tools}

        yield [
            Task(f"{name}:{number}", "own", request, tuple(tools), partial(OwnWorld.of, make, names, program))
            for number, (request, program) in enumerate(asked)
        ]


# -- BFCL ----------------------------------------------------------------------------------------------------------


class BfclWorld:
    """The systems of a conversation of BFCL, judged by its checker."""

    def __init__(self, turn: Any) -> None:
        self._turn, self._player, self._made = turn, f"program{next(_COUNT)}", []

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Run a call."""
        text = as_python(ToolCall("c", name, arguments))
        self._made.append(text)
        (result,) = self._turn.run([text], self._player)
        try:
            value = json.loads(result)
        except ValueError:
            value = result
        if "error" in value if isinstance(value, dict) else str(value).startswith("Error during"):
            raise Failed(result)
        return value

    def is_right(self, answer: str) -> bool:
        """Return what BFCL's checker says of all calls; it does not look at the answer."""
        return self._turn.is_right([self._made] if self._made else [], f"{self._player}:checked")


def _plain(schema: Any) -> Any:
    """Return BFCL's schema of results as JSON Schema."""
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if not isinstance(schema, dict):
        return {"dict": "object", "float": "number", "list": "array", "tuple": "array"}.get(schema, schema)
    made = {key: _plain(one) for key, one in schema.items() if key in ("type", "properties", "items", "x-type")}
    if isinstance(made.get("properties"), dict):
        made["properties"] = {key: _plain(one) for key, one in schema["properties"].items()}
    return {key: one for key, one in made.items() if (key, one) != ("type", "any")}


def _with_types(schema: Any, typed: Any) -> Any:
    """Return a schema with the ``x-type`` of another one of the same form."""
    if not isinstance(schema, dict) or not isinstance(typed, dict):
        return schema
    made = dict(schema) | ({"x-type": typed["x-type"]} if "x-type" in typed else {})
    if "properties" in made:
        made["properties"] = {
            key: _with_types(one, typed.get("properties", {}).get(key)) for key, one in made["properties"].items()
        }
    if "items" in made:
        made["items"] = _with_types(made["items"], typed.get("items"))
    return made


def bfcl(count: int) -> list[Task]:
    """Return first turns whose ground truth has two to four calls."""
    package = bfcl_folder()
    constants = importlib.import_module("bfcl_eval.constants.executable_backend_config")
    found = []
    for turns in conversations(package):
        turn = turns[0]
        if not 2 <= len(turn.answers[0]) <= 4:
            continue
        described = functions(package, turn.entry["involved_classes"], constants.MULTI_TURN_FUNC_DOC_FILE_MAPPING)
        tools = []
        for one in turn.tools:
            parameters = copy.deepcopy(dict(one.parameters))
            for key, inner in parameters.get("properties", {}).items():
                if key in IDS:
                    inner["x-type"] = IDS[key].known
            response = described[one.name].get("response", {})
            results = _with_types(_plain(response), of_results(response, one.name))
            tools.append(one.changed(parameters=parameters, output_schema=results))
        wanted = {text.partition("(")[0] for text in turn.answers[0]}
        request = "\n".join(message.text for message in turn.messages)
        name = f"bfcl:{turn.entry['id'].rpartition('_')[2]}"
        found.append(Task(name, "BFCL", request, _offered(name, wanted, tools), partial(BfclWorld, turn)))
    return spread(found, count)


# -- AgentDojo -----------------------------------------------------------------------------------------------------


class DojoWorld:
    """An environment of AgentDojo, judged by the task's own check."""

    def __init__(self, suite: Any, task: Any) -> None:
        from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime

        self._task, self._made, self._call = task, [], FunctionCall
        self._runtime = FunctionsRuntime(suite.tools)
        self._environment = task.init_environment(suite.load_and_inject_default_environment({}))
        self._before = self._environment.model_copy(deep=True)

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Run a call."""
        self._made.append(self._call(function=name, args=arguments))
        value, error = self._runtime.run_function(self._environment, name, dict(arguments))
        if error is not None:
            raise Failed(str(error))
        return json.loads(TypeAdapter(Any).dump_json(value))

    def is_right(self, answer: str) -> bool:
        """Return what the task's check says."""
        given = (answer, self._before, self._environment)
        found = self._task.utility_from_traces(*given, self._made)
        return bool(self._task.utility(*given) if found is None else found)

    def truth(self) -> list[Any]:
        """Return the calls of the ground truth."""
        return list(self._task.ground_truth(self._environment.model_copy(deep=True)))


def dojo(folder: Path, count: int) -> list[Task]:
    """Return tasks whose ground truth has two to four calls with results that are no longer than `LONGEST_RESULT`.

    Args:
        folder: into which agentdojo was installed.
        count: how many, spread over all.
    """
    found = []
    for suite in suites(folder).values():
        tools = []
        for one in suite.tools:
            parameters = inlined(one.parameters.model_json_schema())
            for key, inner in parameters.get("properties", {}).items():
                if key in DOJO_IDS.values():
                    inner["x-type"] = key
            schema = TypeAdapter(one.return_type).json_schema() if one.return_type is not None else {}
            for title, inner in schema.get("$defs", {schema.get("title"): schema}).items():
                for key in {"id_", "id"} & set(inner.get("properties", {})) if title in DOJO_IDS else ():
                    inner["properties"][key] = {**inner["properties"][key], "x-type": DOJO_IDS[title]}
            tools.append(Tool(one.name, one.description, parameters, output_schema=inlined(schema)))
        for key, task in suite.user_tasks.items():
            calls = DojoWorld(suite, task).truth()
            if not 2 <= len(calls) <= 4:
                continue
            if DojoWorld(suite, task).is_right(""):  # of some, the check sees no difference
                continue
            world = DojoWorld(suite, task)
            results = [json.dumps(world.call(one.function, dict(one.args))) for one in calls]
            if max(map(len, results)) > LONGEST_RESULT or not world.is_right(task.GROUND_TRUTH_OUTPUT):
                continue
            name = f"{suite.name}:{key.rpartition('_')[2]}"
            offered = _offered(name, {one.function for one in calls}, tools)
            found.append(Task(name, "AgentDojo", task.PROMPT, offered, partial(DojoWorld, suite, task)))
    return spread(found, count)


def all_tasks(folder: Path | None, each: int = 20) -> list[Task]:
    """Return all tasks, so that the first ones are of all sources.

    Args:
        folder: into which agentdojo was installed; None leaves its tasks out.
        each: number of the tasks of BFCL, and of AgentDojo.
    """
    rounds = list(own())
    try:
        others = [bfcl(each)]
    except ImportError:
        others = []
    others += [dojo(folder, each)] if folder is not None else []
    found: list[Task] = []
    for number, tasks in enumerate(rounds):
        found += tasks
        for other in others:
            found += other[number :: len(rounds)]
    return found
