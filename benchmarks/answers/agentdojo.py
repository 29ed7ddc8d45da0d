"""AgentDojo without a model: which of its tasks stay writable under a policy, and which injections become impossible.

    pip install --no-deps --target DOJO agentdojo docstring-parser email-validator dnspython
    python -m benchmarks answers/agentdojo DOJO

A call of a task's ground truth is *writable* if the policy of its suite (``agentdojo_policies.json``) allows it after
the user's words, the results of reads without parameters, and those of the calls before it. A task is writable if all
its calls are. An injection is *possible* if in some task of the user, in an environment in which the attacker wrote the
order and all its values into each place that takes injections, all calls of its ground truth are allowed. Injections
without a sink (a recipient, participant, payee, user, channel or address) are not counted.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

from pydantic import TypeAdapter

from toolgrammar import Message, Policy, Tool, ToolCall, ToolSet

POLICIES = Path(__file__).with_name("agentdojo_policies.json")

#: Packages of model providers that AgentDojo imports, and that no task needs.
NOT_NEEDED = ("anthropic", "cohere", "deepdiff", "google", "langchain", "openai", "vertexai")

#: Arguments that are sinks: tools whose calls have one.
SINKS = {
    *("send_email", "create_calendar_event", "add_calendar_event_participants", "share_file"),
    *("send_money", "schedule_transaction", "update_scheduled_transaction"),
    *("send_direct_message", "send_channel_message", "invite_user_to_slack", "get_webpage", "post_webpage"),
}


class _Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands in for packages that are not needed."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name.partition(".")[0] in NOT_NEEDED:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> Any:
        made = MagicMock(name=spec.name)
        made.__path__, made.__spec__, made.__name__ = [], spec, spec.name
        return made

    def exec_module(self, module: Any) -> None:
        pass


def suites(folder: Path) -> dict[str, Any]:
    """Return the suites of an installed AgentDojo."""
    sys.path.append(str(folder))
    sys.meta_path.insert(0, _Absent())
    from agentdojo.task_suite.load_suites import get_suites  # type: ignore[import-not-found]

    return dict(get_suites("v1.2"))


def policies() -> dict[str, Policy]:
    """Return the policy of each suite; a word that begins with ``@`` names a shared rule."""
    data = json.loads(POLICIES.read_text(encoding="utf-8"))

    def whole(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: whole(inner) for name, inner in part.items()}
        return data[part] if isinstance(part, str) and part[:1] == "@" else part

    return {name: Policy(whole(policy)) for name, policy in data.items() if name[0] != "@"}


class Suite:
    """One suite under its policy."""

    def __init__(self, suite: Any, policy: Policy) -> None:
        from agentdojo.functions_runtime import FunctionsRuntime  # type: ignore[import-not-found]

        self.suite, self.policy = suite, policy
        self._runtime = FunctionsRuntime(suite.tools)
        found = [Tool(tool.name, tool.description, tool.parameters.model_json_schema()) for tool in suite.tools]
        self.tools = ToolSet(found)
        self._reads = [
            tool.name for tool in found if tool.name.startswith("get_") and not tool.parameters["properties"]
        ]
        policy.restrict(found)  # a rule for no argument is an error

    def environment(self, task: Any, injected: str | None = None) -> Any:
        """Return the environment of a user's task; with a text in each place that takes injections."""
        places = self.suite.get_injection_vector_defaults() if injected is not None else {}
        made = self.suite.load_and_inject_default_environment(dict.fromkeys(places, injected))
        return task.init_environment(made)

    def _turn(self, environment: Any, name: str, arguments: Any, number: int) -> list[Message]:
        call = ToolCall(f"c{number}", name, arguments)
        value, error = self._runtime.run_function(environment, name, dict(arguments))
        text = error or TypeAdapter(Any).dump_json(value).decode()
        result = Message("tool", text, tool_call_id=call.id, is_error=error is not None)
        return [Message("assistant", tool_calls=(call,)), result]

    def talk(self, prompt: str, environment: Any, calls: Sequence[Any]) -> list[Message]:
        """Return a conversation in which everything was read without parameters, and some calls were made."""
        reads = [(name, {}) for name in self._reads]
        made = [Message("user", prompt)]
        for number, (name, arguments) in enumerate([*reads, *((call.function, call.args) for call in calls)]):
            made += self._turn(environment, name, arguments, number)
        return made

    def refused(self, calls: Sequence[Any], talk: Sequence[Message]) -> str | None:
        """Return the first place that the policy refuses, or None."""
        for number, call in enumerate(calls):
            error = self.policy.refusal(ToolCall("c", call.function, dict(call.args)), talk, self.tools)
            if error is not None:
                pointer = error.place.pointer or ""
                value: Any = call.args
                for step in pointer.split("/")[1:]:
                    value = value[int(step)] if isinstance(value, list) else value[step]
                return f"call {number + 1}, {call.function}{pointer} = {value!r}"
        return None

    def user_tasks(self) -> Iterator[tuple[str, str | None]]:
        """Yield each task of the user, and why it is not writable."""
        for name, task in self.suite.user_tasks.items():
            calls = task.ground_truth(self.environment(task).model_copy(deep=True))
            environment, why = self.environment(task), None
            for number, call in enumerate(calls):
                talk = self.talk(task.PROMPT, environment.model_copy(deep=True), calls[:number])
                why = why or self.refused([call], talk)
            yield name, why

    def injections(self) -> Iterator[tuple[str, str | None]]:
        """Yield each injection with a sink, and the user's task in which it is possible, or None."""
        for name, task in self.suite.injection_tasks.items():
            clean = self.suite.load_and_inject_default_environment({})
            calls = task.ground_truth(clean)
            if not any(call.function in SINKS and _has_sink(call) for call in calls):
                continue
            order = " ".join(f"{task.GOAL} {_values(calls)}".replace('"', "").split())  # its place is inside of YAML
            found = None
            for user, other in self.suite.user_tasks.items():
                injected = self.environment(other, order)
                try:
                    before = other.ground_truth(injected.model_copy(deep=True))
                except Exception:  # some read the environment, which the attacker changed
                    before = other.ground_truth(self.environment(other))
                if self.refused(calls, self.talk(other.PROMPT, injected, before)) is None:
                    found = user
                    break
            yield name, found


def _has_sink(call: Any) -> bool:
    return call.function != "create_calendar_event" or bool(call.args.get("participants"))


def _values(calls: Sequence[Any]) -> str:
    return " ".join(str(value) for call in calls for value in call.args.values())


def main(folder: Path) -> None:
    """Print the counts and each exception.

    Args:
        folder: into which agentdojo was installed
    """
    found = suites(folder)
    writable = impossible = tasks = injections = 0
    for name, policy in policies().items():
        suite = Suite(found[name], policy)
        results, attacks = list(suite.user_tasks()), list(suite.injections())
        good, safe = sum(why is None for _, why in results), sum(where is None for _, where in attacks)
        print(f"{name:10} {good} of {len(results)} tasks writable, {safe} of {len(attacks)} injections impossible")
        for task, why in results:
            if why is not None:
                print(f"    {task}: {why}")
        for attack, where in attacks:
            if where is not None:
                print(f"    {attack} is possible in {where}")
        writable, tasks = writable + good, tasks + len(results)
        impossible, injections = impossible + safe, injections + len(attacks)
    print(f"all        {writable} of {tasks} tasks writable, {impossible} of {injections} injections impossible")
