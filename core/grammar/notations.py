"""A grammar in the notations of other engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ..language.nodes import Nodes

if TYPE_CHECKING:
    from ..export.rules import ExportedRules
    from ..export.writers import Exported
    from ..vocabulary.vocabulary import Vocabulary


class Checked(Protocol):
    """A grammar (`grammar.Grammar`, which imports this module)."""

    def check(self) -> None:
        """Raise an error unless the language has a text."""

    def _checked_build(self, nodes: Nodes) -> int: ...


def written(grammar: Checked, notation: str, vocabulary: Vocabulary | None = None) -> Exported:
    """Return a grammar in another notation.

    Args:
        grammar: the grammar; it has a text.
        notation: ``"gbnf"``, ``"ebnf"``, ``"lark"`` or ``"regex"``.
        vocabulary: the vocabulary of the ids of control tokens; None: control tokens are written by name.

    Raises:
        ToolGrammarError: the notation cannot say it.
    """
    from ..export.writers import written_as, written_as_regex
    from ..text_grammars.tokens import special_of

    rules = exported(grammar)
    return written_as_regex(rules) if notation == "regex" else written_as(notation, rules, special_of(vocabulary))


def exported(grammar: Checked) -> ExportedRules:
    """Return the rules of a grammar, from which every notation is written.

    Raises:
        ToolGrammarError: it has no text, or too many rules.
    """
    from ..export.rules import exported_rules

    grammar.check()
    nodes = Nodes()
    try:
        return exported_rules(nodes, grammar._checked_build(nodes))
    finally:
        nodes.clear()
