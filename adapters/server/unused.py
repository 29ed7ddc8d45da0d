"""Fields that are taken and have no effect: declarations of what this server does not have.

None of them can make an answer less valid. A response names those of its request in a header; the log has each once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

#: Header of a response that names the fields of its request that had no effect.
HEADER = "X-Toolgrammar-Unused"

#: The fields that may have no effect, by path as `pattern_of` writes it, and why: rows of `rows.not_offered`, objects
#: in lists for which there is no form, and what a protocol skips (`Fields.skip`). Others are unknown to this server.
UNUSED: Mapping[str, str] = {
    "tools[]": "run by the maker's own server, or known to its models alone: web_search, local_shell, ...",
    "tools[].defer_loading": "a model on a server gets all schemas; a local model obeys it",
    "tools[].tools[]": "the same in a namespace",
    "tools[].tools[].defer_loading": "the same in a namespace",
    "tools[].allowed_callers[]": "code that calls tools runs on no server here; the model calls them itself",
    "tools[].tools[].allowed_callers[]": "the same in a namespace",
    "input[].tools[]": "the same in the result of a client's search",
    "input[].tools[].defer_loading": "the same in the result of a client's search",
    "input[].tools[].allowed_callers[]": "the same in the result of a client's search",
    "input[].tools[].tools[]": "the same in the result of a client's search",
    "input[].tools[].tools[].defer_loading": "the same in the result of a client's search",
    "input[].tools[].tools[].allowed_callers[]": "the same in the result of a client's search",
    "include[]": "outputs of tools that are not offered",
    "input[]": "calls of such tools in an earlier answer; references to reasoning that is not kept",
    "messages[].content[]": "the same in Anthropic's messages",
    "messages[].content[].image_url.detail": "a model has its own size of images",
    "input[].content[].detail": "a model has its own size of images",
    "input[].output[].detail": "a model has its own size of images",
    "messages[].content[].citations": "an answer has no citations",
    "messages[].content[].content[].citations": "an answer has no citations",
    "system[].citations": "an answer has no citations",
    "client_metadata": "a label",
    "chat_template_kwargs": "reasoning_effort says how much reasoning there is",
    "text.verbosity": "the prompt says it",
    "verbosity": "the prompt says it",
    "reasoning.effort": "of a model without reasoning; Codex sends it to some",
    "reasoning.summary": "reasoning comes as it is",
    "reasoning.generate_summary": "reasoning comes as it is",
    "output_config.effort": "of a model without reasoning; Claude Code sends it to every model",
    "thinking.display": "reasoning comes as it is",
    "web_search_options": "there is no search",
    "prediction": "a hint that makes answers faster",
    "service_tier": "there is one",
    "speed": "there is one",
    "moderation": "there is none",
    "truncation": "a conversation that does not fit is an error",
    "max_tool_calls": "a limit of tools that are not offered",
    "context_management": "nothing is taken out of a conversation",
    "context_management.edits[]": "nothing is taken out of a conversation",
    "mcp_servers": "the client runs its tools",
    "container": "there is none",
    "diagnostics": "there are none",
    "stream_options.include_obfuscation": "streams have no padding",
}

#: Maximum number of fields that the header names, and of characters of each.
_MOST, _LONGEST = 32, 80
_INDEX = re.compile(r"\[[0-9]+\]")


def pattern_of(path: str) -> str:
    """Return a path without the indices of lists."""
    return _INDEX.sub("[]", path)


def header(unused: Sequence[str]) -> dict[str, str]:
    """Return the header that names fields of a request; none if there are no such fields."""
    names = list(dict.fromkeys(path if path.count("[") == 1 else pattern_of(path) for path in unused))
    # A header is ASCII, and its values are separated by commas.
    shown = [ascii(name[:_LONGEST])[1:-1].replace(",", " ") for name in names[:_MOST]]
    more = [f"{len(names) - _MOST} more"] if len(names) > _MOST else []
    return {HEADER: ", ".join(shown + more)} if names else {}


class LoggedFields:
    """The unused fields that the log has already; those without a row in `UNUSED` count as one, whatever they are."""

    def __init__(self) -> None:
        self._lines: set[str] = set()

    def new_lines(self, patterns: Iterable[str]) -> list[str]:
        """Return what the log does not yet say of a request's unused fields, given without the indices of lists."""
        lines = {f"{name}: {UNUSED[name]}" if name in UNUSED else "fields unknown to this server" for name in patterns}
        new = sorted(lines - self._lines)
        self._lines.update(new)
        return new
