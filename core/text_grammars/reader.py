"""What the readers of EBNF and GBNF have in common: their state, and the rules that they end with."""

from __future__ import annotations

from collections.abc import Mapping

from .expressions import Expression
from .rules import Rules
from .source import Source
from .tokens import Tokens

#: Maximum nesting of brackets.
MAX_NESTING = 100


class RuleReader:
    """Reader of rules, ``name ::= ...``, that refer to each other by name.

    Args:
        text: the grammar.
        root: the name of the rule that texts are of.
        tokens: returns the expression of a token.
        slips: see `Source`.
    """

    def __init__(self, text: str, root: str, tokens: Tokens, slips: Mapping[str, str]) -> None:
        self._source = Source(text, slips)
        self._root = root
        self._tokens = tokens
        self._named: list[Expression] = []  # by tokens
        self._depth = 0
        self._rules: dict[str, Expression] = {}
        self._uses: dict[str, int] = {}

    def _finished(self, dialect: str) -> Rules:
        """Return the rules, all of which were read.

        Raises:
            GrammarError: a rule is not defined, or the root has no finite text.
        """
        source = self._source
        if self._root not in self._rules:
            source.fail(f"expected a rule {self._root!r}, the start rule")
        for name, at in self._uses.items():
            if name not in self._rules:
                source.fail(f"rule {name!r} is not defined", at=at, hint=f"known rules: {', '.join(self._rules)}")
        rules = Rules((dialect, source.text, self._root, tuple(self._named)), self._rules, self._root)
        rules.check()
        return rules
