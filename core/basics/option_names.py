"""Names of options: the error for an unknown one, with a suggestion."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType

from ..errors import UnknownOptionError

#: Maximum number of names that an error lists; so many unknown ones are compared with the known.
_SHOWN = 8

_SHAPE = "output_type=..., a Pydantic class, another Python type or a JSON Schema"
_TOKENS = "max_tokens=..."
_STOP = "stop=[...]"

#: Names of an option in other libraries: the option here, and the hint.
_ELSEWHERE: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("regex", "pattern", "guided_regex"), ("grammar", "grammar=Grammar.from_regex(...)")),
    **dict.fromkeys(("choices", "choice", "guided_choice"), ("output_type", 'output_type=["...", "..."]')),
    **dict.fromkeys(
        ("cfg", "ebnf", "gbnf", "guided_grammar", "lark"), ("grammar", "grammar=..., a Grammar or text in Lark or GBNF")
    ),
    **dict.fromkeys(
        (
            *("format", "guided_json", "json_schema", "output_schema"),
            *("response_format", "response_model", "response_schema", "schema"),
        ),
        ("output_type", _SHAPE),
    ),
    **dict.fromkeys(
        (
            "max_completion_tokens",
            "max_length",
            "max_new_tokens",
            "max_output_tokens",
            "n_predict",
            "num_predict",
        ),
        ("max_tokens", _TOKENS),
    ),
    **dict.fromkeys(("stop_sequences", "stop_strings", "stop_words"), ("stop", _STOP)),
    "do_sample": ("temperature", "temperature=...; 0 is greedy, more samples"),
    **dict.fromkeys(("frequency_penalty", "presence_penalty"), ("repetition_penalty", "repetition_penalty=...")),
    "repeat_penalty": ("repetition_penalty", "repetition_penalty=..."),
    **dict.fromkeys(("random_seed", "random_state"), ("seed", "seed=...")),
    "functions": ("tools", "tools=[...]"),
    "function_call": ("tool_choice", "tool_choice=..."),
    "top_logprobs": ("logprobs", "logprobs=..., their number"),
    **dict.fromkeys(
        ("messages", "system", "system_prompt"),
        ("tools", 'the conversation as the prompt: [{"role": "system", "content": ...}, ...]'),
    ),
    "stream": ("tools", "model.stream(...)"),
    **dict.fromkeys(("n", "num_return_sequences"), ("tools", "model.generate_batch([prompt] * n)")),
    "allow_cut": ("tools", "model.generate_json(..., allow_cut=True)"),
    **dict.fromkeys(("n_ctx", "max_model_len", "max_seq_len", "num_ctx"), ("context_window", "context_window=...")),
    **dict.fromkeys(("n_gpu_layers", "num_gpu"), ("gpu_layers", "gpu_layers=...")),
    **dict.fromkeys(("n_threads", "num_thread", "num_threads"), ("threads", "threads=...")),
    **dict.fromkeys(
        ("enable_thinking", "reasoning", "reasoning_effort", "think", "thinking_budget"),
        ("thinking", "thinking=...; True, False, or a budget in tokens"),
    ),
    **dict.fromkeys(
        ("anthropic_api_key", "openai_api_key"),
        ("api_key", 'api_key="env:NAME", for a model on a server'),
    ),
    **dict.fromkeys(
        ("anthropic_api_url", "api_base", "azure_endpoint", "endpoint", "host", "openai_api_base"),
        ("base_url", "base_url=..., for a model on a server"),
    ),
    **dict.fromkeys(("request_timeout", "timeout_s"), ("timeout", "timeout=..., in seconds")),
    "torch_dtype": ("dtype", "dtype=..."),
    "device_map": ("device", "device=..."),
}

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
    advice = [meant for name in unknown[:_SHOWN] if (meant := _meant(name, known, inside)) is not None]
    shown = sorted(known)
    hint = f"known are {', '.join(shown[:_SHOWN])}" + (f" and {len(shown) - _SHOWN} more" * (len(shown) > _SHOWN))
    named = ", ".join(unknown[:_SHOWN]) + (f" and {len(unknown) - _SHOWN} more" * (len(unknown) > _SHOWN))
    raise UnknownOptionError(f"{wrong} {named}", hint="; ".join(dict.fromkeys(advice)) or hint)


def option_meant(name: str) -> str:
    """Return the option here that a name in other libraries means; the name itself, if none is known."""
    option, text = _ELSEWHERE.get(name, (name, ""))
    return option if text.startswith(f"{option}=") else name


def _meant(name: str, known: Collection[str], inside: Mapping[str, Collection[str]]) -> str | None:
    """Return the most likely meaning of an unknown name; None if no known name is similar."""
    if name in _WITHOUT:
        return f"leave out {name}: {_WITHOUT[name]}"
    option, text = _ELSEWHERE.get(name, (name, ""))
    if option in known:
        return f"write {text}"
    for holder, names in inside.items():
        if option in names:
            return f"write {holder}={{{option!r}: ...}}"
    holders = {one: holder for holder, names in inside.items() for one in names}
    near = get_close_matches(name.lower(), [*known, *holders], n=1, cutoff=0.7)
    if not near:
        return None
    return f"did you mean {near[0]}?" if near[0] in known else f"did you mean {holders[near[0]]}={{{near[0]!r}: ...}}?"
