"""Generator of what follows from the rows of options (`core/generation/params.py`).

Run it after a change of an option::

    python -m tests.core.generation.generate

It writes the keyword options of `Model.generate`, the settings of adapters, the tables of ``docs/options.md``, and the
list of options in ``docs/server.md``. A test compares these files with what it writes.
"""

from __future__ import annotations

import ast
import itertools
from dataclasses import fields
from pathlib import Path

from toolgrammar.core.generation.params import OPTIONS, GenerateParams

ROOT = Path(__file__).resolve().parents[3]
PARAMS = ROOT / "core" / "generation" / "params.py"
BEGIN = "<!-- the tables below are written by tests/core/generation/generate.py -->\n"
END = "<!-- end of the tables -->\n"

KEYWORDS = '''\
"""Keyword options of `Model.generate` and its siblings: written by tests/core/generation/generate.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import Required

    from ..conversation.events import T_co
    from ..grammar import Grammar
    from .params import JsonMode, ToolsInPrompt


class OtherOptions(TypedDict, total=False):
    """The fields of `GenerateParams`, without ``output_type``."""

'''

TYPED = '''

class GenerateOptions(OtherOptions, total=False):
    """The fields of `GenerateParams`."""

    output_type: Any


if TYPE_CHECKING:

    class TypedOptions(OtherOptions, Generic[T_co], total=False):
        """The same with a Python class, which is the type of the answer's value."""

        output_type: Required[type[T_co]]
'''

SETTINGS = '''\
"""Generation options as settings of an adapter's class: written by tests/core/generation/generate.py."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel


class Settings(BaseModel):
    """Options of `GenerateParams` that users of an adapter give by name; None means not given."""

'''

PREFIXED = '''\
"""Settings of pydantic-ai, with the options of `GenerateParams`: written by tests/core/generation/generate.py."""

from __future__ import annotations

from typing import Any, Literal

from .. import _shared

try:
    from pydantic_ai.settings import ModelSettings
except ImportError as error:
    raise _shared.missing("pydantic-ai-slim", "pydantic-ai") from error


class ToolGrammarModelSettings(ModelSettings, total=False):  # type: ignore[misc, call-arg]
    """The framework's settings, and ours that are not among them, prefixed, so that other models ignore them."""

'''

#: What pydantic-ai has a setting of its own for.
HAS_SETTING = {
    *("max_tokens", "temperature", "top_p", "top_k", "seed", "timeout", "logit_bias", "stop", "parallel_tool_calls")
}

#: Heading of each group of options.
GROUPS = {
    "sampling": "Sampling",
    "answer": "The answer",
    "calls": "Tool calls",
    "report": "Reports",
}

#: Types of settings, for those whose values JSON and frameworks have in another form. Words are checked with the rest.
LOOSE = {
    "logit_bias": "dict[int, float] | None",
    "thinking_markers": "tuple[str, str] | None",
    "on_budget": "str | None",
    "tools_in_prompt": "str | None",
    "grammar": "Any",
    "stop": "list[str] | None",
}


def declared() -> dict[str, tuple[str, str]]:
    """Return the type and the meaning of each option, as the class has them."""
    tree = ast.parse(PARAMS.read_text(encoding="utf-8"))
    (body,) = (node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "GenerateParams")
    found = {}
    for field, meaning in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            assert isinstance(meaning, ast.Expr) and isinstance(meaning.value, ast.Constant), field.target.id
            text = " ".join(str(meaning.value.value).split())
            found[field.target.id] = (ast.unparse(field.annotation).replace("'", '"'), text)
    return found


def keywords() -> str:
    """Return the module of the keyword options."""
    lines = (
        f"    {name}: {OPTIONS[name].given or kind}\n"
        for name, (kind, _) in declared().items()
        if name != "output_type"
    )
    return KEYWORDS + "".join(lines) + TYPED


def settings() -> str:
    """Return the module of the settings of adapters."""
    text = SETTINGS
    for name, (kind, _) in declared().items():
        if OPTIONS[name].setting:
            optional = kind if kind.endswith("None") else f"{kind} | None"
            text += f"    {name}: {LOOSE.get(name, optional)} = None\n"
    return text


def prefixed() -> str:
    """Return the module of the settings of pydantic-ai."""
    types = {name: LOOSE.get(name, kind).removesuffix(" | None") for name, (kind, _) in declared().items()}
    settings = [name for name in types if OPTIONS[name].setting and name not in HAS_SETTING]
    return PREFIXED + "".join(f"    toolgrammar_{name}: {types[name]}\n" for name in settings)


def server_page(text: str) -> str:
    """Return the page of the server with the list of the options that requests have in ``toolgrammar``."""
    names = ", ".join(f"`{name}`" for name in declared() if OPTIONS[name].server)
    before, sentence, rest = text.partition("The field `toolgrammar` of a request has the options without a field in")
    sentence += " the protocols: "
    return f"{before}{sentence}{names} ([meaning](options.md)).\n{rest.partition(chr(10))[2]}"


def tables() -> str:
    """Return the tables of the documentation."""
    rows: dict[str, list[str]] = {group: [] for group in GROUPS}
    meanings = declared()
    for each in fields(GenerateParams):
        shown = (
            "`()`" if each.default == () else '`""`' if each.default == "" else f"`{each.default!r}`".replace("'", '"')
        )
        meaning = meanings[each.name][1].replace("``", "`").replace("|", "\\|")
        rows[OPTIONS[each.name].group].append(f"| `{each.name}` | {shown} | {meaning} |\n")
    head = "\n| option | default | meaning |\n|---|---|---|\n"
    return "\n".join(f"## {title}\n{head}{''.join(rows[group])}" for group, title in GROUPS.items())


def page(text: str) -> str:
    """Return the page of the options with its tables."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + "\n" + tables() + "\n" + END + rest.partition(END)[2]


def written() -> dict[Path, str]:
    """Return the files by their paths."""
    docs, server = ROOT / "docs" / "options.md", ROOT / "docs" / "server.md"
    return {
        ROOT / "core" / "generation" / "keywords.py": keywords(),
        ROOT / "adapters" / "_shared" / "settings.py": settings(),
        ROOT / "adapters" / "pydantic_ai" / "settings.py": prefixed(),
        docs: page(docs.read_text(encoding="utf-8")),
        server: server_page(server.read_text(encoding="utf-8")),
    }


if __name__ == "__main__":
    for path, text in written().items():
        path.write_text(text, encoding="utf-8")
