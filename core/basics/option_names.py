"""Names of options: the error for an unknown one, with a suggestion."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches

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
        ("format", "guided_json", "json_schema", "output_schema", "response_format", "response_model", "schema"),
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
    **dict.fromkeys(("n_threads", "num_threads"), ("threads", "threads=...")),
    "torch_dtype": ("dtype", "dtype=..."),
    "device_map": ("device", "device=..."),
}


def require_known(given: Iterable[str], known: Collection[str], wrong: str = "unknown option:") -> None:
    """Raise an error for unknown options.

    Args:
        given: the names.
        known: the known names.
        wrong: the message before the unknown names.

    Raises:
        UnknownOptionError: there are unknown names; it suggests known ones.
    """
    unknown = sorted(set(given) - set(known))
    if not unknown:
        return
    advice = [meant for name in unknown[:_SHOWN] if (meant := _meant(name, known)) is not None]
    shown = sorted(known)
    hint = f"known are {', '.join(shown[:_SHOWN])}" + (f" and {len(shown) - _SHOWN} more" * (len(shown) > _SHOWN))
    named = ", ".join(unknown[:_SHOWN]) + (f" and {len(unknown) - _SHOWN} more" * (len(unknown) > _SHOWN))
    raise UnknownOptionError(f"{wrong} {named}", hint="; ".join(dict.fromkeys(advice)) or hint)


def _meant(name: str, known: Collection[str]) -> str | None:
    """Return the most likely meaning of an unknown name; None if no known name is similar."""
    option, text = _ELSEWHERE.get(name, ("", ""))
    if option in known:
        return f"write {text}"
    near = get_close_matches(name.lower(), known, n=1, cutoff=0.7)
    return f"did you mean {near[0]}?" if near else None
