"""What every framework's agents get in `agents_validity`: a request, a model of noise, and a record of what ran."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jsonschema
import numpy as np

from benchmarks.shared.noise import NoiseBackend
from toolgrammar.core import BudgetError, LimitError, SchemaError, load_model
from toolgrammar.core.models import Model
from toolgrammar.tools import to_json_schema

#: What an agent's run may end with: a schema that is refused, or a budget or limit that is too small for the request.
DECLARED = (SchemaError, BudgetError, LimitError)

#: How many turns of the model an agent may take.
MAX_TURNS = 4

_CLOSING = b'",}]'
_MARKER = b"<tool_call>"


@dataclass
class Case:
    """One run of one agent.

    Attributes:
        id: of the request.
        question: what the user says.
        functions: the tools: dicts with ``name``, ``description`` and ``parameters``, in the data set's own dialect.
        seed: of the sampling.
        max_tokens: the budget of a turn.
        model: who writes; chooses calls and arguments at random.
        ran: how many tools ran.
        cut: how many calls the framework was told not to run.
        problems: what went wrong, in words.
    """

    id: str
    question: str
    functions: Sequence[Mapping[str, Any]]
    seed: int
    max_tokens: int
    model: Model
    ran: int = 0
    cut: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def stream(self) -> bool:
        """Whether the agent is to be streamed: every other one is."""
        return self.seed % 2 == 1

    def schema(self, name: str) -> Any:
        """The JSON Schema of a tool's arguments."""
        (parameters,) = [each["parameters"] for each in self.functions if each["name"] == name]
        return to_json_schema(parameters)

    def run_tool(self, name: str, arguments: Mapping[str, Any]) -> str:
        """What every tool does: its arguments are judged by a validator that knows nothing of grammars."""
        self.ran += 1
        validator = jsonschema.Draft202012Validator(self.schema(name))
        self.problems += [f"invalid arguments: {name}: {error.message}" for error in validator.iter_errors(arguments)]
        return "done"


@cache
def noise() -> Model:
    """The embedded model's tokenizer and uniform choice, but for a liking of what ends strings, numbers and turns; one
    per process.

    Without that hardly any string would end before the budget does, and no tool would ever run.
    """
    like = load_model("embedded").backend
    vocabulary = like.vocabulary
    backend = NoiseBackend(vocabulary, like.encode, "noise")
    logits = np.zeros(vocabulary.size, dtype=np.float32)
    logits[[number for number, data in enumerate(vocabulary.tokens) if data and data[0] in _CLOSING]] = 4.0
    logits[[*vocabulary.eos, vocabulary.tokens.index(_MARKER)]] = math.log(vocabulary.size / 4)
    backend.logits = logits
    return Model(backend)
