"""Options as users of a framework give them: each reaches the model, or is an error that names it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import NoneType
from typing import Any

from toolgrammar.core.errors import ModelError, PolicyError, ToolGrammarError, UnknownToolError
from toolgrammar.core.generation import OPTIONS, GenerateParams, resolve_params
from toolgrammar.tools import Policy
from toolgrammar.tools.formats import get_format

#: Options of a model on a server that frameworks have as settings of their own, and `RemoteModel` under the same names.
CONNECTION = ("api_key", "base_url", "max_retries")

#: Options of `load_model`, which adapters take in a dict.
LOADING = (
    *("context_window", "device", "dtype", "gpu_layers", "max_rows", "max_running_tokens", "mmproj"),
    *("prefix_cache", "revision", "threads", "warm_seconds"),
)

#: Token budget of the reasoning for each word of ``reasoning_effort``; True: no budget of its own, False: none.
EFFORTS: Mapping[str, bool | int] = {
    "none": False,
    "minimal": 128,
    "low": 512,
    "medium": 2_048,
    "high": True,
    "xhigh": True,
    "max": True,
}

#: The options of `GenerateParams` that users of an adapter give by name.
GENERATION = tuple(name for name, option in OPTIONS.items() if option.setting)


@dataclass(frozen=True)
class Confirmed:
    """A policy of a middleware that asks a person about the calls that the policy says."""

    policy: Policy

    @classmethod
    def of(cls, policy: Any, *others: Any) -> Confirmed:
        """Return the intersection of policies; None among ``others`` adds nothing."""
        both = Policy.from_any(policy)
        for other in others:
            other = other.policy if isinstance(other, Confirmed) else other
            both = both if other is None else both & Policy.from_any(other)
        return cls(both)


def loading_options(options: Mapping[str, Any] | None, connection: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options for loading a model, those that were given as settings among them.

    Args:
        options: given for loading.
        connection: given as settings of the framework (`CONNECTION`); None means not given.

    Raises:
        ModelError: one was given in both ways.
    """
    given = {name: value for name, value in connection.items() if value is not None}
    if twice := sorted(set(given) & set(options or {})):
        raise ModelError(f"{', '.join(twice)} is given twice", hint="give it as a setting, or in options")
    return {**(options or {}), **given}


def generation_params(given: Mapping[str, Any]) -> GenerateParams:
    """Return generation options, given by name, as parameters; None means not given.

    ``stop`` may be a single text, token ids in ``logit_bias`` may be texts, as JSON has them, and a policy that lets a
    person confirm calls has to be a `Confirmed`.

    Raises:
        ModelError: an option is not known, or its value is wrong.
        PolicyError: nobody would ask a person about the calls.
    """
    options = {name: value for name, value in given.items() if value is not None}
    if isinstance(options.get("logit_bias"), Mapping):
        options["logit_bias"] = {
            int(token) if isinstance(token, str) and token.isdecimal() else token: bias
            for token, bias in options["logit_bias"].items()
        }
    if "tool_format" in options:
        try:
            get_format(options["tool_format"])
        except ToolGrammarError as error:
            raise ModelError(f"tool_format is {options['tool_format']!r}", hint=error.hint) from None
    if isinstance(options.get("thinking_markers"), list):
        options["thinking_markers"] = tuple(options["thinking_markers"])
    asks_person = isinstance(options.get("policy"), Confirmed)
    if asks_person:
        options["policy"] = options["policy"].policy
    params = resolve_params(None, options)
    params = replace(params, stop=tuple(params.stop))
    if params.policy is not None and not asks_person:
        require_nobody(params.policy, "the framework")
    return params


def require_nobody(policy: Policy, runner: str) -> None:
    """Raise a PolicyError if a policy lets a person confirm calls, which somebody runs without asking."""
    if policy.asks_somebody:
        raise PolicyError(
            f"the policy lets a person confirm calls, and {runner} runs calls without asking",
            hint="leave 'ask' out of it, use Model.run(approve=...), or UnderPolicy of LangChain or Agent Framework",
        )


def policies_of(policy: Any, keys: Collection[str] | Mapping[str, str]) -> dict[int | None, Policy] | None:
    """Return the policy of each API key of a server, by the key's number (None: that of a server without keys); None:
    there is no policy.

    Args:
        policy: a `Policy`, its data, or the path of its file; None: none.
        keys: the keys, or the role of each.

    Raises:
        PolicyError: it is malformed, a key has none of its roles, or it lets a person confirm calls.
    """
    roles = list(keys.values()) if isinstance(keys, Mapping) else [""] * len(keys)
    if policy is None:
        if any(roles):
            raise PolicyError("API keys have roles, and there is no policy", hint="give policy=, or keys without roles")
        return None
    whole = Policy.from_any(policy)
    policies: dict[int | None, Policy] = {None: whole} if not roles else {}
    policies |= {number: whole.role(role) if role else whole for number, role in enumerate(roles)}
    for each in policies.values():
        require_nobody(each, "a client of the server")
    return policies


def tool_choice(given: Any, names: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return a tool choice as `GenerateParams` has it, and the tools that may be called.

    Known are: None, False, ``"auto"``; True, ``"any"``, ``"required"``; ``"none"``; a tool's name; and the dicts of
    OpenAI (a function, ``allowed_tools`` of both its APIs), Anthropic, Bedrock and Agent Framework.

    Args:
        given: the choice.
        names: of the tools that there are.

    Returns:
        ``"auto"``, ``"required"``, ``"none"`` or a name; and the names of the tools that are allowed.

    Raises:
        UnknownToolError: it is in no known form, or names a tool that there is not.
        ModelError: it demands a call, and there are no tools.
    """
    word, allowed = _choice_of_dict(given) if isinstance(given, Mapping) else (given, None)
    chosen = _WORDS.get(word) if isinstance(word, (str, bool, NoneType)) else None  # others may have no hash
    if chosen is None and isinstance(word, str) and word in names:
        chosen = word
    if chosen is None:
        raise UnknownToolError(
            f"the tool choice {given!r} is none of the tools",
            hint=f"'auto', 'required', 'none', or one of {list(names)}" if names else "there are no tools",
        )
    if allowed is not None and not (allowed and all(name in names for name in allowed)):
        unknown = [name for name in allowed if name not in names]
        raise UnknownToolError(
            f"the tool choice {given!r} allows {unknown or 'none of the tools'}", hint=f"the tools are {list(names)}"
        )
    if chosen == "required" and not names:
        raise ModelError("a tool call is required, but there are no tools", hint="give at least one tool")
    return chosen, tuple(names) if allowed is None else tuple(name for name in names if name in allowed)


_WORDS: Mapping[Any, str] = {
    **dict.fromkeys((None, False, "auto"), "auto"),
    **dict.fromkeys((True, "any", "required"), "required"),
    "none": "none",
}


def _choice_of_dict(given: Mapping[str, Any]) -> tuple[Any, list[Any] | None]:
    """Return the word or name of a provider's dict, and the names that it allows (None: all).

    ``{"type": "function", "function": {"name": "f"}} -> ("f", None)``. A dict of no known form is returned as it is,
    which is no word.
    """

    def name_in(inner: Any) -> Any:
        return inner.get("name", given) if isinstance(inner, Mapping) else given

    kind = given.get("type")
    if kind == "allowed_tools":  # OpenAI's chat completions put the rest into a dict of its own, its responses do not
        inner = given["allowed_tools"] if isinstance(given.get("allowed_tools"), Mapping) else given
        return inner.get("mode", "auto"), [_name_of(tool) for tool in _listed(inner.get("tools") or ())]
    if kind in ("function", "tool", "custom"):
        return name_in(given.get(kind, given)), None
    if kind in ("auto", "any", "none"):  # Anthropic
        return kind, None
    if "mode" in given:  # Agent Framework
        allowed = given.get("allowed_tools")
        return given.get("required_function_name") or given["mode"], None if allowed is None else _listed(allowed)
    if isinstance(given.get("tool"), Mapping):  # Bedrock, which says the words as keys
        return name_in(given["tool"]), None
    if isinstance(given.get("function"), Mapping):
        return name_in(given["function"]), None
    if len(given) == 1 and next(iter(given)) in ("auto", "any"):
        return next(iter(given)), None
    return name_in(given) if set(given) <= {"name"} else given, None


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Iterable) else [value]


def _name_of(tool: Any) -> Any:
    if not isinstance(tool, Mapping):
        return tool
    inner = next((tool[kind] for kind in ("function", "custom") if isinstance(tool.get(kind), Mapping)), tool)
    return inner.get("name")
