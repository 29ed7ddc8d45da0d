"""Structured answers with LangChain: an instance of a class, a stream that grows, and what happens when room runs out.

    pip install 'toolgrammar[langchain]'
    python examples/langchain_structured.py

It runs offline and at once, because the model follows a script. For a real one, replace the model by::

    ChatToolGrammar(model="hf:Qwen/Qwen2.5-1.5B-Instruct")
"""

from __future__ import annotations

from typing import Literal

from langchain_core.exceptions import OutputParserException
from pydantic import BaseModel, Field

from toolgrammar.adapters.langchain import ChatToolGrammar
from toolgrammar.core.testing import ScriptedModel


class Part(BaseModel):
    """A part of a machine, made of parts."""

    name: str
    material: Literal["steel", "brass", "rubber"]
    count: int = Field(ge=1, le=99)
    parts: list[Part] = []


ANSWER = (
    '{"name": "bell", "material": "brass", "count": 1, "parts": ['
    '{"name": "clapper", "material": "steel", "count": 1, "parts": []}, '
    '{"name": "ring", "material": "rubber", "count": 2, "parts": []}]}'
)


def main() -> None:
    """Ask for a recursive structure in three ways."""
    question = "Which parts does a bell have?"

    model = ChatToolGrammar(model=ScriptedModel(lambda messages: ANSWER))
    bell = model.with_structured_output(Part).invoke(question)
    print(f"as an object: {bell.name} of {bell.material}, with {', '.join(part.name for part in bell.parts)}")

    print("as a stream:  ", end="")
    seen = 0
    for piece in model.with_structured_output(Part.model_json_schema()).stream(question):
        if len(piece.get("parts", [])) > seen:
            seen = len(piece["parts"])
            print(f"{seen} part{'s' * (seen > 1)} ", end="")
    print("done")

    # A budget that is too small is an error with a location, not half an answer.
    short = ChatToolGrammar(model=ScriptedModel(lambda messages: ANSWER), max_tokens=100)
    try:
        short.with_structured_output(Part).invoke(question)
    except OutputParserException as error:
        print(f"too short:    {str(error).splitlines()[0]}")
    raw = short.invoke(question, response_format=Part, allow_cut=True)
    print(f"still valid:  {Part.model_validate_json(raw.text)!r}")


if __name__ == "__main__":
    main()
