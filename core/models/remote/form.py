"""Forms of a request: what a server is asked to enforce, and how."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ...generation.plan import Plan
from .schema_dialects import extra_keywords

#: Name of the form that a server with our plug-in enforces completely.
ENFORCED = "toolgrammar"

#: Name of the form with our exported grammar.
GRAMMAR = "grammar"

#: Name of the form with our exported grammar in a structural tag.
STRUCTURAL_TAG = "structural tag"

#: Name of the form with our exported grammar in Lark, for vLLM's guidance backend, which reads no structural tag.
LARK = "Lark grammar"

#: Name of the form with a JSON Schema of calls, for a server that knows no tool choice.
CALLS = "json_schema of calls"


#: The forms whose tokens the server chooses under our exported grammar.
EXPORTED = (GRAMMAR, STRUCTURAL_TAG, LARK)

#: The forms in which the server gets the schema of the answer to constrain it, as the names of forms begin.
_JSON_FORMS = ("json_schema", "structured_outputs")

#: Who enforced a constraint: the server, by constrained decoding, or the library, by validating the answer.
EnforcedBy = Literal["server", "validation"]


@dataclass(frozen=True)
class Form:
    """One form of a request.

    Attributes:
        name: name of the form, for results and logs. `enforced` reads it: ``A + B`` has form A for calls and B for the
            answer, and `_JSON_FORMS` and ``strict tools`` are beginnings of names.
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

    def enforced(self, tools: Collection[str], *, has_schema: bool) -> dict[str, EnforcedBy]:
        """Return who enforces each schema of a request, and each constraint in `left_out`.

        Args:
            tools: names of the tools that may be called.
            has_schema: a text answer has a schema or a grammar, named ``response``.
        """
        found: dict[str, EnforcedBy] = dict.fromkeys(tools, "validation")
        if has_schema:
            found["response"] = "validation"
        name, _, beside = self.name.partition(" + ")
        if name == ENFORCED or name in EXPORTED:
            found = dict.fromkeys(found, "server")
        elif name == CALLS:
            found |= dict.fromkeys(tools, "server")
        elif name.startswith("strict tools"):
            found |= dict.fromkeys(self._strict(tools), "server")
        if has_schema and not self.schema_in_prompt and (beside or name).startswith(_JSON_FORMS):
            found["response"] = "server"
        return found | dict.fromkeys(self.left_out, "validation")

    def _strict(self, tools: Collection[str]) -> set[str]:
        """Return the tools that are strict: those with the mark of the protocol, or all if it has no mark."""
        marks = {}
        for tool in self.fields.get("tools", ()):
            inner = tool.get("function", tool)
            marks[inner.get("name")] = bool(inner.get("strict"))
        return {name for name in tools if marks.get(name)} if any(marks.values()) else set(tools)
