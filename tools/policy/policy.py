"""`Policy`: what may flow into which argument of which tool, for each role."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolgrammar.core.conversation import Message, ToolCall
from toolgrammar.core.errors import InvalidArgumentsError, MissingDependencyError, Place, PolicyError

from ..tool import Tool
from .compiled import declared_names, restricted
from .grounded import grounded_layer
from .notation import Layer, ToolRule, roles_of
from .origins import Origins, OriginsOf
from .report import Possible, Reach, possible, reach_of


class Policy:
    """Roles, their tools, and for each argument where its value may come from.

    ``policy=`` of a request, an adapter or a server enforces it: the mask of a local model allows nothing else, and the
    calls of models on servers are checked, and asked for again. ``policy & other`` allows what both allow.

    Args:
        source: the data of a policy, or the path of a file with them (JSON, or YAML with PyYAML installed).
        role: the role that is asked for, as of `role`.

    Raises:
        PolicyError: it is malformed (with a JSON pointer), or has no such role.
        MissingDependencyError: the file is YAML, and PyYAML is not installed.
    """

    def __init__(self, source: Mapping[str, Any] | str | Path, role: str | None = None) -> None:
        data = _read(Path(source)) if isinstance(source, (str, Path)) else source
        self._layers: dict[str, tuple[Layer, ...]] = {name: (layer,) for name, layer in roles_of(data).items()}
        text = json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)
        #: SHA-256 of the data and the chosen role, in hexadecimal digits.
        self.hash = _sha256(text)
        if role is not None:
            chosen = self.role(role)
            self._layers, self.hash = chosen._layers, chosen.hash

    @classmethod
    def from_any(cls, source: Any) -> Policy:
        """Return a policy, or that of its data or file."""
        return source if isinstance(source, Policy) else cls(source)

    @classmethod
    def grounded(cls, tools: Any, *, free: Sequence[str] = ()) -> Policy:
        """Return the policy of nominal types: ids come from results or from the user.

        If some result has a named type, an argument of that type takes only values that such a result showed, or words
        of the user with a digit or a mark. Other arguments stay as they are.

        The name of a type is ``x-type``, a `NewType`, the definition of a string or number to which ``$ref`` leads, or
        a title such as ``UserId`` that does not repeat the name of the field. Types of results are those of MCP and
        OpenAPI, and of return annotations of functions.

        Args:
            tools: a `ToolSet`.
            free: arguments that are left as they are: ``"tool.argument"``, or ``"tool"`` for all of one.
        """
        layer = grounded_layer(tuple(tools), free)
        rules = {name: sorted(map(str, rule.arguments)) for name, rule in layer.tools.items() if rule is not None}
        return cls._with({"": (layer,)}, json.dumps(["grounded", rules]))

    @property
    def roles(self) -> tuple[str, ...]:
        """The names of the roles; none for a policy without roles."""
        return tuple(filter(None, self._layers))

    def role(self, name: str) -> Policy:
        """Return the policy of one role; a policy without roles is for each.

        Raises:
            PolicyError: there is no such role.
        """
        layers = self._layers.get(name, self._layers.get(""))
        if layers is None:
            raise PolicyError(f"unknown role {name!r}", hint=f"the roles are {', '.join(self._layers)}")
        return self._with({"": layers}, f"{self.hash} {name}")

    def __and__(self, other: Policy) -> Policy:
        """Return the policy that allows what both allow; roles that only one of them has are left out."""
        if not isinstance(other, Policy):
            return NotImplemented
        # A policy without roles (its only one has no name) is for each role of the other.
        names = (self._layers if "" not in self._layers else other._layers).keys()
        both: dict[str, tuple[Layer, ...]] = {}
        for name in names:
            own, others = (each._layers.get(name, each._layers.get("")) for each in (self, other))
            if own and others:
                both[name] = own + others
        if not both:
            raise PolicyError("the two policies have no role in common", hint="choose one of each: policy.role(name)")
        return self._with(both, f"{self.hash}&{other.hash}")

    @classmethod
    def _with(cls, layers: dict[str, tuple[Layer, ...]], identity: str) -> Policy:
        """Return the policy of some layers, by role; equal identities, equal policies."""
        made = object.__new__(cls)
        made._layers, made.hash = layers, _sha256(identity)
        return made

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers of its only role.

        Raises:
            PolicyError: it has several roles.
        """
        if len(self._layers) != 1:
            raise PolicyError(
                f"the policy has the roles {', '.join(self._layers)}, and none is chosen",
                hint=f"choose one: policy.role({next(iter(self._layers))!r})",
            )
        return next(iter(self._layers.values()))

    def rules(self, name: str) -> list[tuple[ToolRule, Layer]] | None:
        """Return what its layers say of a tool; None: it is not allowed."""
        found = [(rule, layer) for layer in self.layers if (rule := layer.rule_of(name)) is not None]
        return found if len(found) == len(self.layers) else None

    def restrict(self, tools: Sequence[Tool], opened: Collection[str] = ()) -> list[Tool]:
        """Return the tools that are allowed, with parameters that take only allowed values.

        Args:
            tools: the tools.
            opened: names of those whose parameters are read open.

        Raises:
            PolicyError: several roles, or a rule is for an argument that its tool does not have.
        """
        results = results_of(tools)
        rules = [(tool, self.rules(tool.name)) for tool in tools]
        return [restricted(tool, each, results, tool.name in opened) for tool, each in rules if each is not None]

    def may_repeat(self, name: str) -> bool:
        """Return True if a call of a tool may be made again after its result."""
        return all(layer.may_repeat(name) for layer in self.layers)

    @property
    def asks_somebody(self) -> bool:
        """True if a person may have to confirm a call of some tool."""
        rules = [rule for layer in self.layers for rule in layer.tools.values() if rule is not None]
        return any(map(_asks, rules))

    def asks(self, tool: Tool) -> bool:
        """Return True if a person may have to confirm a call of a tool."""
        return any(_asks(rule) for rule, _ in self.rules(tool.name) or ())

    def sources(self, call: ToolCall, messages: Sequence[Message], tools: Any) -> list[Origins]:
        """Return for each layer of the policy the origins of the values of a call, by their pointers; a value without
        origins is not allowed. The name of a member that is data is at its pointer and ``#``.

        Args:
            call: the call.
            messages: the conversation before it.
            tools: the tool set.
        """
        names = declared_names(tools[call.name].parameters)
        results = results_of(tools)
        return [
            OriginsOf(messages, layer, results).of_call(rule, call.arguments, names)
            for rule, layer in self.rules(call.name) or ()
        ]

    def refusal(self, call: ToolCall, messages: Sequence[Message], tools: Any) -> InvalidArgumentsError | None:
        """Return the error for a call with a value that no source allows, with its place; None: each value has one."""
        found = (each for layer in self.sources(call, messages, tools) for each in layer.items())
        pointer = next((pointer for pointer, origins in found if not origins), None)
        if pointer is None:
            return None
        return InvalidArgumentsError(
            "the policy does not allow this value of the argument",
            hint="use a value from where the policy lets it come from: look it up by a tool, or let the user write it",
            place=Place(tool=call.name, pointer=pointer.removesuffix("#")),  # "/a/b#" is the name b, not its value
        )

    def unconfirmed(self, call: ToolCall, messages: Sequence[Message], tools: Any) -> tuple[str, ...]:
        """Return the pointers of values that only a person allows; ``""``: the call itself."""
        tool = tools[call.name]
        if not self.asks(tool):
            return ()
        whole = [""] if any(rule.asks for rule, _ in self.rules(call.name) or ()) else []
        found = [
            pointer
            for layer in self.sources(call, messages, tools)
            for pointer, origins in layer.items()
            if origins and all(origin.source == "ask" for origin in origins)
        ]
        return tuple(dict.fromkeys([*whole, *found]))

    def reach(self, tools: Any) -> list[Reach]:
        """Return what may reach each argument of some tools (a `ToolSet`), those that are open first."""
        return reach_of(self, tools)

    def possible(self, tools: Any, schema: Any) -> Possible:
        """Return whether a call of a schema can ever be written with some tools; see `Possible`.

        Args:
            tools: a `ToolSet`.
            schema: of calls, as ``{"name": ..., "arguments": {...}}``.
        """
        return possible(self, tools, schema)

    def __repr__(self) -> str:
        return f"Policy({', '.join(filter(None, self._layers)) or 'of one role'}, {self.hash[:12]})"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _yaml(text: str) -> Any:
    """Return the data of a YAML text, in which no object may have a member twice.

    Raises:
        MissingDependencyError: PyYAML is not installed.
        ValueError: the text is malformed.
    """
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError:
        raise MissingDependencyError(
            "the policy is YAML, and PyYAML is not installed", hint="pip install pyyaml, or write it as JSON"
        ) from None

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            _refuse_repeated((key.value, f" in line {key.start_mark.line + 1}") for key, _ in node.value)
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(text, Loader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _refuse_repeated(names: Iterable[tuple[Any, str]]) -> None:
    """Raise an error for a member that an object has twice: the first rule would be lost in silence.

    Args:
        names: the names of the members, each with words for its place that end the message (``" in line 3"``), or "".

    Raises:
        ValueError: a name is there twice.
    """
    seen = set()
    for name, place in names:
        if isinstance(name, str) and name in seen:
            raise ValueError(f"an object has two members {name!r}{place}")
        seen.add(str(name))


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of a JSON object, none of which may be there twice."""
    _refuse_repeated((name, "") for name, _ in pairs)
    return dict(pairs)


def _asks(rule: ToolRule) -> bool:
    return rule.asks or any(source.asks for each in rule.arguments.values() for source in each)


def results_of(tools: Any) -> dict[str, Any]:
    """Return the schemas of results, by names of tools, where their sources say them."""
    return {tool.name: tool.output_schema for tool in tools if tool.output_schema is not None}


def _read(path: Path) -> Any:
    """Return the data of a file, which is YAML or JSON by its ending.

    Raises:
        PolicyError: it cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise PolicyError(
            f"the policy {str(path)!r} cannot be read: {error}", hint="give the path of a file"
        ) from error
    try:
        if path.suffix.lower() in (".yaml", ".yml"):
            return _yaml(text)
        return json.loads(text, object_pairs_hook=_members)
    except (ValueError, RecursionError) as error:
        raise PolicyError(f"{path.name} cannot be read: {error}", hint="write JSON, or YAML in a file .yaml") from error
