"""Who enforced what: the server, by its constrained decoding, or validation."""

from __future__ import annotations

from typing import Any

import pytest

from toolgrammar.core.models.remote.form import CALLS, ENFORCED, GRAMMAR, STRUCTURAL_TAG, Form

SERVER, CHECKED = "server", "validation"
STRICT = [{"function": {"name": "a", "strict": True}}, {"function": {"name": "b"}}]


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (Form(ENFORCED, schema_in_prompt=True), {"a": SERVER, "b": SERVER, "response": SERVER}),
        (Form(GRAMMAR), {"a": SERVER, "b": SERVER, "response": SERVER}),
        (
            Form(STRUCTURAL_TAG, left_out=("a: unique items",)),
            {"a": SERVER, "b": SERVER, "response": SERVER, "a: unique items": CHECKED},
        ),
        (Form(CALLS, schema_in_prompt=True), {"a": SERVER, "b": SERVER, "response": CHECKED}),
        (
            Form("strict tools", {"tools": STRICT}, ("a/properties/n/minimum",), schema_in_prompt=True),
            {"a": SERVER, "b": CHECKED, "response": CHECKED, "a/properties/n/minimum": CHECKED},
        ),
        (
            Form("strict tools (1 of 2)", {}, ("b",), schema_in_prompt=True),
            {"a": SERVER, "b": CHECKED, "response": CHECKED},
        ),
        (Form("strict tools + json_schema", {"tools": STRICT}), {"a": SERVER, "b": CHECKED, "response": SERVER}),
        (Form("tools + json_schema", {"tools": STRICT}), {"a": CHECKED, "b": CHECKED, "response": SERVER}),
        (Form("json_object", schema_in_prompt=True), {"a": CHECKED, "b": CHECKED, "response": CHECKED}),
        (Form("prompt", tools_in_prompt=True), {"a": CHECKED, "b": CHECKED, "response": CHECKED}),
    ],
    ids=lambda value: value.name if isinstance(value, Form) else None,
)
def test_each_form_tells_who_enforces(form: Form, expected: dict[str, Any]) -> None:
    """A tool, the answer and each constraint that was left out."""
    assert form.enforced(("a", "b"), has_schema=True) == expected


def test_without_an_answer_there_is_none() -> None:
    """A request without a schema of the answer names the tools alone."""
    assert Form("text").enforced((), has_schema=False) == {}
    assert Form(GRAMMAR).enforced(("a",), has_schema=False) == {"a": SERVER}
