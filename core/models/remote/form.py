"""Forms of a request: what a server is asked to enforce, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...generation.plan import Plan
from .schema_dialects import extra_keywords

#: Name of the form that a server with our plug-in enforces completely.
ENFORCED = "toolgrammar"

#: Name of the form with our exported grammar.
GRAMMAR = "grammar"

#: Name of the form with our exported grammar in a structural tag.
STRUCTURAL_TAG = "structural tag"

#: Name of the form with a JSON Schema of calls, for a server that knows no tool choice.
CALLS = "json_schema of calls"


@dataclass(frozen=True)
class Form:
    """One form of a request.

    Attributes:
        name: name of the form, for results and logs.
        fields: fields that it adds to the request's body.
        left_out: pointers of removed parts of schemas, each after the tool's name or ``response``; other constraints
            in words.
        schema_in_prompt: the schema of the answer is in the prompt, because no field has it.
        tools_in_prompt: the tools are in the prompt, and calls are text.
        plan: the language of the answer, if ``fields`` have its exported grammar.
        exported: this grammar, as ``fields`` have it.
        promises: names of the tools of which the server writes a well-formed call, if it does what ``fields`` say;
            empty: it promises nothing.
        schemas: the schemas in ``fields``.
        instruction: a text for the system turn, for what no field says.
        size: size of what the server compiles to one grammar: a refusal because of it is followed by the next form,
            which asks for less. 0: the form cannot be made smaller.
    """

    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    schema_in_prompt: bool = False
    tools_in_prompt: bool = False
    plan: Plan | None = None
    exported: str = ""
    promises: tuple[str, ...] = ()
    schemas: tuple[Any, ...] = ()
    instruction: str = ""
    size: int = 0

    @property
    def keywords(self) -> frozenset[str]:
        """Keywords in the schemas of the form that some servers do not support."""
        return frozenset().union(*map(extra_keywords, self.schemas))
