"""Options: their named values, and the errors for an unknown value or name, with a suggestion."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Literal

from ..errors import GrammarError, UnknownOptionError

Whitespace = Literal["compact", "single", "flexible"]

#: Order of the members of an object: that of the schema, or any.
PropertyOrder = Literal["schema", "any"]

#: Treatment of keywords that cannot be enforced exactly: narrow them; raise an error; or, if they cannot be narrowed,
#: check them after generation.
OnUnsupported = Literal["narrow", "error", "validate"]


#: Kinds of servers, which are the schemes of their models' addresses: those with an OpenAI-compatible API, and
#: providers with their own.
SERVERS = ("openai", "vllm", "sglang", "llama.cpp", "ollama", "anthropic", "gemini", "bedrock")

#: Version of the envelopes in which a tool set travels to an engine (see `toolgrammar.adapters.vllm.envelope`).
ENVELOPE_VERSION = 1


def require_word(option: str, value: Any, words: Any) -> None:
    """Check an option with a fixed set of words.

    Args:
        option: its name, for the error.
        value: its value.
        words: the ``Literal`` type of the option.

    Raises:
        GrammarError: the value is not one of the words, which the message lists.
    """
    allowed = words.__args__
    if not isinstance(value, str) or value not in allowed:
        raise GrammarError(f"{option} is {value!r}", hint=f"give one of {', '.join(map(repr, allowed))}")


#: Maximum number of names that an error lists; so many unknown ones are compared with the known.
_SHOWN = 8

#: By option here, and the hint to write it: its names in other libraries.
_NAMES: Mapping[tuple[str, str], str] = {
    ("grammar", "grammar=Grammar.from_regex(...)"): "regex pattern guided_regex",
    ("output_type", 'output_type=["...", "..."]'): "choices choice guided_choice",
    ("grammar", "grammar=..., a Grammar or text in Lark or GBNF"): "cfg ebnf gbnf guided_grammar lark",
    ("output_type", "output_type=..., a Pydantic class, another Python type or a JSON Schema"): (
        "format guided_json json_schema output_schema response_format response_model response_schema schema"
    ),
    ("max_tokens", "max_tokens=..."): (
        "max_completion_tokens max_length max_new_tokens max_output_tokens n_predict num_predict"
    ),
    ("stop", "stop=[...]"): "stop_sequences stop_strings stop_words",
    ("temperature", "temperature=...; 0 is greedy, more samples"): "do_sample",
    ("repetition_penalty", "repetition_penalty=..."): "frequency_penalty presence_penalty repeat_penalty",
    ("seed", "seed=..."): "random_seed random_state",
    ("tools", "tools=[...]"): "functions",
    ("tool_choice", "tool_choice=..."): "function_call",
    ("logprobs", "logprobs=..., their number"): "top_logprobs",
    ("tools", 'the conversation as the prompt: [{"role": "system", "content": ...}, ...]'): (
        "messages system system_prompt"
    ),
    ("tools", "model.stream(...)"): "stream",
    ("tools", "model.generate_batch([prompt] * n)"): "n num_return_sequences",
    ("tools", "model.generate_json(..., allow_cut=True)"): "allow_cut",
    ("context_window", "context_window=..."): "n_ctx max_model_len max_seq_len num_ctx",
    ("gpu_layers", "gpu_layers=..."): "n_gpu_layers num_gpu",
    ("threads", "threads=..."): "n_threads num_thread num_threads",
    ("thinking", "thinking=...; True, False, or a budget in tokens"): (
        "enable_thinking reasoning reasoning_effort think thinking_budget"
    ),
    ("api_key", 'api_key="env:NAME", for a model on a server'): "anthropic_api_key openai_api_key",
    ("base_url", "base_url=..., for a model on a server"): (
        "anthropic_api_url api_base azure_endpoint endpoint host openai_api_base"
    ),
    ("timeout", "timeout=..., in seconds"): "request_timeout timeout_s",
    ("dtype", "dtype=..."): "torch_dtype",
    ("device", "device=..."): "device_map",
}

#: By name in other libraries: the option here, and the hint.
_ELSEWHERE = {name: meant for meant, names in _NAMES.items() for name in names.split()}

#: Names in other libraries of what has no option here, and why.
_WITHOUT: Mapping[str, str] = {
    "keep_alive": "a model stays loaded as long as its object",
    "service_tier": "no provider serves the model",
    "use_responses_api": "every model has one API here",
    "validate_model_on_init": "a model is always loaded at once",
}


def require_known(
    given: Iterable[str],
    known: Collection[str],
    wrong: str = "unknown option:",
    inside: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> None:
    """Raise an error for unknown options.

    Args:
        given: the names.
        known: the known names.
        wrong: the message before the unknown names.
        inside: by the name of a known option that takes a dict: the names in it.

    Raises:
        UnknownOptionError: there are unknown names; it suggests known ones.
    """
    unknown = sorted(set(map(str, given)) - set(known))
    if not unknown:
        return
    advice = [meant for name in unknown[:_SHOWN] if (meant := _advice(name, known, inside)) is not None]
    hint = "; ".join(dict.fromkeys(advice)) or f"known are {_listed(sorted(known))}"
    raise UnknownOptionError(f"{wrong} {_listed(unknown)}", hint=hint)


def _listed(names: list[str]) -> str:
    """Return names for a message: the first, and how many more there are."""
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


def option_meant(name: str) -> str:
    """Return the option here that a name in other libraries means; the name itself, if none is known."""
    option, hint = _ELSEWHERE.get(name, (name, ""))
    return option if hint.startswith(f"{option}=") else name


def _advice(name: str, known: Collection[str], inside: Mapping[str, Collection[str]]) -> str | None:
    """Return what to write instead of an unknown name (see `require_known`); None if no known name is similar.

    For example, ``num_ctx`` -> ``"write context_window=..."``, ``thread`` -> ``"did you mean threads?"``."""
    if name in _WITHOUT:
        return f"leave out {name}: {_WITHOUT[name]}"
    option, hint = _ELSEWHERE.get(name, (name, ""))  # the option of that name in other libraries
    if option in known:
        return f"write {hint}"
    for holder, names in inside.items():
        if option in names:
            return f"write {holder}={{{option!r}: ...}}"
    holders = {inner: holder for holder, names in inside.items() for inner in names}
    near = get_close_matches(name.lower(), [*known, *holders], n=1, cutoff=0.7)
    if not near:
        return None
    return f"did you mean {near[0]}?" if near[0] in known else f"did you mean {holders[near[0]]}={{{near[0]!r}: ...}}?"
