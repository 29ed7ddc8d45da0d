"""Leniencies: deviations that parsers accept in unconstrained text, by name, with their costs."""

from __future__ import annotations

from typing import Literal

from toolgrammar.core.repair import Edit

Leniency = Literal[
    "unclosed_reasoning",
    "text_after_calls",
    "other_markup",
    "missing_brace",
    "missing_end_tag",
    "unescaped_quote",
    "echo",
    "repeated_element",
    "other_key",
    "arguments_as_text",
    "missing_arguments",
    "python_literal",
    "xml_entity",
    "bare_json",
    "other_spelling",
    "repaired",
]

#: The cost of each (`Edit.cost`): next to nothing for another spelling, more where a text may have meant something
#: else.
LENIENCIES: dict[Leniency, float] = {
    "unclosed_reasoning": 1.0,  # calls stand in reasoning that never ends
    "text_after_calls": 0.1,  # text follows calls, where the family writes none
    "other_markup": 0.1,  # markup before, between or after calls is missing, or another
    "missing_brace": 0.5,  # the last brace of a call was forgotten
    "missing_end_tag": 0.5,  # the tag that ends an argument was forgotten
    "unescaped_quote": 0.5,  # a string holds the quotes that are around it
    "echo": 0.5,  # the calls are there again, without the markup before them: read once
    "repeated_element": 0.5,  # an object has several elements of one name: a list
    "other_key": 0.1,  # the arguments stand under another key than the family's
    "arguments_as_text": 0.1,  # the arguments are a JSON string that holds their object
    "missing_arguments": 0.1,  # a call has no arguments at all: read as an empty object
    "python_literal": 0.1,  # a value is written as Python writes it
    "xml_entity": 0.1,  # a value is written with entities of XML
    "bare_json": 0.5,  # a call of a known tool is JSON in the text, without the markup of the format
    "other_spelling": 0.5,  # a turn begins as a call in the spelling of another family, and is held to that call
    "repaired": 0.5,  # ``parse(repair=True)`` made the call valid
}


def lenient(name: Leniency, start: int, old: str = "", new: str = "") -> Edit:
    """Return a leniency as an edit of the text.

    Args:
        name: which one it is.
        start: where it begins in the text.
        old: the text there; empty: the place alone is known, or something is missing.
        new: what the format writes there; empty: it writes nothing like it, and the edit only marks the place.
    """
    return Edit(start, start + len(old), old, new, LENIENCIES[name], name)
