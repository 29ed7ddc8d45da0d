"""What every framework's agents get in `agents_validity`: a request, a model of noise, and a record of what ran."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jsonschema
import numpy as np

from toolgrammar.core import BudgetError, LimitError, Message, SchemaError, load_model
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


class NoiseSession:
    """A sequence without a model: logits that do not look at it."""

    def __init__(self, logits: np.ndarray[Any, np.dtype[np.float32]]) -> None:
        self._logits = logits
        self.length = 0

    def extend(self, token_ids: Sequence[int]) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Append tokens; the logits are always the same."""
        self.length += len(token_ids)
        return self._logits.copy()

    def crop(self, length: int) -> None:
        """Forget tokens."""
        self.length = length

    def close(self) -> None:
        """Nothing to free."""


class NoiseBackend:
    """The embedded model's tokenizer and uniform choice, but for a liking of what ends strings, numbers and turns.

    Without that hardly any string would end before the budget does, and no tool would ever run.
    """

    name = "noise"
    tool_format = "hermes"
    context_window = 1 << 20

    def __init__(self) -> None:
        self._like = load_model("embedded").backend
        self.vocabulary = self._like.vocabulary
        self._logits = np.zeros(self.vocabulary.size, dtype=np.float32)
        for number, data in enumerate(self.vocabulary.tokens):
            if data and data[0] in _CLOSING:
                self._logits[number] = 4.0
        for number in (*self.vocabulary.eos, self.vocabulary.tokens.index(_MARKER)):
            self._logits[number] = math.log(self.vocabulary.size / 4)

    def encode(self, text: str) -> list[int]:
        """As the tokenizer writes it."""
        return list(self._like.encode(text))

    def encode_prompt(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), tool_prompt: str = ""
    ) -> list[int]:
        """One token: there is nobody to read more."""
        return [0]

    def start(self) -> NoiseSession:
        """A fresh sequence."""
        return NoiseSession(self._logits)


@cache
def noise() -> Model:
    """The model of noise; one per process."""
    return Model(NoiseBackend())
