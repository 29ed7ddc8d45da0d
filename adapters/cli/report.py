"""Report on a JSON Schema as it is enforced: exact, narrowed or refused, with random outputs."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .source import Source

if TYPE_CHECKING:
    from toolgrammar.core import ToolGrammarError, UnsupportedSchemaError

#: Number of random outputs.
SAMPLES = 5

#: What is said of a schema, by the word for it.
VERDICTS = {
    "exact": "every keyword can be enforced exactly",
    "narrowed": "can be enforced, but some valid values are never written",
    "refused": "cannot be enforced",
}


@dataclass(frozen=True)
class Report:
    """A schema as it is enforced.

    Attributes:
        source: the schema.
        problems: why it is refused; empty if it is not.
        narrowed: keywords of which some valid values are never written.
        samples: random outputs.
    """

    source: Source
    problems: tuple[ToolGrammarError, ...]
    narrowed: tuple[UnsupportedSchemaError, ...] = ()
    samples: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """The word for it: exact, narrowed or refused."""
        return "refused" if self.problems else "narrowed" if self.narrowed else "exact"

    @property
    def sentence(self) -> str:
        """What is said of it."""
        said = VERDICTS[self.verdict]
        return said if self.source.given is None else said.replace("keyword", "rule")

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON data."""
        return {
            "verdict": self.verdict,
            "enforceable": not self.problems,
            "problems": [self.source.finding(problem) for problem in self.problems],
            "narrowed": [{**self.source.finding(problem), "left_out": problem.left_out} for problem in self.narrowed],
            "samples": list(self.samples),
        }


def report_of(source: Source, seed: int = 0) -> Report:
    """Return how a schema is enforced, with random outputs."""
    from toolgrammar.core import ToolGrammarError
    from toolgrammar.core.sampling import random_text
    from toolgrammar.core.schema import check as find_problems

    schema = source.schema
    problems: tuple[ToolGrammarError, ...] = tuple(find_problems(schema)) if isinstance(schema, (dict, bool)) else ()
    if problems:
        return Report(source, problems)
    try:
        grammar = source.grammar()
        grammar.check()
        draw = random.Random(seed)
        samples = tuple(random_text(grammar, draw) for _ in range(SAMPLES))
    except ToolGrammarError as error:
        return Report(source, (error,))
    return Report(source, (), grammar.narrowed, samples)
