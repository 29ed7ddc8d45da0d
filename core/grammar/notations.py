"""A grammar in the notations of other engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..language.nodes import Nodes

if TYPE_CHECKING:
    from ..export.rules import ExportedRules
    from ..export.writers import Exported
    from ..vocabulary.vocabulary import Vocabulary


def written(grammar: Any, notation: str, vocabulary: Vocabulary | None = None) -> Exported:
    """Return a grammar in another notation.

    Args:
        grammar: a `Grammar` (which imports this module).
        notation: ``"gbnf"``, ``"ebnf"``, ``"lark"`` or ``"regex"``.
        vocabulary: the vocabulary of the ids of control tokens; None: control tokens are written by name.

    Raises:
        ToolGrammarError: the notation cannot say it.
    """
    from ..export.writers import written_as, written_as_regex
    from ..text_grammars.tokens import special_of

    rules = exported(grammar)
    return written_as_regex(rules) if notation == "regex" else written_as(notation, rules, special_of(vocabulary))


def exported(grammar: Any) -> ExportedRules:
    """Return the rules of a `Grammar`, from which every notation is written.

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
